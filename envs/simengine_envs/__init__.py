"""Gymnasium environments on simengine, single and vector. Importing this package registers them.

    import gymnasium
    import simengine_envs

    env = gymnasium.make("simengine/Ant-v5")
    batch = gymnasium.make_vec("simengine/Ant-v5", num_envs=4096)

    task ── what is observed and rewarded; each file of `tasks` defines one task
      └── worlds ── a task in one `simengine.Simulation`, and resets of some of its worlds
            ├── single ── `SingleEnv`: any task in one world, as a `gymnasium.Env`
            └── vector ── `BatchEnv`: any task in many worlds, as a `gymnasium.vector.VectorEnv`

`registration` has the ids of the environments. `actions`, `assets`, `infos`, `rendering` and `seeds` serve both classes
of environments.
"""

from simengine_envs.registration import register_envs

__all__ = ["register_envs"]

register_envs()
