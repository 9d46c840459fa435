"""Arguments that all environments share: of the engine, of rendering, and which task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any, NamedTuple

from simengine.errors import did_you_mean
from simengine_envs.autoreset import AutoresetMode
from simengine_envs.pure import PureEnv
from simengine_envs.rendering import RenderOptions
from simengine_envs.task import Task


class EngineOptions(NamedTuple):
    """Options of the engine.

    Attributes:
        backend: "cuda", "host", "jax", or "auto" for the first of these that can run here.
        dtype: type of the engine's real numbers, "float32" or "float64".
        nconmax, njmax: numbers of contacts and of constraint rows of a world, on average over the worlds, for which
            there is memory on a GPU; None for those of `simengine.contact_capacity`.
    """

    backend: str = "auto"
    dtype: str = "float32"
    nconmax: int | None = None
    njmax: int | None = None


def task_class(named: str | type[Task]) -> type[Task]:
    """The class of a task, given itself or as "module:name". Raises ValueError if it is none."""
    found: Any = named
    if isinstance(named, str):
        module, _, name = named.partition(":")
        try:
            found = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"there is no task {named!r} ({error}); give a class or 'module:Class'") from error
    if not (isinstance(found, type) and issubclass(found, Task)):
        raise ValueError(f"{named!r} is no task; give a class derived from simengine_envs.Task, or 'module:Class'")
    return found


def split_arguments(task: str | type[Task], arguments: Mapping[str, Any]) -> tuple[Task, EngineOptions, RenderOptions]:
    """Make the task, and split its arguments from those of the engine and of rendering.

    Raises:
        TypeError: an argument is unknown.
        ValueError: an argument of the task is out of its range.
    """
    cls, rest = task_class(task), dict(arguments)
    engine = {name: rest.pop(name) for name in EngineOptions._fields if name in rest}
    render = {name: rest.pop(name) for name in RenderOptions._fields if name in rest}
    known = [item.name for item in fields(cls) if item.init]
    for name in rest:
        if name not in known:
            hint = did_you_mean(name, (*known, *EngineOptions._fields, *RenderOptions._fields))
            raise TypeError(f"{cls.__name__} has no argument {name!r}{hint}; it takes {', '.join(known)}")
    return cls(**rest), EngineOptions(**engine), RenderOptions(**render)


_compiled: dict[tuple[Any, ...], PureEnv] = {}
_MOST_COMPILED = 64


def pure_env(
    task: Task, engine: EngineOptions, max_episode_steps: int | None, autoreset_mode: AutoresetMode
) -> PureEnv:
    """The pure environment with these arguments. Equal arguments give the same one, whose compiled functions remain."""
    said = repr(sorted(task.arguments().items()))
    key = (type(task), said, engine, max_episode_steps, autoreset_mode)
    if key not in _compiled:
        while len(_compiled) >= _MOST_COMPILED:
            del _compiled[next(iter(_compiled))]
        room = engine.nconmax, engine.njmax
        _compiled[key] = PureEnv(task, engine.backend, engine.dtype, max_episode_steps, autoreset_mode, *room)
    return _compiled[key]
