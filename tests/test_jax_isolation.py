"""On JAX as on the host: bad worlds touch no others, and runs and splits of a call have the same bits."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from simengine import NonFiniteError, Simulation, load_model
from simengine.model import Model
from tests.emission.worlds import BALL

WORLDS = 6


@cache
def model() -> Model:
    return load_model(BALL)


def rolling(dtype: str = "float32", **options: str) -> Simulation:
    """Balls with different velocities."""
    sim = Simulation(model(), WORLDS, backend="jax", dtype=dtype, **options)  # type: ignore[arg-type]
    sim.set_state(qvel=np.random.default_rng(0).normal(size=(WORLDS, 3)), ctrl=[0.3, -0.2])
    return sim


def bits(sim: Simulation, worlds: list[int]) -> list[bytes]:
    return [np.asarray(sim.field(name))[worlds].tobytes() for name in ("qpos", "qvel", "act", "qacc_warmstart")]


def spoiled(value: float, **options: str) -> Simulation:
    """World 3 gets a velocity that MuJoCo would refuse after one step."""
    sim = rolling(**options)
    qvel = np.array(sim.qvel)
    qvel[3] = value
    sim.set_state(qvel=qvel)
    return sim


@pytest.mark.parametrize("value", [2e10, 1e30])
def test_a_bad_world_touches_no_other(value: float) -> None:
    sims, others = (rolling(on_nonfinite="freeze"), spoiled(value, on_nonfinite="freeze")), [0, 1, 2, 4, 5]
    for sim in sims:
        sim.step(30)
    assert bits(sims[0], others) == bits(sims[1], others)
    assert np.flatnonzero(np.asarray(sims[1].field("world_status"))).tolist() == [3]
    assert np.isfinite(np.asarray(sims[1].qpos)).all()


def test_a_bad_world_is_named() -> None:
    with pytest.raises(NonFiniteError, match="world 3"):
        spoiled(2e10).step(2)


def test_a_bad_world_is_reset() -> None:
    sim = spoiled(2e10, on_nonfinite="reset")
    sim.step(3)
    assert not np.asarray(sim.field("world_status")).any()
    assert np.abs(np.asarray(sim.qvel)).max() < 1e3


def test_runs_and_splits_of_a_call_have_the_same_bits() -> None:
    once, again, one_by_one = rolling(), rolling(), rolling()
    once.step(12)
    again.step(12)
    for _ in range(12):
        one_by_one.step()
    every = list(range(WORLDS))
    assert bits(once, every) == bits(again, every) == bits(one_by_one, every)


def test_permuting_worlds_permutes_results() -> None:
    order = np.random.default_rng(1).permutation(WORLDS)
    straight, permuted = rolling(), rolling()
    permuted.set_state(qpos=np.asarray(straight.qpos)[order], qvel=np.asarray(straight.qvel)[order])
    for sim in (straight, permuted):
        sim.step(20)
    assert bits(permuted, list(range(WORLDS))) == bits(straight, order.tolist())
