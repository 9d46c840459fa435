"""Geoms on rough height fields, of which a CPU finds most contacts without a search, against MuJoCo's search."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model

GEOMS = {
    "small ball": 'type="sphere" size="0.04"',
    "large ball": 'type="sphere" size="0.3"',
    "box": 'type="box" size="0.12 0.08 0.05"',
    "capsule": 'type="capsule" size="0.05 0.1"',
    "ellipsoid": 'type="ellipsoid" size="0.1 0.07 0.05"',
}
STATES = 48
TOLERANCE = {"float64": 1e-7, "float32": 3e-6}


def model(geom: str) -> mujoco.MjModel:
    """A free geom over a turned field of 7 by 6 cells whose neighbours differ by up to 0.2 m."""
    heights = " ".join(f"{h:.3f}" for h in np.random.default_rng(0).random(56))
    return mujoco.MjModel.from_xml_string(f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"/>
      <asset><hfield name="field" nrow="7" ncol="8" size="0.6 0.5 0.2 0.1" elevation="{heights}"/></asset>
      <worldbody><geom type="hfield" hfield="field" euler="5 -10 30" margin="0.01"/>
      <body><freejoint/><geom {GEOMS[geom]}/></body></worldbody></mujoco>""")


def poses() -> np.ndarray:
    """Poses (n, 7) over the field, in it, and beside it."""
    rng = np.random.default_rng(1)
    return np.concatenate([rng.uniform(-1, 1, (STATES, 3)) * (0.7, 0.7, 0.3), rng.normal(size=(STATES, 4))], axis=1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("geom", GEOMS)
def test_contacts_are_those_of_mujoco(geom: str, dtype: str) -> None:
    mj, qpos, touching = model(geom), poses(), 0
    data = mujoco.MjData(mj)
    with Simulation(load_model(mj), STATES, backend="host", dtype=dtype) as sim:
        sim.set_state(qpos=qpos)
        sim.forward()
        for world, state in enumerate(qpos):
            data.qpos[:] = state
            mujoco.mj_fwdPosition(mj, data)
            ours = sim.contacts(world)
            assert ours.ncon == data.ncon, world
            touching += data.ncon > 0
            if data.ncon:
                assert np.abs(np.asarray(ours.dist) - data.contact.dist).max() < TOLERANCE[dtype], world
    assert touching > STATES // 4
