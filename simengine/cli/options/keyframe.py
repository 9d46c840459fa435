"""The keyframe that an option names."""

from __future__ import annotations

from simengine import Model
from simengine.cli.options.errors import UsageError
from simengine.model.keyframe import keyframe_state


def keyframe_of(model: Model, given: str | None) -> int | str | None:
    """Return a keyframe by name or number; None if none is given. A name takes precedence over a number.

    Raises:
        UsageError: the model does not have it.
    """
    if given is None:
        return None
    names = [model.mj.key(i).name for i in range(model.nkey)]
    keyframe = int(given) if given.isdecimal() and given not in names else given
    try:
        keyframe_state(model.table, keyframe)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return keyframe
