"""Ids of a model's elements by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simengine.errors import did_you_mean
from simengine_envs.task import Task

if TYPE_CHECKING:
    from simengine import Model


def body_id(task: Task, model: Model, argument: str) -> int:
    """The id of the body that an argument of a task names, or gives as an id.

    Raises:
        ValueError: the model has no such body.
    """
    return _id_of(task, model, getattr(task, argument), f" for {argument}", f"give an id below {model.nbody} or one of")


def body_named(task: Task, model: Model, name: str) -> int:
    """The id of a body without which the task makes no sense.

    Raises:
        ValueError: the model has no such body.
    """
    return _id_of(task, model, name, "", "give a model that has it, not only")


def _id_of(task: Task, model: Model, body: int | str, purpose: str, remedy: str) -> int:
    names = [model.mj.body(i).name for i in range(model.nbody)]
    if isinstance(body, str) and body in names:
        return names.index(body)
    if isinstance(body, str) or not 0 <= body < model.nbody:
        hint = did_you_mean(body, names) if isinstance(body, str) else ""
        raise ValueError(
            f"{type(task).__name__}: the model has no body {body!r}{purpose}{hint}; {remedy} "
            f"{[name for name in names if name]}"
        )
    return int(body)
