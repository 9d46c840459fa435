"""Engines agree with MuJoCo also where MuJoCo's searches for contacts end before rounding ends them."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

from simengine.cli.bench.peers.agreement import compare
from simengine.cli.bench.peers.mujoco_cpu import Rollout
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
