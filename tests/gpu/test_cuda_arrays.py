"""Arrays that users pass and receive: on host and device, masks, non-finite values on the device, growing arenas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simengine import NonFiniteError, Simulation
from simengine.state.fields import FIELDS, WORLD_STATUS
from tests.emission.worlds import ant, ant_start, oracle
from tests.gpu.compare import both, cuda_only, relative, state_bits, to_host

WORLDS = 24
NAN, INF = float("nan"), float("inf")


def array(backend: str, values: Any, dtype: Any = np.float32) -> Any:
    """Values in the memory of a backend."""
    values = np.array(values, dtype=dtype)
    if backend == "host":
        return values
    import cupy

    return cupy.asarray(values)


def started(backend: str, worlds: int = WORLDS, **options: Any) -> Simulation:
    """Ants in their first states."""
    sim = Simulation(ant(), num_worlds=worlds, backend=backend, **options)
    sim.set_state(**ant_start(worlds)._asdict())
    return sim


def stepped(backend: str, steps: int, worlds: int = WORLDS) -> Simulation:
    """Ants after some steps."""
    sim = started(backend, worlds)
    sim.step(steps)
    return sim


# --------------------------------------------------------------------------------------------------------- arrays in

FORMS: dict[str, Callable[[str, np.ndarray], Any]] = {
    "float64 of NumPy": lambda backend, x: x,
    "float32 of NumPy": lambda backend, x: x.astype(np.float32),
    "lists": lambda backend, x: x.tolist(),
    "float32 of the device": lambda backend, x: array(backend, x),
    "float64 of the device": lambda backend, x: array(backend, x, np.float64),
    "every second column": lambda backend, x: array(backend, np.repeat(x, 2, axis=1))[:, ::2],
    "transposed": lambda backend, x: array(backend, x.T).T,
    "reversed twice": lambda backend, x: array(backend, x[::-1])[::-1],
}


@both
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_array_sets_the_same_state(backend: str, form: str) -> None:
    sim, start = Simulation(ant(), num_worlds=WORLDS, backend=backend), ant_start(WORLDS)
    sim.set_state(qpos=FORMS[form](backend, start.qpos), qvel=FORMS[form](backend, start.qvel))
    assert state_bits(sim) == state_bits(started(backend))
    ctrl = np.random.default_rng(0).uniform(-1, 1, size=(WORLDS, ant().nu)).astype(np.float32)
    sim.step(ctrl=FORMS[form](backend, ctrl))
    np.testing.assert_array_equal(to_host(sim.ctrl), ctrl)


@both
@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("how", ["mask", "indices", "list"])
def test_some_worlds_are_set_and_reset(backend: str, how: str, where: str) -> None:
    """The chosen worlds are set in the order of their indices, and the others keep their bits."""
    sim, whole = stepped(backend, 3), stepped(backend, 3)
    order = np.array([17, 3, 8]) if how != "mask" else np.array([3, 8, 17])
    others = np.delete(np.arange(WORLDS), order)
    worlds: Any = order.tolist()
    if how != "list":
        chosen = np.isin(np.arange(WORLDS), order) if how == "mask" else order
        worlds = chosen if where == "host" else array(backend, chosen, chosen.dtype)
    qpos = ant_start(WORLDS).qpos[:3]
    sim.set_state(worlds, qpos=qpos if where == "host" else array(backend, qpos))
    np.testing.assert_array_equal(to_host(sim.qpos)[order], qpos.astype(np.float32))
    assert not to_host(sim.field("qacc_warmstart"))[order].any()
    assert state_bits(sim, worlds=others) == state_bits(whole, worlds=others)
    sim.reset(worlds)
    np.testing.assert_array_equal(to_host(sim.qpos)[order], np.tile(ant().qpos0.astype(np.float32), (3, 1)))
    assert (sim.time == np.where(np.isin(np.arange(WORLDS), order), 0, 3 * ant().table.opt_timestep)).all()
    assert state_bits(sim, worlds=others) == state_bits(whole, worlds=others)


@both
def test_arrays_are_views_of_the_state(backend: str) -> None:
    sim, other = started(backend), started(backend)
    sim.qvel[...] = array(backend, np.full((WORLDS, ant().nv), 0.25))
    sim.qpos[5, 2] += 1
    sim.step()
    start = ant_start(WORLDS)
    start.qpos[5, 2] = np.float32(start.qpos[5, 2]) + np.float32(1)
    other.set_state(qpos=start.qpos, qvel=np.full(ant().nv, 0.25))
    other.step()
    assert state_bits(sim) == state_bits(other)


@cuda_only
def test_arrays_of_the_gpu_backend_are_of_the_gpu(backend: str) -> None:
    import cupy

    sim = started(backend, keep=("qacc",))
    sim.step()
    for value in (sim.qpos, sim.qvel, sim.ctrl, sim.qacc, sim.field("nstep")):
        assert isinstance(value, cupy.ndarray)
    assert isinstance(sim.time, np.ndarray)


@both
def test_bad_shapes_of_device_arrays_are_refused(backend: str) -> None:
    sim = started(backend)
    before = state_bits(sim)
    for shape in ((WORLDS, 14), (WORLDS - 1, 15), (15, 1)):
        with pytest.raises(ValueError, match=rf"qpos has shape .* expected \({WORLDS}, 15\) or \(15,\)"):
            sim.set_state(qpos=array(backend, np.zeros(shape)))
    assert state_bits(sim) == before


# ------------------------------------------------------------------------------------------- bad numbers on the device


@both
@pytest.mark.parametrize(
    ("field", "value"), [("qpos", NAN), ("qvel", NAN), ("qvel", -INF), ("ctrl", INF), ("xfrc_applied", NAN)]
)
def test_a_bad_number_on_the_device_is_found_and_contained(backend: str, field: str, value: float) -> None:
    healthy, sim = stepped(backend, 6), stepped(backend, 2)
    bad = (3, 4) if field != "xfrc_applied" else (3, 4, 1)
    frozen = state_bits(sim, worlds=[3])
    sim.field(field)[bad] = value
    with pytest.raises(NonFiniteError, match=r"model 'ant' in world 3 \(in input\)") as caught:
        sim.step()
    assert (caught.value.worlds, caught.value.stages) == ((3,), ("input",))
    sim.step(3)
    others = np.delete(np.arange(WORLDS), 3)
    assert state_bits(sim, worlds=others) == state_bits(healthy, worlds=others)
    after = state_bits(sim, worlds=[3])
    assert {n for n in frozen if frozen[n] != after[n]} == {field, "world_status"}
    sim.reset([3])
    sim.step()
    assert np.isfinite(to_host(sim.qpos)).all()


@both
def test_many_bad_worlds_are_all_named(backend: str) -> None:
    bad = (1, 2, 7, 16, 23)
    healthy, sim = stepped(backend, 3), stepped(backend, 2)
    sim.qpos[array(backend, bad, np.int64), 3] = NAN
    with pytest.raises(NonFiniteError, match=r"world 1 .* world 16 .* and 1 more") as caught:
        sim.step()
    assert caught.value.worlds == bad
    others = np.delete(np.arange(WORLDS), bad)
    assert state_bits(sim, worlds=others) == state_bits(healthy, worlds=others)


@both
@pytest.mark.parametrize("number", [3, 14])
def test_forward_names_a_bad_world(backend: str, number: int) -> None:
    sim = started(backend)
    sim.qvel[number, 0] = NAN
    with pytest.raises(NonFiniteError, match=rf"world {number} \(in input\)"):
        sim.forward()
    assert sim.contacts(number).ncon == sim.constraints(number).nefc == 0
    assert sum(sim.contacts(world).ncon for world in range(WORLDS)) == sim.schedule.counts()["ncon"] > 0


@both
def test_a_world_that_explodes_is_contained(backend: str) -> None:
    """Finite input, and an acceleration that is not."""
    healthy, sim = stepped(backend, 5), stepped(backend, 2)
    sim.field("qfrc_applied")[9, :6] = 3e38
    sim.qvel[9] = 9e9
    with pytest.raises(NonFiniteError, match=r"world 9 \(in (acceleration|solve|integrate)\)"):
        sim.step(3)
    others = np.delete(np.arange(WORLDS), 9)
    assert state_bits(sim, worlds=others) == state_bits(healthy, worlds=others)
    assert np.isfinite(to_host(sim.qpos)).all()


@both
def test_freezing_and_resetting(backend: str) -> None:
    frozen, reset = started(backend, on_nonfinite="freeze"), started(backend, on_nonfinite="reset")
    for sim in (frozen, reset):
        sim.qpos[6, 0] = NAN
        sim.step(2)
    status = to_host(frozen.field("world_status"))
    assert status[6] == WORLD_STATUS.index("input")
    assert np.count_nonzero(status) == 1
    assert frozen.time[6] == 0
    assert not to_host(reset.field("world_status")).any()
    np.testing.assert_array_equal(to_host(reset.qpos)[6], ant().qpos0.astype(np.float32))


# -------------------------------------------------------------------------------------------------------------- arenas


def grounded(worlds: int) -> np.ndarray:
    """Ants that lie or stand on the floor, each in its own way."""
    qpos = ant_start(3 * worlds).qpos
    return qpos[np.arange(3 * worlds) % 3 != 0][:worlds]


def pool_bytes(backend: str) -> int:
    """Bytes of arrays in CuPy's pool; none on the host, where tests/emission/test_arenas.py looks for them."""
    if backend == "host":
        return 0
    import cupy

    return int(cupy.get_default_memory_pool().used_bytes())


