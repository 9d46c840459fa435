"""Thousands of contacts appear in one step of one world. None is lost, and other worlds are not affected."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, available_backends, load_model
from simengine.check.states import as_numpy

WORLDS, DROPPED, SIDE = 12, 5, 24

pytestmark = pytest.mark.parametrize(
    "backend",
    [
        pytest.param("host", marks=pytest.mark.skipif(bool(available_backends()["host"]), reason="no C++ compiler")),
        pytest.param("cuda", marks=pytest.mark.gpu),
    ],
)


def bed_of_nails() -> mujoco.MjModel:
    """A free plate of SIDE x SIDE spheres and boxes over a floor, and a second plane that cuts its corner off."""
    ball, block = 'size="0.01"', 'type="box" size="0.008 0.009 0.01"'
    geoms = "".join(
        f'<geom {block if (i + k) % 2 else ball} pos="{0.03 * (i - SIDE / 2)} {0.03 * (k - SIDE / 2)} 0"/>'
        for i in range(SIDE)
        for k in range(SIDE)
    )
    mj = mujoco.MjModel.from_xml_string(
        '<mujoco><size memory="400M"/><default><geom density="2000" condim="3" margin="0.004"/></default><worldbody>'
        '<geom type="plane" size="5 5 1"/><geom type="plane" size="5 5 1" euler="0 2 0" condim="1"/>'
        f"<body><freejoint/>{geoms}</body></worldbody></mujoco>"
    )
    mj.opt.tolerance = mj.opt.ls_tolerance = 1e-12
    return mj


def states(dropped: bool) -> tuple[np.ndarray, np.ndarray]:
    """qpos and qvel of plates in the air, some with an edge on the floor; one lies flat if it is dropped."""
    rng = np.random.default_rng(3)
    qpos = np.zeros((WORLDS, 7))
    qpos[:, 2] = np.where(np.arange(WORLDS) % 3, 0.5, 0.2)
    qpos[:, 3:] = [1, 0, 0.5, 0]
    qpos[:, :2] = rng.normal(size=(WORLDS, 2))
    qvel = rng.normal(size=(WORLDS, 6))
    if dropped:
        qpos[DROPPED] = (0.05, 0, 0.008, 1, 0.002, 0.001, 0.7)
    return qpos.astype(np.float32).astype(np.float64), qvel.astype(np.float32).astype(np.float64)


def simulation(backend: str) -> Simulation:
    """Plates in the air, all arenas as small as they need."""
    sim = Simulation(load_model(bed_of_nails()), num_worlds=WORLDS, backend=backend, dtype="float64")
    qpos, qvel = states(False)
    sim.set_state(qpos=qpos, qvel=qvel)
    sim.forward()
    return sim


def test_every_contact_row_and_force_is_there(backend: str) -> None:
    sim, mj = simulation(backend), bed_of_nails()
    before = sim.contacts(DROPPED).ncon
    qpos, qvel = states(True)
    sim.set_state(qpos=qpos, qvel=qvel)
    sim.forward()
    assert before == 0
    for world in (0, 1, DROPPED):
        data = mujoco.MjData(mj)
        data.qpos[:], data.qvel[:] = qpos[world], qvel[world]
        mujoco.mj_forward(mj, data)
        contacts, rows = sim.contacts(world), sim.constraints(world)
        assert (contacts.ncon, rows.nefc) == (data.ncon, data.nefc)
        assert world != DROPPED or (data.ncon > 2000 and data.nefc > 4000)
        geoms = np.stack([contacts.geom1, contacts.geom2], axis=1)
        np.testing.assert_array_equal(geoms, data.contact.geom.reshape(-1, 2))
        np.testing.assert_allclose(as_numpy(contacts.dist), data.contact.dist, atol=1e-8)
        np.testing.assert_allclose(as_numpy(contacts.pos), data.contact.pos.reshape(-1, 3), atol=1e-8)
        np.testing.assert_allclose(as_numpy(rows.J), data.efc_J.reshape(-1, mj.nv), atol=1e-8)
        np.testing.assert_allclose(as_numpy(rows.aref), data.efc_aref, rtol=1e-8, atol=1e-8)
        scale = max(1.0, np.abs(data.efc_force).max(initial=0.0))
        np.testing.assert_allclose(as_numpy(rows.force), data.efc_force, atol=1e-6 * scale)
        np.testing.assert_allclose(as_numpy(sim.field("qacc"))[world], data.qacc, rtol=1e-6, atol=1e-6 * scale)


def test_the_other_worlds_take_the_same_steps(backend: str) -> None:
    """Bit for bit as in a batch in which nothing is dropped, while the arenas grow under them."""
    after = []
    for dropped in (False, True):
        sim = simulation(backend)
        qpos, qvel = states(dropped)
        sim.set_state(qpos=qpos, qvel=qvel)
        sim.step(3)
        after.append([as_numpy(sim.field(name)).copy() for name in ("qpos", "qvel", "qacc_warmstart")])
    others = np.arange(WORLDS) != DROPPED
    for calm, stirred in zip(*after, strict=True):
        np.testing.assert_array_equal(calm[others], stirred[others])
        assert (calm[DROPPED] != stirred[DROPPED]).any()
