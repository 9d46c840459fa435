"""Elements that refer to others by name, added to a model: sensors, actuators, paths and equalities of all forms."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree as ET

from simengine.fuzz.draw import Draw, words

_OF_SITES = ("gyro", "velocimeter", "accelerometer", "force", "torque", "touch", "magnetometer")
_AXES = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
_ACCELERATIONS = ("framelinacc", "frameangacc")
_IN_ORDER = ("found", "force", "torque", "dist", "pos", "normal", "tangent", "linvel", "angvel")
_GEAR = ("1 0.5 -2 0.3 2 1", "0 0 1 0 0 0", "0 0 0 0.3 0 1")
_DYNAMICS = (
    *("", 'dyntype="integrator" actlimited="true" actrange="-0.5 0.7"', 'dyntype="filter" dynprm="0.1"'),
    *('dyntype="filterexact" dynprm="0.05" actearly="true"', 'dyntype="muscle" dynprm="0.02 0.05 0.3"'),
    'dyntype="integrator" actearly="true"',
)
_GAINS = (
    *('gainprm="3"', 'gaintype="affine" gainprm="2 0.4 -0.3"'),
    'gaintype="muscle" gainprm="0.75 1.05 20 200 0.5 1.6 1.5 1.3 1.2" lengthrange="-0.6 0.8"',
)
_BIASES = (
    *("", 'biastype="affine" biasprm="0.2 -3 -0.3"'),
    'biastype="muscle" biasprm="0.75 1.05 20 200 0.5 1.6 1.5 1.3 1.2" lengthrange="-0.6 0.8"',
)
_DRIVES = (
    *('<position {} kp="4" dampratio="0.8"/>', '<position {} kp="4" kv="0.3" timeconst="0.1"/>', "<motor {}/>"),
    *('<velocity {} kv="2"/>', '<cylinder {} diameter="0.3" timeconst="0.2" bias="0.1 -1 -0.2"/>'),
    *('<intvelocity {} kp="3" actrange="-0.6 0.8"/>', '<damper {} kv="1" ctrlrange="0 1"/>'),
    *('<muscle {} lengthrange="-0.5 1.1"/>', '<muscle {} lengthrange="-0.5 1.1" tausmooth="0.2" force="15"/>'),
)
_ANYWHERE = 7  # of these, the first may act on sites
_PATH = (
    *('stiffness="8 2"', 'damping="0.5 0.2"', 'range="0.1 0.5" margin="0.03"', 'springlength="0.1 0.4" stiffness="5"'),
    *('frictionloss="0.7" solreffriction="0.03 1"', 'actuatorfrcrange="-1 1.5"', ""),
)


def section(root: ET.Element, tag: str) -> ET.Element:
    """The first child of the root with a tag, which is made if there is none."""
    found = root.find(tag)
    return ET.SubElement(root, tag) if found is None else found


def new_name(root: ET.Element, prefix: str) -> str:
    """A name that no element has."""
    taken = {element.get(attribute) for element in root.iter() for attribute in ("name", "class")}
    return next(name for k in range(len(taken) + 1) if (name := f"{prefix}_{k}") not in taken)


def named(root: ET.Element, element: ET.Element) -> str:
    """The name of an element, which is given one if it has none."""
    if "name" not in element.attrib:
        element.set("name", new_name(root, element.tag))
    return element.attrib["name"]


def _all(root: ET.Element, tag: str, *kinds: str) -> list[ET.Element]:
    """Elements of bodies and frames with a tag, and maybe of some types. A copy that is replicated has no name."""
    copied = {id(element) for parent in root.iter("replicate") for element in parent.iter()}
    places = [place for of in ("worldbody", "body", "frame") for place in root.iter(of)]
    found = [element for place in places for element in place if element.tag == tag and id(element) not in copied]
    return [element for element in found if not kinds or element.get("type", "hinge") in kinds]


def _one(root: ET.Element, draw: Draw, tag: str, *kinds: str) -> str:
    """The name of one of these elements; empty if there is none."""
    found = _all(root, tag, *kinds)
    return named(root, draw.choice(found)) if found else ""


def _tendon(root: ET.Element, draw: Draw) -> str:
    found = list(section(root, "tendon"))
    return named(root, draw.choice(found)) if found else ""


def _add(root: ET.Element, tag: str, text: str) -> None:
    """An element in a section, unless one that it refers to does not exist."""
    if '=""' not in text:
        section(root, tag).append(ET.fromstring(text))


def _add_sensor(root: ET.Element, draw: Draw, text: str) -> None:
    """A sensor, whose readings may be cut off."""
    cut = 'cutoff="0.3"' if "cutoff" not in text and draw.chance(0.3) else ""
    _add(root, "sensor", f"<{text} {cut}/>")


def _object(root: ET.Element, draw: Draw, what: str) -> str:
    """An object with a frame, for attributes that begin with `obj` or `ref`."""
    kind = draw.choice(("body", "xbody", "geom", "site", "camera"))
    return f'{what}type="{kind}" {what}name="{_one(root, draw, kind.removeprefix("x"))}"'


def _frame(root: ET.Element, draw: Draw) -> None:
    """A sensor of a frame, relative to another where it may be."""
    kind = draw.choice((*_AXES, *_ACCELERATIONS))
    reference = "" if kind in _ACCELERATIONS or draw.chance(0.3) else _object(root, draw, "ref")
    _add_sensor(root, draw, f"{kind} {_object(root, draw, 'obj')} {reference}")


def _of_site(root: ET.Element, draw: Draw) -> None:
    """A sensor of a site, or of what is in it or before a camera."""
    site = _one(root, draw, "site")
    rays = () if root.find("asset/mesh") is not None else ("rangefinder",)
    kind = draw.choice((*_OF_SITES, *rays, "insidesite", "camprojection"))
    more = {"insidesite": _object(root, draw, "obj"), "camprojection": f'camera="{_one(root, draw, "camera")}"'}
    _add_sensor(root, draw, f'{kind} site="{site}" {more.get(kind, "")}')


def _of_contacts(root: ET.Element, draw: Draw) -> None:
    """A sensor of contacts, by any two of its criteria."""

    def side(k: int, *more: str) -> str:
        kind = draw.choice(("geom", "body", "subtree", *more))
        if kind == "site":
            return f'site="{_one(root, draw, "site")}"'
        return f'{kind}{k}="{_one(root, draw, "geom" if kind == "geom" else "body")}"' if kind else ""

    reduce = draw.choice(("none", "mindist", "maxforce", "netforce"))
    usable = _IN_ORDER[:7] if reduce == "netforce" else _IN_ORDER
    data = " ".join(name for name in usable if draw.chance(0.4)) or "found"
    text = f'{side(1, "site", "")} {side(2, "")} reduce="{reduce}" num="{draw.rng.randint(1, 4)}" data="{data}"'
    _add_sensor(root, draw, f"contact {text}")


def _of_distance(root: ET.Element, draw: Draw) -> None:
    """A sensor of the distance of geoms or bodies."""
    kind = draw.choice(("distance", "normal", "fromto"))
    first, second = (draw.choice(("geom", "body")) for _ in range(2))
    one, two = _one(root, draw, first), _one(root, draw, second)
    if first != second or one != two:
        cutoff = draw.choice((0.1, 0.5, 2.0))
        _add_sensor(root, draw, f'{kind} {first}1="{one}" {second}2="{two}" cutoff="{cutoff:g}"')


def _of_joint(root: ET.Element, draw: Draw) -> None:
    """A sensor of a joint, tendon or actuator."""
    what = draw.choice(("joint", "tendon", "actuator"))
    names = {
        "joint": lambda: _one(root, draw, "joint", "hinge", "slide"),
        "tendon": lambda: _tendon(root, draw),
        "actuator": lambda: "",
    }
    driven = list(section(root, "actuator"))
    name = named(root, draw.choice(driven)) if what == "actuator" and driven else names[what]()
    force = "frc" if what == "actuator" else "actuatorfrc"
    kinds = [f"{what}pos", f"{what}vel", f"{what}{force}"]
    if what == "joint" and draw.chance(0.3):
        name, kinds = _one(root, draw, "joint", "ball"), ["ballquat", "ballangvel"]
    _add_sensor(root, draw, f'{draw.choice(kinds)} {what}="{name}"')


def _of_everything(root: ET.Element, draw: Draw) -> None:
    """A sensor of a subtree or of the whole model."""
    body = _one(root, draw, "body")
    of_trees = [f'{kind} body="{body}"' for kind in ("subtreecom", "subtreelinvel", "subtreeangmom")]
    _add_sensor(root, draw, draw.choice((*of_trees, "e_potential", "e_kinetic", "clock")))


def _target(root: ET.Element, draw: Draw) -> str:
    """What an actuator acts on."""
    turning = _one(root, draw, "joint", "ball", "free")
    sites = [named(root, site) for site in draw.several(_all(root, "site"), 2, 2)]
    scalar = draw.choice(("joint", "joint", "jointinparent"))
    targets = [f'{scalar}="{_one(root, draw, "joint", "hinge", "slide")}"', f'tendon="{_tendon(root, draw)}"']
    targets += [f'{kind}="{turning}" gear="{draw.choice(_GEAR)}"' for kind in ("joint", "jointinparent")]
    if len(sites) == 2:
        targets += [
            f'site="{sites[0]}" gear="{draw.choice(_GEAR)}"',
            f'site="{sites[0]}" refsite="{sites[1]}" gear="{draw.choice(_GEAR)}"',
            f'cranksite="{sites[0]}" slidersite="{sites[1]}" cranklength="{draw.number(0.3, 0.8):g}"',
        ]
    return draw.choice([target for target in targets if '""' not in target] or ['joint=""'])


def _actuator(root: ET.Element, draw: Draw) -> None:
    """An actuator whose dynamics, gain and bias are of any type, or one of the short forms."""
    if draw.chance(0.1):
        limits = draw.choice(("", 'forcerange="0 2"'))
        _add(root, "actuator", f'<adhesion body="{_one(root, draw, "body")}" ctrlrange="0 1" gain="3" {limits}/>')
        return
    target = _target(root, draw)
    parts = " ".join(draw.choice(part) for part in (_DYNAMICS, _GAINS, _BIASES))
    if parts.count("lengthrange") == 2:
        parts = parts.replace('lengthrange="-0.6 0.8"', "", 1)
    drives = _DRIVES[: _ANYWHERE if "site" in target and "crank" not in target else None]
    general = f"<general {{}} {parts}/>"
    _add(root, "actuator", draw.choice((general, general, *drives)).format(target))


def _path(root: ET.Element, draw: Draw) -> None:
    """A path with one to three branches, which may go through geoms or keep to a side of them."""
    sites = _all(root, "site")
    wraps = _all(root, "geom", "sphere", "cylinder")
    if len(sites) < 2:
        return
    inside = []
    for k in draw.count(1, 3):
        if k or draw.chance(0.2):
            inside.append(f'<pulley divisor="{draw.choice((2.0, 0.5, 3.0)):g}"/>')
        ends = [f'<site site="{named(root, site)}"/>' for site in draw.several(sites, 2, 3)]
        for place in range(len(ends) - 1, 0, -1):
            if wraps and draw.chance(0.6):
                side = f'sidesite="{named(root, draw.choice(sites))}"' if draw.chance(0.6) else ""
                ends.insert(place, f'<geom geom="{named(root, draw.choice(wraps))}" {side}/>')
        inside += ends
    text = f'<spatial name="{new_name(root, "path")}" {draw.choice(_PATH)}>{"".join(inside)}</spatial>'
    _add(root, "tendon", text)


def _equality(root: ET.Element, draw: Draw) -> None:
    """An equality of any type between any two elements, or of one with the world."""
    kind = draw.choice(("connect", "weld", "joint", "tendon"))
    text = draw.attributes(solref=draw.solref, solimp=draw.solimp)
    if kind in ("joint", "tendon"):
        one, two = (
            _one(root, draw, "joint", "hinge", "slide") if kind == "joint" else _tendon(root, draw) for _ in range(2)
        )
        second = f'{kind}2="{two}"' if one != two else ""
        text += f' {kind}1="{one}" {second} polycoef="{words(*(draw.number(-0.5, 0.5) for _ in range(5)))}"'
    elif draw.chance(0.4):
        one, two = _one(root, draw, "site"), _one(root, draw, "site")
        text += f' site1="{one}" site2="{two}"' if one != two else ' site1=""'
    else:
        one, two = _one(root, draw, "body"), _one(root, draw, "body")
        second = f'body2="{two}"' if one != two and draw.chance(0.6) else ""
        text += f' body1="{one}" {second}'
        if kind == "connect" or draw.chance(0.5):
            text += f' anchor="{draw.vector(0.2)}"'
        if kind == "weld":
            text += draw.choice(("", ' relpose="0.1 -0.2 0.3 1 0.2 -0.1 0.3"', ' torquescale="0.3"'))
    _add(root, "equality", f"<{kind} {text}/>")


def _pair(root: ET.Element, draw: Draw) -> None:
    """An explicit pair of geoms with parameters of its own."""
    one, two = _one(root, draw, "geom"), _one(root, draw, "geom")
    text = draw.attributes(
        condim=lambda: draw.choice((1, 3, 4, 6)),
        friction=lambda: words(*(draw.number(0.2, 1.2) for _ in range(2)), 0.01, 0.002, 0.003),
        solreffriction=draw.solref,
        solimp=draw.solimp,
        margin=lambda: draw.number(0, 0.05),
        gap=lambda: draw.number(0, 0.02),
    )
    if one != two:
        _add(root, "contact", f'<pair geom1="{one}" geom2="{two}" {text}/>')


ADDITIONS: tuple[Callable[[ET.Element, Draw], None], ...] = (
    *(_frame, _of_site, _of_contacts, _of_distance, _of_joint, _of_everything),
    *(_actuator, _actuator, _path, _equality, _pair),
)
"""Each adds one element, if what it refers to exists."""
