"""`make_pure`: the pure environment of an id, of a task, or of its class."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import gymnasium

from simengine_envs.autoreset import AutoresetMode
from simengine_envs.choices import autoreset_mode_of
from simengine_envs.mixed_pure import MixedPureEnv
from simengine_envs.mixed_task import MixedTask
from simengine_envs.options import pure_env, split_arguments
from simengine_envs.pure import PureEnv
from simengine_envs.registration import check_name
from simengine_envs.task import Task


class Named(NamedTuple):
    """A task with the arguments of its id.

    Attributes:
        task: class of the task, or "module:Class".
        arguments: arguments of the task.
        max_episode_steps: steps after which an episode is truncated; None for no limit.
    """

    task: str | type[Task]
    arguments: dict[str, Any]
    max_episode_steps: int | None


def named_task(env: str | type[Task]) -> Named:
    """The task of an id, or a task by its class.

    Raises:
        ValueError: no environment of simengine's kind has this id.
    """
    if not isinstance(env, str):
        return Named(env, {}, None)
    check_name(env)
    spec = gymnasium.spec(env)
    arguments = dict(spec.kwargs)
    return Named(arguments.pop("task"), arguments, spec.max_episode_steps)


def make_pure(
    env: str | type[Task], *, autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP, **arguments: Any
) -> PureEnv:
    """The pure environment of an id, with its time limit, or of the class of a task.

    That of several robots is a `MixedPureEnv`, which has the same functions.

    Args:
        env: id of an environment, such as "simengine/Ant-v5", or the class of a task.
        autoreset_mode: when a new episode starts after one has ended; see `gymnasium.vector.AutoresetMode`.
        **arguments: arguments of the task, `max_episode_steps`, and `backend`, `dtype`, `nconmax`, `njmax` as for
            `PureEnv`.

    Raises:
        TypeError: an argument is unknown.
        ValueError: there is no such id, or an argument is out of its range.
        simengine.errors.BackendError: the backend cannot run here.
    """
    named = named_task(env)
    given = {"max_episode_steps": named.max_episode_steps, **named.arguments, **arguments}
    limit = given.pop("max_episode_steps")
    task, engine, _ = split_arguments(named.task, given)
    mode = autoreset_mode_of(autoreset_mode)
    if isinstance(task, MixedTask):
        room = engine.nconmax, engine.njmax
        return cast(PureEnv, MixedPureEnv(task, engine.backend, engine.dtype, limit, mode, *room))
    return pure_env(task, engine, limit, mode)
