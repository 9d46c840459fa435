"""Cases whose worlds blow up are measured with resets, and MuJoCo is asked whether it resets such a world."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import mujoco
import pytest

from benchmarks import stepping

SLIDER = """
<mujoco>
  <worldbody>
    <body>
      <joint name="x" type="slide"/>
      <geom size="0.1" mass="1"/>
    </body>
  </worldbody>
  <actuator>
    <motor joint="x" gear="{gear}" ctrlrange="-1 1" ctrllimited="true"/>
  </actuator>
</mujoco>
"""
ARGS = Namespace(warmup=10, steps=10, traces=0, dtype="float32", shards=None)


def attempted(folder: Path, gear: float) -> dict[str, object]:
    path = folder / "slider.xml"
    path.write_text(SLIDER.format(gear=gear), encoding="utf-8")
    return stepping.attempted(str(path), 4, "host", "auto", ARGS)


def test_worlds_that_blow_up_are_reset_as_in_mujoco(tmp_path: Path) -> None:
    row = attempted(tmp_path, gear=1e12)
    assert row["mujoco_resets_it"] is True
    assert row["resets"] == 4 * 2  # each world once in each call of ten steps
    assert "bad state" in str(row["first_reset"])


def test_worlds_that_stay_finite_are_not_reset(tmp_path: Path) -> None:
    assert "resets" not in attempted(tmp_path, gear=1.0)


@pytest.mark.parametrize(("gear", "unstable"), [(1e12, True), (1.0, False)])
def test_mujoco_says_which_worlds_it_resets(gear: float, unstable: bool) -> None:
    mj = mujoco.MjModel.from_xml_string(SLIDER.format(gear=gear))
    assert stepping.mujoco_resets(mj, worlds=2, world=1, steps=20) is unstable
