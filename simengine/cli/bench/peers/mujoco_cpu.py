"""Engines that step with MuJoCo's C on the threads of the CPU, in float64."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, requires, version
from time import perf_counter
from typing import Any, ClassVar

import mujoco
import numpy as np

from simengine import Model
from simengine.cli.bench.peers.engine import CPU, Engine
from simengine.cli.bench.peers.problem import Problem, State, load
from simengine.cli.simulations.rollout import MujocoRollout
from simengine_scheduler.executors.processors import usable_processors


class Rollout(Engine):
    """`mujoco.rollout`, a thread pool that makes many steps of each world in one call."""

    name = MujocoRollout.name
    devices = (CPU,)
    dtype = "float64"

    @classmethod
    def absent(cls) -> str:
        """Return "": it comes with MuJoCo, which simengine needs."""
        return ""

    def prepare(self, problem: Problem) -> None:
        """Start the threads."""
        self._problem = problem
        self._pool = MujocoRollout(Model(problem.mj), usable_processors())
        self.set_state(problem.start)

    def set_state(self, state: State) -> None:
        """Set the states from which the next steps start."""
        self._state = state

    def step(self, steps: int) -> float:
        """Step, and return the time spent in MuJoCo."""
        start = self._state
        seconds = self._pool.seconds(start.qpos, start.qvel, self._problem.controls, steps, start.act)
        self._state = State(*self._pool.last())
        return seconds

    def state(self) -> State:
        """Return the present states."""
        return self._state

    def qacc(self) -> np.ndarray:
        """Return accelerations by `mj_forward`, which a rollout calls in each step."""
        problem, data = self._problem, mujoco.MjData(self._problem.mj)
        found = np.empty_like(self._state.qvel)
        for world, row in enumerate(found):
            load(data, problem, self._state, world)
            data.ctrl = problem.controls[0, world]
            mujoco.mj_forward(problem.mj, data)
            row[:] = data.qacc
        return found

    def about(self) -> dict[str, Any]:
        """Return the number of threads."""
        return {"threads": usable_processors()}

    def close(self) -> None:
        """End the threads."""
        if hasattr(self, "_pool"):
            self._pool.__exit__()


class _Batch(Engine):
    """A batch whose fields are live arrays, and which is stepped from Python with controls of each step."""

    devices = (CPU,)
    dtype = "float64"
    module: ClassVar[str]

    def prepare(self, problem: Problem) -> None:
        """Make the batch."""
        self._controls, self._nv = problem.controls, problem.mj.nv
        self._batch = importlib.import_module(self.module).Batch(problem.mj, problem.worlds, usable_processors())
        fields = ("qpos", "qvel", "act", "ctrl", "qacc", "qacc_warmstart")
        sizes = dict(zip(fields, (1, 1, problem.mj.na, problem.mj.nu, 1, 1), strict=True))
        self._bound = {name: self._batch.bind(name) for name in fields if sizes[name]}
        self.set_state(problem.start)

    def set_state(self, state: State) -> None:
        """Write the states, and clear the warm start."""
        self._bound["qpos"][:], self._bound["qvel"][:] = state.qpos, state.qvel
        self._bound["qacc_warmstart"][:] = 0.0
        if "act" in self._bound:
            self._bound["act"][:] = state.act

    def step(self, steps: int) -> float:
        """Step, with a copy of the controls before each step."""
        began = perf_counter()
        for step in range(steps):
            self._control(step)
            self._batch.step()
        return perf_counter() - began

    def state(self) -> State:
        """Return the present states."""
        act = self._bound["act"].copy() if "act" in self._bound else np.zeros((len(self._bound["qpos"]), 0))
        return State(self._bound["qpos"].copy(), self._bound["qvel"].copy(), act)

    def qacc(self) -> np.ndarray:
        """Return accelerations by the batch's own forward pass."""
        self._bound["qacc_warmstart"][:] = 0.0
        self._control(0)
        self._batch.forward()
        return np.array(self._bound["qacc"])

    def about(self) -> dict[str, Any]:
        """Return the number of threads."""
        return {"threads": usable_processors()}

    def _control(self, step: int) -> None:
        if "ctrl" in self._bound:
            self._bound["ctrl"][:] = self._controls[step % len(self._controls)]


class Batch(_Batch):
    """`mujoco.batch`, which comes with MuJoCo 4."""

    name, module = "mujoco.batch", "mujoco.batch"

    @classmethod
    def absent(cls) -> str:
        """Return whether the installed MuJoCo is too old."""
        try:
            importlib.import_module(cls.module)
        except ImportError:
            return f"{cls.name} comes with MuJoCo 4, and {mujoco.__version__} is installed; run pip install mujoco>=4"
        return ""


class Mjbatch(_Batch):
    """mjbatch, whose wheels are each for one version of MuJoCo."""

    name, module = "mjbatch", "mjbatch"
    packages = ("mjbatch",)

    @classmethod
    def absent(cls) -> str:
        """Return whether mjbatch is not installed, or is for another MuJoCo."""
        try:
            importlib.import_module(cls.module)
        except ModuleNotFoundError:
            return "mjbatch is not installed; run pip install mjbatch"
        except ImportError:
            wanted = next((need for need in requires("mjbatch") or () if need.startswith("mujoco")), "another mujoco")
            return (
                f"mjbatch {_version('mjbatch')} needs {wanted}, and simengine runs with {mujoco.__version__}; run pip "
                "install -U mjbatch once it has a wheel for this MuJoCo"
            )
        return ""


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
