"""Convex hulls with small facets in float32: nearly flat edges between facets must not hide the facets behind them."""

from __future__ import annotations

from itertools import product

import mujoco
import numpy as np

from simengine import Simulation

STATES = 400
ROUND = 0.004  # [m]
AS_DEEP, AS_STEEP = 1e-6, 1e-3  # [m], and of the normal: of two facets as deep, rounding may choose either


def mesh(rng: np.random.Generator, size: tuple[float, float, float], number: int) -> str:
    """Vertices of a box whose corners are rounded by spheres of `number` points each, as text."""
    corner = np.array(list(product((-1.0, 1.0), repeat=3)))[:, None]
    points = rng.normal(size=(8, number, 3))
    points *= ROUND / np.linalg.norm(points, axis=2, keepdims=True)
    return " ".join(f"{x:.6f}" for x in (np.abs(points) * corner + corner * np.array(size)).ravel())


def pair() -> mujoco.MjModel:
    rng = np.random.default_rng(3)
    first, second = mesh(rng, (0.12, 0.2, 0.08), 12), mesh(rng, (0.05, 0.06, 0.3), 12)
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option><flag multiccd="disable"/></option><asset><mesh name="a" vertex="{first}"/>'
        f'<mesh name="b" vertex="{second}"/></asset><worldbody>'
        '<body><freejoint/><geom type="mesh" mesh="a"/></body><body><freejoint/><geom type="mesh" mesh="b"/></body>'
        "</worldbody></mujoco>"
    )


def test_normals_are_mujocos() -> None:
    mj = pair()
    mj.opt.ccd_tolerance, mj.opt.ccd_iterations = 1e-12, 500
    rng, data = np.random.default_rng(4), mujoco.MjData(mj)
    qpos = np.zeros((STATES, mj.nq))
    qpos[:, 7:10] = rng.uniform(-0.1, 0.1, size=(STATES, 3))
    qpos[:, 3:7], qpos[:, 10:14] = rng.normal(size=(2, STATES, 4))
    qpos = qpos.astype(np.float32).astype(np.float64)
    sim = Simulation(mj, num_worlds=STATES, backend="host", dtype="float32")
    sim.set_state(qpos=qpos)
    sim.forward()
    compared = wrong = 0
    for world in range(STATES):
        data.qpos[:] = qpos[world]
        mujoco.mj_forward(mj, data)
        contacts = sim.contacts(world)
        assert contacts.ncon == data.ncon
        if data.ncon:
            compared += 1
            deep = abs(float(contacts.dist[0]) - data.contact.dist[0])
            steep = np.abs(np.ravel(contacts.frame[0])[:3] - data.contact.frame[0, :3]).max()
            wrong += bool(deep > AS_DEEP or steep > AS_STEEP)
    assert compared > STATES / 2
    assert wrong <= 1
