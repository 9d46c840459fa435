"""Models at the ends of what there is: without dofs or geoms, with mocap bodies alone, with very many bodies, contacts.

The tests of one large island are in `tests/physics/islands/test_large_islands.py`.
"""

from __future__ import annotations

import resource

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model

BACKENDS = ("host", "jax")
TOLERANCE = {"float64": 1e-9, "float32": 2e-4}
MEMORY = 1 << 30
"""Bytes that a process may grow by for a model of 5,000 bodies, or of 10,000 contacts."""

WITHOUT_DOFS = {
    "nothing": "<mujoco><worldbody/></mujoco>",
    "geoms in each other": "<mujoco><worldbody><geom size='1'/><body><geom size='1'/></body></worldbody></mujoco>",
}
MOCAP = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body mocap="true" pos="0 0 0.05"><geom size="0.1"/><site name="tip" pos="0 0 0.1"/></body>
  </worldbody>
  <sensor><framepos objtype="site" objname="tip"/></sensor>
</mujoco>
"""
WITHOUT_GEOMS = """
<mujoco>
  <worldbody>
    <body><joint axis="0 1 0"/><inertial pos="0.1 0 0.02" mass="2" diaginertia="0.1 0.2 0.25"/></body>
    <body pos="0 0 1"><freejoint/><inertial pos="0.1 0 0.02" mass="1" diaginertia="0.1 0.2 0.25"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WITHOUT_DOFS)
def test_a_model_without_dofs_steps(name: str, backend: str) -> None:
    sim = Simulation(WITHOUT_DOFS[name], 3, backend=backend)
    sim.step(2)
    sim.forward()
    assert sim.qpos.shape == sim.qvel.shape == sim.qacc.shape == (3, 0)
    assert np.asarray(sim.time).tolist() == pytest.approx([0.004] * 3)
    assert sim.contacts(0).ncon == 0
    sim.reset()
    assert not np.asarray(sim.time).any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_of_mocap_bodies_alone_moves_them(backend: str) -> None:
    sim = Simulation(MOCAP, 2, backend=backend)
    sim.set_state([1], mocap_pos=[[1, 2, 3]], mocap_quat=[[0, 1, 0, 0]])
    sim.step()
    sim.forward()
    np.testing.assert_allclose(sim.field("sensordata"), [[0, 0, 0.15], [1, 2, 2.9]], atol=1e-6)
    assert sim.contacts(0).ncon == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_without_geoms_agrees_with_mujoco(backend: str) -> None:
    mj = mujoco.MjModel.from_xml_string(WITHOUT_GEOMS)
    agrees_after_a_step(mj, mj.qpos0, np.random.default_rng(0).normal(size=mj.nv), backend, "float32")


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
def test_five_thousand_bodies_agree_with_mujoco(dtype: str) -> None:
    mj = mujoco.MjModel.from_xml_string(chains(500, 10))
    rng, before = np.random.default_rng(0), peak()
    sim = agrees_after_a_step(mj, 0.1 * rng.normal(size=mj.nq), 0.3 * rng.normal(size=mj.nv), "host", dtype)
    assert sim.model.mj.nbody == 5001
    assert peak() - before < MEMORY


