"""PGS gives MuJoCo's forces where a single tree has more rows than one vector, up to those of many."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model

WORLDS = 3


def train(wagons: int, cone: str) -> str:
    """Boxes one behind the other on hinges, each of which stands on the floor with its four lower corners."""
    wagon = '<geom type="box" size="0.1 0.1 0.05" density="500" contype="0"/>'
    hinge = '<body pos="0.21 0 0"><joint axis="0 1 0" pos="-0.1 0 0" damping="0.01"/>'
    return f"""<mujoco>
      <option solver="PGS" iterations="20" tolerance="1e-12" cone="{cone}"/>
      <worldbody>
        <geom type="plane" size="9 9 1"/>
        <body pos="0 0 0.049"><freejoint/>{wagon}{(hinge + wagon) * (wagons - 1)}{"</body>" * wagons}
      </worldbody>
    </mujoco>"""


@pytest.mark.parametrize(
    ("wagons", "cone", "rows"),
    [(5, "pyramidal", 80), (6, "elliptic", 72), (10, "pyramidal", 160), (15, "elliptic", 180), (18, "pyramidal", 288)],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_forces_of_many_rows_are_mujocos(wagons: int, cone: str, rows: int, dtype: str) -> None:
    text = train(wagons, cone)
    model = load_model(text)
    qvel = np.random.default_rng(0).normal(scale=0.3, size=(WORLDS, model.nv))
    data = mujoco.MjData(model.mj)
    with Simulation(model, WORLDS, backend="host", dtype=dtype) as sim:
        sim.set_state(qvel=qvel)
        sim.forward()
        for world in range(WORLDS):
            mujoco.mj_resetData(model.mj, data)
            data.qvel[:] = qvel[world]
            mujoco.mj_forward(model.mj, data)
            assert data.nefc == rows
            error = np.abs(np.asarray(sim.qacc)[world] - data.qacc).max() / np.abs(data.qacc).max()
            assert error < (1e-8 if dtype == "float64" else 5e-3), (world, error)
