"""Exceptions of the engine. Each is raised at the call that caused it, and says in one sentence what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches


class SimengineError(Exception):
    """Base class of the engine's own errors."""


class ModelError(SimengineError, ValueError):
    """A model could not be read or compiled."""


class UnknownModelError(ModelError, FileNotFoundError):
    """There is no model of this name, or no file at this path."""


class UnsupportedModelError(ModelError):
    """A model needs features that the engine does not have.

    Attributes:
        features: one line for each unsupported element, which names the feature and the element.
    """

    def __init__(self, model_name: str, features: list[str]):
        self.features = tuple(features)
        super().__init__(
            f"model {model_name!r} needs {len(features)} feature(s) that simengine does not support yet: "
            + "; ".join(features)
            + "; remove them from the model or use MuJoCo itself for it"
        )


class BackendError(SimengineError, RuntimeError):
    """A backend, compiler or device is missing or has failed."""


class NonFiniteError(SimengineError, FloatingPointError):
    """The state of some worlds is not finite, or has a number beyond 1e10, at which MuJoCo warns and resets.

    Attributes:
        worlds: indices of these worlds in their group.
        stages: for each of these worlds, the name of the stage that found the value.
        model: name of their model.
        found: the first part of the message, without the advice to programs.
    """

    def __init__(self, worlds: list[int], stages: list[str], model: str):
        self.worlds = tuple(worlds)
        self.stages = tuple(stages)
        self.model = model
        shown = ", ".join(f"world {w} (in {s})" for w, s in list(zip(worlds, stages, strict=True))[:4])
        more = f" and {len(worlds) - 4} more" if len(worlds) > 4 else ""
        self.found = f"bad state (not finite, or beyond 1e10) of model {model!r} in {shown}{more}"
        super().__init__(
            f"{self.found}; those worlds are frozen and the others are untouched: reset them with sim.reset(worlds), "
            "or pass on_nonfinite='reset' or 'freeze' to Simulation"
        )


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the hint that an error gives for an unknown name: " (did you mean ...?)", or "" if no name is near.

    Names that share a beginning, such as "simengine/", are all near one another. So other names than the nearest are
    given only if they differ at most twice as much.

    Args:
        name: the unknown name.
        known: the names that exist.
    """
    lower, by_lower = str(name).lower(), {other.lower(): other for other in known}
    near = get_close_matches(lower, by_lower)
    differences = [1 - SequenceMatcher(None, other, lower).ratio() for other in near]
    nearest = [repr(by_lower[n]) for n, d in zip(near, differences, strict=True) if d <= 2 * differences[0]]
    return f" (did you mean {' or '.join(nearest)}?)" if nearest else ""
