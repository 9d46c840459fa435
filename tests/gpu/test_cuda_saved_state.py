"""Saved states on the GPU: a simulation that goes on from one computes the bits of one that was never interrupted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simengine import Simulation
from tests.gpu.compare import to_host
from tests.simulation.test_saved_state import MOVING, bits, prepared


@pytest.mark.gpu
@pytest.mark.parametrize("emission", ["counted", "ahead", "whole"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_loaded_simulation_goes_on_with_the_same_bits(dtype: str, emission: str, tmp_path: Path) -> None:
    sim = prepared("cuda", dtype, emission=emission)
    sim.save_state(tmp_path / "state.npz")
    other = Simulation(MOVING, 3, backend="cuda", dtype=dtype, emission=emission)
    other.step(2)  # the graphs of the model without parameters of worlds are kept by now
    other.load_state(tmp_path / "state.npz")
    assert bits(other) == bits(sim)
    for one in (sim, other):
        one.step(15)
    assert bits(other) == bits(sim)


@pytest.mark.gpu
def test_a_state_without_parameters_takes_away_those_that_are_there() -> None:
    plain, sim = Simulation(MOVING, 3, backend="cuda"), prepared("cuda")
    sim.set_full_state(plain.full_state())
    for one in (sim, plain):
        one.step(8)
    assert bits(sim) == bits(plain)


@pytest.mark.gpu
def test_a_state_moves_from_the_gpu_to_the_host() -> None:
    sim = prepared("cuda")
    other = Simulation(MOVING, 3, backend="host")
    other.set_full_state(sim.full_state())
    for one in (sim, other):
        one.step(3)
    np.testing.assert_allclose(to_host(other.qpos), to_host(sim.qpos), atol=1e-5)
