"""Changes of a model that give it what models are drawn without: rarer attributes, and structure.

Models keep a form that MuJoCo takes, as far as that can be known without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from xml.etree import ElementTree as ET

from simengine.fuzz.additions import ADDITIONS, named, new_name, section
from simengine.fuzz.attributes import ATTRIBUTES, replaced
from simengine.fuzz.draw import Draw

MESHES = (
    'builtin="sphere" params="1" scale="0.12 0.1 0.14"',
    'builtin="hemisphere" params="2" scale="0.15 0.15 0.15"',
    'builtin="cone" params="5 0.4" scale="0.1 0.1 0.1"',
    'builtin="supersphere" params="8 0.3 0.2" scale="0.13 0.1 0.1"',
    'vertex="0.1 0 0 -0.1 0 0 0 0.12 0 0 -0.12 0 0 0 0.1 0 0 -0.1 0.06 0.06 0.06 -0.06 -0.06 0.06 0.06 -0.05 -0.06 '
    '-0.06 0.06 -0.05 0.05 -0.06 0.06" maxhullvert="7"',
    'vertex="-0.1 -0.1 -0.1 0.1 -0.1 -0.1 -0.1 0.1 -0.1 0.1 0.1 -0.1 -0.1 -0.1 0.1 0.1 -0.1 0.1 -0.1 0.1 0.1 0.1 0.1 '
    '0.1" scale="0.8 1.2 1"',
)
_MOST = 10
_SHARE_OF_ATTRIBUTES = 0.55
_SOLIDS = ('type="sphere" size="0.2"', 'type="box" size="0.3 0.2 0.1"', 'type="capsule" size="0.1 0.3"')
_LENSES = (
    *("", 'fovy="70"', 'sensorsize="0.1 0.05" focal="0.1 0.2"', 'sensorsize="0.1 0.05" focalpixel="30 20"'),
    *('sensorsize="0.1 0.05" principal="0.01 0.02"', 'sensorsize="0.1 0.05" focal="0.1 0.1" principalpixel="5 3"'),
)
_OF_SECTIONS = {"sensor": "reading", "equality": "polynomial"}  # kinds of elements that have attributes in common
_CLASS = {
    "joint": 'damping="0.3" solreflimit="0.03 0.9" armature="0.05"',
    "geom": 'friction="0.6 0.02 0.01" margin="0.01" condim="4" density="700"',
    "site": 'size="0.1 0.12 0.2" type="ellipsoid"',
}


def enrich(text: str, draw: Draw) -> str:
    """Give a model some of what it is drawn without.

    Args:
        text: MJCF.
        draw: draws the changes, and what they change.

    Returns:
        MJCF, which MuJoCo may refuse.
    """
    root = ET.fromstring(text)
    for _ in draw.count(1, _MOST):
        change(root, draw)
    return ET.tostring(root, encoding="unicode")


def change(root: ET.Element, draw: Draw) -> None:
    """Give a model one attribute or element."""
    if draw.chance(_SHARE_OF_ATTRIBUTES):
        _set(root, draw)
    else:
        draw.choice(_CHANGES)(root, draw)


def _set(root: ET.Element, draw: Draw) -> None:
    """One attribute of an element. All attributes that some element may have are equally likely."""
    for single in ("compiler", "option"):
        section(root, single)
    places = list(_places(root))
    names = sorted({(kind, name) for kind, _ in places for name in ATTRIBUTES[kind]})
    kind, name = draw.choice(names)
    element = draw.choice([element for of, element in places if of == kind])
    for other in replaced(name):
        element.attrib.pop(other, None)
    element.set(name, ATTRIBUTES[kind][name](draw))


def _places(root: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    """Elements that may have further attributes, with the kind under which these are listed."""
    for parent in root.iter():
        for element in parent:
            kind = _OF_SECTIONS.get(parent.tag, element.tag)
            if element.tag in ("connect", "weld"):
                kind = element.tag
            if kind in ATTRIBUTES and parent.tag not in ("spatial", "fixed", "default"):
                yield kind, element


def _own_mesh(root: ET.Element, draw: Draw) -> None:
    """Another mesh of a geom that is none yet, or the shape that fits it."""
    geoms = [geom for body in root.iter("body") for geom in body if geom.tag == "geom" and "fromto" not in geom.attrib]
    if not geoms:
        return
    geom, name = draw.choice(geoms), new_name(root, "mesh")
    section(root, "asset").append(ET.fromstring(f'<mesh name="{name}" {draw.choice(MESHES)}/>'))
    fitted = draw.chance(0.3) and geom.get("type") in ("sphere", "capsule", "box", "cylinder", "ellipsoid")
    geom.set("mesh", name)
    for other in ("size", *(() if fitted else ("fluidshape", "fluidcoef", "shellinertia"))):
        geom.attrib.pop(other, None)
    geom.attrib |= {"fitscale": draw.choice(("0.8", "1.1"))} if fitted else {"type": "mesh"}


def _solid(root: ET.Element, draw: Draw) -> None:
    """A geom that does not move, in the world or in a body that is welded to another."""
    solid = f'<geom {draw.choice(_SOLIDS)} pos="{draw.vector(0.4)}" quat="{draw.quaternion()}"/>'
    site = f'<site pos="{draw.vector(0.3)}" size="0.1"/>'
    place = draw.choice([section(root, "worldbody"), *root.iter("body")])
    if draw.chance(0.5):
        place.append(ET.fromstring(f'<body pos="{draw.vector(0.3)}" quat="{draw.quaternion()}">{solid}{site}</body>'))
    elif place.tag == "worldbody":
        place.extend((ET.fromstring(solid), ET.fromstring(site)))
    else:
        place.append(ET.fromstring(site))


def _camera(root: ET.Element, draw: Draw) -> None:
    """A camera in a body, at a place from which a sensor may look."""
    text = f'<camera pos="{draw.vector(0.4)}" quat="{draw.quaternion()}" resolution="64 48" {draw.choice(_LENSES)}/>'
    draw.choice([section(root, "worldbody"), *root.iter("body")]).append(ET.fromstring(text))


def _freejoint(root: ET.Element, draw: Draw) -> None:
    """A free joint in its short form."""
    for joint in root.iter("joint"):
        if joint.get("type") == "free":
            joint.tag = "freejoint"
            joint.attrib = {"name": named(root, joint), "align": draw.choice(("true", "false", "auto"))}
            return


def _mocap(root: ET.Element, draw: Draw) -> None:
    """A body that a weld or a connect drags behind a mocap body."""
    bodies = [body for body in root.iter("body") if body.get("mocap") != "true"]
    if not bodies:
        return
    name = new_name(root, "hand")
    text = f'<body name="{name}" mocap="true" pos="{draw.vector(0.4)}" quat="{draw.quaternion()}"/>'
    section(root, "worldbody").append(ET.fromstring(text))
    end = named(root, draw.choice(bodies))
    tie = draw.choice(
        (
            f'<weld body1="{name}" body2="{end}"/>',
            f'<weld body1="{end}" body2="{name}" relpose="0.1 0 0.2 1 0.3 0 0.1" torquescale="0.4"/>',
            f'<connect body1="{end}" body2="{name}" anchor="{draw.vector(0.2)}"/>',
        )
    )
    section(root, "equality").append(ET.fromstring(tie))


def _frame(root: ET.Element, draw: Draw) -> None:
    """A frame around some elements of a body."""
    bodies = [body for body in root.iter("body") if len(body)]
    if not bodies:
        return
    body = draw.choice(bodies)
    inside = [child for child in body if child.tag in ("geom", "site", "body", "camera") and draw.chance(0.5)]
    frame = ET.fromstring(f'<frame pos="{draw.vector(0.2)}" quat="{draw.quaternion()}"/>')
    for child in inside:
        body.remove(child)
        frame.append(child)
    body.append(frame)


def _replicate(root: ET.Element, draw: Draw) -> None:
    """Copies of a geom, or of a small body without joints of its own, around its parent."""
    body = draw.choice(list(root.iter("body")) or [section(root, "worldbody")])
    inside = draw.choice(
        (
            f'<geom type="box" size="0.03 0.05 0.04" pos="{draw.vector(0.2)}"/>',
            f'<body pos="{draw.vector(0.3)}"><joint axis="{draw.direction()}" pos="0.05 0 0" armature="0.03"/>'
            '<geom type="capsule" size="0.04 0.06"/></body>',
        )
    )
    around = draw.choice(('euler="0.3 0.2 1.1"', f'offset="{draw.vector(0.2)}"', 'euler="0 0 2.1" offset="0 0 0.1"'))
    body.append(ET.fromstring(f'<replicate count="{draw.rng.randint(2, 3)}" {around}>{inside}</replicate>'))


def _defaults(root: ET.Element, draw: Draw) -> None:
    """Defaults of a class, which some elements or all that are in a body have."""
    name = new_name(root, "class")
    inside = "".join(f"<{tag} {values}/>" for tag, values in _CLASS.items() if draw.chance(0.6))
    section(root, "default").append(ET.fromstring(f'<default class="{name}">{inside}</default>'))
    bodies = list(root.iter("body"))
    if bodies and draw.chance(0.5):
        draw.choice(bodies).set("childclass", name)
        return
    for element in (element for body in bodies for element in body if element.tag in _CLASS):
        if draw.chance(0.3):
            element.set("class", name)


def _limited_twice(root: ET.Element, draw: Draw) -> None:
    """A second joint like another in the same body, and an equality of the two."""
    joints = [(body, joint) for body in root.iter("body") for joint in body if joint.get("type") in ("hinge", "slide")]
    if not joints:
        return
    body, joint = draw.choice(joints)
    twin = deepcopy(joint)
    twin.set("name", new_name(root, "twin"))
    twin.set("axis", draw.direction())
    body.insert(list(body).index(joint), twin)
    tie = f'<joint joint1="{named(root, joint)}" joint2="{twin.get("name")}" polycoef="0.1 -0.5 0.2 0.1 -0.1"/>'
    section(root, "equality").append(ET.fromstring(tie))


_CHANGES: tuple[Callable[[ET.Element, Draw], None], ...] = (
    *(_own_mesh, _solid, _camera, _freejoint, _mocap, _frame, _replicate, _defaults, _limited_twice),
    *(ADDITIONS * 2),
)
