"""Entries of the derivatives of lengths: they are where MuJoCo's derivatives differ from zero, and not everywhere."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from simengine.model import load_table

_CORPUS = Path(__file__).parents[1] / "corpus"

_ACTUATED = """<mujoco>
  <worldbody>
    <body pos="0 0 1"><joint name="a" axis="0 1 0"/><geom size="0.1"/><site name="near"/>
      <body pos="0.3 0 0"><joint name="b" axis="0 1 0"/><geom size="0.1"/><site name="far" pos="0.2 0 0"/></body>
    </body>
    <body pos="0 1 1"><freejoint name="c"/><geom size="0.1"/></body>
  </worldbody>
  <tendon><spatial name="t"><site site="near"/><site site="far"/></spatial></tendon>
  <actuator>
    <motor joint="a"/>
    <motor joint="c" gear="1 0 0 0 0 1"/>
    <motor site="far" refsite="near" gear="1 0 0 0 0 0"/>
    <muscle tendon="t" lengthrange="0.1 1"/>
  </actuator>
</mujoco>"""


def entries(table: object, name: str, shape: tuple[int, int]) -> np.ndarray:
    """(rows, columns) bool: where the table has entries; the lists by row and by column agree."""
    there = np.zeros(shape, bool)
    there[tuple(np.asarray(getattr(table, f"{name}_entry")).T)] = True
    by_column = [
        np.asarray(getattr(table, f"{name}_rowind"))[begin:end]
        for begin, end in zip(
            *(np.asarray(getattr(table, f"{name}_coladr"))[k:][: shape[1]] for k in (0, 1)), strict=True
        )
    ]
    for column, rows in enumerate(by_column):
        np.testing.assert_array_equal(rows, np.flatnonzero(there[:, column]))
    np.testing.assert_array_equal(np.diff(getattr(table, f"{name}_rowadr")), there.sum(axis=1))
    return there


def test_actuators_have_entries_only_for_dofs_that_they_may_move() -> None:
    mj = mujoco.MjModel.from_xml_string(_ACTUATED)
    found = entries(load_table(mj), "moment", (mj.nu, mj.nv))
    expected = [[1, 0, *[0] * 6], [0, 0, *[1] * 6], [1, 1, *[0] * 6], [0, 1, *[0] * 6]]
    np.testing.assert_array_equal(found, np.array(expected, bool))


def test_a_tendon_has_entries_for_the_tree_of_a_geom_that_it_wraps_around() -> None:
    mj = mujoco.MjModel.from_xml_path(str(_CORPUS / "wrapped_tree.xml"))
    table = load_table(mj)
    found = entries(table, "ten_J", (mj.ntendon, mj.nv))
    geom = int(mj.wrap_objid[np.flatnonzero(mj.wrap_type == mujoco.mjtWrap.mjWRAP_CYLINDER)[0]])
    of_geom = mj.dof_treeid == mj.body_treeid[mj.geom_bodyid[geom]]
    assert found[0, of_geom].any()
    data, rng = mujoco.MjData(mj), np.random.default_rng(0)
    for _ in range(200):
        data.qpos[:] = mj.qpos0
        mujoco.mj_integratePos(mj, data.qpos, rng.normal(0, 1, mj.nv), 1.0)
        mujoco.mj_kinematics(mj, data)
        mujoco.mj_comPos(mj, data)
        mujoco.mj_tendon(mj, data)
        jacobian = np.zeros((mj.ntendon, mj.nv))
        mujoco.mju_sparse2dense(jacobian, data.ten_J, mj.ten_J_rownnz, mj.ten_J_rowadr, mj.ten_J_colind)
        assert not jacobian[~found].any()


def test_trees_that_a_wrapped_geom_couples_are_one_block() -> None:
    mj = mujoco.MjModel.from_xml_path(str(_CORPUS / "wrapped_tree.xml"))
    table = load_table(mj)
    table.solve_by_islands(True)
    assert table.nblock == 1
