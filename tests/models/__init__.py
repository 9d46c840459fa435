"""Models that the tests share: Gymnasium's installed MJCF files, and small ones that exercise one group of features.

The small ones lie here as MJCF files, so that ``simengine check tests/models/NAME.xml`` shows one of them in full.
"""

from __future__ import annotations

from pathlib import Path

import gymnasium
import mujoco
import pytest

GYMNASIUM = (
    *("ant", "half_cheetah", "hopper", "walker2d", "swimmer"),
    *("inverted_pendulum", "inverted_double_pendulum"),
)
"""Gymnasium's models that every stage is tested on, by file name."""

NAMES = (
    *("mixed_tree", "pile", "contact_parameters", "two_arms", "parallel_capsules", "sunken", "tendons", "actuators"),
    *("crates", "ragdoll", "glider", "dual", "linkage", "ropes", "rollers"),
)
"""Small models of this folder, by file name."""

OWN = {name: Path(__file__).with_name(f"{name}.xml").read_text() for name in (*NAMES, "terrain", "rubble")}
"""Small models by name, as MJCF text. JAX takes too long on the last two for every test to use them."""

ALL = (*GYMNASIUM, *NAMES)

_TOO_MUCH_FOR_JAX = (
    *("half_cheetah", "hopper", "walker2d", "inverted_pendulum", "inverted_double_pendulum"),
    *("two_arms", "parallel_capsules", "sunken"),
)

COMPILED_IN_JAX = tuple(n for n in ALL if n not in _TOO_MUCH_FOR_JAX)
"""Models whose whole dynamics JAX compiles for the first stage of the tests. The others take no branch of a form that
these, or the half cheetah that steps in `tests/functional`, do not take."""

_ALSO_IN_SINGLE = ("ant",)


def _marks(slow: bool) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if slow else []


SOME_IN_DOUBLE_FEW_IN_SINGLE = [
    *(pytest.param(name, "float64", id=f"{name}-float64", marks=_marks(name not in COMPILED_IN_JAX)) for name in ALL),
    *(pytest.param(name, "float32", id=f"{name}-float32", marks=_marks(name not in _ALSO_IN_SINGLE)) for name in ALL),
]
"""Names and precisions. JAX compiles the whole dynamics for each. Other models are too slow in single precision."""


def gymnasium_path(name: str) -> Path:
    """Installed MJCF file of one of Gymnasium's models."""
    return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"


def compile_model(name: str) -> mujoco.MjModel:
    """A model of `ALL`, compiled by MuJoCo."""
    if name in OWN:
        return mujoco.MjModel.from_xml_string(OWN[name])
    return mujoco.MjModel.from_xml_path(str(gymnasium_path(name)))
