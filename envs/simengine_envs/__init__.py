"""Gymnasium environments on the engine: single, in batches, and as pure functions of JAX, all from one definition.

    task          `Task`, the definition: start, observation, reward terms, termination, events
    snapshot      `Snapshot`, what the functions of a task see
    sums, rounding, rows
                  bits that do not depend on the number of worlds; rows of a few worlds
    lanes         a step on a CPU in one custom call
    draw          `Draw`, random numbers by seed, world, episode, step and draw
    pure          `PureEnv`, a task in many worlds as pure functions
    mixed_task, mixed_pure, mixed
                  `MixedTask`, `MixedPureEnv` and `MixedBatchEnv`, the same for several robots
    results       `EnvState` and `StepResult`, what steps take and give
    making        `make_pure`, the pure environment of an id
    checks        checks of what the functions of a task return
    runner        compiles a pure environment and runs it
    single        `SingleEnv`, a `gymnasium.Env`
    vector        `BatchEnv`, a `gymnasium.vector.VectorEnv` with arrays of NumPy, JAX, PyTorch or CuPy
    arrays        kinds of arrays
    autoreset     `AutoresetMode`, under old versions of Gymnasium too
    devices       which backend runs, and on which device
    flags         whether something went wrong in worlds, found out without waiting
    actions, infos, seeds, options, models, assets, rendering, tiling
                  arguments, results and pictures
    registration  ids of environments
    adapters      the same for Stable-Baselines3, rsl_rl and Brax
    tasks         one file for each task

`register_envs` registers the environments with Gymnasium. `import simengine` calls it through the entry point.
"""

from typing import TYPE_CHECKING, Any

from simengine_envs.registration import register, register_envs

if TYPE_CHECKING:
    from simengine_envs.devices import device_of
    from simengine_envs.draw import Draw
    from simengine_envs.making import make_pure
    from simengine_envs.mixed_pure import MixedPureEnv
    from simengine_envs.mixed_task import MixedTask
    from simengine_envs.pure import PureEnv
    from simengine_envs.results import EnvState, StepResult
    from simengine_envs.single import SingleEnv
    from simengine_envs.snapshot import Snapshot
    from simengine_envs.task import Task
    from simengine_envs.vector import BatchEnv

__all__ = [
    "BatchEnv",
    "Draw",
    "EnvState",
    "MixedPureEnv",
    "MixedTask",
    "PureEnv",
    "SingleEnv",
    "Snapshot",
    "StepResult",
    "Task",
    "device_of",
    "make_pure",
    "register",
    "register_envs",
]

_ON_FIRST_USE = {
    "BatchEnv": "vector",
    "Draw": "draw",
    "EnvState": "results",
    "MixedPureEnv": "mixed_pure",
    "MixedTask": "mixed_task",
    "PureEnv": "pure",
    "SingleEnv": "single",
    "Snapshot": "snapshot",
    "StepResult": "results",
    "Task": "task",
    "device_of": "devices",
    "make_pure": "making",
}


def __getattr__(name: str) -> Any:
    """Import what needs JAX on first use, so that registering the environments does not wait for it."""
    if name in _ON_FIRST_USE:
        from importlib import import_module

        value = getattr(import_module(f"simengine_envs.{_ON_FIRST_USE[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'simengine_envs' has no attribute {name!r}")


register_envs()
