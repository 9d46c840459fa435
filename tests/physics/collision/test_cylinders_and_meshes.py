"""Normals of contacts of discs and cylinders with meshes on CUDA, whose steps end where they lead to and fro."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from tests.helpers.cuda_on_host.backend import FiberBackend

WORLDS = 60
SHAPES = {"cylinder": "0.08 0.06", "disc": "0.1 0.005"}


def pair_with(size: str) -> str:
    """A cylinder, and a mesh of 24 corners that moves."""
    corners = np.random.default_rng(5).normal(size=(24, 3))
    corners *= np.array([0.1, 0.07, 0.06]) / np.linalg.norm(corners, axis=1, keepdims=True)
    return (
        f'<mujoco><asset><mesh name="m" vertex="{" ".join(map(str, corners.ravel()))}"/></asset><worldbody>'
        f'<body><geom type="cylinder" size="{size}"/></body>'
        f'<body><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )


def poses() -> np.ndarray:
    """Poses of the mesh in any orientation, most of them in the cylinder."""
    rng = np.random.default_rng(3)
    places, turns = rng.normal(size=(WORLDS, 3)), rng.normal(size=(WORLDS, 4))
    places *= rng.uniform(0.04, 0.16, (WORLDS, 1)) / np.linalg.norm(places, axis=1, keepdims=True)
    return np.hstack([places, turns / np.linalg.norm(turns, axis=1, keepdims=True)]).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
def test_contacts_are_exact_in_float32(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    found = []
    for backend, dtype in (("host", "float64"), ("cuda", "float32")):
        sim = Simulation(load_model(pair_with(SHAPES[shape])), num_worlds=WORLDS, backend=backend, dtype=dtype)
        sim.set_state(qpos=poses())
        sim.forward()
        found.append([sim.contacts(world) for world in range(WORLDS)])
        sim.close()
    exact, rounded = ([c.dist for c in contacts] for contacts in found)
    assert sum(map(len, exact)) > WORLDS // 2
    assert list(map(len, exact)) == list(map(len, rounded))
    np.testing.assert_allclose(np.concatenate(rounded), np.concatenate(exact), rtol=0, atol=1e-6)
    normals = [np.concatenate([np.reshape(c.frame, (-1, 9))[:, :3] for c in contacts]) for contacts in found]
    # where two ways out are equally short, rounding decides which is taken
    assert (np.abs(normals[1] - normals[0]).max(axis=1) < 1e-4).mean() > 0.98
