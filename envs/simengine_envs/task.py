"""`Task`: a frozen description of how worlds are reset, observed and rewarded.

The array functions of a task are pure. They take arrays whose first axis is the world, and use only functions that
NumPy, CuPy and JAX share (`array_namespace`), so that they run where their arguments are.
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
    """The module whose functions work on `array`: numpy, cupy or jax.numpy."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    return sys.modules[type(array).__module__.partition(".")[0]]


class Outcome(NamedTuple):
    """The outcome of one environment step of n worlds.

    Attributes:
        reward: (n,).
        terminated: (n,) bool.
        info: arrays (n,) under the keys of Gymnasium's `info`.
    """

    reward: Array
    terminated: Array
    info: dict[str, Array]


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """Base class of tasks. A subclass adds its arguments as fields.

    Attributes:
        xml_file: path of the model if it starts with "~", "." or "/"; else the name of one of Gymnasium's own models.
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
        """The same task with the names of elements of the model replaced by their ids."""
        return self

    @property
    @abstractmethod
    def derived(self) -> tuple[str, ...]:
        """Names of the derived fields that the task reads. It may always read `qpos` and `qvel`."""

    @abstractmethod
    def observation_structure(self, model: Model) -> dict[str, int]:
        """Sizes of the parts of the observation under Gymnasium's names: `skipped_qpos`, `qpos`, `qvel`, ..."""

    @abstractmethod
    def initial_state(
        self, rng: np.random.Generator, init_qpos: np.ndarray, init_qvel: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw the state of a new episode, with the same random numbers in the same order as Gymnasium.

        Args:
            rng: random generator of the world.
            init_qpos: reference positions of the model, (nq,).
            init_qvel: reference velocities, (nv,).

        Returns:
            `qpos` (nq,) and `qvel` (nv,).
        """

    @abstractmethod
    def observation(self, fields: Fields) -> Array:
        """The observations, (n, size)."""

    @abstractmethod
    def memory(self, fields: Fields) -> dict[str, Array]:
        """The values of this step that the reward of the next step needs, arrays (n, ...) by name."""

    @abstractmethod
    def outcome(self, memory: Fields, fields: Fields, action: Array, finite: Array, dt: float) -> Outcome:
        """Reward, termination and info of a step.

        Args:
            memory: the result of `memory` before the step.
            fields: fields of the engine after the step.
            action: (n, nu), as given to the step.
            finite: (n,) bool, false for worlds that the engine stopped because their state was not finite.
            dt: duration of the environment step [s].
        """

    @abstractmethod
    def reset_info(self, fields: Fields) -> dict[str, Array]:
        """The info of a reset, arrays (n,) by key."""
