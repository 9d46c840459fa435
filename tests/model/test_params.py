"""What follows from parameters of worlds: fields of the model table, as loading a model with these values has them."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

from simengine.model import load_model
from simengine.model.params import MASSES, PARAMS, WorldParameters, together
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
    model = load_model(OWN[name] if name in OWN else gymnasium_path(name))
    meaning, rng = WorldParameters(model), np.random.default_rng(0)
    for param in PARAMS:
        try:
            default = meaning.default(param)
        except ValueError:
            continue
        value = default * rng.uniform(0.5, 1.5, default.shape)
        other = changed(model.mj, param, value)
        given = {p: (value if p == param else meaning.default(p))[None] for p in together([param])}
        derived = meaning.derive(np, given)
        for field, known in model.arrays.items():
            if field == "stat_meaninertia":  # mj_setConst leaves it alone
                continue
            ours = np.reshape(derived[field], known.shape) if field in derived else known
            worst = max(1.0, np.abs(other[field]).max(initial=0.0))
            np.testing.assert_allclose(ours, other[field], rtol=0, atol=1e-10 * worst, err_msg=f"{param}: {field}")


def changed(mj: mujoco.MjModel, param: str, value: np.ndarray) -> dict[str, np.ndarray]:
    """The table of a model with another value of a parameter."""
    other = copy.copy(mj)
    if value.ndim == 0:
        setattr(other.opt, param, float(value))
    else:
        getattr(other.opt if hasattr(other.opt, param) else other, param)[...] = value
    mujoco.mj_setConst(other, mujoco.MjData(other))
    return load_model(other).arrays


@pytest.mark.parametrize("name", NAMES)
def test_the_models_own_masses_give_its_table(name: str) -> None:
    model = load_model(OWN[name] if name in OWN else gymnasium_path(name))
    meaning = WorldParameters(model)
    if "actuators" in name or "ropes" in name:  # muscles, whose forces follow
        with pytest.raises(ValueError, match="the peak forces of its muscles follow from its inertia"):
            meaning.default("body_mass")
        return
    for field, values in meaning.derive(np, {param: meaning.default(param)[None] for param in MASSES}).items():
        known = model.arrays[field]
        scale = max(1e-9, np.abs(known).max(initial=0.0))
        np.testing.assert_allclose(values.reshape(known.shape), known, rtol=0, atol=1e-9 * scale, err_msg=field)


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
    model = load_model(
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
