"""Fields of the model table that follow from parameters of worlds equal those of a model loaded with these values."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

from simengine.model import load_table
from simengine.model.params import MASSES, PARAMS, WorldParameters, together
from tests.helpers.params import turns_or_shifts, unmark
from tests.models import OWN, gymnasium_path

NAMES = (
    "ant",
    "swimmer",
    "sunken",
    "tendons",
    "actuators",
    "ropes",
    "glider",
    "linkage",
    "ragdoll",
    "contact_parameters",
)


@pytest.mark.parametrize("name", NAMES)
def test_the_table_is_that_of_a_model_with_these_values(name: str) -> None:
    """All of it: what no parameter is said to change is unchanged."""
    model = load_table(OWN[name] if name in OWN else gymnasium_path(name))
    meaning, rng = WorldParameters(model), np.random.default_rng(0)
    for param in PARAMS:
        try:
            default = meaning.default(param)
        except ValueError:
            continue
        value = default * rng.uniform(0.5, 1.5, default.shape)
        if param == "qpos0":
            value = default + rng.uniform(-1, 1, default.shape) * turns_or_shifts(model.mj)
        other = changed(model.mj, param, value)
        given = {p: (value if p == param else meaning.default(p))[None] for p in together([param])}
        derived = meaning.derive(np, given)
        for field, known in model.arrays.items():
            # mj_setConst leaves the first alone, and the second is a bound by the sizes that the model has
            if field in ("stat_meaninertia", "body_leastweight"):
                continue
            ours = np.reshape(derived[field], known.shape) if field in derived else known
            worst = max(1.0, np.abs(other[field]).max(initial=0.0))
            np.testing.assert_allclose(ours, other[field], rtol=0, atol=1e-10 * worst, err_msg=f"{param}: {field}")


def changed(mj: mujoco.MjModel, param: str, value: np.ndarray) -> dict[str, np.ndarray]:
    """The table of a model with another value of a parameter."""
    other = copy.copy(mj)
    unmark(other)
    if value.ndim == 0:
        setattr(other.opt, param, float(value))
    else:
        getattr(other.opt if hasattr(other.opt, param) else other, param)[...] = value
    mujoco.mj_setConst(other, mujoco.MjData(other))
    return load_table(other).arrays


@pytest.mark.parametrize("name", NAMES)
def test_the_models_own_masses_give_its_table(name: str) -> None:
    model = load_table(OWN[name] if name in OWN else gymnasium_path(name))
    meaning = WorldParameters(model)
    if "actuators" in name or "ropes" in name:  # muscles, whose forces follow
        with pytest.raises(ValueError, match="the peak forces of its muscles follow from its inertia"):
            meaning.default("body_mass")
        return
    for field, values in meaning.derive(np, {param: meaning.default(param)[None] for param in MASSES}).items():
        known = model.arrays[field]
        scale = max(1e-9, np.abs(known).max(initial=0.0))
        np.testing.assert_allclose(values.reshape(known.shape), known, rtol=0, atol=1e-9 * scale, err_msg=field)


CHAIN = """<mujoco><worldbody>
    <body><freejoint/><inertial pos="{0} 0 0.02" mass="2" diaginertia="0.1 0.2 0.25"/>
    <body pos="0.3 0 0"><joint name="a" axis="0 1 0" ref="{1}"/>
    <inertial pos="0 {0} 0.1" quat="1 0.2 0 0.1" mass="1" diaginertia="0.01 0.02 0.02"/>
    <body><joint name="b" type="slide" axis="1 0 0" ref="{1}"/><geom size="0.1" pos="0.1 0 0"/></body></body></body>
    <body name="c" pos="2 0 0"><joint type="ball"/>
    <inertial pos="{0} 0 0" mass="1" diaginertia="0.01 0.02 0.02"/></body>
    <body pos="4 0 0"><joint type="slide" axis="0 1 0"/><inertial pos="{2} 0 0" mass="1" diaginertia="1 1 1"/></body>
    </worldbody>
    <tendon><fixed name="t" frictionloss="1"><joint joint="a" coef="2"/><joint joint="b" coef="-1"/></fixed></tendon>
    <equality><tendon tendon1="t"/></equality><sensor><framepos objtype="body" objname="c"/></sensor></mujoco>"""


@pytest.mark.parametrize("slider", [0.0, 0.05])
def test_centres_of_mass_and_references_are_those_of_other_models(slider: float) -> None:
    """Of models that were compiled with them, not changed afterwards."""
    one, other = (load_table(CHAIN.format(*numbers)) for numbers in ((0.1, 0.0, 0.0), (-0.15, 0.4, slider)))
    meaning = WorldParameters(one)
    given = {name: meaning.default(name)[None] for name in together(["body_ipos"])}
    given |= {
        "body_ipos": other.body_ipos[None],
        "qpos0": other.mj.qpos0[None],
        "qpos_spring": other.mj.qpos_spring[None],
    }
    derived = meaning.derive(np, given)
    for field, known in other.arrays.items():
        if field.startswith(("tendon_lengthspring", "sensor_quat")):
            continue
        ours = np.reshape(derived[field], known.shape) if field in derived else one.arrays[field]
        np.testing.assert_allclose(ours, known, rtol=1e-10, atol=1e-12, err_msg=field)


@pytest.mark.parametrize(
    ("tendon", "param", "words"),
    [
        ('frictionloss="1"', "geom_size", "tendons with constraint rows or springs wrap its geoms"),
        ('limited="true" range="0 2"', "geom_size", "tendons with constraint rows or springs wrap its geoms"),
        ('stiffness="2"', "geom_size", "tendons with constraint rows or springs wrap its geoms"),
        ('stiffness="2"', "qpos_spring", "springs of its tendons rest where its joints' do"),
        ('stiffness="2" springlength="0.1"', "geom_size", ""),
        ('stiffness="2" springlength="0.1"', "qpos_spring", ""),
        ("", "geom_size", ""),
    ],
)
def test_lengths_at_rest_that_would_follow_are_refused(tendon: str, param: str, words: str) -> None:
    model = load_table(
        f"""<mujoco><worldbody><geom name="pulley" size="0.1"/><site name="a" pos="0.2 0 0.3"/>
        <body pos="0 0 0.5"><joint axis="0 1 0" stiffness="1"/><geom size="0.1" pos="0.3 0 0" contype="0"/>
        <site name="b" pos="0.2 0 -0.8"/></body></worldbody>
        <tendon><spatial {tendon}><site site="a"/><geom geom="pulley"/><site site="b"/></spatial></tendon></mujoco>"""
    )
    meaning = WorldParameters(model)
    if not words:
        meaning.default(param)
        return
    with pytest.raises(ValueError, match=words):
        meaning.default(param)
