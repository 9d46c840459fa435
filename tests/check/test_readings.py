"""Which sensor readings are forces on bodies."""

from __future__ import annotations

import mujoco
import numpy as np

from simengine.check.readings import force_readings


def test_forces_and_torques_of_bodies_and_contacts_are() -> None:
    mj = mujoco.MjModel.from_xml_string("""
<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="b"><joint/><geom size="0.1"/><site name="s"/></body>
</worldbody><sensor><gyro site="s"/><force site="s"/><contact body1="b" num="2" data="found force dist"/>
<torque site="s"/><contact body1="b" reduce="netforce" data="found torque dist pos normal tangent"/><clock/></sensor>
</mujoco>""")
    wanted = "..." + "xxx" + 2 * ".xxx." + "xxx" + ".xxx" + 10 * "." + "."
    assert "".join(".x"[int(reading)] for reading in force_readings(mj)) == wanted


def test_a_model_without_sensors_has_none() -> None:
    assert np.array_equal(force_readings(mujoco.MjModel.from_xml_string("<mujoco/>")), np.zeros(0, bool))
