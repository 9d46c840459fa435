"""Worlds have the same bits in shards that have tiles and in shards that are too small for them."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Model, Simulation
from simengine.plan.tiles import LEAST_WORLDS

FEW, MANY = LEAST_WORLDS - 1, LEAST_WORLDS + 1


def limb(name: str, joints: int, spread: float) -> str:
    """A chain of hinges with damping, friction and limits, whose bodies have children without joints."""
    text = ""
    for k in range(joints):
        text += (
            f'<body pos="0 {spread} -.1"><joint name="{name}{k}" axis="{k % 2} {(k + 1) % 2} 0" damping="{0.1 + k}" '
            f'frictionloss=".01" range="-20 20" armature=".01"/><geom type="capsule" size=".03" '
            f'fromto="0 0 0 0 {spread} -.1"/><body><geom size=".02" mass=".1" contype="0" conaffinity="0"/></body>'
        )
    return text + "</body>" * joints


def branched(joints: int) -> mujoco.MjModel:
    """A floating body with four limbs."""
    limbs = "".join(limb(name, joints, y) for name, y in zip("abcd", (-0.3, -0.1, 0.1, 0.3), strict=True))
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option noslip_iterations="3"/><compiler angle="degree"/><worldbody>'
        f'<geom type="plane" size="9 9 1"/><body pos="0 0 .6"><freejoint/><geom type="box" size=".1 .3 .05"/>{limbs}'
        "</body></worldbody></mujoco>"
    )


def stepped(mj: mujoco.MjModel, worlds: int) -> np.ndarray:
    rng = np.random.default_rng(2)
    with Simulation(Model(mj), worlds, backend="host", executor="serial") as sim:
        qpos = np.tile(mj.qpos0, (MANY, 1))
        qpos[:, 7:] += rng.uniform(-0.4, 0.4, (MANY, mj.nq - 7))
        sim.set_state(qpos=qpos[:worlds], qvel=rng.normal(size=(MANY, mj.nv))[:worlds])
        sim.step(30)
        return np.hstack([np.array(sim.qpos), np.array(sim.qvel)])


@pytest.mark.parametrize("joints", [6, 9])
def test_small_and_large_shards_give_the_same_bits(joints: int) -> None:
    """On both sides of 32 dofs, from where on matrices are factored from the last dof on."""
    mj = branched(joints)
    assert (mj.nv > 32) == (joints == 9)
    few, many = stepped(mj, FEW), stepped(mj, MANY)
    assert np.isfinite(many).all()
    assert (few == many[:FEW]).all()
