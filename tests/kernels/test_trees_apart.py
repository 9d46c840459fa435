"""Kernels that solve the systems of trees side by side have the bits of those that solve one system.

Both run on the host as on a GPU, with lanes as fibers.
"""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from simengine.model import load_table
from simengine.plan import selection
from simengine.plan.selection import Selection
from simengine.plan.trees import has_separate_trees
from tests.helpers.cuda_on_host.backend import FiberBackend

WORLDS = 4


def scene(links: int, boxes: int, cone: str = "pyramidal", integrator: str = "Euler", rows: str = "all") -> str:
    """An arm whose tip follows a target, above boxes that lie on a floor.

    Args:
        links: links of the arm.
        boxes: boxes beside it, of which the first lies below its tip.
        cone, integrator: options of MuJoCo.
        rows: "all"; "few" for contacts without friction; or "pushing" for rows that only push.
    """
    friction, condim = "" if rows == "pushing" else 'frictionloss=".05"', {"all": 4, "few": 1, "pushing": 3}[rows]
    arm = "".join(
        f'<body pos=".1 0 0"><joint axis="0 {i % 2} {1 - i % 2}" range="-.4 .4" damping=".2" {friction}/>'
        '<geom type="capsule" size=".02" fromto="0 0 0 .1 0 0"/>'
        for i in range(links)
    )
    free = "".join(
        f'<body pos="{0.1 * links - 0.08 * i:.2f} {0.2 * (i > 0):.1f} .05"><freejoint/>'
        f'<geom type="box" size=".03 .03 .05" condim="{condim}"/></body>'
        for i in range(boxes)
    )
    tip = f'<body name="tip" pos=".1 0 0"><geom size=".02" mass=".1"/></body>{"</body>" * (links + 1)}'
    weld = "" if rows == "pushing" else '<equality><weld body1="tip" body2="target"/></equality>'
    return f"""
    <mujoco>
      <option cone="{cone}" integrator="{integrator}"/>
      <worldbody>
        <geom type="plane" size="2 2 .1" condim="{condim}"/>
        <body name="target" mocap="true" pos="{0.1 * links + 0.2:.2f} 0 .12"/>
        <body pos="0 0 .12">{arm}{tip}
        {free}
      </worldbody>
      {weld}
    </mujoco>"""


CASES = {
    "few rows": (7, 2, "pyramidal", "Euler", "few", 4),
    "few rows of half a warp": (4, 2, "pyramidal", "Euler", "few", 4),
    "few rows of cones": (7, 1, "elliptic", "Euler", "all", 4),
    "one warp as two": (7, 2, "pyramidal", "Euler", "all", 4),
    "elliptic cones": (7, 2, "elliptic", "Euler", "all", 4),
    "two squares a lane": (11, 3, "pyramidal", "Euler", "all", 2),
    "rows that push": (5, 2, "pyramidal", "Euler", "pushing", 5),
    "half a warp": (4, 2, "pyramidal", "implicitfast", "all", 4),
}
"""Links, boxes, cone, integrator, rows, and steps."""

IMPLIED = ("few rows of half a warp", "few rows of cones")
"""Cases whose numbers of rows, of lanes and whose cones the others have, each in another case."""


def stepped(
    case: str, dtype: str, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Fields of worlds after some steps, and the kernels that were launched."""
    links, boxes, cone, integrator, rows, steps = CASES[case]
    model = load_model(scene(links, boxes, cone, integrator, rows))
    monkeypatch.setattr(Selection, "parts_trees", property(lambda own: apart and has_separate_trees(own.model)))
    keep = ("qacc", "qacc_smooth", "qfrc_constraint", "solver_niter", "nefc")
    with Simulation(model, WORLDS, backend="cuda", executor="serial", dtype=dtype, keep=keep) as sim:
        rng = np.random.default_rng(3)
        qpos = np.array(sim.qpos) + rng.normal(0, 0.02, sim.qpos.shape)
        qpos[1, 2] = -0.35  # the tip of one arm is at a box
        sim.set_state(qpos=qpos, qvel=rng.normal(0, 0.5, (WORLDS, model.nv)))
        sim.step(steps)
        fields = {name: np.array(sim.field(name)) for name in ("qpos", "qvel", *keep)}
        return fields, [entry.name for entry in sim.schedule.kernel_list]


@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        *(pytest.param(case, "float32", marks=pytest.mark.slow if case in IMPLIED else ()) for case in CASES),
        *(pytest.param(case, "float64", marks=pytest.mark.slow) for case in CASES),
    ],
)
def test_trees_apart_have_the_same_bits(case: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "FEW_WORLDS_BY_TWO_WARPS", 0)
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    (there, before), (here, names) = (stepped(case, dtype, apart, monkeypatch) for apart in (False, True))
    assert not [name for name in before if "_trees" in name]
    assert len([name for name in names if "_trees" in name]) >= 2
    assert there["solver_niter"].max() > 1
    for name, values in there.items():
        assert np.array_equal(values, here[name]), name


def test_one_tree_is_not_taken_apart() -> None:
    assert has_separate_trees(load_table(scene(7, 2)))
    assert not has_separate_trees(load_table(scene(9, 0)))
    assert not has_separate_trees(load_table(scene(30, 1)))
