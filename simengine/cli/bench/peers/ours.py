"""simengine in a comparison of engines."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from simengine import Model, Simulation
from simengine.cli.bench.peers.engine import CPU, GPU, Engine
from simengine.cli.bench.peers.problem import Problem, State
from simengine.cli.simulations.stepping import on_device, on_host

_PLAN_BYTES = 128 * 2**20  # size of the controls of one call at most, as for mujoco.rollout


class Simengine(Engine):
    """simengine on one of its backends, with the executor that it chooses.

    Args:
        device: "gpu" or "cpu".
        dtype: "float32" or "float64".
        backend: the backend, "host", "cuda" or "jax".
    """

    name = "simengine"
    devices = (GPU, CPU)

    def __init__(self, device: str, dtype: str, backend: str) -> None:
        super().__init__(device, dtype)
        self.dtype, self._backend = dtype, backend

    @classmethod
    def absent(cls) -> str:
        """Return "": it is always here."""
        return ""

    def prepare(self, problem: Problem) -> None:
        """Make a simulation, which starts worlds again as MuJoCo does if a state explodes.

        Raises:
            UnsupportedModelError: the model has what the engine lacks.
        """
        options: dict[str, Any] = {"backend": self._backend, "dtype": self.dtype, "on_nonfinite": "reset"}
        self._sim = Simulation(Model(problem.mj), problem.worlds, **options)
        self._host_controls = np.ascontiguousarray(problem.controls, self.dtype)
        self._controls = on_device(self._host_controls, self._backend)
        self.set_state(problem.start)

    @property
    def simulation(self) -> Simulation:
        """The simulation, once it is prepared."""
        return self._sim

    def set_state(self, state: State) -> None:
        """Set the states, and clear the warm start."""
        self._sim.set_state(qpos=state.qpos, qvel=state.qvel)
        if state.act.size:
            self._sim.set_state(act=state.act)

    def step(self, steps: int) -> float:
        """Step with the controls of many steps in one call, as programs do that have a plan for several steps.

        On the CPU these are all steps, because `mujoco.rollout` takes them in one call, too; on other devices, as many
        as there are sets of controls.
        """
        sets = len(self._controls)
        most = max(sets, _PLAN_BYTES // max(1, self._host_controls[0].nbytes)) if self._backend == "host" else sets
        elapsed = 0.0
        for first in range(0, steps, most):
            number = min(most, steps - first)
            turns = np.arange(first, first + number) % sets
            plan = self._host_controls[turns] if self._backend == "host" else self._controls[:number]
            began = perf_counter()
            self._sim.step(number, ctrl=plan)
            if first + number == steps:
                self._sim.synchronize()
            elapsed += perf_counter() - began
        return elapsed

    def state(self) -> State:
        """Return the present states."""
        return State(*(on_host(self._sim.field(name)) for name in ("qpos", "qvel", "act")))

    def qacc(self) -> np.ndarray:
        """Return accelerations, without a warm start."""
        self._sim.set_state(qpos=on_host(self._sim.qpos), ctrl=self._host_controls[0])
        self._sim.forward()
        return on_host(self._sim.qacc)

    def about(self) -> dict[str, Any]:
        """Return the executor, the kernels of a step, and how often a state exploded so far."""
        schedule, exploded = self._sim.schedule, sum(self._sim.warnings().values())
        return {"executor": schedule.executor, "kernels_per_step": len(schedule.kernel_list), "exploded": exploded}

    def close(self) -> None:
        """Free the simulation."""
        if hasattr(self, "_sim"):
            self._sim.close()
