"""MuJoCo Warp in a comparison of engines."""

from __future__ import annotations

from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from simengine.cli.bench.peers.engine import GPU, Engine, OverflowedError
from simengine.cli.bench.peers.problem import Problem, State


class MujocoWarp(Engine):
    """MuJoCo Warp, with a CUDA graph that makes a step with each set of controls, as its users run it.

    On a CPU, where it has no graphs, it is measured only if it is named.
    """

    name = "mujoco-warp"
    devices = (GPU,)
    newton_only = True
    packages = ("mujoco-warp", "warp-lang")

    def __init__(self, device: str, dtype: str) -> None:
        super().__init__(device, dtype)
        self.runs_on = device

    @classmethod
    def absent(cls) -> str:
        """Return which of its two packages is not installed."""
        lacking = [module for module in ("mujoco_warp", "warp") if find_spec(module) is None]
        return f"{cls.name} is not installed; run pip install mujoco-warp warp-lang" if lacking else ""

    def prepare(self, problem: Problem) -> None:
        """Copy the model to the device, and compile its kernels with the first step."""
        import mujoco_warp
        import warp

        self._wp, self._mjw, self._mj = warp, mujoco_warp, problem.mj
        warp.config.log_level = warp.LOG_WARNING  # no line for each kernel that it compiles
        self._device = warp.get_device("cuda:0" if self.runs_on == GPU else "cpu")
        self._limits = problem.contacts * problem.worlds, problem.rows
        with warp.ScopedDevice(self._device):
            self._model = mujoco_warp.put_model(problem.mj)
            self._data = mujoco_warp.make_data(
                problem.mj, nworld=problem.worlds, nconmax=problem.contacts, njmax=problem.rows
            )
            self._controls: list[Any] = [warp.array(one, dtype=float) for one in problem.controls.astype(np.float32)]
            self.set_state(problem.start)
            self._step(0)
            warp.synchronize()
            self._graph = self._captured() if self.runs_on == GPU else None
            self.set_state(problem.start)

    def set_state(self, state: State) -> None:
        """Write the states, and clear the warm start."""
        data = self._data
        data.qpos.assign(state.qpos.astype(np.float32))
        data.qvel.assign(state.qvel.astype(np.float32))
        if state.act.size:
            data.act.assign(state.act.astype(np.float32))
        data.qacc_warmstart.zero_()

    def step(self, steps: int) -> float:
        """Launch the graph, and single steps for what remains."""
        with self._wp.ScopedDevice(self._device):
            began = perf_counter()
            done = 0
            while self._graph and done + len(self._controls) <= steps:
                self._wp.capture_launch(self._graph)
                done += len(self._controls)
            for step in range(done, steps):
                self._step(step)
            self._wp.synchronize()
            seconds = perf_counter() - began
        self._check()
        return seconds

    def state(self) -> State:
        """Return the present states."""
        return State(*(getattr(self._data, name).numpy().astype(np.float64) for name in ("qpos", "qvel", "act")))

    def qacc(self) -> np.ndarray:
        """Return accelerations, without a warm start."""
        with self._wp.ScopedDevice(self._device):
            self._data.qacc_warmstart.zero_()
            self._control(0)
            self._mjw.forward(self._model, self._data)
            self._wp.synchronize()
        self._check()
        return np.asarray(self._data.qacc.numpy(), np.float64)

    def about(self) -> dict[str, Any]:
        """Return the room for contacts and rows of a world, and the tolerance if it is not the model's."""
        tolerance = float(np.max(self._model.opt.tolerance.numpy()))
        room = {"room_contacts": self._limits[0] // len(self._data.nefc), "room_rows": self._limits[1]}
        return room if np.isclose(tolerance, self._mj.opt.tolerance) else {**room, "tolerance": tolerance}

    def _step(self, step: int) -> None:
        self._control(step)
        self._mjw.step(self._model, self._data)

    def _control(self, step: int) -> None:
        if self._mj.nu:
            self._wp.copy(self._data.ctrl, self._controls[step % len(self._controls)])

    def _captured(self) -> Any:
        with self._wp.ScopedCapture() as capture:
            for step in range(len(self._controls)):
                self._step(step)
        return capture.graph

    def _check(self) -> None:
        contacts, rows = int(self._data.nacon.numpy()[0]), int(self._data.nefc.numpy().max())
        if contacts >= self._limits[0] or rows >= self._limits[1]:
            raise OverflowedError(
                f"{self.name} had room for {self._limits[0]} contacts and {self._limits[1]} rows of a world, and found "
                f"{contacts} and {rows}"
            )
