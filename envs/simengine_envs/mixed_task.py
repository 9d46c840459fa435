"""`MixedTask`: a task that several robots do."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Self

import numpy as np

from simengine.errors import did_you_mean
from simengine_envs.task import Task


class MixedTask(Task):
    """A task that several robots do. Each has a model of its own, and all have spaces of the same size.

    Attributes:
        robots: names of the robots, at least one.
        robot: the robot of this task. A single environment has one robot, by default the first. In a vector environment
            None stands for all.
    """

    robots: tuple[str, ...] = ()
    robot: str | None = None

    def __post_init__(self) -> None:
        """Check the arguments. Raises ValueError."""
        self.check_robots()
        super().__post_init__()

    def check_robots(self) -> None:
        """Raise ValueError if there is no robot, or not the one that is asked for."""
        if not self.robots:
            raise ValueError(f"robots of {type(self).__name__} is empty; name at least one robot")
        if self.robot is not None and self.robot not in self.robots:
            hint = did_you_mean(self.robot, self.robots)
            raise ValueError(f"robot is {self.robot!r}{hint}; give one of {', '.join(self.robots)}, or None")

    def members(self) -> tuple[Self, ...]:
        """The task for each robot; for one only if `robot` names it."""
        names = self.robots if self.robot is None else (self.robot,)
        return tuple(replace(self, robot=name) for name in names)

    @abstractmethod
    def masks(self) -> tuple[np.ndarray, np.ndarray]:
        """Which entries of an observation (size,) and of an action (action size,) the robot has, bool each."""
