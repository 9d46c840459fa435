"""Makes the environment that an adapter works on, from an id, a task or an environment."""

from __future__ import annotations

from typing import Any

from simengine_envs.autoreset import AutoresetMode
from simengine_envs.making import named_task
from simengine_envs.task import Task
from simengine_envs.vector import BatchEnv


def batch_env(env: str | type[Task] | BatchEnv, num_envs: int | None, array: str, **arguments: Any) -> BatchEnv:
    """The vector environment of an adapter, in which a new episode starts in the step that ends one.

    Args:
        env: id of an environment; or the class of a task; or a vector environment.
        num_envs: number of worlds; one if it is None. A vector environment has its own.
        array: kind of the arrays.
        **arguments: as for `BatchEnv`. A vector environment has its own.

    Raises:
        TypeError: an argument is unknown, or given with a vector environment.
        ValueError: there is no such id, or the vector environment has other arrays or another autoreset mode.
    """
    if not isinstance(env, (str, type)):
        return _checked(env, num_envs, array, arguments)
    task, own, limit = named_task(env)
    made = {"max_episode_steps": limit, **own, **arguments}
    return BatchEnv(task, num_envs or 1, array=array, autoreset_mode=AutoresetMode.SAME_STEP, **made)


def _checked(env: Any, num_envs: int | None, array: str, arguments: dict[str, Any]) -> BatchEnv:
    found = getattr(env, "unwrapped", env)
    if not isinstance(found, BatchEnv):
        raise TypeError(f"env is a {type(env).__name__}; give an id, the class of a task, or a simengine_envs.BatchEnv")
    if found is not env:
        raise TypeError(f"env is wrapped in {type(env).__name__}, which an adapter would pass by; give the BatchEnv")
    if num_envs not in (None, found.num_envs) or arguments:
        given = ", ".join([*(["num_envs"] if num_envs is not None else []), *arguments])
        raise TypeError(f"{given} cannot be changed in a BatchEnv that exists; give them to the BatchEnv")
    if found.kind.name != array or found.autoreset_mode != AutoresetMode.SAME_STEP:
        raise ValueError(
            f"the BatchEnv has array={found.kind.name!r} and autoreset_mode={found.autoreset_mode.name}; "
            f"make it with array={array!r} and autoreset_mode=AutoresetMode.SAME_STEP"
        )
    return found
