"""Elements of a model that refer to others by name: tendons, equalities, actuators, sensors, pairs and excludes."""

from __future__ import annotations

from collections.abc import Callable

from simengine.fuzz.bodies import Names
from simengine.fuzz.draw import Draw, words

SITE_SENSORS = ("gyro", "velocimeter", "accelerometer", "force", "torque", "touch", "rangefinder", "magnetometer")
FRAME_SENSORS = (
    *("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis"),
    *("framelinvel", "frameangvel", "framelinacc", "frameangacc"),
)
_GEAR = 'gear="1 0.5 -2 0.3 2 1"'
_WRAPS = ("sphere", "cylinder")


def tendons(draw: Draw, names: Names) -> list[str]:
    """Fixed tendons over joints, and paths through sites and around geoms, named t0, t1 and so on."""
    found: list[str] = []
    for _ in draw.count(0, 2 if names.scalar_joints else 0):
        text = draw.attributes(
            stiffness=lambda: draw.number(1, 10),
            damping=lambda: draw.number(0.1, 1),
            springlength=lambda: draw.interval(-0.5, 0.5),
            range=lambda: draw.interval(-0.8, 0.8),
            margin=lambda: draw.number(0.01, 0.05),
            solreflimit=draw.solref,
            frictionloss=lambda: draw.number(0.1, 2),
            armature=lambda: draw.number(0.01, 0.1),
        )
        over = draw.several(names.scalar_joints, 1, 3)
        terms = "".join(f'<joint joint="{name}" coef="{draw.number(-1.5, 1.2):g}"/>' for name in over)
        _note_limit(names, f"t{len(found)}", text)
        found.append(f'<fixed name="t{len(found)}" {text}>{terms}</fixed>')
    for _ in draw.count(0, 1 if len(names.sites) > 1 else 0):
        text = draw.attributes(
            stiffness=lambda: draw.number(1, 10),
            damping=lambda: draw.number(0.1, 1),
            range=lambda: "0.1 0.6",
            frictionloss=lambda: draw.number(0.1, 2),
        )
        _note_limit(names, f"t{len(found)}", text)
        found.append(f'<spatial name="t{len(found)}" {text}>{_path(draw, names)}</spatial>')
    return found


def _note_limit(names: Names, label: str, text: str) -> None:
    if ' range="' in f" {text}":
        names.limited["tendon"].append(label)


def _path(draw: Draw, names: Names) -> str:
    """Sites of a path; sometimes a geom between the first two, and sometimes a pulley before the last two."""
    sites = [f'<site site="{name}"/>' for name in draw.several(names.sites, 2, 4)]
    wraps = [name for kind in _WRAPS for name in names.geoms.get(kind, ())]
    if len(sites) == 4:
        sites.insert(2, '<pulley divisor="2"/>')
    if wraps and draw.chance(0.5):
        sites.insert(1, f'<geom geom="{draw.choice(wraps)}"/>')
    return "".join(sites)


def equalities(draw: Draw, names: Names, num_tendons: int) -> list[str]:
    """Equality constraints between bodies, sites, joints and tendons."""
    found = []
    for _ in draw.count(0, 2):
        text = draw.attributes(solref=draw.solref, solimp=draw.solimp, active=lambda: draw.choice(("true", "false")))
        found.append(f"<{_equality(draw, names, num_tendons)} {text}/>")
    return found


def _equality(draw: Draw, names: Names, num_tendons: int) -> str:
    targets = {"joint": names.scalar_joints, "tendon": [f"t{k}" for k in range(num_tendons)]}
    kind = draw.choice(("connect", "weld", *(kind for kind, of in targets.items() if of)))
    if kind in targets:
        over = draw.several(targets[kind], 1, 2)
        second = f' {kind}2="{over[1]}" polycoef="0.1 0.8 0.2"' if len(over) == 2 else ""
        return f'{kind} {kind}1="{over[0]}"{second}'
    if len(names.sites) > 1 and draw.chance(0.5):
        first, other = draw.several(names.sites, 2, 2)
        return f'{kind} site1="{first}" site2="{other}"'
    first, other = draw.several(["world", *names.bodies], 2, 2)
    return f'{kind} body1="{first}" body2="{other}" anchor="{draw.vector(0.2)}"'


def contacts(draw: Draw, names: Names) -> list[str]:
    """Explicit pairs and excludes."""
    found = []
    if draw.chance(0.25) and len(names.geom_names) > 1:
        first, other = draw.several(names.geom_names, 2, 2)
        text = draw.attributes(
            condim=lambda: draw.choice((1, 3, 4, 6)),
            margin=lambda: draw.number(0, 0.05),
            gap=lambda: draw.number(0, 0.02),
            friction=lambda: words(*(draw.number(0.2, 1.2) for _ in range(2)), 0.01, 0.002, 0.003),
            solref=draw.solref,
        )
        found.append(f'<pair geom1="{first}" geom2="{other}" {text}/>')
    if draw.chance(0.25) and len(names.bodies) > 1:
        one, two = draw.several(names.bodies, 2, 2)
        found.append(f'<exclude body1="{one}" body2="{two}"/>')
    return found


