"""Models of the zoo that are stored as files."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, check_model, load_model, zoo

PLAN = {  # what each actuator is told, by time [s]
    "z": ((0, 1, 2, 3.5), (0, -0.19, -0.19, 0.1)),
    **dict.fromkeys(("left", "right", "thumb"), ((0, 0.3, 1, 1.8), (0, -0.35, -0.35, 0.55))),
    **{f"{name}_tip": ((1, 1.8), (0, 0.5)) for name in ("left", "right", "thumb")},
}
"""Down with open fingers, close, up."""


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="no model 'dragon'; choose from grasp"):
        zoo.model_path("dragon")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_hand_agrees_with_mujoco(dtype: str) -> None:
    report = check_model(zoo.model_path("grasp"), backend="host", dtype=dtype, num_states=40, num_steps=100)
    assert report.passed, report.verdict()
    assert {"box-box", "capsule-box", "plane-box"} <= set(report.coverage.pairs)


def test_the_hand_takes_up_the_box() -> None:
    """Closed around it, it holds the box in the air; with the fingers open it comes back without."""
    model = load_model(zoo.model_path("grasp"))
    sim = Simulation(model, 2, backend="host")
    actuators = [model.mj.actuator(u).name for u in range(model.nu)]
    every = 10
    for step in range(0, 1250, every):
        ctrl = np.zeros((2, model.nu))
        for name, (times, values) in PLAN.items():
            ctrl[:, actuators.index(name)] = np.interp(step * model.opt.timestep, times, values)
        ctrl[1, [actuators.index(name) for name in ("left", "right", "thumb")]] = -0.35
        sim.step(every, ctrl=ctrl)
    adr = model.mj.joint("object").qposadr[0]
    heights = sim.qpos[:, adr + 2]
    assert heights[0] > 0.3
    assert abs(heights[1] - 0.04) < 0.002
    data = mujoco.MjData(model.mj)
    data.qpos[:] = sim.qpos[0]
    mujoco.mj_forward(model.mj, data)
    assert data.ncon >= 3
