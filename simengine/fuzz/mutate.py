"""Changes of a model at random: numbers, also extreme ones, attributes, and elements that go, come, double or move."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from xml.etree import ElementTree as ET

from simengine.fuzz.bodies import CONDIMS, Names, geom, joint
from simengine.fuzz.draw import Draw
from simengine.fuzz.enrich import change
from simengine.fuzz.generate import CONES, FLAGS, INTEGRATORS, SOLVERS

FACTORS = (0.0, -1.0, 0.5, 2.0, 10.0, 0.1)
EXTREMES = (1e-3, 1e3, 1e-9, 1e9, 1e-30, 1e30, 1e-300, 1e300)
"""Factors of numbers. Extreme ones are rarer, because most states of such models cannot be compared."""

_EXTREME_SHARE = 0.15
_MOST = 5
_SETTINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "geom": {
        "condim": tuple(map(str, CONDIMS)),
        "contype": ("0", "1", "2"),
        "conaffinity": ("0", "1", "3"),
        "priority": ("-1", "0", "1"),
        "margin": ("0", "0.01", "0.05"),
        "gap": ("0", "0.01", "0.05"),
        "solmix": ("0", "1", "5"),
        "mass": ("0.01", "1", "100"),
        "type": ("sphere", "capsule", "box", "cylinder", "ellipsoid"),
        "size": ("0.1", "0.05 0.1", "0.05 0.1 0.15"),
        "fluidshape": ("ellipsoid", "none"),
        "solref": ("0.02 1", "0.001 1", "-1000 -50", "0.3 0.1"),
        "solimp": ("0.9 0.95 0.001", "0 0.99 0.1 0.5 6", "0.99 0.1 0.01"),
    },
    "joint": {
        "type": ("hinge", "slide", "ball", "free"),
        "damping": ("0", "0.5", "20"),
        "stiffness": ("0", "5", "500"),
        "armature": ("0", "0.01", "1"),
        "frictionloss": ("0", "0.3", "10"),
        "margin": ("0", "0.1"),
        "range": ("-0.5 0.5", "0 0", "-3 -1"),
        "ref": ("0", "0.4"),
        "springref": ("0", "-0.4"),
        "actuatorgravcomp": ("true",),
    },
    "body": {"gravcomp": ("0", "1", "-2"), "mocap": ("true",), "quat": ("1 0 0 0", "0 1 0 0", "1 1 1 1")},
    "compiler": {"angle": ("radian", "degree"), "inertiafromgeom": ("true", "auto"), "fusestatic": ("true", "false")},
    "option": {
        "integrator": INTEGRATORS,
        "solver": SOLVERS,
        "cone": CONES,
        "timestep": ("0.0005", "0.002", "0.01", "0.05"),
        "impratio": ("1", "10", "100"),
        "noslip_iterations": ("0", "2"),
        "density": ("0", "1.2", "1000"),
        "viscosity": ("0", "0.00002", "1"),
        "wind": ("0 0 0", "3 -1 0"),
        "gravity": ("0 0 -9.81", "0 0 0", "5 5 5"),
        "magnetic": ("0 -0.5 0", "1 1 1"),
    },
}


def mutate(text: str, draw: Draw) -> str:
    """Change a model in a few places.

    Args:
        text: MJCF.
        draw: draws the places and the changes.

    Returns:
        MJCF, which MuJoCo may refuse.
    """
    root = ET.fromstring(text)
    for _ in draw.count(1, _MOST):
        draw.choice(_CHANGES)(root, draw)
    return ET.tostring(root, encoding="unicode")


def _change_number(root: ET.Element, draw: Draw) -> None:
    places = [(element, name) for element in root.iter() for name, value in element.items() if _is_numeric(value)]
    if not places:
        return
    element, name = draw.choice(places)
    numbers = element.attrib[name].split()
    k = draw.rng.randrange(len(numbers))
    factor = draw.choice(EXTREMES if draw.chance(_EXTREME_SHARE) else FACTORS)
    numbers[k] = f"{float(numbers[k]) * factor:g}"
    element.set(name, " ".join(numbers))


def _set(root: ET.Element, draw: Draw) -> None:
    places = [element for element in root.iter() if element.tag in _SETTINGS]
    if places:
        element = draw.choice(places)
        name = draw.choice(tuple(_SETTINGS[element.tag]))
        element.set(name, draw.choice(_SETTINGS[element.tag][name]))


def _set_option(root: ET.Element, draw: Draw) -> None:
    option = _child(root, "option")
    if draw.chance(0.4):
        _child(option, "flag").set(draw.choice(FLAGS), draw.choice(("disable", "enable")))
        return
    name = draw.choice(tuple(_SETTINGS["option"]))
    option.set(name, draw.choice(_SETTINGS["option"][name]))


def _remove(root: ET.Element, draw: Draw) -> None:
    places = [(parent, child) for parent in root.iter() for child in parent]
    if places:
        parent, child = draw.choice(places)
        parent.remove(child)


def _remove_attribute(root: ET.Element, draw: Draw) -> None:
    places = [(element, name) for element in root.iter() for name in element.attrib]
    if places:
        element, name = draw.choice(places)
        del element.attrib[name]


def _double(root: ET.Element, draw: Draw) -> None:
    """A copy of an element beside it, whose names differ. A body comes with what is in it."""
    places = [(parent, child) for parent in root.iter() for child in parent if parent is not root]
    if not places:
        return
    parent, child = draw.choice(places)
    twin, suffix = deepcopy(child), f"_{draw.rng.randrange(10**6)}"
    for element in twin.iter():
        if "name" in element.attrib:
            element.set("name", element.attrib["name"] + suffix)
    parent.append(twin)


def _move(root: ET.Element, draw: Draw) -> None:
    """A body under another parent."""
    bodies = list(root.iter("body"))
    if len(bodies) < 2:
        return
    body, target = draw.rng.sample(bodies, 2)
    if any(element is target for element in body.iter()):
        return
    parent = next(element for element in root.iter() if any(child is body for child in element))
    parent.remove(body)
    target.append(body)


def _add(root: ET.Element, draw: Draw) -> None:
    """A new geom or joint in a body. Its own name would be that of another."""
    bodies = list(root.iter("body"))
    if not bodies:
        return
    names = Names()
    kinds = ("hinge", "slide", "ball")
    new = ET.fromstring(geom(draw, names) if draw.chance(0.6) else joint(draw, names, draw.choice(kinds)))
    if "mesh" not in new.attrib:
        new.set("name", f"new_{draw.rng.randrange(10**6)}")
        draw.choice(bodies).insert(0, new)


_CHANGES: tuple[Callable[[ET.Element, Draw], None], ...] = (
    *(_change_number, _change_number, _change_number, _set, _set, _set_option, _set_option),
    *(_remove, _remove_attribute, _double, _move, _add, change, change),
)


def _child(parent: ET.Element, tag: str) -> ET.Element:
    """The first child with a tag, which is made if there is none."""
    found = parent.find(tag)
    return ET.SubElement(parent, tag) if found is None else found


def _is_numeric(value: str) -> bool:
    try:
        return bool([float(part) for part in value.split()])
    except ValueError:
        return False
