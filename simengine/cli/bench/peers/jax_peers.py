"""MJX and Brax in a comparison of engines: both are functions of JAX, which a scan repeats."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from simengine.cli.bench.peers.engine import GPU, Engine
from simengine.cli.bench.peers.problem import Problem, State


class _JaxEngine(Engine):
    """A step as a function of JAX. One compiled call makes a step with each set of controls."""

    devices = (GPU,)
    _data: Any

    def __init__(self, device: str, dtype: str) -> None:
        super().__init__(device, dtype)
        self.runs_on = device

    def prepare(self, problem: Problem) -> None:
        """Load the model, and compile the scan."""
        import jax

        self._jax, self._problem = jax, problem
        self.dtype = str(jax.dtypes.canonicalize_dtype(float))  # float32, unless JAX has 64-bit numbers
        self._device = jax.devices("gpu" if self.runs_on == GPU else "cpu")[0]
        with jax.default_device(self._device):
            step, self._controls = self._load(problem), jax.numpy.asarray(problem.controls, self.dtype)
            many = jax.vmap(step)
            self._scan = jax.jit(lambda data, sets: jax.lax.scan(lambda d, c: (many(d, c), None), data, sets)[0])
            self.set_state(problem.start)

    def step(self, steps: int) -> float:
        """Call the scan. A number of steps that the sets do not divide is compiled anew."""
        sets = len(self._controls)
        with self._jax.default_device(self._device):
            began = perf_counter()
            for _ in range(steps // sets):
                self._data = self._scan(self._data, self._controls)
            if rest := steps % sets:
                self._data = self._scan(self._data, self._controls[:rest])
            self._jax.block_until_ready(self._data)
            return perf_counter() - began

    @abstractmethod
    def _load(self, problem: Problem) -> Any:
        """Return a function (data, controls) -> data of one world."""


class Mjx(_JaxEngine):
    """MJX, in its JAX implementation."""

    name = "mjx"
    newton_only = True
    packages = ("mujoco-mjx",)

    @classmethod
    def absent(cls) -> str:
        """Return whether mujoco-mjx is not installed."""
        return "" if find_spec("mujoco.mjx") else f"{cls.name} is not installed; run pip install mujoco-mjx"

    def _load(self, problem: Problem) -> Any:
        from mujoco import mjx

        model = mjx.put_model(problem.mj, impl="jax")
        self._empty = mjx.make_data(problem.mj, impl="jax")
        self._forward = self._jax.jit(self._jax.vmap(lambda data: mjx.forward(model, data)))
        return lambda data, ctrl: mjx.step(model, data.replace(ctrl=ctrl))

    def set_state(self, state: State) -> None:
        """Make data of all worlds, without a warm start."""
        jnp = self._jax.numpy
        with self._jax.default_device(self._device):
            parts = [jnp.asarray(part, self.dtype) for part in (state.qpos, state.qvel, state.act)]
            fill = self._jax.vmap(lambda qpos, qvel, act: self._empty.replace(qpos=qpos, qvel=qvel, act=act))
            self._data = fill(*parts)

    def state(self) -> State:
        """Return the present states."""
        return State(*(np.asarray(getattr(self._data, name), np.float64) for name in ("qpos", "qvel", "act")))

    def qacc(self) -> np.ndarray:
        """Return accelerations, without a warm start."""
        with self._jax.default_device(self._device):
            cold = self._data.replace(
                ctrl=self._controls[0], qacc_warmstart=self._jax.numpy.zeros_like(self._data.qacc_warmstart)
            )
            return np.asarray(self._forward(cold).qacc, np.float64)


class Brax(_JaxEngine):
    """Brax's pipeline of generalized coordinates, which is the nearest to MuJoCo's physics."""

    name = "brax"
    newton_only = True
    packages = ("brax",)

    @classmethod
    def absent(cls) -> str:
        """Return whether brax is not installed."""
        return "" if find_spec("brax") else f"{cls.name} is not installed; run pip install brax"

    def _load(self, problem: Problem) -> Any:
        from brax.generalized import pipeline
        from brax.io import mjcf

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that it is not maintained
            system = mjcf.load_model(problem.mj)
        self._init = self._jax.jit(self._jax.vmap(lambda q, qd: pipeline.init(system, q, qd)))
        return lambda state, ctrl: pipeline.step(system, state, ctrl)

    def set_state(self, state: State) -> None:
        """Make states of all worlds."""
        jnp = self._jax.numpy
        with self._jax.default_device(self._device):
            self._data = self._init(*(jnp.asarray(part, self.dtype) for part in (state.qpos, state.qvel)))

    def state(self) -> State:
        """Return the present states. Brax has no activations."""
        q, qd = (np.asarray(part, np.float64) for part in (self._data.q, self._data.qd))
        return State(q, qd, np.zeros((len(q), self._problem.mj.na)))

    def qacc(self) -> np.ndarray:
        """Return the change of velocity in one step over its duration, since Brax keeps no acceleration."""
        before = self._data
        with self._jax.default_device(self._device):
            after = self._scan(before, self._controls[:1])
        change = np.asarray(after.qd, np.float64) - np.asarray(before.qd, np.float64)
        return change / float(self._problem.mj.opt.timestep)
