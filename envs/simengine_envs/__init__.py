"""Gymnasium environments on simengine, single and vector. Importing this package registers them.

    import gymnasium
    import simengine_envs

    env = gymnasium.make("simengine/Ant-v5")
    batch = gymnasium.make_vec("simengine/Ant-v5", num_envs=4096)

A task (`simengine_envs.task.Task`, one file each under `simengine_envs/tasks`) says what is observed and rewarded; two
shells run any task: `SingleEnv`, one world, and `BatchEnv`, all worlds of a vector environment in one
`simengine.Simulation`.
"""

from simengine_envs.registration import register_envs

__all__ = ["register_envs"]

register_envs()