@pytest.mark.parametrize("number", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_models_of_many_bodies_agree_with_mujoco_on_jax(number: int) -> None:
    # 300 dofs have dense matrices, and 5,000 have matrices by families of bodies
    mj = mujoco.MjModel.from_xml_string(chains(number, 10))
    rng, before = np.random.default_rng(0), peak()
    agrees_after_a_step(mj, 0.1 * rng.normal(size=mj.nq), 0.3 * rng.normal(size=mj.nv), "jax", "float32")
    assert peak() - before < MEMORY


@pytest.mark.slow
def test_five_thousand_free_bodies_agree_with_mujoco_on_jax() -> None:
    mj = mujoco.MjModel.from_xml_string(dumbbells(5000))
    rng, before = np.random.default_rng(0), peak()
    sim = agrees_after_a_step(mj, mj.qpos0, 0.3 * rng.normal(size=mj.nv), "jax", "float32")
    assert mj.nv == 30_000
    sim.set_state(qpos=mj.qpos0)
    sim.forward()
    assert sim.contacts(0).ncon == 500
    assert peak() - before < MEMORY


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
@pytest.mark.parametrize("backend", ["host", pytest.param("jax", marks=pytest.mark.slow)])
def test_ten_thousand_contacts_of_a_world_agree_with_mujoco(backend: str, dtype: str) -> None:
    # JAX has a limit on the pairs of geoms, so there the spheres touch the floor alone
    mj = mujoco.MjModel.from_xml_string(plates(50, 200, touching=backend == "host"))
    mj.opt.tolerance, mj.opt.ls_tolerance, before = 1e-15, 1e-15, peak()
    # plates that are pressed on the floor and slide
    qvel = np.tile([0.3, -0.2, -0.1, 0, 0, 0.5], 50) * np.repeat(np.random.default_rng(0).uniform(0.5, 1, 50), 6)
    sim = agrees_after_a_step(mj, mj.qpos0, qvel, backend, dtype)
    sim.set_state(qpos=mj.qpos0, qvel=qvel)
    sim.forward()
    contacts = sim.contacts(0)
    assert contacts.ncon == 10_000
    assert np.abs(np.asarray(contacts.dist) + 5e-4).max() < 1e-5
    assert peak() - before < MEMORY * (1 if backend == "host" else 2)


def agrees_after_a_step(mj: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray, backend: str, dtype: str) -> Simulation:
    """A simulation of one world, whose state after a step from qpos, qvel is MuJoCo's."""
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_step(mj, data)
    sim = Simulation(load_model(mj), 1, backend=backend, dtype=dtype)
    sim.set_state(qpos=qpos, qvel=qvel)
    sim.step()
    for name in ("qpos", "qvel"):
        theirs = np.array(getattr(data, name))
        assert not np.array_equal(theirs, {"qpos": qpos, "qvel": qvel}[name])
        error = np.abs(np.asarray(getattr(sim, name))[0] - theirs).max()
        assert error < TOLERANCE[dtype] * max(1.0, np.abs(theirs).max()), name
    return sim


def chains(number: int, links: int) -> str:
    """MJCF of pendulums with many links, which do not collide."""
    link = '<body pos="0.1 0 0"><joint axis="0 {y} {z}" damping="0.01"/><geom size="0.02" pos="0.05 0 0"/>'
    rest = "".join(link.format(y=k % 2, z=1 - k % 2) for k in range(1, links)) + "</body>" * links
    first = '<body pos="{x} {y} 1"><joint axis="0 1 0"/><geom size="0.02" pos="0.05 0 0"/>'
    bodies = (first.format(x=0.5 * (i % 50), y=0.5 * (i // 50)) + rest for i in range(number))
    default = '<default><geom contype="0" conaffinity="0"/></default>'
    return f"<mujoco>{default}<worldbody>{''.join(bodies)}</worldbody></mujoco>"


def dumbbells(number: int) -> str:
    """MJCF of free bodies, each a sphere and another that makes it lopsided; every tenth lies on the floor."""
    body = (
        '<body pos="{x} {y} {z}"><freejoint/><geom size="0.1"/>'
        '<geom size="0.05" pos="0 0.07 0.02" contype="0" conaffinity="0"/></body>'
    )
    places = ((0.3 * (i % 100), 0.3 * (i // 100), 1 if i % 10 else 0.0995) for i in range(number))
    bodies = "".join(body.format(x=x, y=y, z=z) for x, y, z in places)
    floor = '<geom type="plane" size="50 50 1" contype="1" conaffinity="2"/>'
    default = '<default><geom contype="2" conaffinity="1"/></default>'
    return f'<mujoco><size memory="500M"/>{default}<worldbody>{floor}{bodies}</worldbody></mujoco>'


def plates(number: int, spheres: int, touching: bool = True) -> str:
    """MJCF of plates of spheres that lie in the floor half a millimetre deep, and may touch each other or not."""
    group = "" if touching else 'contype="0"'
    places = ((0.05 * (k % 20), 0.05 * (k // 20)) for k in range(spheres))
    geoms = "".join(f'<geom size="0.02" pos="{x} {y} 0" {group}/>' for x, y in places)
    bodies = (f'<body pos="{1.2 * (i % 8)} {0.7 * (i // 8)} 0.0195"><freejoint/>{geoms}</body>' for i in range(number))
    floor = '<geom type="plane" size="50 50 1"/>'
    return f'<mujoco><size memory="500M"/><worldbody>{floor}{"".join(bodies)}</worldbody></mujoco>'


def peak() -> int:
    """The most memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
