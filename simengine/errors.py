"""Exceptions of the engine, each raised at the call that caused it, in one sentence: what, where, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class SimengineError(Exception):
    """Base class of the engine's own errors."""


class ModelError(SimengineError, ValueError):
    """A model could not be read or compiled."""


class UnknownModelError(ModelError, FileNotFoundError):
    """There is no model of this name, or no file at this path."""


class UnsupportedModelError(ModelError):
    """A model needs features that the engine does not have yet.

    Attributes:
        features: one line per unsupported element, naming the feature and the element.
    """

    def __init__(self, model_name: str, features: list[str]):
        self.features = tuple(features)
        super().__init__(
            f"model {model_name!r} needs {len(features)} feature(s) that simengine does not support yet: "
            + "; ".join(features)
            + "; remove them from the model or use MuJoCo itself for it"
        )


class BackendError(SimengineError, RuntimeError):
    """A backend, compiler or device is missing or failed."""


class NonFiniteError(SimengineError, FloatingPointError):
    """Worlds whose state went non-finite.

    Attributes:
        worlds: indices of the worlds, within the group of their model.
        stages: for each of them, the name of the stage that found it.
        model: name of their model.
    """

    def __init__(self, worlds: list[int], stages: list[str], model: str):
        self.worlds = tuple(worlds)
        self.stages = tuple(stages)
        self.model = model
        shown = ", ".join(f"world {w} (in {s})" for w, s in list(zip(worlds, stages, strict=True))[:4])
        more = f" and {len(worlds) - 4} more" if len(worlds) > 4 else ""
        super().__init__(
            f"non-finite state of model {model!r} in {shown}{more}; those worlds are frozen and the others are "
            "untouched: reset them with sim.reset(worlds), or pass on_nonfinite='reset' or 'freeze' to Simulation"
        )


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """What an error says after a name that is not known: " (did you mean ...?)" with the nearest, or nothing.

    Args:
        name: what was given.
        known: the names there are.
    """
    by_lower = {other.lower(): other for other in known}
    nearest = [repr(by_lower[lower]) for lower in get_close_matches(str(name).lower(), by_lower)]
    return f" (did you mean {' or '.join(nearest)}?)" if nearest else ""
