"""Attributes that elements of a model may have besides those with which they are drawn, and values of these."""

from __future__ import annotations

from collections.abc import Callable

from simengine.fuzz.draw import Draw, words

Value = Callable[[Draw], str]

_ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler", "fromto")


def _of(*values: str) -> Value:
    return lambda draw: draw.choice(values)


def _between(low: float, high: float) -> Value:
    return lambda draw: words(draw.number(low, high))


def _polynomial(low: float, high: float) -> Value:
    """A coefficient, and those of higher powers."""
    return lambda draw: words(draw.number(low, high), *(draw.number(-low, high) for _ in draw.count(1, 2)))


_TURNED: dict[str, Value] = {
    "euler": lambda draw: draw.vector(1.5),
    "axisangle": lambda draw: f"{draw.direction()} {draw.number(-2, 2):g}",
    "xyaxes": _of("1 0.2 0 -0.1 1 0.3", "0 1 0.1 -1 0 0.2"),
    "zaxis": lambda draw: draw.direction(),
}
_ROWS: dict[str, Value] = {"solref": Draw.solref, "solimp": Draw.solimp}
_LIMITS: dict[str, Value] = {
    "solreflimit": Draw.solref,
    "solimplimit": Draw.solimp,
    "solreffriction": Draw.solref,
    "solimpfriction": Draw.solimp,
    "actuatorfrcrange": lambda draw: draw.interval(-2, 2),
    "actuatorfrclimited": _of("false"),
    "limited": _of("false"),
    "stiffness": _polynomial(1, 10),
    "damping": _polynomial(0.1, 1),
}
_TENDON: dict[str, Value] = {
    **_LIMITS,
    "margin": _between(0.01, 0.05),
    "springlength": _of("0.3", "0.1 0.4", "-0.2 -0.1", "0 0.2"),
}
_DRIVE: dict[str, Value] = {
    "group": _of("0", "1", "2"),
    "forcerange": lambda draw: draw.interval(-2, 2),
    "forcelimited": _of("false"),
    "gear": _of("2", "-0.5 1 0.3", "0 0 0 1 -2 0.5", "0 0 0 0 0 0"),
    "lengthrange": _of("-0.5 1.2", "0.1 0.3"),
}
_ACTUATOR: dict[str, Value] = {
    **_DRIVE,
    "ctrlrange": lambda draw: draw.interval(-1, 1),
    "ctrllimited": _of("false"),
}
_SERVO: dict[str, Value] = {**_ACTUATOR, "dampratio": _between(0.3, 1.5), "inheritrange": _of("1", "0.7")}
_READING: dict[str, Value] = {"cutoff": _of("0.3", "2", "50"), "noise": _of("0.1")}

