"""Worlds without physics, and a clock that only they and the loop move."""

from __future__ import annotations

import mujoco
import numpy as np

from simengine.view.forces import Forces
from simengine.view.worlds import Inputs

NOTHING = Forces(np.zeros((0, 3)), np.zeros((0, 3)))


class Clock:
    """A clock that moves when something takes time."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def take(self, seconds: float) -> None:
        self.time += seconds


class CountingWorlds:
    """Worlds that count their steps. A step takes `cost` seconds of the clock."""

    def __init__(self, clock: Clock, cost: float = 0.0, num_worlds: int = 4, timestep: float = 0.01) -> None:
        self.mj = mujoco.MjModel.from_xml_string("<mujoco/>")
        self.name, self.num_worlds, self.timestep = "counting", num_worlds, timestep
        self.inputs = Inputs("Controls", (), np.zeros(0), np.zeros(0))
        self.clock, self.cost = clock, cost
        self.calls: list[int] = []
        self.resets: list[int | None] = []

    def step(self, n: int) -> None:
        self.clock.take(n * self.cost)
        self.calls.append(n)

    def reset(self, world: int | None = None) -> None:
        self.resets.append(world)

    def time(self, world: int) -> float:
        return sum(self.calls) * self.timestep

    def frozen(self) -> int:
        return 0

    def geom_poses(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((end - first, 0, 3)), np.zeros((end - first, 0, 3, 3))

    def contact_forces(self, world: int) -> Forces:
        return NOTHING

    def applied_forces(self, world: int) -> Forces:
        return NOTHING

    def note(self, world: int) -> str:
        return ""

    def input(self, world: int) -> np.ndarray:
        return np.zeros(0)

    def is_held(self, world: int) -> bool:
        return False

    def hold(self, world: int, values: np.ndarray | None) -> None:
        raise AssertionError("there are no actuators")

    def push(self, world: int, body: int, force: np.ndarray) -> None:
        raise AssertionError("there are no bodies")