def actuators(draw: Draw, names: Names, num_tendons: int) -> list[str]:
    """Actuators of all kinds on joints, tendons, sites and bodies, named a0, a1 and so on."""
    targets = [*(f'joint="{name}"' for name in names.scalar_joints), *(f'tendon="t{k}"' for k in range(num_tendons))]
    targets += [f'joint="{name}" {_GEAR}' for kind in ("ball", "free") for name in names.joints.get(kind, ())]
    targets += [f'jointinparent="{name}" {_GEAR}' for kind in ("ball", "free") for name in names.joints.get(kind, ())]
    targets += [f'site="{name}" {_GEAR}' for name in names.sites]
    if len(names.sites) > 1:
        one, other = draw.several(names.sites, 2, 2)
        targets += [
            f'site="{one}" refsite="{other}" {_GEAR}',
            f'cranksite="{one}" slidersite="{other}" cranklength="0.5"',
        ]
    found = []
    for k in draw.count(0, 3):
        if draw.chance(0.08):
            found.append(f'<adhesion name="a{k}" body="{draw.choice(names.bodies)}" ctrlrange="0 1" gain="2"/>')
            continue
        target = draw.choice(targets)
        kind, text = _kind(draw, plain=target.startswith(("site", "jointinparent", "crank")))
        limits: dict[str, Callable[[], object]] = {"forcerange": lambda: draw.interval(-2, 2)}
        if kind not in ("damper", "intvelocity"):
            limits["ctrlrange"] = lambda: draw.interval(-1, 1)
        if "gear" not in target:
            limits["gear"] = lambda: draw.number(-2, 3)
        found.append(f'<{kind} name="a{k}" {target} {draw.attributes(**limits)} {text}/>')
    return found


def _kind(draw: Draw, plain: bool) -> tuple[str, str]:
    """The element of an actuator, and its attributes. Not every element may act on every target."""
    gains = {"kp": lambda: draw.number(1, 10), "kv": lambda: draw.number(0, 1)}
    kinds: dict[str, Callable[[], str]] = {
        "motor": str,
        "position": lambda: draw.attributes(**gains),
        "velocity": lambda: f'kv="{draw.number(0.5, 3):g}"',
        "general": lambda: 'gainprm="2" biastype="affine" biasprm="0.3 -1 -0.2"',
        " general": lambda: 'gaintype="affine" gainprm="2 0.5 -0.3"',
        "cylinder": lambda: 'timeconst="0.3" area="0.5" bias="0.1 -2 0.3"',
        "general ": lambda: draw.attributes(
            dyntype=lambda: draw.choice(("filter", "filterexact", "integrator")),
            actearly=lambda: "true",
            gainprm=lambda: draw.number(1, 3),
        ),
    }
    if not plain:
        kinds |= {
            "intvelocity": lambda: f'actrange="-0.7 0.8" {draw.attributes(**gains)}',
            "damper": lambda: 'kv="2" ctrlrange="0 1"',
            "muscle": lambda: 'lengthrange="-0.5 1.2" force="20"',
        }
    kind = draw.choice(tuple(kinds))
    return kind.strip(), kinds[kind]()


def sensors(draw: Draw, names: Names, num_tendons: int, num_actuators: int) -> list[str]:
    """Sensors of everything that exists."""
    return [draw.choice(_sensors(draw, names, num_tendons, num_actuators))() for _ in draw.count(0, 4)]


def _sensors(draw: Draw, names: Names, num_tendons: int, num_actuators: int) -> list[Callable[[], str]]:
    def of(kinds: tuple[str, ...], attribute: str, targets: list[str]) -> Callable[[], str]:
        return lambda: f'<{draw.choice(kinds)} {attribute}="{draw.choice(targets)}"/>'

    found = [
        of(SITE_SENSORS, "site", names.sites),
        of(("subtreecom", "subtreelinvel", "subtreeangmom"), "body", names.bodies),
        lambda: _frame(draw, names),
        lambda: _frame(draw, names),
        lambda: (
            f'<insidesite site="{draw.choice(names.sites)}" objtype="xbody" objname="{draw.choice(names.bodies)}"/>'
        ),
        lambda: f'<camprojection site="{draw.choice(names.sites)}" camera="eye"/>',
        lambda: draw.choice(("<clock/>", "<e_potential/>", "<e_kinetic/>")),
    ]
    if names.scalar_joints:
        found.append(of(("jointpos", "jointvel", "jointactuatorfrc"), "joint", names.scalar_joints))
    if num_tendons:
        of_tendons = ("tendonpos", "tendonvel", "tendonactuatorfrc")
        found.append(of(of_tendons, "tendon", [f"t{k}" for k in range(num_tendons)]))
    for kind, limited in names.limited.items():
        if limited:
            found.append(of((f"{kind}limitpos", f"{kind}limitvel", f"{kind}limitfrc"), kind, limited))
    if num_actuators:
        of_actuators = ("actuatorpos", "actuatorvel", "actuatorfrc")
        found.append(of(of_actuators, "actuator", [f"a{k}" for k in range(num_actuators)]))
    if names.joints.get("ball"):
        found.append(of(("ballquat", "ballangvel"), "joint", names.joints["ball"]))
    solid = [name for kind, named in names.geoms.items() if kind not in ("plane", "hfield") for name in named]
    if len(solid) > 1:
        found.append(lambda: _distance(draw, solid))
    if names.geom_names:
        found.append(lambda: f'<contact geom1="{draw.choice(names.geom_names)}" num="3" data="found force dist"/>')
    return found


def _distance(draw: Draw, geoms: list[str]) -> str:
    one, two = draw.several(geoms, 2, 2)
    return f'<{draw.choice(("distance", "normal", "fromto"))} geom1="{one}" geom2="{two}" cutoff="1"/>'


def _frame(draw: Draw, names: Names) -> str:
    """A frame sensor, most kinds of which may have a reference frame."""
    kind = draw.choice(FRAME_SENSORS)
    objects = [*((of, name) for of in ("body", "xbody") for name in names.bodies), *(("site", s) for s in names.sites)]
    own, seen = draw.choice(objects), draw.choice(objects)
    reference = "" if kind.endswith("acc") or draw.chance(0.5) else f'reftype="{seen[0]}" refname="{seen[1]}"'
    return f'<{kind} objtype="{own[0]}" objname="{own[1]}" {reference}/>'
