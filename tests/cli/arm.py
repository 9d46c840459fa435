"""An arm, a hand and a box, whose runs are recorded and replayed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simengine.backends.select import available_backends
from simengine.cli.main import main

HOST = pytest.mark.skipif(bool(available_backends()["host"]), reason="needs a C++ compiler")
MJCF = """
<mujoco model="arm">
  <worldbody>
    <camera name="side" pos="0 -3 .5" xyaxes="1 0 0 0 0 1"/>
    <light pos="0 -1 3"/>
    <geom type="plane" size="4 4 1" rgba=".2 .4 .8 1"/>
    <body name="hand" mocap="true" pos="0 0 1"/>
    <body name="arm" pos="0 0 .5">
      <joint name="hinge" axis="0 1 0" damping=".05"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".05" rgba="1 .2 0 1"/>
      <body pos=".4 0 0"><joint axis="0 1 0" armature=".01"/><geom size=".08"/></body>
    </body>
    <body pos="0 .8 .15"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  </worldbody>
  <actuator><general joint="hinge" dyntype="filter" dynprm=".1" gainprm="2"/><motor joint="hinge"/></actuator>
  <keyframe><key name="raised" qpos="-.5 .3 0 .8 .15 1 0 0 0" act=".4" mpos=".1 0 1.2" mquat="1 0 0 0"/></keyframe>
</mujoco>
"""
STATE = ("qpos", "qvel", "act", "mocap_pos", "mocap_quat", "qacc_warmstart")


def arguments(mjcf: Path, *more: object) -> list[str]:
    return ["run", str(mjcf), "--backend", "host", "--executor", "serial", "--json", *map(str, more)]


def saved(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def save(mjcf: Path, *more: object, to: str = "out.npz") -> Path:
    path = mjcf.with_name(to)
    assert main(arguments(mjcf, "--save", path, *more)) == 0
    return path
