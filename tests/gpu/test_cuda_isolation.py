"""On the GPU as on the host: bad worlds touch no others, bad calls change nothing, models of any size agree.

A run of a thousand steps has the same bits in batches of any size and under every executor.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import mujoco
import numpy as np
import pytest

from simengine import NonFiniteError, Simulation, load_model
from simengine_scheduler import CallError
from simengine_scheduler.cuda.patience import Stalled
from tests.emission.worlds import BALL
from tests.gpu.compare import cuda_only, to_host
from tests.models import OWN
from tests.physics.test_sizes import MOCAP, TOLERANCE, WITHOUT_DOFS, WITHOUT_GEOMS, chains, plates
from tests.simulation.test_bad_input import CALLS

ISSUED: dict[str, dict[str, Any]] = {
    "whole": {"executor": "graph-cached"},
    "ahead": {"executor": "graph-cached", "emission": "ahead"},
    "counted on streams": {"executor": "streams", "emission": "counted", "shards": 2},
    "counted in order": {"executor": "serial", "emission": "counted"},
    "device": {"executor": "device"},
}
FIELDS = ("qpos", "qvel", "act", "qacc_warmstart")
STEPS, MOST = 1000, 300


def bits(sim: Simulation, worlds: Any) -> bytes:
    """The state of some worlds."""
    return b"".join(to_host(sim.field(name))[worlds].tobytes() for name in FIELDS)


def started(backend: str, name: str, worlds: int, **options: Any) -> Simulation:
    """Worlds in different states, which do not depend on how many there are."""
    sim = Simulation(load_model(OWN.get(name, name)), worlds, backend=backend, **options)
    rng = np.random.default_rng(3)
    qvel = rng.normal(0, 0.5, (MOST, sim.model.nv))
    sim.set_state(qvel=qvel[:worlds])
    return sim


def spoil(sim: Simulation, name: str, world: int, value: float) -> None:
    """Write a number into a world behind the engine's back."""
    array: Any = sim.field(name)
    array[world, 1] = value


def run(sim: Simulation, calls: int) -> None:
    """Some steps, and a wait after each."""
    for _ in range(calls):
        sim.step()
        sim.synchronize()


@cuda_only
@pytest.mark.parametrize("how", ISSUED)
@pytest.mark.parametrize("name", ["ant", "contact_parameters"])
def test_a_bad_world_touches_no_other(backend: str, name: str, how: str) -> None:
    others = np.array([0, 1, 2, 4, 5, 6, 7])
    sims = [started(backend, name, 8, on_nonfinite="freeze", **ISSUED[how]) for _ in range(2)]
    for sim in sims:
        sim.step(3)
    spoil(sims[1], "qpos", 3, np.nan)
    spoil(sims[1], "qvel", 2, 1e30)
    for sim in sims:
        sim.step(40)
    kept = others[others != 2]
    assert bits(sims[1], kept) == bits(sims[0], kept)
    assert np.flatnonzero(to_host(sims[1].field("world_status"))).tolist() == [2, 3]


@cuda_only
def test_a_bad_world_is_named(backend: str) -> None:
    sim = started(backend, "ant", 8)
    sim.step(2)
    spoil(sim, "qvel", 5, np.nan)
    with pytest.raises(NonFiniteError, match=r"model 'ant' in world 5 \(in input\)"):
        run(sim, 2)


@cache
def four_balls(backend: str) -> Simulation:
    return Simulation(load_model(BALL), 4, backend=backend)


@cuda_only
@pytest.mark.parametrize("name", CALLS)
def test_a_bad_call_changes_nothing(backend: str, name: str) -> None:
    call, kind, words = CALLS[name]
    sim = four_balls(backend)
    sim.set_state(qpos=np.random.default_rng(0).normal(size=(4, 3)), qvel=[1, 2, 3], ctrl=[0.5, -0.5])
    sim.step(3)
    before = bits(sim, slice(None))
    with pytest.raises(kind, match=words):
        call(sim)
    assert bits(sim, slice(None)) == before
    sim.step()
    assert bits(sim, slice(None)) != before