@both
def test_arenas_grow_when_many_worlds_touch_down_at_once(backend: str) -> None:
    worlds = 5000 if backend == "cuda" else 300
    sim = Simulation(ant(), num_worlds=worlds, backend=backend, dtype="float64", shards=2, emission="counted")
    high = ant().qpos0 + np.array([0, 0, 3, *[0] * 12])
    high[[8, 10, 12, 14]] = ant().mj.jnt_range[[2, 4, 6, 8]].mean(axis=1)
    sim.set_state(qpos=high)
    sim.forward()
    before, needs, used = sim.nbytes(), sim.groups[0].footprint(), pool_bytes(backend)
    assert (sim.schedule.counts()["ncon"], sim.schedule.counts()["nefc"]) == (0, 0)
    sim.set_state(qpos=grounded(worlds))
    sim.forward()
    found = sim.schedule.counts()
    assert sim.nbytes() - before + needs.first >= found["ncon"] * needs.contact + found["nefc"] * needs.row
    assert sim.nbytes() > before
    rounding = 512 * len(FIELDS) * 2  # bytes of the pool's blocks, for arrays of two shards
    assert pool_bytes(backend) - used <= sim.nbytes() - before + rounding, "arenas keep memory that they moved from"
    qacc, ncon, nefc = (to_host(sim.field(n)) for n in ("qacc", "ncon", "nefc"))
    assert (ncon.sum(), nefc.sum()) == (sim.schedule.counts()["ncon"], sim.schedule.counts()["nefc"])
    assert nefc.sum() > 3 * worlds
    for world in np.linspace(0, worlds - 1, 100).astype(int):
        data = oracle(ant(), grounded(worlds)[world])
        contacts, rows = sim.contacts(world), sim.constraints(world)
        assert (contacts.ncon, rows.nefc) == (data.ncon, data.nefc) == (ncon[world], nefc[world])
        np.testing.assert_allclose(contacts.dist, data.contact.dist, atol=1e-12)
        np.testing.assert_allclose(rows.J, data.efc_J.reshape(-1, ant().nv), atol=1e-12)
        assert relative(qacc[world][None], data.qacc[None]) < 1e-5


@both
def test_a_step_during_which_arenas_grow_is_the_step_of_larger_arenas(backend: str) -> None:
    worlds = 3000 if backend == "cuda" else 150
    small, large = (
        Simulation(ant(), num_worlds=worlds, backend=backend, shards=2, emission="counted") for _ in range(2)
    )
    large.set_state(qpos=grounded(worlds))
    large.forward()
    before = small.nbytes()
    assert before < large.nbytes()
    for sim in (small, large):
        sim.set_state(qpos=grounded(worlds), qvel=np.zeros(ant().nv))
    for _ in range(3):
        small.step()
        large.step()
        assert state_bits(small) == state_bits(large)
    assert small.nbytes() > before
