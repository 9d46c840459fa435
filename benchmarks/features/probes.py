"""One small MJCF model for each feature, under the name that MuJoCo's users know."""

from __future__ import annotations

from typing import NamedTuple


class Probe(NamedTuple):
    """A model that needs one feature.

    Attributes:
        group: heading in the table.
        feature: name in the table.
        mjcf: the model.
    """

    group: str
    feature: str
    mjcf: str


_WHOLE = """
<mujoco>
  <option {option}>{flag}</option>
  <asset>
    <mesh name="tetra" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
    <hfield name="hills" nrow="3" ncol="3" size="2 2 1 1" elevation="0 1 0 1 0 1 0 1 0"/>
  </asset>
  <worldbody>
    <body name="arm" pos="0 0 5">
      <joint name="swing" type="hinge" axis="0 1 0" {joint}/>
      <geom name="rod" type="capsule" size="0.05 0.3" contype="0" conaffinity="0" {rod}/>
      <site name="tip" pos="0.1 0 0" size="0.02"/>
      <body name="hand" pos="0 0 0.4" {hand}>
        <joint name="turn" type="hinge" axis="1 0 0"/>
        <geom name="palm" type="sphere" size="0.06" contype="0" conaffinity="0"/>
        <site name="palm" size="0.1"/>
      </body>
    </body>
    <site name="post" pos="0.5 0 5"/>
    {world}
  </worldbody>
  {sections}
</mujoco>
"""


def model(**places: str) -> str:
    """The base model with text inserted at: option, flag, joint, rod, hand, world, sections."""
    names = ("option", "flag", "joint", "rod", "hand", "world", "sections")
    unknown = set(places) - set(names)
    if unknown:
        raise ValueError(f"the probe has no place {unknown}; use one of {names}")
    return _WHOLE.format(**{name: places.get(name, "") for name in names})


_GEOM = {
    "plane": '<geom name="{name}" type="plane" size="5 5 1" {extra}/>',
    "hfield": '<geom name="{name}" type="hfield" hfield="hills" {extra}/>',
    "sphere": '<geom name="{name}" type="sphere" size="0.1" {extra}/>',
    "capsule": '<geom name="{name}" type="capsule" size="0.1 0.1" {extra}/>',
    "ellipsoid": '<geom name="{name}" type="ellipsoid" size="0.1 0.2 0.3" {extra}/>',
    "cylinder": '<geom name="{name}" type="cylinder" size="0.1 0.1" {extra}/>',
    "box": '<geom name="{name}" type="box" size="0.1 0.1 0.1" {extra}/>',
    "mesh": '<geom name="{name}" type="mesh" mesh="tetra" {extra}/>',
}
_FIXED = ("plane", "hfield")


def pair(first: str, second: str, extra: str = "", **places: str) -> str:
    """A model in which a geom of one type may touch a geom of another."""
    a, b = (_GEOM[kind].format(name=f"geom{i}", extra=extra) for i, kind in enumerate((first, second)))
    one = a if first in _FIXED else f"<body><freejoint/>{a}</body>"
    return model(world=f'{one}<body pos="0 0 2"><freejoint/>{b}</body>{places.pop("world", "")}', **places)


def _actuator(text: str) -> str:
    return model(sections=f"<actuator>{text}</actuator>")


def _sensor(text: str, **places: str) -> str:
    return model(sections=f"<sensor>{text}</sensor>", **places)


def _tendon(attributes: str, inside: str = '<joint joint="swing" coef="1"/>', kind: str = "fixed") -> str:
    return model(sections=f'<tendon><{kind} name="string" {attributes}>{inside}</{kind}></tendon>')


def _equality(text: str, tendon: str = "") -> str:
    return model(sections=f"{tendon}<equality>{text}</equality>")


def _joint(kind: str, extra: str = "") -> str:
    return model(world=f'<body pos="2 0 1"><joint type="{kind}" {extra}/><geom size="0.1" contype="0"/></body>')