ATTRIBUTES: dict[str, dict[str, Value]] = {
    "compiler": {
        "autolimits": _of("true"),
        "balanceinertia": _of("true"),
        "boundinertia": _of("0.01"),
        "boundmass": _of("0.5"),
        "eulerseq": _of("XYZ", "zyx", "xyx"),
        "fusestatic": _of("true"),
        "alignfree": _of("true"),
        "inertiafromgeom": _of("true", "false"),
        "inertiagrouprange": _of("0 1"),
        "fitaabb": _of("true"),
        "discardvisual": _of("true"),
    },
    "option": {
        "magnetic": lambda draw: draw.vector(1),
        "o_solimp": Draw.solimp,
        "jacobian": _of("sparse", "dense"),
        "actuatorgroupdisable": _of("1", "0 2", "2"),
        "ccd_iterations": _of("50"),
        "ccd_tolerance": _of("1e-5"),
        "ls_iterations": _of("20"),
        "noslip_tolerance": _of("1e-4"),
        "impratio": _of("0.3", "20"),
        "gravity": _of("0 0 0", "3 -2 1"),
    },
    "flag": {
        **dict.fromkeys(("energy", "fwdinv", "invdiscrete"), _of("enable")),
        **dict.fromkeys(("autoreset", "nativeccd"), _of("disable")),
    },
    "mesh": {
        "scale": _of("1.5 0.7 1", "-1 1 1", "0.5 0.5 0.5"),
        "refpos": lambda draw: draw.vector(0.1),
        "refquat": Draw.quaternion,
        "inertia": _of("convex", "shell", "legacy", "exact"),
    },
    "body": {**_TURNED, "gravcomp": _of("1", "0.3"), "simple": _of("auto", "false")},
    "inertial": {
        **_TURNED,
        "fullinertia": _of("0.03 0.04 0.025 0.001 -0.002 0.0015"),
    },
    "joint": {
        **_LIMITS,
        "springdamper": _of("0.3 0.8", "0.1 1.5", "1 0.2"),
        "armature": _between(0.02, 0.1),
        "frictionloss": _between(0.1, 2),
        "actuatorgravcomp": _of("true"),
    },
    "freejoint": {"align": _of("true", "false")},
    "geom": {
        **_TURNED,
        "mass": _of("0", "0.3", "2"),
        "group": _of("1", "4"),
        "shellinertia": _of("true"),
        "rgba": _of("1 0 0 0", "0 1 0 0.5"),
        "fluidshape": _of("ellipsoid"),
        "fluidcoef": _of("0.5 0.25 1.5 1 1", "0 1 2 0.5 0.3"),
        "fromto": lambda draw: f"{draw.vector(0.1)} {words(*(draw.number(0.12, 0.3) for _ in range(3)))}",
        "gap": _of("-0.005"),
        "solmix": _of("0", "0.3"),
        "friction": _of("0", "0 0 0", "1 0.5", "0.3 0.02 0.01"),
    },
    "site": {
        **_TURNED,
        "type": _of("sphere", "capsule", "ellipsoid", "cylinder", "box"),
        "size": _of("0.15 0.1 0.2"),
        "fromto": _of("0 0 0 0.1 0.2 0.1"),
        "pos": lambda draw: draw.vector(0.2),
    },
    "camera": {
        **_TURNED,
        "fovy": _of("30", "80"),
        "resolution": _of("100 100"),
        "mode": _of("fixed"),
        "projection": _of("orthographic"),
    },
    "pair": {
        **_ROWS,
        "solreffriction": Draw.solref,
        "friction": _of("0.5 0.5 0.01 0.01 0.01", "1 0.2"),
        "gap": _of("-0.002"),
    },
    "spatial": _TENDON,
    "fixed": _TENDON,
    **dict.fromkeys(("connect", "weld"), _ROWS),
    "weld": {**_ROWS, "torquescale": _of("0.3", "2", "0"), "relpose": _of("0.1 -0.2 0.3 1 0.2 -0.1 0.3")},
    "polynomial": {**_ROWS, "polycoef": _of("0.1 0.8 0.2 -0.1 0.05", "0 1 0 0 0", "-0.2")},
    "general": {
        **_ACTUATOR,
        "actearly": _of("true"),
        "dyntype": _of("none", "filter", "filterexact", "integrator", "muscle"),
        "dynprm": _of("0.1", "0.02 0.05 0.3", "1"),
        "gaintype": _of("fixed", "affine", "muscle"),
        "biastype": _of("none", "affine", "muscle"),
        "gainprm": _of("2", "1 0.3 -0.2", "0.75 1.05 20 200 0.5 1.6 1.5 1.3 1.2"),
        "biasprm": _of("0.2 -3 -0.3", "0.75 1.05 20 200 0.5 1.6 1.5 1.3 1.2"),
    },
    "motor": _ACTUATOR,
    "position": {**_SERVO, "timeconst": _of("0.1", "0.02")},
    "velocity": _ACTUATOR,
    "intvelocity": {**_SERVO, "actlimited": _of("true")},
    "damper": _DRIVE,
    "cylinder": {**_ACTUATOR, "diameter": _of("0.5")},
    "muscle": {
        **_ACTUATOR,
        "timeconst": _of("0.02 0.05"),
        "tausmooth": _of("0.2"),
        "range": _of("0.6 1.1"),
        "force": _of("-1", "30"),
        "scale": _of("100"),
        "lmin": _of("0.4"),
        "lmax": _of("1.7"),
        "vmax": _of("1.1", "4"),
        "fpmax": _of("1.7"),
        "fvmax": _of("1.4"),
    },
    "adhesion": {"group": _of("1"), "forcerange": _of("0 1"), "forcelimited": _of("false"), "gain": _of("3")},
    "reading": _READING,
}
"""Values of further attributes by element and attribute. Each sensor has those of "reading", and an equality of joints
or tendons those of "polynomial"."""


_REPLACED: dict[str, tuple[str, ...]] = {
    **{name: tuple(other for other in _ORIENTATIONS if other != name) for name in _ORIENTATIONS},
    "fromto": (*(other for other in _ORIENTATIONS if other != "fromto"), "pos"),
    "fullinertia": ("diaginertia", *_ORIENTATIONS),
    "springdamper": ("stiffness", "damping"),
    "dampratio": ("kv",),
    "inheritrange": ("ctrlrange", "actrange"),
}


def replaced(name: str) -> tuple[str, ...]:
    """Attributes that an element may not have beside one."""
    return _REPLACED.get(name, ())
