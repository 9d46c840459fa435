"""Models, states and controls for steps inside JAX programs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import simengine
from tests.models import compile_model

WORLDS = 5


def model_of(name: str) -> simengine.Model:
    return simengine.load_model(compile_model(name) if name in OWN else name)


OWN = ("actuators", "rubble", "tendons", "terrain", "two_arms", "linkage", "pile")


def controls(model: simengine.Model, steps: int, worlds: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(7).uniform(-1, 1, (steps, worlds, model.nu)).astype(dtype)


def spread(state: simengine.BatchState) -> simengine.BatchState:
    """The state with worlds that differ."""
    noise = np.random.default_rng(3).uniform(-0.3, 0.3, state.qvel.shape)
    return state._replace(qvel=jnp.asarray(noise, state.qvel.dtype))


def simulated(sim: simengine.Simulation, state: simengine.BatchState, ctrl: np.ndarray, steps: int = 1) -> Any:
    sim.set_state(qpos=np.asarray(state.qpos), qvel=np.asarray(state.qvel))
    for own in ctrl:
        sim.step(steps, ctrl=own)
    return sim
