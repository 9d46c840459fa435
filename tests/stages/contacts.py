"""Contacts of states, by MuJoCo and by the engine on the host."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from simengine import Simulation, load_model


class Found(NamedTuple):
    """Contacts of one state: geoms (ncon, 2), dist (ncon,), pos (ncon, 3) and frame (ncon, 9)."""

    geoms: np.ndarray
    dist: np.ndarray
    pos: np.ndarray
    frame: np.ndarray


def by_mujoco(mj: mujoco.MjModel, qpos: np.ndarray) -> list[Found]:
    """Contacts that MuJoCo finds in states, (count, nq)."""
    data = mujoco.MjData(mj)
    out = []
    for q in qpos:
        data.qpos[:] = q
        mujoco.mj_forward(mj, data)
        c = data.contact
        out.append(Found(c.geom.copy(), c.dist.copy(), c.pos.copy(), c.frame.copy()))
    return out


def by_host(mj: mujoco.MjModel, qpos: np.ndarray, dtype: str) -> list[Found]:
    """Contacts that the engine finds on the host."""
    sim = Simulation(load_model(mj), num_worlds=len(qpos), backend="host", dtype=dtype)
    sim.set_state(qpos=qpos)
    sim.forward()
    found = [sim.contacts(world) for world in range(len(qpos))]
    out = [Found(np.column_stack((c.geom1, c.geom2)), c.dist, c.pos, c.frame.reshape(-1, 9)) for c in found]
    sim.close()
    return out
