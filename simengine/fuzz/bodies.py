"""Trees of bodies, drawn at random: joints, geoms, inertia and sites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from simengine.fuzz.draw import Draw, words

CONDIMS = (3, 1, 4, 6)
SIZES = {"sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "ellipsoid": 3}
"""Number of sizes of each geom type that needs no asset."""

MESHES, FIELDS = ("lump", "wedge"), ("hills",)
"""Names of the assets that geoms refer to."""

# Joints are not at the centres of mass: only friction would move a body whose centre of mass its joints hold.
_ANCHORS = ("0.07 0.05 -0.06", "-0.08 0.06 0.05", "0.05 -0.1 0.07")
_COLLIDES = ('contype="1"', 'contype="2" conaffinity="1"', 'contype="0" conaffinity="0"')
_MOST_DEEP = 3
_CAMERA = '<camera name="eye" pos="0.3 -2 0.4" xyaxes="1 0.2 0 0 0.1 1" resolution="64 48"/>'


@dataclass
class Names:
    """The named elements of a model, to which others refer."""

    bodies: list[str] = field(default_factory=list)
    joints: dict[str, list[str]] = field(default_factory=dict)
    sites: list[str] = field(default_factory=list)
    geoms: dict[str, list[str]] = field(default_factory=dict)
    meshes: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    limited: dict[str, list[str]] = field(default_factory=lambda: {"joint": [], "tendon": []})

    @property
    def scalar_joints(self) -> list[str]:
        """Hinges and slides."""
        return [*self.joints.get("hinge", ()), *self.joints.get("slide", ())]

    @property
    def geom_names(self) -> list[str]:
        """All geoms."""
        return [name for names in self.geoms.values() for name in names]


def world(draw: Draw, names: Names) -> str:
    """The static geoms and the trees of a model. Their names are added to `names`."""
    ground = [_plane(draw, names) for _ in draw.count(0, 2)]
    if draw.chance(0.15):
        ground.append(_hfield(draw, names))
    trees = [
        _body(draw, names, 0, (_mocap if draw.chance(0.1) else _root_joints)(draw, names)) for _ in draw.count(1, 3)
    ]
    return "\n".join((*ground, *trees, _CAMERA))


def joint(draw: Draw, names: Names, kind: str) -> str:
    """A joint of a type."""
    label = f"j{sum(map(len, names.joints.values()))}"
    names.joints.setdefault(kind, []).append(label)
    damped = {"damping": lambda: draw.number(0.1, 2), "stiffness": lambda: draw.number(1, 20)}
    if kind == "free":
        return f'<joint name="{label}" type="free" {draw.attributes(**damped)}/>'
    common = {
        **damped,
        "margin": lambda: draw.number(0.01, 0.1),
        "frictionloss": lambda: draw.number(0.1, 2),
        "solreflimit": draw.solref,
        "solimplimit": draw.solimp,
    }
    # joints of one body may share an axis, so each has an armature
    place = f'pos="{draw.choice(_ANCHORS)}" armature="{draw.number(0.02, 0.1):g}"'
    if kind == "ball":
        text = draw.attributes(**common, range=lambda: words(0, draw.number(0.3, 2)))
        return f'<joint name="{label}" type="ball" {place} {text}/>'
    text = draw.attributes(
        **common,
        springref=lambda: draw.number(-0.5, 0.5),
        ref=lambda: draw.number(-0.3, 0.3),
        range=lambda: draw.interval(-1, 1),
        actuatorfrcrange=lambda: draw.interval(-2, 2),
        actuatorgravcomp=lambda: "true",
    )
    if ' range="' in f" {text}":
        names.limited["joint"].append(label)
    return f'<joint name="{label}" type="{kind}" axis="{draw.direction()}" {place} {text}/>'


def geom(draw: Draw, names: Names) -> str:
    """A geom of a moving body: half of them are of simple shapes, and some are meshes."""
    kind = draw.choice((*SIZES, *tuple(SIZES)[:3], "mesh"))
    label = f"g{len(names.geom_names)}"
    names.geoms.setdefault(kind, []).append(label)
    if kind == "mesh":
        mesh = draw.choice(MESHES)
        names.meshes.add(mesh)
        shape = f'type="mesh" mesh="{mesh}"'
    else:
        shape = f'type="{kind}" size="{draw.numbers(0.05, 0.15, SIZES[kind])}"'
    text = draw.attributes(
        pos=lambda: draw.vector(0.1),
        quat=draw.quaternion,
        condim=lambda: draw.choice(CONDIMS),
        friction=lambda: words(draw.number(0.2, 1.2), draw.number(0.005, 0.1), draw.number(0.001, 0.05)),
        solref=draw.solref,
        solimp=draw.solimp,
        solmix=lambda: draw.number(1, 3),
        priority=lambda: draw.rng.randint(0, 1),
        margin=lambda: draw.number(0, 0.05),
        gap=lambda: draw.number(0, 0.02),
        density=lambda: draw.number(500, 2000),
        **({} if kind == "mesh" else {"fluidshape": lambda: "ellipsoid", "fluidcoef": lambda: "0.6 0.3 1.2 0.8 0.7"}),
    )
    return f'<geom name="{label}" {shape} {text} {draw.choice(_COLLIDES)}/>'


def _plane(draw: Draw, names: Names) -> str:
    label = f"g{len(names.geom_names)}"
    names.geoms.setdefault("plane", []).append(label)
    tilt = draw.choice(("", 'quat="10 1 0 0"', 'quat="10 -1 2 0"'))
    text = draw.attributes(
        condim=lambda: draw.choice(CONDIMS),
        margin=lambda: draw.number(0, 0.05),
        friction=lambda: draw.number(0.2, 1.2),
    )
    return f'<geom name="{label}" type="plane" size="5 5 1" pos="{draw.vector(0.2)}" {tilt} {text}/>'


def _hfield(draw: Draw, names: Names) -> str:
    label = f"g{len(names.geom_names)}"
    names.geoms.setdefault("hfield", []).append(label)
    names.fields.add(FIELDS[0])
    text = draw.attributes(condim=lambda: draw.choice(CONDIMS), margin=lambda: draw.number(0.01, 0.05))
    return f'<geom name="{label}" type="hfield" hfield="{FIELDS[0]}" pos="0.0137 -0.0071 -0.3" {text}/>'


def _root_joints(draw: Draw, names: Names) -> str:
    if draw.chance(0.4):
        return joint(draw, names, draw.choice(("free", "ball")))
    return "".join(joint(draw, names, draw.choice(("hinge", "slide"))) for _ in draw.count(1, 3))


def _inner_joints(draw: Draw, names: Names) -> str:
    kinds: list[str] = [draw.choice(("hinge", "slide")) for _ in draw.count(0, 3)]
    if draw.chance(0.3):
        kinds = [*kinds[:1], "ball"]
    return "".join(joint(draw, names, kind) for kind in kinds)


def _mocap(draw: Draw, names: Names) -> str:
    """What a mocap body has in place of joints; see `_body`."""
    return ""


def _body(draw: Draw, names: Names, depth: int, joints: str) -> str:
    name = f"b{len(names.bodies)}"
    names.bodies.append(name)
    names.sites.append(f"s_{name}")
    mocap = ' mocap="true"' if depth == 0 and not joints else ""
    lifted = {} if mocap else {"gravcomp": lambda: draw.number(-0.5, 1.5)}
    pose = f'pos="{draw.vector(0.4)}" quat="{draw.quaternion()}" {draw.attributes(**lifted)}'
    inside = "".join(_inside(draw, names))
    children = ""
    if depth < _MOST_DEEP and not mocap:
        for _ in range(draw.choice((0, 0, 1, 1, 2) if depth else (0, 1, 1, 2))):
            children += _body(draw, names, depth + 1, _inner_joints(draw, names))
    site = f'<site name="s_{name}" type="box" size="0.1 0.2 0.15" pos="0.05 0 0.02" quat="1 0.3 0 -0.2"/>'
    return f'<body name="{name}" {pose}{mocap}>{joints}{inside}{site}{children}</body>'


def _inside(draw: Draw, names: Names) -> Iterator[str]:
    if draw.chance(0.3):
        size = words(draw.number(0.02, 0.03), draw.number(0.02, 0.03), draw.number(0.025, 0.04))
        pose = f'pos="{draw.vector(0.1)}" quat="{draw.quaternion()}"'
        yield f'<inertial {pose} mass="{draw.number(0.5, 5):g}" diaginertia="{size}"/>'
    for _ in draw.count(1, 2):
        yield geom(draw, names)
