"""Small models, each of which needs one unsupported feature, and words that the refusal must contain."""

from __future__ import annotations

from typing import NamedTuple

WHOLE = """
<mujoco model="odd">
  <option {option}>{flag}</option>
  <default/>
  <asset>
    <mesh name="tetra" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
    <hfield name="hills" nrow="2" ncol="2" size="1 1 1 1" elevation="0 1 0 1"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="base" pos="0 0 2">
      <joint name="swing" type="hinge" axis="0 1 0" {joint}/>
      <geom name="ball" size="0.1" fluidshape="ellipsoid" {geom}/>
      <site name="tip" pos="0.1 0 0"/>
      <camera name="drone" mode="track"/>
      {inside}
    </body>
    <site name="post"/>
    {world}
  </worldbody>
  {sections}
</mujoco>
"""


class Feature(NamedTuple):
    """An element, where it is inserted into `WHOLE`, and words that the refusal must contain."""

    place: str
    text: str
    words: str


def _actuator(text: str, words: str) -> Feature:
    return Feature("sections", f"<actuator>{text}</actuator>", words)


def _sensor(text: str, words: str) -> Feature:
    return Feature("sections", f"<sensor>{text}</sensor>", words)


def _free(geom: str, words: str) -> Feature:
    return Feature("world", f'<body name="other"><freejoint/>{geom}</body>', words)


FEATURES: dict[str, Feature] = {
    "diagexact": Feature("flag", '<flag diagexact="enable"/>', "enable flag diagexact"),
    "sleep": Feature("flag", '<flag sleep="enable"/>', "enable flag sleep"),
    "speculative": Feature("flag", '<flag speculative="enable"/>', "enable flag speculative"),
    "discrete": Feature("option", 'integrator="discrete"', "integrator discrete"),
    "yielding joint": Feature("joint", 'stiffness="2" springyield="0.1"', "plastic spring of joint 'swing'"),
    "yielding tendon": Feature(
        "sections",
        '<tendon><fixed name="cord" stiffness="2" springyield="1"><joint joint="swing" coef="1"/></fixed></tendon>',
        "plastic spring of tendon 'cord'",
    ),
    "moving surface": Feature("geom", 'surfacevel="1 0 0"', "surface velocity of geom 'ball'"),
    "adhesion of a geom": Feature("geom", 'adhesion="1"', "adhesion of geom 'ball'"),
    "tendon armature": Feature(
        "sections",
        '<tendon><spatial name="line" armature="0.1"><site site="tip"/><site site="post"/></spatial></tendon>',
        "armature of a path of tendon 'line'",
    ),
    "flex equality": Feature(
        "world",
        '<flexcomp name="cloth" type="grid" count="3 3 1" spacing="0.1 0.1 0.1" radius="0.01" pos="3 3 3">'
        '<contact contype="0" conaffinity="0"/><edge equality="true"/></flexcomp>',
        "flex type of equality constraint number 0",
    ),
    "adhesion of a pair": Feature(
        "sections",
        '<contact><pair name="glue" geom1="floor" geom2="ball" adhesion="1"/></contact>',
        "adhesion of pair 'glue'",
    ),
    "sensor of enclosed objects": _sensor(
        '<insidesite name="held" site="post" objtype="geom" objname="ball" enclosed="true"/>',
        "enclosed objects of sensor 'held'",
    ),
    "sensor of a mesh": Feature(
        "world",
        '<site name="lump" type="mesh" mesh="tetra"/></worldbody>'
        '<sensor><contact name="near" site="lump"/></sensor><worldbody>',
        "zone of type mesh of sensor 'near'",
    ),
    "user sensor": _sensor('<user name="own" dim="2" needstage="pos"/>', "type user of sensor 'own'"),
    "sensor of ray normals": _sensor(
        '<rangefinder name="beam" site="tip" data="normal"/>', "data other than dist of sensor 'beam'"
    ),
    "delayed sensor": _sensor(
        '<jointpos name="late" joint="swing" delay="0.01" nsample="3"/>', "history, delay or interval of sensor 'late'"
    ),
    "sensor of a tracking camera": _sensor(
        '<framepos name="view" objtype="camera" objname="drone"/>', "camera that follows something of sensor 'view'"
    ),
    "rays of a camera": _sensor('<rangefinder name="beams" camera="drone"/>', "rays of a camera of sensor 'beams'"),
    "tactile sensor": _sensor('<tactile name="skin" geom="ball" mesh="tetra"/>', "type tactile of sensor 'skin'"),
    "delayed actuator": _actuator(
        '<motor name="late" joint="swing" delay="0.01" nsample="3"/>', "delay of actuator 'late'"
    ),
    "actuator with armature": _actuator(
        '<motor name="geared" joint="swing" armature="1"/>', "armature of actuator 'geared'"
    ),
    "actuator with damping": _actuator(
        '<motor name="oiled" joint="swing" damping="1"/>', "damping of actuator 'oiled'"
    ),
    "orientation": _actuator('<orientation name="turner" site="tip" refsite="post"/>', "so3 gain of actuator 'turner'"),
    "pid": _actuator('<pid name="servo" joint="swing" kp="1" ki="1"/>', "pid gain of actuator 'servo'"),
    "dcmotor": _actuator(
        '<dcmotor name="motor" joint="swing" motorconst="0.05" resistance="2"/>', "dcmotor gain of actuator 'motor'"
    ),
    "user dynamics": _actuator(
        '<general name="odd" joint="swing" dyntype="user"/>', "user activation dynamics of actuator 'odd'"
    ),
    "user gain": _actuator('<general name="odd" joint="swing" gaintype="user"/>', "user gain of actuator 'odd'"),
    "unnamed": _actuator('<general joint="swing" biastype="user"/>', "user bias of actuator number 0"),
}


TOGETHER: tuple[str, ...] = tuple({feature.place: name for name, feature in FEATURES.items()}.values())
"""One feature for each insertion point, so that one model can have all of them."""


def model_with(*names: str) -> str:
    """MJCF with the named features, all at once."""
    places = dict.fromkeys(("option", "flag", "joint", "geom", "inside", "world", "sections"), "")
    for name in names:
        feature = FEATURES[name]
        places[feature.place] += feature.text
    return WHOLE.format(**places)
