"""What a task is: a frozen description of what is reset, observed and rewarded, over a batch of worlds.

The array functions of a task are pure: they take arrays with the world axis first and use only functions that NumPy,
CuPy and JAX share, through `array_namespace`, so that they run where their arguments live.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from simengine import Model

Array = Any  # an array of NumPy, CuPy or JAX
Fields = Mapping[str, Array]  # engine fields under MuJoCo's names, each (n, ...)
SomeTask = TypeVar("SomeTask", bound="Task")


def array_namespace(array: Array) -> Any:
    """The module with the functions for `array`: numpy, cupy or jax.numpy."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    return sys.modules[type(array).__module__.partition(".")[0]]


class Outcome(NamedTuple):
    """What one environment step gave, for `n` worlds.

    Attributes:
        reward: (n,).
        terminated: (n,) bool.
        info: (n,) arrays under the names of Gymnasium's `info`.
    """

    reward: Array
    terminated: Array
    info: dict[str, Array]


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """Base of the tasks; a subclass adds its own arguments as fields.

    Attributes:
        xml_file: the model: a path that starts with "~", "." or "/", or the name of one of Gymnasium's own models.
        frame_skip: engine steps in one environment step.
        default_camera_config: attributes of MuJoCo's free camera, for rendering.
    """

    xml_file: str
    frame_skip: int
    default_camera_config: Mapping[str, float | int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the arguments.

        Raises:
            ValueError: an argument is out of its range.
        """
        if self.frame_skip < 1:
            raise ValueError(f"{type(self).__name__}: frame_skip must be at least 1, not {self.frame_skip}")

    def resolve(self: SomeTask, model: Model) -> SomeTask:
        """The same task with names of the model's elements replaced by their ids."""
        return self

    @property
    @abstractmethod
    def derived(self) -> tuple[str, ...]:
        """Derived engine fields that the task reads; `qpos` and `qvel` are always there."""

    @abstractmethod
    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation, in Gymnasium's words: `skipped_qpos`, `qpos`, `qvel`, ..."""

    @abstractmethod
    def initial_state(
        self, rng: np.random.Generator, init_qpos: np.ndarray, init_qvel: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw `qpos` (nq,) and `qvel` (nv,) of a new episode, with Gymnasium's draws in Gymnasium's order."""

    @abstractmethod
    def observation(self, fields: Fields) -> Array:
        """Observations (n, size)."""

    @abstractmethod
    def memory(self, fields: Fields) -> dict[str, Array]:
        """What the next step's reward needs of this moment, each (n, ...)."""

    @abstractmethod
    def outcome(self, memory: Fields, fields: Fields, action: Array, finite: Array, dt: float) -> Outcome:
        """Reward, termination and info of a step.

        Args:
            memory: `memory` of the moment before the step.
            fields: the engine's fields after the step.
            action: (n, nu), as given to the step.
            finite: (n,) bool, false where the engine stopped a world because its state left the finite numbers.
            dt: duration of the environment step [s].
        """

    @abstractmethod
    def reset_info(self, fields: Fields) -> dict[str, Array]:
        """Info of a reset, each (n,)."""
