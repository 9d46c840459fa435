"""Which readings of nearest points rounding decides."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import check_model
from simengine.check.segments import undecided_segments

BOXES = """<mujoco><worldbody><geom name="low" type="box" size="0.2 0.2 0.1"/>
  <body pos="0 0 0.4"><joint type="slide" axis="0 0 1"/><joint axis="1 0 0" range="-20 20" limited="true"/>
  <geom name="high" type="box" size="0.1 0.1 0.1"/></body></worldbody>
  <sensor><distance geom1="low" geom2="high" cutoff="1"/><normal geom1="low" geom2="high" cutoff="1"/>
  <fromto geom1="low" geom2="high" cutoff="1"/></sensor></mujoco>"""


def undecided(tilt: float) -> list[int]:
    mj = mujoco.MjModel.from_xml_string(BOXES)
    data = mujoco.MjData(mj)
    data.qpos[1] = tilt
    mujoco.mj_forward(mj, data)
    return undecided_segments(mj, data).tolist()


def test_points_of_parallel_sides_are_not_decided() -> None:
    """Between which points of two sides the distance is, is not; its normal and their heights are."""
    assert set(undecided(0.0)) <= {4, 5, 7, 8}
    assert undecided(0.0)


def test_the_height_of_an_edge_over_a_side_is_decided() -> None:
    """Where along the edge is not: it is parallel to the side."""
    assert not {5, 6, 8, 9} & set(undecided(0.1))


def test_the_points_of_a_geom_and_the_body_that_it_belongs_to_are_not_decided() -> None:
    """Two opposite ways out of itself are equally short. How long they are is decided."""
    lump = "0 0 0  0.3 0 0  0 0.4 0  0.1 0.1 0.5"
    mj = mujoco.MjModel.from_xml_string(
        f'''<mujoco><asset><mesh name="m" vertex="{lump}"/></asset><worldbody><body name="b"><freejoint/>
        <geom name="g" type="mesh" mesh="m"/></body></worldbody><sensor><distance geom1="g" body2="b" cutoff="1"/>
        <normal geom1="g" body2="b" cutoff="1"/><fromto body1="b" geom2="g" cutoff="1"/></sensor></mujoco>'''
    )
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    assert undecided_segments(mj, data).tolist() == list(range(1, 10))


@pytest.mark.slow
def test_a_model_of_such_sensors_passes() -> None:
    mj = mujoco.MjModel.from_xml_string(BOXES)
    for dtype in ("float64", "float32"):
        report = check_model(mj, backend="host", dtype=dtype, num_states=40, num_steps=20)
        assert report.passed, report


def test_models_without_such_sensors_have_none() -> None:
    mj = mujoco.MjModel.from_xml_string(BOXES[: BOXES.index("<sensor>")] + "</mujoco>")
    assert undecided_segments(mj, mujoco.MjData(mj)).size == 0
    assert np.array_equal(undecided_segments(mj, mujoco.MjData(mj)), np.zeros(0))
