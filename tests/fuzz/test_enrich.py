"""Enriched models: they have every attribute of MJCF that an engine computes with, or the engine refuses it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from xml.etree import ElementTree as ET

import mujoco
import pytest

from simengine import load_model
from simengine.errors import UnsupportedModelError
from simengine.fuzz.attributes import ATTRIBUTES
from simengine.fuzz.draw import Draw
from simengine.fuzz.enrich import enrich
from simengine.fuzz.generate import generate
from simengine.fuzz.judge import judge
from tests.model.features import FEATURES, model_with

MODELS = 1200
NAME_WIDTH, INDENT = 30, 3  # of MuJoCo's print of its schema

SHOWN = {
    *("name", "user", "material", "rgba", "width", "castshadow", "texcoord", "smoothnormal", "normal", "ipd", "output"),
    *("group", "noise"),
}
"""Attributes that change no number of a step, and no reading."""

COMPILED = {
    *("assetdir", "meshdir", "texturedir", "strippath", "file", "content_type", "face", "fuse", "conflict"),
    *("coordinate", "passthrough", "savecanonical", "savecompiled", "saveinertial", "usethread", "settotalmass"),
    *("class", "inheritrange"),
}
"""Attributes after which MuJoCo's compiler leaves nothing that others do not give, too."""

UNUSED = {"sdf_initpoints", "sdf_iterations", "sleep_tolerance"}
"""Numbers of what is off or refused."""

APART = (
    *("visual", "default", "skin", "texture", "material", "light", "custom", "extension", "plugin", "lengthrange"),
    *("size", "statistic", "keyframe", "attach", "model"),
)
"""Elements without physics of their own, or that tests of loading have."""

REFUSED = {
    **{"flag diagexact": "diagexact", "flag sleep": "sleep", "flag speculative": "speculative", "flag ipc": "discrete"},
    **{
        "joint springyield": "yielding joint",
        "geom surfacevel": "moving surface",
        "geom adhesion": "adhesion of a geom",
    },
    **dict.fromkeys(("spatial springyield", "fixed springyield"), "yielding tendon"),
    **{"spatial armature": "tendon armature", "pair adhesion": "adhesion of a pair", "site mesh": "sensor of a mesh"},
    **{"rangefinder camera": "rays of a camera", "rangefinder data": "sensor of ray normals"},
    "insidesite enclosed": "sensor of enclosed objects",
    **dict.fromkeys(("sensor delay", "sensor nsample", "sensor interp", "sensor interval"), "delayed sensor"),
    **dict.fromkeys(("actuator delay", "actuator nsample", "actuator interp"), "delayed actuator"),
    **{"actuator armature": "actuator with armature", "actuator damping": "actuator with damping"},
    **{"orientation": "orientation", "pid": "pid", "dcmotor": "dcmotor", "user": "user sensor"},
    **{"tactile": "tactile sensor", **dict.fromkeys(("flexcomp", "deformable", "flex", "flexstrain"), "flex equality")},
}
"""What the engine lacks: an element, or an element or section and an attribute; and its name in `FEATURES`."""

HARMLESS = {
    **dict.fromkeys(("body sleep", "camera target"), "of features that are off or refused"),
    **dict.fromkeys(("general input", "general velrange", "general ffrange"), "of several controls, which are refused"),
    "general actdim": "1 but for what is refused",
    "general body": "the element adhesion is the only one that MuJoCo documents",
}
"""Attributes that need not be drawn, and why."""


def schema() -> Iterator[tuple[tuple[str, ...], str]]:
    """Each path of elements of MJCF, with each attribute of the last of them."""
    path: tuple[str, ...] = ()
    for line in mujoco.mj_printSchema(False, False).splitlines():
        head, attributes = line[:NAME_WIDTH], line[NAME_WIDTH:].split()
        if head.strip():
            depth, name = (len(head) - len(head.lstrip())) // INDENT, head.split()[0]
            path = (*path[:depth], name.replace("(world)", ""))
        yield from ((path[1:], attribute) for attribute in attributes)


