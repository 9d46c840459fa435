"""Words of matrices along branches: as many as the rows of any state need."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine.model import load_table
from simengine.model.blocks import branch_entries, joined_branches
from tests.gpu.test_branch_worlds import EQUALITIES, star
from tests.helpers.humanoids import humanoid_xml

MODELS = {
    "star": star(""),
    "star with equalities and few pairs": star("", EQUALITIES).replace('size="0.015"', 'size="0.015" contype="0"'),
    "humanoid": humanoid_xml(72, 'integrator="implicitfast"'),
    "pulled star": star("").replace(
        "<equality>",
        '<tendon><fixed limited="true" range="-1 1"><joint joint="j1_3" coef="1"/><joint joint="j6_5" coef="2"/>'
        '</fixed><fixed name="a"><joint joint="j0_3" coef="1"/></fixed>'
        '<fixed name="b"><joint joint="j7_1" coef="1"/></fixed></tendon><equality><tendon tendon1="a" tendon2="b"/>',
    ),
}


def connected(there: np.ndarray) -> list[set[int]]:
    """Of each dof, those that it leads to through dofs that are not lower, given which dofs are coupled."""
    above = []
    for low in range(len(there)):
        found, left = {low}, [low]
        while left:
            new = set(np.flatnonzero(there[left.pop()]).tolist()) - found
            found |= {dof for dof in new if dof > low}
            left += [dof for dof in new if dof > low]
        above.append(found)
    return above


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_a_state_fit_into_the_words_of_all_rows_at_once(name: str) -> None:
    table = load_table(MODELS[name])
    mj, data = table.mj, mujoco.MjData(table.mj)
    parent, rng, most, listed = joined_branches(mj, table.arrays), np.random.default_rng(0), 0, 0
    assert branch_entries(parent) == table.njoined
    branches: list[set[int]] = []
    for dof, up in enumerate(parent):
        branches.append({dof} | (branches[up] if up >= 0 else set()))
    trees = np.zeros((mj.nv, mj.nv), dtype=bool)
    for dof in range(mj.nv):
        trees[dof, mj.dof_parentid[dof]] = mj.dof_parentid[dof] >= 0
    for _ in range(30):
        data.qpos[:] = mj.qpos0
        mujoco.mj_integratePos(mj, data.qpos, rng.normal(0, 1.5, mj.nv), 1.0)
        data.qpos[2] = rng.uniform(0, 0.3)
        mujoco.mj_forward(mj, data)
        rows = np.zeros((data.nefc, mj.nv))
        mujoco.mju_sparse2dense(rows, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
        there = trees.copy()
        for row in np.abs(rows) > 1e-12:
            there |= row[:, None] & row
        own = connected(there | there.T)
        assert all(low in branches[dof] for low, found in enumerate(own) for dof in found)
        length = [sum(dof in found for found in own) for dof in range(mj.nv)]  # of the branch of each dof
        ends = [dof for dof in range(mj.nv) if own[dof] == {dof}]  # no dof leads to it
        most = max(most, sum((number + 3) & ~3 for number in length))
        listed = max(listed, sum((length[dof] + 3) & ~3 for dof in ends))
    assert table.nbranch <= most <= table.njoined
    assert table.nbranchdof <= table.nbranch
    assert 0 < listed <= table.njoineddof <= table.njoined
