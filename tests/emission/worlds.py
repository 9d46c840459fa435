"""Batches that the tests of kernel lists, determinism and backends share."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pytest

from simengine import Model, Simulation, load_model
from simengine.simulation import ModelSource
from simengine.state.fields import INTEGRATION_STATE
from tests.models import gymnasium_path

ANTS = 6
"""Worlds of `rolling`."""

BALL = """
<mujoco model="ball">
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="ball" pos="0 0 0.5">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <joint name="turn" type="hinge" axis="0 1 0" range="-60 60" damping="0.01"/>
      <geom size="0.1"/>
    </body>
  </worldbody>
  <actuator><motor joint="x"/><motor joint="turn" gear="0.02"/></actuator>
  <sensor><jointpos name="height" joint="z"/></sensor>
  <keyframe><key name="aloft" qpos="0 1 0"/></keyframe>
</mujoco>
"""
"""A sphere that moves in the plane y = 0 above a floor, with two motors. It is small and compiles fast."""

FEATHER = """
<mujoco model="feather">
  <option gravity="0 0 0" integrator="RK4"/>
  <worldbody><body name="body"><freejoint/>
    <inertial pos="0.1 0.02 -0.03" mass="2" diaginertia="0.1 0.2 0.25"/>
  </body></worldbody>
</mujoco>
"""
"""A free body without gravity."""


class Start(NamedTuple):
    """States of a batch: (worlds, nq), (worlds, nv)."""

    qpos: np.ndarray
    qvel: np.ndarray


@cache
def ant() -> Model:
    """Gymnasium's ant."""
    return load_model(gymnasium_path("ant"))


def ant_start(worlds: int, seed: int = 0) -> Start:
    """Random states of ants, in turn in the air, near the floor and on their backs. Values are exact in float32."""
    rng = np.random.default_rng(seed)
    kind = np.arange(worlds) % 3
    qpos = np.tile(ant().qpos0, (worlds, 1))
    qpos[:, 2] = np.choose(kind, [3.0, 0.5, 0.3]) + rng.uniform(0, 0.1, worlds)
    upright, on_its_back = np.array([1.0, 0, 0, 0]), np.array([0, 1.0, 0, 0])
    qpos[:, 3:7] = rng.normal(size=(worlds, 4)) * 0.1 + np.where((kind == 2)[:, None], on_its_back, upright)
    low, high = ant().mj.jnt_range[1:].T
    qpos[:, 7:] = rng.uniform(low, high, size=(worlds, 8))
    qvel = rng.normal(size=(worlds, ant().nv))
    return Start(qpos.astype(np.float32).astype(np.float64), qvel.astype(np.float32).astype(np.float64))


def ants(height: float, upside_down: bool = False, worlds: int = 4) -> np.ndarray:
    """Coordinates (worlds, nq) of ants at a height [m], level or on their backs, with joints in mid-range."""
    qpos = np.tile(ant().qpos0, (worlds, 1))
    qpos[:, 2] = height
    qpos[:, 7:] = ant().mj.jnt_range[1:].mean(axis=1)
    if upside_down:
        qpos[:, 3:7] = [0, 1, 0, 0]
    return qpos


def host(model: ModelSource, worlds: int, **options: Any) -> Simulation:
    """A simulation on the host backend."""
    return Simulation(model, num_worlds=worlds, backend="host", **options)


def snapshot(sim: Simulation) -> dict[str, bytes]:
    """The bits of the integration state of every group."""
    return {
        f"{group.index}.{name}": np.asarray(group.field(name)).tobytes()
        for group in sim.groups
        for name in INTEGRATION_STATE
    }


def rolling(executor: str = "threads", **options: Any) -> Simulation:
    """Six ants, each in a state of its own."""
    sim = host(ant(), ANTS, executor=executor, **options)
    sim.set_state(**ant_start(ANTS)._asdict())
    return sim


def state(sim: Simulation, worlds: Any = slice(None)) -> list[bytes]:
    """Bits of the state of some worlds."""
    return [np.asarray(sim.field(name))[worlds].tobytes() for name in ("qpos", "qvel", "qacc_warmstart", "nstep")]


def oracle(model: Model, qpos: np.ndarray, qvel: np.ndarray | None = None) -> mujoco.MjData:
    """MuJoCo's fields of one state."""
    data = mujoco.MjData(model.mj)
    data.qpos[:] = qpos
    if qvel is not None:
        data.qvel[:] = qvel
    mujoco.mj_forward(model.mj, data)
    return data


def assert_one_sentence(error: BaseException) -> None:
    """Assert that a message is not empty and is one sentence on one line."""
    message = str(error)
    assert "\n" not in message
    assert 20 < len(message) < 1000
    assert re.search(r"\. [A-Z]", message) is None


def refused(call: Callable[[], Any], kind: type[Exception], words: str) -> Exception:
    """Return the exception of a call after checking its type, and its message against a regular expression."""
    with pytest.raises(kind, match=words) as caught:
        call()
    assert_one_sentence(caught.value)
    return caught.value
