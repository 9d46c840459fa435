"""Models drawn at random: trees of bodies with joints, geoms, limits, tendons, actuators, sensors and options.

Hypothesis draws everything piece by piece from few round numbers. A failing model therefore shrinks to the part that
fails. Tendons, actuators and sensors refer to names, and are drawn after the tree that has these names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hypothesis import strategies as st

SOLVERS = ("Newton", "PGS", "CG")
INTEGRATORS = ("Euler", "RK4", "implicitfast", "implicit")
CONES = ("pyramidal", "elliptic")
CONDIMS = (3, 1, 4, 6)
"""Values of features that are drawn; the first is what models shrink to."""

GEOMS = {"sphere": 1, "capsule": 2, "box": 3}
"""Geom types that collide in every pair, and how many sizes they have."""

SHAPES = GEOMS | {"cylinder": 2, "ellipsoid": 3}
"""All geom types that are drawn. Those that are not in GEOMS do not collide."""

FLAGS = (
    *("gravity", "spring", "damper", "limit", "contact", "actuation", "filterparent", "eulerdamp", "clampctrl"),
    *("warmstart", "constraint", "sensor"),
)


def number(low: float, high: float) -> st.SearchStrategy[float]:
    """One of eleven numbers. Models shrink to the lowest."""
    return st.integers(0, 10).map(lambda k: round(low + (high - low) * k / 10, 6))


def words(*values: float) -> str:
    """Numbers as MJCF writes them."""
    return " ".join(f"{value:g}" for value in values)


def vector(reach: float, size: int = 3) -> st.SearchStrategy[str]:
    """A vector with entries from -reach to reach. Models shrink to zero."""
    entry = st.integers(-5, 5).map(lambda k: round(reach * k / 5, 6))
    return st.lists(entry, min_size=size, max_size=size).map(lambda v: words(*v))


# Joints are not at the centres of mass: only friction would move a body whose centre of mass its joints hold.
anchor = st.sampled_from(("0.07 0.05 -0.06", "-0.08 0.06 0.05", "0.05 -0.1 0.07"))
# Axes differ from those of boxes: faces that stay parallel touch in ways that rounding decides.
direction = st.tuples(*[st.integers(-3, 3)] * 3).map(lambda v: words(v[0] + 0.3, v[1] + 0.2, v[2] + 0.6))
quaternion = st.tuples(*[st.integers(-3, 3)] * 4).map(lambda v: words(*(v if any(v) else (1, 0, 0, 0))))


@st.composite
def attributes(draw: st.DrawFn, **choices: st.SearchStrategy) -> str:
    """Some of the attributes, each with a value. Models shrink to none."""
    chosen = draw(st.lists(st.sampled_from(sorted(choices)), unique=True, max_size=5)) if choices else []
    return " ".join(f'{name}="{draw(choices[name])}"' for name in chosen)


@st.composite
def interval(draw: st.DrawFn, low: float, high: float) -> str:
    """Two numbers in ascending order, on either side of zero."""
    return words(draw(number(-0.1, low)), draw(number(0.1, high)))


solref = st.sampled_from(("0.02 1", "0.04 0.7", "0.01 1.5", "-300 -20"))
solimp = st.sampled_from(("0.9 0.95 0.001", "0.7 0.95 0.1 0.4 3", "0.9 0.9 0.01", "0.5 0.99 0.05 0.7 1"))


class Joint(NamedTuple):
    """A joint: its type and the attributes beside its name."""

    kind: str
    text: str


class Body(NamedTuple):
    """A body: its pose, joints, other elements, and children."""

    pose: str
    joints: tuple[Joint, ...]
    inside: str
    children: tuple[Body, ...]


scalar_joint = st.builds(
    lambda kind, axis, pos, armature, text: Joint(kind, f'axis="{axis}" pos="{pos}" armature="{armature}" {text}'),
    st.sampled_from(("hinge", "slide")),
    direction,
    anchor,
    number(0.02, 0.1),  # joints of one body may share an axis
    attributes(
        damping=number(0.1, 2),
        stiffness=number(1, 20),
        springref=number(-0.5, 0.5),
        ref=number(-0.3, 0.3),
        range=interval(-1, 1),
        margin=number(0.01, 0.1),
        solreflimit=solref,
        solimplimit=solimp,
        actuatorfrcrange=interval(-2, 2),
        actuatorgravcomp=st.just("true"),
        frictionloss=number(0.1, 2),
    ),
)
ball_joint = st.builds(
    lambda pos, armature, text: Joint("ball", f'pos="{pos}" armature="{armature}" {text}'),
    anchor,
    number(0.02, 0.1),
    attributes(
        damping=number(0.1, 2),
        stiffness=number(1, 20),
        range=number(0.3, 2).map(lambda high: words(0, high)),
        margin=number(0.01, 0.1),
        frictionloss=number(0.1, 2),
    ),
)
free_joint = st.builds(lambda text: Joint("free", text), attributes(damping=number(0.1, 2), stiffness=number(1, 20)))
joints = st.one_of(st.lists(scalar_joint, max_size=3), st.tuples(ball_joint), st.tuples(scalar_joint, ball_joint)).map(
    tuple
)
root_joints = st.one_of(
    st.lists(scalar_joint, min_size=1, max_size=3).map(tuple), st.tuples(free_joint), st.tuples(ball_joint)
)


@st.composite
def geom(draw: st.DrawFn) -> str:
    """A geom that collides, or one of another shape that does not."""
    kind = draw(st.sampled_from(tuple(SHAPES)))
    size = words(*(draw(number(0.05, 0.15)) for _ in range(SHAPES[kind])))
    text = draw(
        attributes(
            pos=vector(0.1),
            quat=quaternion,
            condim=st.sampled_from(CONDIMS),
            friction=st.tuples(number(0.2, 1.2), number(0.005, 0.1), number(0.001, 0.05)).map(lambda v: words(*v)),
            solref=solref,
            solimp=solimp,
            solmix=number(1, 3),
            priority=st.integers(0, 1),
            margin=number(0, 0.05),
            gap=number(0, 0.02),
            density=number(500, 2000),
            fluidshape=st.just("ellipsoid"),
            fluidcoef=st.just("0.6 0.3 1.2 0.8 0.7"),
        )
    )
    if kind not in GEOMS:
        return f'<geom type="{kind}" size="{size}" {text} contype="0" conaffinity="0"/>'
    kinds = draw(st.sampled_from(('contype="1"', 'contype="2" conaffinity="1"', 'contype="0" conaffinity="0"')))
    return f'<geom type="{kind}" size="{size}" {text} {kinds}/>'


inertial = st.builds(
    lambda pos, quat, mass, size: f'<inertial pos="{pos}" quat="{quat}" mass="{mass:g}" diaginertia="{size}"/>',
    vector(0.1),
    quaternion,
    number(0.5, 5),
    st.tuples(number(0.02, 0.03), number(0.02, 0.03), number(0.025, 0.04)).map(lambda v: words(*v)),
)
pose = st.builds(
    lambda pos, quat, text: f'pos="{pos}" quat="{quat}" {text}',
    vector(0.4),
    quaternion,
    attributes(gravcomp=number(-0.5, 1.5)),
)
inside = st.builds(
    lambda geoms, weight: "".join((*weight, *geoms)),
    st.lists(geom(), min_size=1, max_size=2),
    st.lists(inertial, max_size=1),
)
leaf = st.builds(Body, pose, joints, inside, st.just(()))
branch = st.recursive(
    leaf, lambda kids: st.builds(Body, pose, joints, inside, st.lists(kids, max_size=2).map(tuple)), max_leaves=4
)
root = st.builds(lambda body, own: body._replace(joints=own), branch, root_joints)
plane = st.builds(
    lambda at, quat, text: f'<geom type="plane" size="5 5 1" {at} {quat} {text}/>',
    vector(0.2).map(lambda v: f'pos="{v}"'),
    st.sampled_from(("", 'quat="10 1 0 0"', 'quat="10 -1 2 0"')),
    attributes(condim=st.sampled_from(CONDIMS), margin=number(0, 0.05), friction=number(0.2, 1.2)),
)


class Names(NamedTuple):
    """Names in a tree: bodies, joints by kind, sites (one in each body)."""

    bodies: list[str]
    joints: dict[str, list[str]]
    sites: list[str]


def write(bodies: tuple[Body, ...], names: Names) -> Iterator[str]:
    """Write MJCF of bodies, and add their names to `names`."""
    for body in bodies:
        name = f"b{len(names.bodies)}"
        names.bodies.append(name)
        names.sites.append(f"s_{name}")
        yield f'<body name="{name}" {body.pose}>'
        for joint in body.joints:
            label = f"j{sum(map(len, names.joints.values()))}"
            names.joints.setdefault(joint.kind, []).append(label)
            yield f'<joint name="{label}" type="{joint.kind}" {joint.text}/>'
        yield body.inside
        yield f'<site name="s_{name}" type="box" size="0.1 0.2 0.15" pos="0.05 0 0.02" quat="1 0.3 0 -0.2"/>'
        yield from write(body.children, names)
        yield "</body>"


@st.composite
def options(draw: st.DrawFn) -> str:
    """The option element."""
    text = draw(
        attributes(
            timestep=st.sampled_from((0.002, 0.005, 0.01)),
            gravity=st.just("0.5 -0.3 -9.8"),
            wind=vector(1),
            density=number(1, 500),
            viscosity=number(0.1, 1),
            impratio=number(1, 5),
        )
    )
    choices = {"integrator": INTEGRATORS, "solver": SOLVERS, "cone": CONES}
    chosen = " ".join(f'{name}="{draw(st.sampled_from(values))}"' for name, values in choices.items())
    flags = " ".join(f'{flag}="disable"' for flag in draw(st.lists(st.sampled_from(FLAGS), unique=True, max_size=2)))
    # CG agrees to fewer digits if it stops before it has converged
    many = 'iterations="2000"' if 'solver="CG"' in chosen else ""
    return f'<option tolerance="1e-12" ls_tolerance="1e-12" {many} {chosen} {text}><flag {flags}/></option>'


@st.composite
def tendons(draw: st.DrawFn, joint: st.SearchStrategy[str]) -> list[str]:
    """Fixed tendons over joints."""
    found = []
    for i in range(draw(st.integers(0, 2))):
        over = draw(st.lists(joint, min_size=1, max_size=3, unique=True))
        text = draw(
            attributes(
                stiffness=number(1, 10),
                damping=number(0.1, 1),
                springlength=interval(-0.5, 0.5),
                range=interval(-0.8, 0.8),
                margin=number(0.01, 0.05),
                solreflimit=solref,
                frictionloss=number(0.1, 2),
            )
        )
        terms = "".join(f'<joint joint="{name}" coef="{draw(number(-1.5, 1.2)):g}"/>' for name in over)
        found.append(f'<fixed name="t{i}" {text}>{terms}</fixed>')
    return found


@st.composite
def paths(draw: st.DrawFn, names: Names, first: int) -> list[str]:
    """A tendon through sites, numbered from `first` on, or none."""
    found = []
    for i in range(first, first + draw(st.integers(0, 1))):
        over = draw(st.permutations(names.sites))[:3]
        text = draw(attributes(stiffness=number(1, 10), damping=number(0.1, 1), range=st.just("0.1 0.6")))
        if len(over) > 1:
            found.append(f'<spatial name="t{i}" {text}>' + "".join(f'<site site="{s}"/>' for s in over) + "</spatial>")
    return found


@st.composite
def actuators(draw: st.DrawFn, targets: list[str]) -> list[str]:
    """Actuators on some of the targets, which are attributes such as `joint="j0"` or `tendon="t0"`."""
    kinds = {
        "motor": st.just(""),
        "position": attributes(kp=number(1, 10), kv=number(0, 1)),
        "velocity": attributes(kv=number(0.5, 3)),
        "general": st.just('gainprm="2" biastype="affine" biasprm="0.3 -1 -0.2"'),
    }
    limits = {"ctrlrange": interval(-1, 1), "forcerange": interval(-2, 2)}
    kinds |= {
        "intvelocity": attributes(kp=number(1, 10), kv=number(0, 1)).map('actrange="-0.7 0.8" {}'.format),
        "damper": st.just('kv="2" ctrlrange="0 1"'),
        "muscle": st.just('lengthrange="-0.5 1.2" force="20"'),
        "cylinder": st.just('timeconst="0.3" area="0.5" bias="0.1 -2 0.3"'),
    }
    kinds["general "] = attributes(
        dyntype=st.sampled_from(("filter", "filterexact", "integrator")), actearly=st.just("true"), gainprm=number(1, 3)
    )
    found = []
    for i in range(draw(st.integers(0, 3)) if targets else 0):
        kind = draw(st.sampled_from(tuple(kinds)))
        target = draw(st.sampled_from(targets))
        if target.startswith("site") and kind in ("muscle", "damper", "intvelocity"):
            kind = "motor"  # MJCF has no such actuator shortcut for this target
        gear = {} if "gear" in target else {"gear": number(-2, 3)}
        bounds = "" if kind == "damper" else draw(attributes(**limits, **gear))
        found.append(f'<{kind} name="a{i}" {target} {bounds} {draw(kinds[kind])}/>')
    return found


@st.composite
def sensors(draw: st.DrawFn, names: Names, num_tendons: int, num_actuators: int) -> list[str]:
    """Sensors of bodies, joints, sites, tendons and actuators that exist."""
    site, body = st.sampled_from(names.sites), st.sampled_from(names.bodies)
    choices = [
        *(site.map(f'<{kind} site="{{}}"/>'.format) for kind in SITE_SENSORS),
        *(body.map(f'<{kind} body="{{}}"/>'.format) for kind in ("subtreecom", "subtreelinvel", "subtreeangmom")),
        *(frame(kind, names) for kind in FRAME_SENSORS),
        st.sampled_from(("<clock/>", "<e_potential/>", "<e_kinetic/>")),
    ]
    scalar = [*names.joints.get("hinge", ()), *names.joints.get("slide", ())]
    for kind, targets in (("joint", scalar), ("tendon", [f"t{i}" for i in range(num_tendons)])):
        if targets:
            target = st.sampled_from(targets)
            choices += [target.map(f'<{kind}{what} {kind}="{{}}"/>'.format) for what in ("pos", "vel", "actuatorfrc")]
    if num_actuators:
        choices.append(
            st.tuples(st.sampled_from(("pos", "vel", "frc")), st.integers(0, num_actuators - 1)).map(
                lambda v: f'<actuator{v[0]} actuator="a{v[1]}"/>'
            )
        )
    if names.joints.get("ball"):
        choices.append(st.sampled_from(names.joints["ball"]).map('<ballquat joint="{}"/>'.format))
    return draw(st.lists(st.one_of(choices), max_size=4))


@st.composite
def equalities(draw: st.DrawFn, names: Names, scalar: list[str], num_tendons: int) -> list[str]:
    """Equality constraints between bodies, sites, joints and tendons."""
    bodies = st.permutations(["world", *names.bodies])
    kinds = {
        kind: st.builds(lambda b, p: f'body1="{b[0]}" body2="{b[1]}" anchor="{p}"', bodies, vector(0.2))
        for kind in ("connect", "weld")
    }
    if len(names.sites) > 1:
        two = st.permutations(names.sites).map(lambda s: f'site1="{s[0]}" site2="{s[1]}"')
        kinds |= {"connect ": two, "weld ": two}
    for kind, targets in (("joint", scalar), ("tendon", [f"t{i}" for i in range(num_tendons)])):
        if targets:
            target = st.sampled_from(targets)
            if len(targets) > 1:
                kinds[kind] = st.builds(
                    lambda k, both: f'{k}1="{both[0]}" {k}2="{both[1]}" polycoef="0.1 0.8 0.2"',
                    st.just(kind),
                    st.permutations(targets),
                )
            kinds[f"{kind} "] = st.builds(lambda k, a: f'{k}1="{a}"', st.just(kind), target)
    found = []
    for _ in range(draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(tuple(kinds)))
        text = draw(attributes(solref=solref, solimp=solimp, active=st.sampled_from(("true", "false"))))
        found.append(f"<{kind} {draw(kinds[kind])} {text}/>")
    return found


SITE_SENSORS = ("gyro", "velocimeter", "accelerometer", "force", "torque", "touch", "rangefinder", "magnetometer")
FRAME_SENSORS = ("framepos", "framequat", "framezaxis", "framelinvel", "frameangvel", "framelinacc", "frameangacc")


def frame(kind: str, names: Names) -> st.SearchStrategy[str]:
    """A frame sensor, most types of which may have a reference frame."""
    objects = st.one_of(
        st.sampled_from(names.bodies).map(lambda n: ("body", n)),
        st.sampled_from(names.bodies).map(lambda n: ("xbody", n)),
        st.sampled_from(names.sites).map(lambda n: ("site", n)),
    )
    own = objects.map(lambda o: f'objtype="{o[0]}" objname="{o[1]}"')
    seen = objects.map(lambda o: f'reftype="{o[0]}" refname="{o[1]}"')
    reference = st.just("") if kind.endswith("acc") else st.one_of(st.just(""), seen)
    return st.builds(lambda a, b: f"<{kind} {a} {b}/>", own, reference)


@st.composite
def models(draw: st.DrawFn) -> str:
    """MJCF of a whole model."""
    trees = tuple(draw(st.lists(root, min_size=1, max_size=3)))
    names = Names([], {}, [])
    world = "\n".join((*draw(st.lists(plane, max_size=2)), *write(trees, names)))
    scalar = [*names.joints.get("hinge", ()), *names.joints.get("slide", ())]
    fixed = draw(tendons(st.sampled_from(scalar))) if scalar else []
    targets = [*(f'joint="{j}"' for j in scalar), *(f'tendon="t{i}"' for i in range(len(fixed)))]
    targets += [f'joint="{j}" gear="1 0.5 -2 0.3 2 1"' for kind in ("ball", "free") for j in names.joints.get(kind, ())]
    targets += [f'site="{site}" gear="1 0.5 -2 0.3 2 1"' for site in names.sites]
    driven = draw(actuators(targets))
    fixed += draw(paths(names, len(fixed)))
    fastened = draw(equalities(names, scalar, len(fixed)))
    measured = draw(sensors(names, len(fixed), len(driven)))
    sections = {"worldbody": [world], "tendon": fixed, "equality": fastened, "actuator": driven, "sensor": measured}
    parts = [f"<{name}>\n{chr(10).join(lines)}\n</{name}>" for name, lines in sections.items() if lines]
    return f'<mujoco><compiler angle="radian"/>{draw(options())}\n{chr(10).join(parts)}\n</mujoco>'
