"""Contacts with height fields as GPUs find them, in kernels that run on the host."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from tests.gpu.compare import to_host
from tests.helpers.cuda_on_host.backend import FiberBackend
from tests.stages.contacts import Found, by_mujoco

CAR = Path(__file__).parents[2] / "benchmarks" / "kinds" / "car.xml"


def on_gpu(monkeypatch: pytest.MonkeyPatch, mj: mujoco.MjModel, qpos: np.ndarray) -> tuple[list[Found], set[str]]:
    """Contacts that kernels of a GPU find in states, and the names of the kernels."""
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    monkeypatch.setattr(FiberBackend, "how", "counted")
    monkeypatch.setattr(FiberBackend, "used", used := set[str]())
    with Simulation(load_model(mj), num_worlds=len(qpos), backend="cuda") as sim:
        sim.set_state(qpos=qpos)
        sim.forward()
        each = (sim.contacts(world) for world in range(len(qpos)))
        contacts = [(np.column_stack((c.geom1, c.geom2)), c.dist, c.pos, c.frame.reshape(-1, 9)) for c in each]
        return [Found(*map(to_host, c)) for c in contacts], used


def test_wheels_touch_where_mujoco_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel rests on a face of the field with a point of its rim, which a search for a depth may place beside it."""
    mj = mujoco.MjModel.from_xml_path(str(CAR))
    with Simulation(load_model(mj), num_worlds=16, backend="host") as sim:
        rng = np.random.default_rng(0)
        sim.set_state(qpos=sim.qpos + rng.normal(size=(16, mj.nq)) * 0.02, qvel=rng.normal(size=(16, mj.nv)) * 0.3)
        ctrl = rng.uniform(-1, 1, size=(16, mj.nu))
        sim.step(60, ctrl=ctrl)
        qpos = np.array(sim.qpos)
    contacts, wanted = on_gpu(monkeypatch, mj, qpos)[0], by_mujoco(mj, qpos)
    for ours, theirs in zip(contacts, wanted, strict=True):
        np.testing.assert_array_equal(ours.geoms, theirs.geoms)
        np.testing.assert_allclose(ours.pos, theirs.pos, rtol=0, atol=2e-3)
        np.testing.assert_allclose(ours.dist, theirs.dist, rtol=0, atol=2e-6)
