"""What simengine refuses: a small MJCF model for each feature, under the name that MuJoCo's users know."""

from __future__ import annotations

from benchmarks.features.probes import model

_PLUGIN = '<extension><plugin plugin="mujoco.pid"><instance name="pid"><config key="kp" value="1"/></instance></plugin>'
_ACTUATOR = "<actuator>{}</actuator>".format
_SENSOR = "<sensor>{}</sensor>".format

REFUSED: dict[str, str] = {
    "flexes: cloth, ropes and soft bodies": model(
        world='<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" radius=".01" pos="3 3 3">'
        '<edge equality="true"/></flexcomp>'
    ),
    "plugins": model(
        sections=f'{_PLUGIN}</extension><actuator><plugin joint="swing" plugin="mujoco.pid" instance="pid"/></actuator>'
    ),
    "sleeping": model(flag='<flag sleep="enable"/>'),
    "surfaces that move": model(rod='surfacevel="1 0 0"'),
    "geoms that adhere": model(rod='adhesion="1"'),
    "explicit pairs that adhere": model(
        world='<geom name="wall" size="0.1" pos="0 0 9"/>',
        sections='<contact><pair geom1="rod" geom2="wall" adhesion="1"/></contact>',
    ),
    "armature of tendons along paths": model(
        sections='<tendon><spatial armature="0.1"><site site="tip"/><site site="post"/></spatial></tendon>'
    ),
    "dynamics, gains and biases of actuators by the user": model(
        sections=_ACTUATOR('<general joint="swing" dyntype="user" gaintype="user" biastype="user"/>')
    ),
    "delays of actuators": model(sections=_ACTUATOR('<motor joint="swing" delay="0.01" nsample="3"/>')),
    "armature and damping of actuators": model(sections=_ACTUATOR('<motor joint="swing" armature="1" damping="1"/>')),
    "sensors by the user": model(sections=_SENSOR('<user name="own" dim="2" needstage="pos"/>')),
    "delays and history of sensors": model(sections=_SENSOR('<jointpos joint="swing" delay="0.01" nsample="3"/>')),
    "rangefinders that measure more than distances": model(sections=_SENSOR('<rangefinder site="tip" data="normal"/>')),
    "sensors that ask whether a site encloses an object": model(
        sections=_SENSOR('<insidesite site="palm" objtype="geom" objname="palm" enclosed="true"/>')
    ),
    "sensors of sites that are meshes": model(
        world='<site name="lump" type="mesh" mesh="tetra"/>', sections=_SENSOR('<contact site="lump"/>')
    ),
    "sensors of cameras that follow something": model(
        hand="",
        world='<camera name="drone" mode="targetbody" target="hand"/>',
        sections=_SENSOR('<framepos objtype="camera" objname="drone"/>'),
    ),
}
"""Models by feature, in the order of the page."""
