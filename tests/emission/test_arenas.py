"""Contact and row arenas grow when a step needs more than they hold, and nothing is dropped."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import load_model
from simengine.backends.host import HostBackend
from tests.emission.held import arrays_traced, assert_nothing_left_over
from tests.emission.worlds import ant, ant_start, ants, host, oracle
from tests.helpers.oracle import sample
from tests.models import OWN

WORLDS = 150


def grounded() -> np.ndarray:
    """Ants that lie or stand on the floor, each in its own way."""
    qpos = ant_start(3 * WORLDS).qpos
    return qpos[np.arange(3 * WORLDS) % 3 != 0][:WORLDS]


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_many_worlds_dropped_at_once_lose_no_contact(executor: str) -> None:
    model, high, low = ant(), ants(3.0, worlds=WORLDS), grounded()
    with arrays_traced() as held:
        sim = host(model, WORLDS, shards=2, dtype="float64", executor=executor)
        sim.set_state(qpos=high)
        sim.forward()
        before, needs, none = sim.nbytes(), sim.groups[0].footprint(), sim.schedule.counts()
        assert (none["ncon"], none["nefc"]) == (0, 0)
        sim.set_state(qpos=low)
        sim.forward()
        found = sim.schedule.counts()
        assert sim.nbytes() - before + needs.first >= found["ncon"] * needs.contact + found["nefc"] * needs.row
        assert sim.nbytes() > before
        assert_nothing_left_over(sim, held())
    for world, qpos in enumerate(grounded()):
        data = oracle(ant(), qpos)
        contacts, rows = sim.contacts(world), sim.constraints(world)
        assert (contacts.ncon, rows.nefc) == (data.ncon, data.nefc)
        np.testing.assert_allclose(contacts.dist, data.contact.dist, atol=1e-12)
        np.testing.assert_allclose(contacts.pos, data.contact.pos.reshape(-1, 3), atol=1e-12)
        np.testing.assert_allclose(contacts.frame.reshape(-1, 9), data.contact.frame.reshape(-1, 9), atol=1e-12)
        np.testing.assert_array_equal(np.stack([contacts.geom1, contacts.geom2], 1), data.contact.geom.reshape(-1, 2))
        np.testing.assert_array_equal(contacts.efc_address, data.contact.efc_address)
        np.testing.assert_allclose(rows.J, data.efc_J.reshape(-1, ant().nv), atol=1e-12)
        np.testing.assert_allclose(rows.aref, data.efc_aref, rtol=1e-9, atol=1e-9)


def test_a_step_during_which_arenas_grow_is_the_step_of_larger_arenas() -> None:
    small, large = (host(ant(), WORLDS, shards=2, executor="threads") for _ in range(2))
    large.set_state(qpos=grounded())
    large.forward()
    for sim in (small, large):
        sim.set_state(qpos=grounded(), qvel=np.zeros(ant().nv))
    before = small.nbytes()
    assert before < large.nbytes()
    for _ in range(3):
        small.step()
        large.step()
        np.testing.assert_array_equal(np.asarray(small.qpos), np.asarray(large.qpos))
        np.testing.assert_array_equal(np.asarray(small.qvel), np.asarray(large.qvel))
    assert small.nbytes() > before


def test_arenas_that_grow_in_steps_of_contacts_keep_every_world() -> None:
    """One more pile after another reaches the ground, so that arenas move again and again."""
    model, states = load_model(OWN["pile"]), sample("pile").qpos[:60]
    high = states.copy()
    high[:, 2::7] += 50 * (1 + np.arange(5))
    sizes = set()
    with arrays_traced() as held:
        sim = host(model, 60, shards=1, dtype="float64")
        for landed in (0, 5, 20, 60):
            sim.set_state(qpos=np.concatenate([states[:landed], high[landed:]]))
            sim.forward()
            sizes.add(sim.nbytes())
            assert_nothing_left_over(sim, held())
            for world in range(60):
                expected = oracle(model, (states if world < landed else high)[world]).ncon
                assert sim.contacts(world).ncon == expected
    assert len(sizes) > 2


def test_bytes_are_counted() -> None:
    sim = host(ant(), WORLDS, shards=1)
    before = sim.nbytes()
    sim.set_state(qpos=grounded())
    sim.forward()
    assert sim.nbytes() > before > WORLDS * ant().nq * 4


def test_running_out_of_memory_names_model_and_need(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = host(ant(), WORLDS, shards=1)
    sim.forward()
    sim.set_state(qpos=grounded())

    def no_memory(self: HostBackend, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        raise MemoryError("cannot allocate")

    monkeypatch.setattr(HostBackend, "zeros", no_memory)
    with pytest.raises(RuntimeError, match=r"ant.*150 worlds.*more memory.*contact_dist.*fewer worlds"):
        sim.forward()
    monkeypatch.undo()
    sim.forward()
    assert sim.contacts(7).ncon == oracle(ant(), grounded()[7]).ncon


def test_solved_accelerations_after_growth_are_mujocos() -> None:
    mj = mujoco.MjModel.from_xml_string(OWN["pile"])
    mj.opt.tolerance = mj.opt.ls_tolerance = 1e-12
    model, states = load_model(mj), sample("pile")
    sim = host(model, len(states.qpos), shards=1, dtype="float64")
    sim.set_state(qpos=states.qpos, qvel=states.qvel)
    sim.forward()
    for world in range(0, len(states.qpos), 7):
        data = oracle(model, states.qpos[world], states.qvel[world])
        scale = max(1.0, np.abs(data.qacc).max())
        np.testing.assert_allclose(np.asarray(sim.qacc)[world] / scale, data.qacc / scale, atol=1e-6)
