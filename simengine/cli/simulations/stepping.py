"""Build a simulation from settings, and step it under random controls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from simengine import Model, Simulation


def build(model: Model, settings: SimpleNamespace, worlds: int, executor: str) -> Simulation:
    """Return a simulation of `worlds` worlds with the backend, dtype and seed of the settings."""
    return Simulation(
        model,
        num_worlds=worlds,
        backend=settings.backend,
        executor=executor,
        dtype=settings.dtype,
        executor_options=seed_of(executor, settings.seed),
    )


def seed_of(executor: str, seed: int) -> dict[str, int]:
    """Return the option that seeds an executor.

    It is empty for "auto", which draws no random numbers, and which on backend "jax" takes no options.
    """
    return {} if executor == "auto" else {"seed": seed}


def on_backend(sim: Simulation, controls: np.ndarray) -> list[Any]:
    """Copy controls to the memory of the simulation's backend, in its precision, as one array for each set.

    Args:
        sim: the simulation.
        controls: sets of controls, (sets, num_worlds, nu).
    """
    return [on_device(np.ascontiguousarray(one, sim.dtype), sim.backend) for one in controls]


def on_device(array: np.ndarray, backend: str) -> Any:
    """Copy an array to the memory of a backend, or return it as it is for a backend on the host."""
    if backend == "cuda":
        import cupy

        return cupy.asarray(array)
    if backend == "jax":
        import jax.numpy as jnp

        return jnp.asarray(array)
    return array


def on_host(array: Any) -> np.ndarray:
    """Return a float64 copy, on the host, of an array of any backend."""
    return np.array(array.get() if hasattr(array, "get") else array, np.float64)


def step(sim: Simulation, sets: Sequence[Any], steps: int, progress: Callable[[int], None] | None = None) -> float:
    """Step under each set of controls in turn.

    Args:
        sim: the simulation.
        sets: controls, each (num_worlds, nu).
        steps: number of steps.
        progress: called with 1 after each step is issued; None to measure speed without it.

    Returns:
        Time until the last step had completed [s].
    """
    began = perf_counter()
    for i in range(steps):
        sim.step(ctrl=sets[i % len(sets)])
        if progress:
            progress(1)
    sim.synchronize()
    return perf_counter() - began
