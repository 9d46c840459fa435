"""A mesh whose lowest face has more than four corners touches a plane at the corners that MuJoCo chooses.

The corners of these faces are not quite in a plane, and some are between two others up to rounding, so that they stand
back. MuJoCo merges what is almost flat into one face.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Model, Simulation

FACES = {
    "two contacts at one corner": (
        "0.944793 0.124092 -0.100013 0.768049 0.367862 -0.099988 0.616294 0.460210 -0.099993 -0.413228 -0.427872 "
        "-0.099999 -0.282351 -0.466668 -0.100011 0.850302 0.111696 0.100000 0.691241 0.331048 0.100000 0.554674 "
        "0.414172 0.100000 -0.371898 -0.385071 0.100000 -0.254113 -0.420009 0.100000 0.842845 0.264697 -0.100006",
        (0.9993395759940212, -0.02161079527383998, 0.02565969683282794, -0.013962998895984447),
        3,
    ),
    "a corner left out": (
        "0.575403 0.318122 -0.100009 0.532069 0.357728 -0.100005 0.173873 0.503638 -0.100004 0.089399 0.511800 "
        "-0.099990 -0.294917 -0.281927 -0.100016 0.517868 0.286313 0.100000 0.478877 0.321939 0.100000 0.156493 "
        "0.453266 0.100000 0.080450 0.460614 0.100000 -0.265422 -0.253740 0.100000 0.256701 0.469886 -0.100003 "
        "-0.033409 0.258139 -0.100018",
        (0.9999739024200915, 0.0008079393881663634, -0.006324797176426468, 0.003396859336978505),
        4,
    ),
    "two corners left out": (
        "0.483797 0.424195 -0.099992 0.023044 0.903008 -0.099991 -0.391895 0.429429 -0.099988 0.149373 -0.882213 "
        "-0.099995 0.375360 -0.673768 -0.100002 0.435424 0.381773 0.100000 0.020736 0.812701 0.100000 -0.352722 "
        "0.386498 0.100000 0.134434 -0.793999 0.100000 0.337827 -0.606388 0.100000 0.289026 0.626590 -0.099997 "
        "0.408413 -0.339194 -0.100004",
        (0.9995190917147084, -0.015062377483671993, 0.014334236378956238, -0.023005211361255558),
        4,
    ),
}
"""Vertices of a mesh, its orientation, and in how many different points it touches the plane."""


@pytest.mark.parametrize("face", FACES)
def test_the_corners_that_touch_are_those_of_mujoco(face: str) -> None:
    vertices, quat, points = FACES[face]
    mj = mujoco.MjModel.from_xml_string(
        f"<mujoco><asset><mesh name='m' vertex='{vertices}'/></asset><worldbody><geom type='plane' size='5 5 1'/>"
        "<body><freejoint/><geom type='mesh' mesh='m'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(mj)
    data.qpos[:] = 0, 0, 0, *quat
    mujoco.mj_forward(mj, data)
    with Simulation(Model(mj), 1, backend="host", dtype="float64") as sim:
        sim.set_state(qpos=data.qpos[None])
        sim.forward()
        contacts = sim.contacts(0)
        np.testing.assert_allclose(contacts.pos, data.contact.pos, atol=1e-12)
        np.testing.assert_allclose(contacts.dist, data.contact.dist, atol=1e-12)
    assert len(contacts.dist) == 4
    assert len(np.unique(np.round(data.contact.pos, 9), axis=0)) == points
