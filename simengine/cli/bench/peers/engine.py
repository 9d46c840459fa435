"""The interface of an engine in a comparison."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from simengine.cli.bench.peers.problem import Problem, State

GPU, CPU = "gpu", "cpu"


class OverflowedError(RuntimeError):
    """An engine has dropped contacts or constraint rows, because it had no room for them."""


class Engine(ABC):
    """An engine that steps all worlds of a problem.

    An engine is made, prepared with a problem, and closed. It runs on the device of the comparison where it can.

    Args:
        device: "gpu" or "cpu", where simengine runs in this comparison.
        dtype: precision of simengine in this comparison. Peers have their own.
    """

    name: ClassVar[str]
    devices: ClassVar[tuple[str, ...]]
    """Devices on which it is measured unless peers are named. The first is where it runs if it has only one."""

    newton_only: ClassVar[bool] = False
    """Whether it lacks PGS."""

    packages: ClassVar[tuple[str, ...]] = ()
    """Distributions whose versions belong to the result."""

    dtype: str = "float32"

    def __init__(self, device: str, dtype: str) -> None:
        self.runs_on = device if device in self.devices else self.devices[0]

    @classmethod
    @abstractmethod
    def absent(cls) -> str:
        """Return why the engine cannot be used here and how to install it, in one sentence, or "" if it can."""

    @abstractmethod
    def prepare(self, problem: Problem) -> None:
        """Load the problem, and set the first states.

        Raises:
            Exception: the engine refuses the model, or has failed. The message is the engine's own.
        """

    @abstractmethod
    def set_state(self, state: State) -> None:
        """Set the states of all worlds, and clear what the solver would start from."""

    @abstractmethod
    def step(self, steps: int) -> float:
        """Make steps under the problem's controls in turn, from the first set on.

        Returns:
            Time until the last step had completed [s].

        Raises:
            OverflowedError: contacts or rows were dropped in the last of these steps.
        """

    @abstractmethod
    def state(self) -> State:
        """Return the present states, in float64 on the host."""

    @abstractmethod
    def qacc(self) -> np.ndarray:
        """Return accelerations in the present states under the first set of controls, (worlds, nv), on the host."""

    def about(self) -> dict[str, Any]:
        """Return what explains the speed: room for contacts and rows, threads, executor."""
        return {}

    def close(self) -> None:  # noqa: B027  most engines free their memory when they are collected
        """Free memory and threads."""
