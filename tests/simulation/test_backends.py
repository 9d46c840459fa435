"""Every backend that can run here behaves alike, and host and JAX agree within tolerance."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from simengine import NonFiniteError, Simulation, available_backends, load_model
from simengine.backends.base import Backend
from simengine.backends.cuda import CudaBackend
from simengine.backends.host import HostBackend
from simengine.errors import BackendError
from simengine.state.fields import FIELDS
from tests.emission.worlds import BALL, ant, ant_start
from tests.helpers.oracle import sample
from tests.models import OWN

WORLDS = 5
BACKENDS = ("host", "jax")
# Fields of the state table that have no counterpart in JAX's fixed shapes, or are the Runge-Kutta form's own.
NOT_IN_JAX = ("ncon", "nefc", "con_adr", "efc_adr", "efc_J_adr", "solver_niter")
DERIVED = tuple(
    f.name for f in FIELDS if f.space == "world" and f.name not in NOT_IN_JAX and not f.name.startswith("rk_")
)[8:]
TOLERANCE = {"float64": 1e-9, "float32": 5e-4}


@cache
def _ball(backend: str, on_nonfinite: str = "raise") -> Simulation:
    return Simulation(BALL, num_worlds=WORLDS, backend=backend, on_nonfinite=on_nonfinite)


def balls(backend: str, on_nonfinite: str = "raise") -> Simulation:
    """Five balls at different places and speeds; one compiled simulation serves all tests."""
    sim = _ball(backend, on_nonfinite)
    sim.reset()
    rng = np.random.default_rng(0)
    sim.set_state(qpos=rng.normal(size=(WORLDS, 3)) * [1, 0.2, 1] - [0, 0.35, 0], qvel=rng.normal(size=(WORLDS, 3)))
    return sim


def values(sim: Simulation, name: str) -> np.ndarray:
    """A copy of a field on the host."""
    return np.array(sim.field(name))


def assert_close(actual: np.ndarray, expected: np.ndarray, dtype: str, what: str) -> None:
    """Relative error of each world by the greatest entry, at least 1."""
    assert actual.shape == expected.shape, what
    scale = np.maximum(1.0, np.abs(expected).reshape(len(expected), -1).max(axis=1, initial=0.0))
    difference = np.abs(actual - expected).reshape(len(expected), -1).max(axis=1, initial=0.0)
    assert (difference / scale).max() <= TOLERANCE[dtype], f"{what}: {(difference / scale).max()}"


# ----------------------------------------------------------------------------------------------------- choosing


def test_auto_takes_the_first_backend_that_is_there() -> None:
    able = [name for name, reason in available_backends().items() if not reason]
    assert Simulation(BALL).backend == able[0]
    assert {"host", "jax"} <= set(able)


def test_auto_falls_back_to_jax_without_gpu_and_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Backend) -> None:
        raise BackendError("missing here")

    for backend in (CudaBackend, HostBackend):
        monkeypatch.setattr(backend, "__init__", fails)
    sim = Simulation(BALL)
    assert (sim.backend, sim.schedule.executor) == ("jax", "none")
    assert available_backends() == {"cuda": "missing here", "host": "missing here", "jax": ""}


# ------------------------------------------------------------------------------------------------ host against jax


@cache
def pair(name: str, dtype: str) -> tuple[Simulation, Simulation, dict[str, np.ndarray]]:
    """A simulation of each backend at the same states, both stepped once, and the state they started from."""
    model = ant() if name == "ant" else load_model(OWN[name])
    if name == "ant":
        start = ant_start(24)._asdict()
    else:
        start = {field: getattr(sample(name), field)[:24] for field in ("qpos", "qvel")}
    start["ctrl"] = np.random.default_rng(0).uniform(-1, 1, size=(24, model.nu)).astype(np.float32)
    sims = []
    for backend in BACKENDS:
        sim = Simulation(model, num_worlds=24, backend=backend, dtype=dtype, keep=DERIVED)
        sim.set_state(**start)
        sim.step()
        sims.append(sim)
    return sims[0], sims[1], start


CASES = [
    ("two_arms", "float32"),
    pytest.param("two_arms", "float64", marks=pytest.mark.slow),
    pytest.param("mixed_tree", "float64", marks=pytest.mark.slow),
    pytest.param("ant", "float64", marks=pytest.mark.slow),
    pytest.param("ant", "float32", marks=pytest.mark.slow),
    pytest.param("pile", "float64", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_a_step_agrees_between_host_and_jax(name: str, dtype: str) -> None:
    host, other, _ = pair(name, dtype)
    for field in ("qpos", "qvel", "nstep"):
        assert_close(values(other, field), values(host, field), dtype, field)
    assert host.schedule.counts()["ncon"] == other.schedule.counts()["ncon"]
    assert host.schedule.counts()["nefc"] == other.schedule.counts()["nefc"] > 0


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_derived_fields_agree_between_host_and_jax(name: str, dtype: str) -> None:
    """After a step that keeps them, and after forward(); contacts and rows too."""
    host, other, start = pair(name, dtype)
    for sim in (host, other):
        sim.reset()
        sim.set_state(**start)
        sim.step()
    for field in DERIVED:
        assert_close(values(other, field), values(host, field), dtype, field)
    for sim in (host, other):
        sim.set_state(**start)
        sim.forward()
    for field in DERIVED:
        assert_close(values(other, field), values(host, field), dtype, f"{field} after forward")
    contacts = 0
    for world in range(24):
        ours, theirs = host.contacts(world), other.contacts(world)
        assert ours.ncon == theirs.ncon
        contacts += ours.ncon
        for field in ("geom1", "geom2", "dim", "efc_address"):
            np.testing.assert_array_equal(getattr(theirs, field), getattr(ours, field), err_msg=field)
        for field in ("dist", "pos", "frame"):
            np.testing.assert_allclose(
                getattr(theirs, field), getattr(ours, field), atol=TOLERANCE[dtype], err_msg=field
            )
        for field, rows in host.constraints(world)._asdict().items():
            assert_close(getattr(other.constraints(world), field)[None], rows[None], dtype, f"efc_{field}")
    assert contacts > 0 or name == "mixed_tree"


# ------------------------------------------------------------------------------------------------ same behaviour


@pytest.mark.parametrize("backend", BACKENDS)
def test_state_of_some_worlds(backend: str) -> None:
    sim = balls(backend)
    before = values(sim, "qpos")
    sim.set_state([3, 1], qpos=[[7, 8, 9], [1, 2, 3]])
    sim.set_state(np.arange(WORLDS) == 4, qpos=[4, 4, 4])
    expected = before.copy()
    expected[[3, 1, 4]] = [[7, 8, 9], [1, 2, 3], [4, 4, 4]]
    np.testing.assert_array_equal(values(sim, "qpos"), expected)
    assert values(sim, "qpos").dtype == np.float32


@pytest.mark.parametrize("backend", BACKENDS)
def test_warm_start_is_cleared_unless_given(backend: str) -> None:
    sim = balls(backend)
    sim.step()
    assert values(sim, "qacc_warmstart").any(axis=1).all()
    sim.set_state([0], qpos=[0, 0, 0])
    sim.set_state([1], ctrl=[0, 0])
    sim.set_state([2], qvel=[0, 0, 0], qacc_warmstart=[1, 2, 3])
    warm = values(sim, "qacc_warmstart")
    assert warm.any(axis=1).tolist() == [False, True, True, True, True]
    assert warm[2].tolist() == [1, 2, 3]


@pytest.mark.parametrize("backend", BACKENDS)
def test_controls_persist_and_time_counts(backend: str) -> None:
    sim = balls(backend)
    sim.step(ctrl=np.full((WORLDS, 2), 0.5))
    sim.step(2)
    assert (values(sim, "ctrl") == 0.5).all()
    once = values(sim, "qvel")
    sim = balls(backend)
    for _ in range(3):
        sim.step(ctrl=[[0.5, 0.5]] * WORLDS)
    np.testing.assert_array_equal(values(sim, "qvel"), once)
    sim.reset([2])
    sim.step()
    np.testing.assert_allclose(sim.time, [0.016, 0.016, 0.004, 0.016, 0.016])
    assert not values(sim, "ctrl")[2].any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_reset_is_the_initial_state(backend: str) -> None:
    sim = balls(backend)
    sim.step(3)
    others = values(sim, "qpos")[[0, 1, 3, 4]]
    sim.reset([2])
    np.testing.assert_array_equal(values(sim, "qpos")[[0, 1, 3, 4]], others)
    assert not values(sim, "qpos")[2].any()
    sim.reset()
    for name in ("qpos", "qvel", "ctrl", "qacc_warmstart", "nstep", "world_status"):
        assert not values(sim, name).any()


def poison(sim: Simulation, world: int, **fields: Any) -> None:
    """A state that only the device knows to be bad."""
    sim.set_state([world], **{name: jnp.asarray(value, jnp.float32) for name, value in fields.items()})


NAN = float("nan")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fields", [{"qpos": [0, NAN, 0]}, {"qvel": [NAN, 0, 0]}, {"ctrl": [0, float("inf")]}])
def test_a_bad_world_is_named_frozen_and_contained(backend: str, fields: dict[str, Any]) -> None:
    sim = balls(backend)
    sim.step(4)
    healthy = {name: values(sim, name) for name in ("qpos", "qvel", "qacc_warmstart")}
    sim = balls(backend)
    sim.step(2)
    poison(sim, 3, **fields)
    with pytest.raises(NonFiniteError, match=r"world 3 \(in input\)"):
        sim.step()
    sim.step()
    others = [0, 1, 2, 4]
    for name, expected in healthy.items():
        np.testing.assert_array_equal(values(sim, name)[others], expected[others])
    assert sim.time.tolist() == pytest.approx([0.016, 0.016, 0.016, 0.008, 0.016])
    sim.reset([3])
    sim.step()
    assert np.isfinite(values(sim, "qpos")).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_forward_names_a_bad_world(backend: str) -> None:
    sim = balls(backend)
    poison(sim, 1, qpos=[0, NAN, 0])
    with pytest.raises(NonFiniteError, match=r"world 1 \(in input\)"):
        sim.forward()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_world_that_explodes_is_contained(backend: str) -> None:
    sim = balls(backend)
    sim.step(3)
    healthy = values(sim, "qpos")
    sim = balls(backend)
    poison(sim, 2, qvel=[9e9, 9e9, 0], qfrc_applied=[3e38, 0, 0])
    with pytest.raises(NonFiniteError, match=r"world 2 \(in (acceleration|solve|integrate)\)"):
        sim.step(3)
    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(values(sim, "qpos")[others], healthy[others])
    assert np.isfinite(values(sim, "qpos")).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_freezing_and_resetting(backend: str) -> None:
    frozen = balls(backend, "freeze")
    poison(frozen, 0, qpos=[NAN, 0, 0])
    frozen.step(3)
    assert frozen.time[0] == 0
    assert values(frozen, "world_status").tolist() == [1, 0, 0, 0, 0]
    reset = balls(backend, "reset")
    poison(reset, 0, qpos=[NAN, 0, 0])
    reset.step()
    assert values(reset, "world_status").tolist() == [0] * WORLDS
    assert not values(reset, "qpos")[0].any()
    reset.step(2)
    assert reset.time.tolist() == pytest.approx([0.008, 0.012, 0.012, 0.012, 0.012])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_world_does_not_know_its_place_nor_its_neighbours(backend: str) -> None:
    """Bit for bit, also when the same run is repeated, and when its steps are taken in one call."""
    order = np.array([3, 0, 4, 1, 2])
    sim = balls(backend)
    start = {name: values(sim, name) for name in ("qpos", "qvel")}

    def after(calls: int, steps: int, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        sim.reset()
        sim.set_state(qpos=qpos, qvel=qvel)
        for _ in range(calls):
            sim.step(steps, ctrl=[0.5, -0.5])
        return np.hstack([values(sim, name) for name in ("qpos", "qvel", "qacc_warmstart")])

    golden = after(20, 1, **start)
    assert len(np.unique(golden, axis=0)) == WORLDS
    np.testing.assert_array_equal(after(20, 1, **start), golden)
    np.testing.assert_array_equal(after(1, 20, **start), golden)
    np.testing.assert_array_equal(after(20, 1, start["qpos"][order], start["qvel"][order]), golden[order])
    others = {name: np.where(np.arange(WORLDS)[:, None] == 2, value, -value) for name, value in start.items()}
    np.testing.assert_array_equal(after(20, 1, **others)[2], golden[2])
