"""Engines agree with MuJoCo also where MuJoCo's searches for contacts end before rounding ends them."""

from __future__ import annotations

import copy
from pathlib import Path

import mujoco
import numpy as np
import pytest

from simengine.cli.bench.peers.agreement import compare
from simengine.cli.bench.peers.mujoco_cpu import Rollout
from simengine.cli.bench.peers.ours import Simengine
from simengine.cli.bench.peers.problem import Problem, State
from simengine.cli.bench.peers.report import print_report

RIM = """
<mujoco>
  <asset>
    <mesh name="stone" vertex=".1 0 -.06 .05 .09 -.06 -.05 .09 -.06 -.1 0 -.06 -.05 -.09 -.06 .05 -.09 -.06
                               .06 .02 .06 -.03 .05 .06 -.05 -.03 .06 .03 -.06 .06 .11 .03 0 -.1 .05 .01"/>
  </asset>
  <worldbody>
    <geom type="mesh" mesh="stone"/>
    <body pos="0.119 -0.114 -0.079" quat="0.723 -0.02 0.691 -0.007">
      <freejoint/>
      <geom type="cylinder" size="0.04 0.07" margin="0.002"/>
    </body>
  </worldbody>
</mujoco>
"""
"""A rim of a cylinder in a stone: a thousandth of a radian in the normal decides where the line of contact lies."""


FIELD = """
<mujoco>
  <asset>
    <hfield name="rough" size="1 1 0.1 0.1" nrow="3" ncol="3" elevation="0 2 1 3 0 2 1 3 0"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="rough"/>
    <body pos="0.1 0.05 0.2" euler="20 10 0">
      <freejoint/>
      <geom type="box" size="0.2 0.1 0.05"/>
    </body>
  </worldbody>
</mujoco>
"""
"""Without a margin, MuJoCo does not find the least penetration of the box."""


class Exact(Rollout):
    """MuJoCo whose searches for contacts go on, with accelerations times a factor."""

    factor = 1.0

    def qacc(self) -> np.ndarray:
        given, self._problem = self._problem, copy.copy(self._problem)
        object.__setattr__(self._problem, "mj", copy.copy(given.mj))
        self._problem.mj.opt.ccd_tolerance, self._problem.mj.opt.ccd_iterations = 1e-12, 500
        found = self.factor * super().qacc()
        self._problem = given
        return found


class Wrong(Exact):
    factor = 1.5


@pytest.mark.parametrize(("engine", "agrees"), [(Rollout, True), (Exact, True), (Wrong, False)])
def test_where_a_search_ends_is_no_disagreement(engine: type[Rollout], agrees: bool) -> None:
    mj = mujoco.MjModel.from_xml_string(RIM)
    state = State(mj.qpos0[None], np.zeros((1, mj.nv)), np.zeros((1, 0)))
    problem = Problem("rim", mj, state, np.zeros((10, 1, 0)))
    found = [engine("cpu", "float64"), Rollout("cpu", "float64")]
    for one in found:
        one.prepare(problem)
    if engine is Exact:
        far = np.abs(found[0].qacc() - found[1].qacc()).max() / np.abs(found[1].qacc()).max()
        assert far > 0.01, "the tolerance decides nothing here"
    agreement = compare(found[0], problem)
    assert agreement.agrees == agrees
    assert (agreement.outside == 0) == agrees
    for one in found:
        one.close()


@pytest.mark.parametrize(("borderline", "agrees", "says"), [(40, False, "ROUNDING"), (39, False, "DIFFERS")])
def test_the_table_tells_rounding_from_disagreement(
    borderline: int, agrees: bool, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A heap whose every world has ties, as flat round caps have, is not known to differ."""
    row = {
        **{"model": "caps", "worlds": 64, "engine": "simengine", "runs_on": "cpu", "steps_per_s": 1, "spread": 0.1},
        **{"us_per_step": 1, "first_step_s": 0.1, "qacc_error": 0.1, "qacc_error_median": 0.1, "agrees": agrees},
        **{"worlds_outside": 40, "worlds_borderline": borderline, "checked_worlds": 64},
    }
    print_report([row], [], [])
    table = capsys.readouterr().out.split("ours/its: speed")[0]
    assert f"{40 - borderline} of 64 {says}" in table


LYING = [0.1343769, -0.1316666, 0.048209079, 0.56105441, 0.043646287, -0.81986839, -0.10549282]
"""A ball of flat faces on a plane, two of which face down as much as each other but for a rounding."""


def test_rounding_decides_which_face_of_a_mesh_lies_on_a_plane() -> None:
    mj = mujoco.MjModel.from_xml_path(str(Path(__file__).parents[2] / "benchmarks" / "kinds" / "bin.xml"))
    qpos = mj.qpos0.reshape(-1, 7).copy()
    qpos[:, 2] += 5.0
    qpos[2] = LYING
    state = State(qpos.reshape(1, -1), np.zeros((1, mj.nv)), np.zeros((1, 0)))
    problem = Problem("bin", mj, state, np.zeros((10, 1, 0)))

    class Rounded(Rollout):
        """MuJoCo on a model whose normals are rounded as numbers of float32 are after a few operations."""

        dtype = "float32"

        def qacc(self) -> np.ndarray:
            given, self._problem = self._problem, copy.copy(self._problem)
            object.__setattr__(self._problem, "mj", copy.copy(given.mj))
            turned = np.random.default_rng(2).uniform(-1e-6, 1e-6, mj.mesh_polynormal.shape)
            self._problem.mj.mesh_polynormal[:] += turned
            found = super().qacc()
            self._problem = given
            return found

    one = Rounded("cpu", "float64")
    one.prepare(problem)
    agreement = compare(one, problem)
    assert agreement.outside == 1, "normals decide nothing here"
    assert agreement.borderline == 1
    one.close()


def test_penetration_of_height_fields_is_compared_with_the_least() -> None:
    mj = mujoco.MjModel.from_xml_string(FIELD)
    data, states = mujoco.MjData(mj), []
    for _ in range(150):
        mujoco.mj_step(mj, data)
        states.append(data.qpos.copy())
    qpos = np.array(states[-64:])
    problem = Problem("rough", mj, State(qpos, np.zeros((64, mj.nv)), np.zeros((64, 0))), np.zeros((10, 64, 0)))
    found = [Simengine("cpu", "float64", "host"), Rollout("cpu", "float64")]
    for one in found:
        one.prepare(problem)
    ours, theirs = (one.qacc() for one in found)
    assert np.abs(ours - theirs).max() > 0.01 * np.abs(theirs).max(), "no margin is needed here"
    assert compare(found[0], problem).agrees
    for one in found:
        one.close()
