"""On JAX as on the host: bad worlds touch no others, and runs and splits of a call have the same bits."""

from __future__ import annotations

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

from simengine import NonFiniteError, Simulation, load_model
from simengine.model import Model
from tests.emission.worlds import BALL
from tests.models import OWN

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


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["two_arms", "contact_parameters"])
def test_a_world_that_explodes_is_flagged_and_contained(name: str, dtype: str) -> None:
    """Also where worlds have contacts, and Runge-Kutta evaluates a step four times."""
    sims, others = [], [0, 1, 3, 4]
    for value in (0.5, 1e30 if dtype == "float32" else 1e300):
        sim = Simulation(load_model(OWN[name]), 5, backend="jax", dtype=dtype, on_nonfinite="freeze")
        qvel = np.random.default_rng(3).normal(size=(5, sim.model.nv))
        qvel[2] = value
        sim.set_state(qvel=qvel)
        sim.step(20)
        sims.append(sim)
    assert bits(sims[0], others) == bits(sims[1], others)
    assert np.flatnonzero(np.asarray(sims[1].field("world_status"))).tolist() == [2]
    assert np.isfinite(np.asarray(sims[1].qpos)).all()


def test_a_nan_in_an_array_of_jax_is_named_by_the_step_that_meets_it() -> None:
    sim, healthy = rolling(), rolling()
    qpos = np.array(sim.qpos)
    qpos[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"qpos holds nan at \[3, 1\]"):
        sim.set_state(qpos=qpos)
    sim.set_state(qpos=jnp.asarray(qpos))  # which would have to be waited for
    with pytest.raises(NonFiniteError, match=r"world 3 \(in input\)"):
        sim.step()
    healthy.step()
    others = [0, 1, 2, 4, 5]
    assert bits(sim, others) == bits(healthy, others)


@pytest.mark.parametrize("worlds", [pytest.param([0], marks=pytest.mark.slow), [5, 2]])
def test_the_bits_of_a_world_depend_on_the_number_of_worlds_at_most_by_rounding(worlds: list[int]) -> None:
    """JAX promises bits for each number of worlds: XLA compiles each anew."""
    every = rolling()
    some = Simulation(model(), len(worlds), backend="jax")
    some.set_state(qpos=np.asarray(every.qpos)[worlds], qvel=np.asarray(every.qvel)[worlds], ctrl=[0.3, -0.2])
    for sim in (every, some):
        sim.step(20)
    np.testing.assert_allclose(np.asarray(some.qpos), np.asarray(every.qpos)[worlds], rtol=0, atol=1e-5)


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