@cache
def drawn() -> set[tuple[tuple[str, ...], str]]:
    """The same of enriched models. Bodies in bodies, frames and copies are bodies."""
    found = set[tuple[tuple[str, ...], str]]()

    def walk(element: ET.Element, path: tuple[str, ...]) -> None:
        found.update((path, attribute) for attribute in element.attrib)
        for child in element:
            inside = child.tag in ("body", "worldbody", "frame", "replicate")
            walk(child, ("body",) if inside else (*path, child.tag))

    for k in range(MODELS):
        walk(ET.fromstring(enrich(generate(f"these:{k}"), Draw(f"these:{k}:more"))), ())
    return found


def is_known(path: tuple[str, ...], attribute: str) -> bool:
    """Whether an attribute need not be drawn, because it has no physics or is refused."""
    if not path or attribute in SHOWN | COMPILED | UNUSED or any(part in APART for part in path):
        return True
    named = (*path, *(f"{part} {attribute}" for part in path))
    return any(name in REFUSED or name in HARMLESS for name in named)


def set_on(path: tuple[str, ...]) -> Collection[str]:
    """Attributes that elements are given where they lack them."""
    return ATTRIBUTES.get("reading" if path[0] == "sensor" else path[-1], {})


def test_every_attribute_of_mjcf_is_drawn_or_refused_or_without_physics() -> None:
    lacking = [(path, attribute) for path, attribute in schema() if not is_known(path, attribute)]
    lacking = [(path, attribute) for path, attribute in lacking if attribute not in set_on(path)]
    assert not [f"{'/'.join(path)} {attribute}" for path, attribute in lacking if (path, attribute) not in drawn()]


@pytest.mark.parametrize("feature", sorted(set(REFUSED.values())))
def test_what_is_not_drawn_is_refused(feature: str) -> None:
    with pytest.raises(UnsupportedModelError, match=FEATURES[feature].words):
        load_model(model_with(feature))


def test_equal_seeds_enrich_models_alike_and_most_of_them_compile() -> None:
    texts = [enrich(generate(f"these:{k}"), Draw(f"these:{k}:more")) for k in range(100)]
    assert texts == [enrich(generate(f"these:{k}"), Draw(f"these:{k}:more")) for k in range(100)]
    compiled = 0
    for text in texts:
        try:
            mujoco.MjModel.from_xml_string(text)
        except ValueError:
            continue
        compiled += 1
    assert compiled > 75


def test_attributes_are_those_of_the_schema() -> None:
    known: dict[str, set[str]] = {}
    for path, attribute in schema():
        known.setdefault(path[-1] if path else "", set()).add(attribute)
    for kind, attributes in ATTRIBUTES.items():
        element = {"reading": "gyro", "polynomial": "joint"}.get(kind, kind)
        usable = known[element] | ({"polycoef", "solref", "solimp"} if kind == "polynomial" else set())
        assert set(attributes) <= usable, kind


def test_a_hull_that_lacks_corners_of_a_small_mesh_is_not_compared() -> None:
    corners = "0.1 0 0  -0.1 0 0  0 0.12 0  0 -0.12 0  0 0 0.1  0 0 -0.1  0.08 0.08 0.08"
    text = """
    <mujoco><asset><mesh name="m" vertex="{}" maxhullvert="{}"/></asset>
    <worldbody><geom type="plane" size="1 1 1"/>
    <body pos="0 0 0.05"><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>
    """
    kinds = {
        most: judge(text.format(corners, most), backend="host", dtypes=("float64",), states=4, seed=0)
        for most in (5, 7)
    }
    assert kinds[5].kind == "undecided"
    assert "hull lacks corners" in kinds[5].reasons[0]
    assert kinds[7].kind == "agrees"
