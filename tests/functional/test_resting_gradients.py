"""Derivatives of contacts at rest, in which axes are parallel, upright or cross, and caps and sides lie flat."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simengine.engines.jax_step import initial_state, make_step
from simengine.model import load_table
from simengine.physics.collision.narrowphase_jax import narrowphase
from simengine.physics.kinematics.kinematics_jax import kinematics
from tests.helpers.oracle import quick_jit

STEEPEST = 1e4
"""No derivative of a distance, position [m] or frame by a coordinate [m, or of a unit quaternion] is larger. A frame
turns by 1/sin(60 degrees), and positions on shapes of 10 cm move with the direction of the normal."""

SHAPES = {
    "plane": ('type="plane" size="1 1 1"', 0.0),
    "sphere": ('size="0.1"', 0.1),
    "capsule": ('type="capsule" size="0.1 0.1"', 0.2),
    "lying": ('type="capsule" size="0.1 0.1" euler="0 90 0"', 0.1),
    "cylinder": ('type="cylinder" size="0.1 0.1"', 0.1),
    "ellipsoid": ('type="ellipsoid" size="0.1 0.12 0.1"', 0.1),
    "box": ('type="box" size="0.1 0.1 0.1"', 0.1),
}
"""Geoms, and how far they reach above their centres and below them [m]."""

PAIRS = (
    *(("plane", upper) for upper in SHAPES if upper != "plane"),
    *(("sphere", "sphere"), ("sphere", "capsule"), ("sphere", "cylinder"), ("sphere", "box"), ("sphere", "ellipsoid")),
    *(("capsule", "capsule"), ("capsule", "lying"), ("lying", "lying"), ("capsule", "box"), ("lying", "box")),
    *(("lying", "cylinder"), ("cylinder", "cylinder"), ("box", "cylinder"), ("ellipsoid", "ellipsoid"), ("box", "box")),
)
DEPTH = 1e-3  # [m]


def model() -> mujoco.MjModel:
    """A fixed and a free geom for each pair, which touch nothing else; the upper one rests on the lower one."""
    bodies = []
    for k, (lower, upper) in enumerate(PAIRS):
        alone = f'contype="{1 << k}" conaffinity="{1 << k}"'
        height = SHAPES[lower][1] + SHAPES[upper][1] - DEPTH
        bodies.append(
            f"<geom {alone} {SHAPES[lower][0]}/>"
            f'<body pos="0 0 {height}"><freejoint/><geom {alone} mass="1" {SHAPES[upper][0]}/></body>'
        )
    return mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{''.join(bodies)}</worldbody></mujoco>")


@pytest.mark.slow
@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-4])
def test_contacts_of_resting_primitives_have_bounded_derivatives(tilt: float) -> None:
    table = load_table(model())

    def contacts(qpos: jax.Array) -> jax.Array:
        none = jnp.zeros((0, 3), qpos.dtype), jnp.zeros((0, 4), qpos.dtype)
        *_, geom_xpos, geom_xmat = kinematics(table, qpos, *none)
        dist, pos, frame, active = narrowphase(table, geom_xpos, geom_xmat)
        values = jnp.concatenate([dist[:, None], pos, frame], axis=1)
        return jnp.where(active[:, None], values, 0.0), active

    qpos = table.mj.qpos0.reshape(-1, 7).copy()
    qpos[:, 3:] = np.cos(tilt / 2), 0.6 * np.sin(tilt / 2), 0.8 * np.sin(tilt / 2), 0.0
    jacobian, active = quick_jit(jax.jacrev(contacts, has_aux=True))(jnp.asarray(qpos.ravel()))
    touching = {*np.asarray(table.slot_cand)[np.asarray(active)].tolist()}
    assert len(touching) == len(PAIRS)
    assert np.isfinite(np.asarray(jacobian)).all()
    assert np.abs(jacobian).max() < STEEPEST


BALANCING = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.1499"><joint type="ball"/>
  <geom type="capsule" size="0.05 0.1" mass="1"/>{}</body></worldbody></mujoco>"""
AHEAD = '<geom size="0.02" pos="0.3 0 0.3" mass="0.2" contype="0" conaffinity="0"/>'

QUICK = ((0.0, "centred"), (1e-4, "with a mass beside"))

TILTED = [
    pytest.param(tilt, beside, marks=[] if (tilt, name) in QUICK else pytest.mark.slow, id=f"{tilt}-{name}")
    for tilt in (0.0, 1e-9, 1e-4, 1e-2)
    for beside, name in (("", "centred"), (AHEAD, "with a mass beside"))
]


@pytest.mark.parametrize(("tilt", "beside"), TILTED)
def test_a_capsule_upright_on_a_ball_joint_has_bounded_derivatives(tilt: float, beside: str) -> None:
    """Also where it turns about its centre of mass. Then the contact has MuJoCo's largest `efc_D`, 5e14."""
    table = load_table(mujoco.MjModel.from_xml_string(BALANCING.format(beside)))
    step, start = make_step(table), initial_state(table, jnp.float64)
    turn = np.array([np.cos(tilt / 2), 0.6 * np.sin(tilt / 2), 0.8 * np.sin(tilt / 2), 0.0])
    state = start._replace(qpos=jnp.asarray(turn), qvel=jnp.full(3, 0.1))
    gradient = quick_jit(jax.grad(lambda s: jnp.sum(step(s, jnp.zeros(0)).qvel ** 2)))(state)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(gradient)]
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    assert max(np.abs(leaf).max(initial=0.0) for leaf in leaves) < 10.0