@cuda_only
@pytest.mark.parametrize("name", WITHOUT_DOFS)
def test_a_model_without_dofs_steps(backend: str, name: str) -> None:
    with Simulation(WITHOUT_DOFS[name], 3, backend=backend) as sim:
        sim.step(2)
        sim.forward()
        assert sim.qpos.shape == sim.qvel.shape == sim.qacc.shape == (3, 0)
        assert sim.contacts(0).ncon == 0


@cuda_only
def test_a_model_of_mocap_bodies_alone_moves_them(backend: str) -> None:
    with Simulation(MOCAP, 2, backend=backend) as sim:
        sim.set_state([1], mocap_pos=[[1, 2, 3]], mocap_quat=[[0, 1, 0, 0]])
        sim.step()
        sim.forward()
        np.testing.assert_allclose(to_host(sim.field("sensordata")), [[0, 0, 0.15], [1, 2, 2.9]], atol=1e-6)


@cuda_only
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", ["without geoms", "5,000 bodies", "10,000 contacts"])
def test_models_of_any_size_agree_with_mujoco(backend: str, size: str, dtype: str) -> None:
    texts = {"without geoms": WITHOUT_GEOMS, "5,000 bodies": chains(500, 10), "10,000 contacts": plates(50, 200)}
    mj, rng = mujoco.MjModel.from_xml_string(texts[size]), np.random.default_rng(0)
    mj.opt.tolerance = mj.opt.ls_tolerance = 1e-15
    qpos, qvel = mj.qpos0 + 0.0, 0.3 * rng.normal(size=mj.nv)
    if size == "10,000 contacts":
        qvel = np.tile([0.3, -0.2, -0.1, 0, 0, 0.5], 50) * np.repeat(rng.uniform(0.5, 1, 50), 6)
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_step(mj, data)
    with Simulation(load_model(mj), 1, backend=backend, dtype=dtype) as sim:
        sim.set_state(qpos=qpos, qvel=qvel)
        sim.step()
        for name in ("qpos", "qvel"):
            theirs = np.array(getattr(data, name))
            error = np.abs(to_host(sim.field(name))[0] - theirs).max()
            assert error < TOLERANCE[dtype] * max(1.0, np.abs(theirs).max()), name
        sim.set_state(qpos=qpos, qvel=qvel)
        sim.forward()
        assert sim.contacts(0).ncon == (10_000 if size == "10,000 contacts" else 0)


@cache
def after_a_thousand_steps(backend: str, name: str) -> bytes:
    with started(backend, name, 3, **ISSUED["counted in order"]) as sim:
        sim.step(STEPS)
        return bits(sim, slice(3))


@cuda_only
@pytest.mark.parametrize("worlds", [3, MOST])
@pytest.mark.parametrize("how", ISSUED)
@pytest.mark.parametrize("name", ["ant", "two_arms"])
def test_a_thousand_steps_have_the_same_bits(backend: str, name: str, how: str, worlds: int) -> None:
    with started(backend, name, worlds, **ISSUED[how]) as sim:
        sim.step(STEPS)
        assert bits(sim, slice(3)) == after_a_thousand_steps(backend, name)


@cuda_only
def test_a_gpu_that_does_not_answer_is_waited_for_until_patience_ends(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that takes three seconds is in the way."""
    import cupy

    spin = cupy.RawKernel(
        'extern "C" __global__ void spin(long long cycles) { long long end = clock64() + cycles; '
        "while (clock64() < end) {} }",
        "spin",
    )
    monkeypatch.setenv("SIMENGINE_PATIENCE", "0.5")
    sim = started(backend, "ant", 8, executor="streams")
    sim.step()
    sim.synchronize()
    spin((1,), (1,), (6_000_000_000,))
    with pytest.raises((CallError, Stalled), match=r"0\.5 s"):
        run(sim, 2)
    cupy.cuda.Device().synchronize()
    sim.close()
