"""Worlds of enriched models that differ in parameters: results are those of models compiled with these values."""

from __future__ import annotations

from copy import copy

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.check.states import STATE_ARRAYS, Sampler
from simengine.errors import ModelError
from simengine.fuzz.draw import Draw
from simengine.fuzz.enrich import enrich
from simengine.fuzz.generate import generate
from simengine.fuzz.limits import too_many_sweeps, without_comparison
from simengine.model.model import Model
from simengine.model.params import PARAMS, WorldParameters
from tests.helpers.params import turns_or_shifts, unmark

WORLDS = 3
FIELDS = ("nefc", "qacc", "qfrc_bias", "qacc_smooth", "qfrc_passive", "actuator_force", "sensordata")
NEARLY_KEPT = ("geom_size", "jnt_range")
MOVED = ("gravity", "wind", "qpos_spring")
MOST_DOFS = 40


def enriched(seed: str) -> mujoco.MjModel | None:
    """A model whose solvers converge; None if it cannot be compared."""
    try:
        mj = mujoco.MjModel.from_xml_string(enrich(generate(seed), Draw(f"{seed}:more")))
    except ValueError:
        return None
    if mj.nv > MOST_DOFS or without_comparison(mj) or too_many_sweeps(mj):
        return None
    mj.opt.tolerance = mj.opt.ls_tolerance = 1e-14
    mj.opt.iterations, mj.opt.noslip_tolerance = 300, 0.0
    unmark(mj)
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    return mj


def some_parameters(model: Model, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """About half of the parameters of a model, (WORLDS, ...). The first world has the model's own values."""
    known, values = WorldParameters(model.table), {}
    for name in PARAMS:
        try:
            default = known.default(name)
        except ValueError:
            continue
        if not default.size or rng.random() < 0.5:
            continue
        spread = 0.05 if name in NEARLY_KEPT else 0.4
        factors = rng.uniform(1 - spread, 1 + spread, (WORLDS, *default.shape))
        if name == "body_inertia":
            factors[:] = factors[..., :1]  # one factor, so that the triangle inequality holds
        values[name] = default * factors
        if name in MOVED:
            values[name] += rng.uniform(-0.3, 0.3, values[name].shape)
        if name == "qpos0":
            values[name] = default + rng.uniform(-0.1, 0.1, values[name].shape) * turns_or_shifts(model.mj)
        values[name][0] = default
    return values


def compiled(mj: mujoco.MjModel, values: dict[str, np.ndarray], world: int) -> Model:
    """The model with one world's values, and with what MuJoCo derives from them."""
    own = copy(mj)
    for name, array in values.items():
        if hasattr(own.opt, name):
            setattr(own.opt, name, array[world])
        else:
            getattr(own, name)[...] = array[world]
    mujoco.mj_setConst(own, mujoco.MjData(own))
    return load_model(own)


def results(model: Model, worlds: int, state: dict[str, np.ndarray], **params: np.ndarray) -> dict[str, np.ndarray]:
    """Some fields of worlds in one state."""
    with Simulation(model, worlds, backend="host", dtype="float64") as sim:
        sim.set_state(**state)
        sim.set_params(**params)
        sim.forward()
        has = {"actuator_force": model.nu, "sensordata": model.mj.nsensordata}
        return {name: np.array(sim.field(name)) for name in FIELDS if has.get(name, 1)}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_worlds_that_differ_are_those_of_compiled_models(part: int) -> None:
    compared = 0
    for k in range(12 * part, 12 * part + 12):
        mj, rng = enriched(f"worlds:{k}"), np.random.default_rng(k)
        if mj is None:
            continue
        try:
            model = load_model(mj)
        except ModelError:
            continue
        drawn, values = Sampler(mj, k).random(), some_parameters(model, rng)
        state = {name: value for name in STATE_ARRAYS if (value := getattr(drawn, name)).size and name != "eq_active"}
        ours = results(model, WORLDS, state, **values)
        for world in range(WORLDS):
            for name, theirs in results(compiled(mj, values, world), 1, state).items():
                scale = max(1.0, float(np.abs(theirs).max(initial=0.0)))
                np.testing.assert_allclose(
                    ours[name][world] / scale, theirs[0] / scale, atol=1e-6, err_msg=f"{k} {name}"
                )
        compared += 1
    assert compared > 4