_JOINTS = {
    "hinge": _joint("hinge"),
    "slide": _joint("slide"),
    "free": _joint("free"),
    "ball": _joint("ball"),
    "limits of hinges and slides": model(joint='limited="true" range="-30 30"'),
    "limits of ball joints": _joint("ball", 'limited="true" range="0 60"'),
    "springs and dampers": model(joint='stiffness="1" damping="1"'),
    "springs of ball and free joints": _joint("ball", 'stiffness="1"'),
    "friction loss": model(joint='frictionloss="0.1"'),
    "armature": model(joint='armature="0.1"'),
    "limit of the actuator force": model(joint='actuatorfrclimited="true" actuatorfrcrange="-1 1"'),
    "polynomial stiffness and damping": model(joint='stiffness="1 2" damping="1 2"'),
}
_BODIES = {
    "mocap": model(world='<body mocap="true"><geom size="0.1" contype="0" conaffinity="0"/></body>'),
    "gravity compensation": model(hand='gravcomp="1"'),
    "fluid forces, inertia boxes": model(option='density="1.2" viscosity="0.1"'),
    "fluid forces, ellipsoids": model(option='density="1.2"', rod='fluidshape="ellipsoid"'),
}
_MOVABLE = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
_COLLISIONS = {
    **{f"plane-{kind}": pair("plane", kind) for kind in _MOVABLE},
    **{f"hfield-{kind}": pair("hfield", kind) for kind in _MOVABLE},
    **{f"{a}-{b}": pair(a, b) for i, a in enumerate(_MOVABLE) for b in _MOVABLE[i:]},
}
_CONTACTS = {
    "pyramidal cones": pair("plane", "sphere"),
    "elliptic cones": pair("plane", "sphere", option='cone="elliptic"'),
    "condim 1": pair("plane", "sphere", 'condim="1"'),
    "condim 3": pair("plane", "sphere", 'condim="3"'),
    "condim 4": pair("plane", "sphere", 'condim="4"'),
    "condim 6": pair("plane", "sphere", 'condim="6"'),
    "margin and gap": pair("plane", "sphere", 'margin="0.1" gap="0.05"'),
    "priority and solmix": pair("plane", "sphere", 'priority="1" solmix="2"'),
    "explicit pairs": pair("plane", "sphere", sections='<contact><pair geom1="geom0" geom2="geom1"/></contact>'),
    "exclude": pair("plane", "sphere", sections='<contact><exclude body1="arm" body2="hand"/></contact>'),
    "noslip iterations": pair("plane", "sphere", option='noslip_iterations="3"'),
    "contact override": pair("plane", "sphere", flag='<flag override="enable"/>'),
}
_EQUALITIES = {
    "connect": _equality('<connect body1="hand" anchor="0 0 0.1"/>'),
    "weld": _equality('<weld body1="hand"/>'),
    "joint": _equality('<joint joint1="swing" joint2="turn"/>'),
    "tendon": _equality(
        '<tendon tendon1="string"/>', '<tendon><fixed name="string"><joint joint="swing" coef="1"/></fixed></tendon>'
    ),
}
_SOLVERS = {
    **{name: pair("plane", "sphere", option=f'solver="{name}"') for name in ("Newton", "CG", "PGS")},
    **{name: model(option=f'integrator="{name}"') for name in ("Euler", "RK4", "implicitfast", "implicit")},
    "sleeping": model(flag='<flag sleep="enable"/>'),
    "energy": model(flag='<flag energy="enable"/>'),
}
_ROPE = '<site site="tip"/>{}<site site="post"/>'
_TENDONS = {
    "fixed": _tendon(""),
    "spatial, through sites": _tendon("", _ROPE.format(""), "spatial"),
    "wrapping around spheres and cylinders": _tendon("", _ROPE.format('<geom geom="palm"/>'), "spatial"),
    "pulleys": _tendon(
        "",
        '<site site="tip"/><site site="post"/><pulley divisor="2"/><site site="palm"/><site site="post"/>',
        "spatial",
    ),
    "limits": _tendon('limited="true" range="-1 1"'),
    "stiffness and damping": _tendon('stiffness="1" damping="1"'),
    "friction loss": _tendon('frictionloss="0.1"'),
    "armature": _tendon('armature="0.1"'),
    "limit of the actuator force": _tendon('actuatorfrclimited="true" actuatorfrcrange="-1 1"'),
}
_ACTUATORS = {
    "joint": _actuator('<motor joint="swing"/>'),
    "joint in parent's frame": _actuator('<motor jointinparent="swing"/>'),
    "tendon": model(
        sections='<tendon><fixed name="string"><joint joint="swing" coef="1"/></fixed></tendon>'
        '<actuator><motor tendon="string"/></actuator>'
    ),
    "site": _actuator('<motor site="tip" gear="0 0 1 0 0 0"/>'),
    "slider-crank": _actuator('<motor cranksite="tip" slidersite="post" cranklength="1"/>'),
    "body (adhesion)": _actuator('<adhesion body="arm" ctrlrange="0 1"/>'),
    "motor, position, velocity": _actuator('<motor joint="swing"/><position joint="swing"/><velocity joint="turn"/>'),
    "affine gain": _actuator('<damper joint="swing" ctrlrange="0 1"/>'),
    "muscle": _actuator('<muscle joint="swing" lengthrange="0 1"/>'),
    "integrator": _actuator('<intvelocity joint="swing" actrange="-1 1"/>'),
    "filter": _actuator('<general joint="swing" dyntype="filter" dynprm="0.1"/>'),
    "exact filter": _actuator('<position joint="swing" timeconst="0.1"/>'),
    "limits of control, force, activation": _actuator(
        '<general joint="swing" dyntype="integrator" ctrllimited="true" ctrlrange="-1 1" forcelimited="true"'
        ' forcerange="-1 1" actlimited="true" actrange="-1 1"/>'
    ),
    "groups switched off": model(
        option='actuatorgroupdisable="1"', sections='<actuator><motor joint="swing" group="1"/></actuator>'
    ),
    "user-defined": _actuator('<general joint="swing" gaintype="user"/>'),
}
_SENSORS = {
    "joint position and velocity": _sensor('<jointpos joint="swing"/><jointvel joint="swing"/>'),
    "actuators": model(
        sections='<actuator><motor name="m" joint="swing"/></actuator><sensor><actuatorfrc actuator="m"/></sensor>'
    ),
    "frame position and orientation": _sensor(
        '<framepos objtype="site" objname="tip"/><framequat objtype="body" objname="arm"/>'
    ),
    "frame velocity": _sensor(
        '<framelinvel objtype="site" objname="tip"/><frameangvel objtype="body" objname="hand"/>'
    ),
    "frame acceleration": _sensor('<framelinacc objtype="site" objname="tip"/>'),
    "gyro, velocimeter, accelerometer": _sensor(
        '<gyro site="tip"/><velocimeter site="tip"/><accelerometer site="tip"/>'
    ),
    "force, torque": _sensor('<force site="palm"/><torque site="palm"/>'),
    "touch": _sensor('<touch site="palm"/>'),
    "magnetometer": _sensor('<magnetometer site="tip"/>'),
    "rangefinder": _sensor('<rangefinder site="tip"/>'),
    "subtree": _sensor('<subtreecom body="arm"/><subtreelinvel body="arm"/><subtreeangmom body="arm"/>'),
    "limits": _sensor('<jointlimitfrc joint="swing"/>', joint='limited="true" range="-30 30"'),
    "clock": _sensor("<clock/>"),
    "distance between geoms": _sensor('<distance geom1="rod" geom2="palm" cutoff="1"/>'),
    "contacts": _sensor('<contact body1="arm" body2="hand"/>'),
    "camera projection": _sensor(
        '<camprojection site="tip" camera="eye"/>', world='<camera name="eye" resolution="100 100"/>'
    ),
}

_GROUPS = {
    "Joints": _JOINTS,
    "Bodies": _BODIES,
    "Collisions": _COLLISIONS,
    "Contacts": _CONTACTS,
    "Equality constraints": _EQUALITIES,
    "Solvers and integrators": _SOLVERS,
    "Tendons": _TENDONS,
    "Actuators": _ACTUATORS,
    "Sensors": _SENSORS,
}
PROBES: tuple[Probe, ...] = tuple(
    Probe(group, feature, mjcf) for group, rows in _GROUPS.items() for feature, mjcf in rows.items()
)
