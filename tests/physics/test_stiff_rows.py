"""Light bodies with many stiff contacts, whose Hessian is almost singular in float32."""

from __future__ import annotations

import jax
import mujoco
import numpy as np
import pytest

from simengine import Simulation
from simengine.check.report import relative_error
from simengine.model.rows import with_least_weights
from tests.helpers.checkout import ROOT

WORLDS = 32
EDGES = ROOT / "tests" / "corpus" / "edges_without_friction.xml"


def rings(cone: str, impratio: int, dim: int) -> mujoco.MjModel:
    """Two rings of boxes, one in the other and both in the floor."""
    boxes = ""
    for angle in np.arange(8) * np.pi / 4:
        place = f"{0.035 * np.cos(angle):.4f} {0.035 * np.sin(angle):.4f} 0"
        boxes += f'<geom type="box" size="0.012 0.02 0.01" pos="{place}" euler="0 0 {np.degrees(angle)}" mass="0.005"/>'
    bodies = "".join(f'<body pos="{0.008 * i} {0.004 * i} {0.01 * i}"><freejoint/>{boxes}</body>' for i in range(2))
    return mujoco.MjModel.from_xml_string(
        f'<mujoco model="rings"><option cone="{cone}" impratio="{impratio}"/>'
        f'<default><geom friction="1 0.3 0.1" condim="{dim}" solimp="0.998 0.998 0.001"/></default>'
        f'<worldbody><geom type="box" size="0.3 0.3 0.05" pos="0 0 -0.05"/>{bodies}</worldbody></mujoco>'
    )


@pytest.mark.parametrize(("cone", "impratio", "dim"), [("elliptic", 20, 4), ("pyramidal", 100, 3)])
def test_accelerations_stay_finite_in_float32(cone: str, impratio: int, dim: int) -> None:
    mj = rings(cone, impratio, dim)
    noise = np.random.default_rng(0).normal(size=(WORLDS, mj.nq)) * 0.003
    sim = Simulation(mj, num_worlds=WORLDS, backend="host", dtype="float32", on_nonfinite="freeze")
    sim.set_state(qpos=mj.qpos0 + noise)
    sim.forward()
    assert max(sim.constraints(world).nefc for world in range(WORLDS)) > 300
    assert np.isfinite(np.asarray(sim.field("qacc"))).all()


@pytest.mark.parametrize(
    ("cone", "backend", "dtype"),
    [
        ("elliptic", "host", "float64"),
        ("pyramidal", "host", "float64"),
        ("elliptic", "host", "float32"),
        pytest.param("elliptic", "jax", "float32", marks=pytest.mark.slow),
    ],
)
def test_rows_that_no_body_gives_way_to_share_the_least_regularisation(cone: str, backend: str, dtype: str) -> None:
    """In float64 it is MuJoCo's, in float32 that of a body which only turns."""
    mj = mujoco.MjModel.from_xml_string(f"""
<mujoco><option cone="{cone}" impratio="20"/>
  <worldbody><geom size="0.1"/>
    <body pos="0.15 0 0"><joint axis="0 0 1"/><geom size="0.1" friction="1.3 0.2 0.1" condim="6"/></body>
  </worldbody></mujoco>""")
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    assert mj.body_invweight0[1, 0] == 0
    if dtype == "float32":
        mujoco.mj_forward(with_least_weights(mj), data)
    sim = Simulation(mj, num_worlds=1, backend=backend, dtype=dtype)
    sim.forward()
    np.testing.assert_allclose(sim.constraints(0).D, data.efc_D, rtol=1e-6)


@pytest.mark.parametrize(
    ("backend", "worlds", "dim"),
    [
        ("host", 1, 3),  # and a tile
        ("host", WORLDS, 3),
        ("host", 1, 4),  # and rows of every type
        pytest.param("jax", WORLDS, 3, marks=pytest.mark.slow),
    ],
)
def test_a_full_step_that_leaves_forces_out_of_balance_is_followed_by_another(
    backend: str, worlds: int, dim: int
) -> None:
    """Edges without friction are so hard that the Hessian has few digits of the inertia."""
    text = EDGES.read_text()
    mj = mujoco.MjModel.from_xml_string(text.replace('priority="1"', f'priority="1" condim="{dim}"'))
    mj.opt.tolerance = mj.opt.ls_tolerance = 1e-15
    data, rng = mujoco.MjData(mj), np.random.default_rng(0)
    states = rng.normal(size=(12 * WORLDS, mj.nq)) * np.repeat([[0.02], [0.3], [1.0], [0.05]], 3 * WORLDS, axis=0)
    with jax.enable_x64(True), Simulation(mj, num_worlds=worlds, backend=backend, dtype="float64") as sim:
        for first in range(0, len(states), worlds):
            sim.set_state(qpos=states[first : first + worlds])
            sim.forward()
            for qpos, qacc in zip(states[first : first + worlds], np.asarray(sim.field("qacc")), strict=True):
                mujoco.mj_resetData(mj, data)
                data.qpos[:] = qpos
                mujoco.mj_forward(mj, data)
                assert relative_error(qacc, data.qacc)[1] < 1e-6
