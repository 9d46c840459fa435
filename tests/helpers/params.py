"""Worlds that differ in every parameter in which they may differ, and the same worlds as compiled models."""

from __future__ import annotations

from functools import cache
from typing import Any

import mujoco
import numpy as np

from simengine import Model, Simulation, load_model
from simengine.model.params import PARAMS, WorldParameters
from tests.helpers.islands import heap
from tests.models import compile_model

WORLDS = 4


@cache
def model(name: str) -> Model:
    return load_model(fresh(name))


def fresh(name: str) -> mujoco.MjModel:
    """A copy of a model that may be changed. Its solver converges for any mean inertia, which scales the tolerance."""
    mj = mujoco.MjModel.from_xml_string(heap(12)) if name == "heap" else compile_model(name)
    mj.opt.tolerance = 1e-14
    mj.opt.iterations = 200
    return mj


def allowed(name: str) -> list[str]:
    """Parameters in which worlds of a model may differ."""
    known = WorldParameters(model(name).table)
    names = []
    for param in PARAMS:
        try:
            if known.default(param).size:
                names.append(param)
        except ValueError:
            continue
    return names


def drawn(name: str) -> dict[str, np.ndarray]:
    """Random values around the model's for all parameters, (WORLDS, ...). The first world has the model's values."""
    rng, values = np.random.default_rng(5), {}
    for param in allowed(name):
        default = WorldParameters(model(name).table).default(param)
        spread = 0.05 if param in ("geom_size", "jnt_range") else 0.5
        factors = rng.uniform(1 - spread, 1 + spread, (WORLDS, *default.shape))
        if param == "body_inertia":
            factors[:] = factors[..., :1]  # one factor, so that the triangle inequality holds
        values[param] = default * factors
        if param in ("gravity", "wind", "qpos_spring"):
            values[param] += rng.uniform(-0.3, 0.3, values[param].shape)
        if param == "qpos0":
            values[param] = default + rng.uniform(-0.1, 0.1, values[param].shape) * turns_or_shifts(model(name).mj)
        if param in ("dof_damping", "dof_armature", "jnt_stiffness"):
            values[param] += rng.uniform(0, 0.05, values[param].shape)
        values[param][0] = default
    return values


def turns_or_shifts(mj: mujoco.MjModel) -> np.ndarray:
    """Which coordinates are those of hinges and slides, (nq,) bool."""
    plain = np.zeros(mj.nq, bool)
    plain[mj.jnt_qposadr[mj.jnt_type >= int(mujoco.mjtJoint.mjJNT_SLIDE)]] = True
    return plain


def unmark(mj: mujoco.MjModel) -> None:
    """Remove the compiler's marks of geoms and sites in the inertial frame of their body.

    MuJoCo would move a marked geom or site together with the inertial frame.
    """
    for marks in (mj.body_sameframe, mj.geom_sameframe, mj.site_sameframe):
        marks[:] = 0


def compiled(name: str, values: dict[str, np.ndarray], world: int) -> Model:
    """The model with one world's values, and with the constants that MuJoCo computes from them."""
    mj = fresh(name)
    unmark(mj)
    for param, array in values.items():
        if hasattr(mj.opt, param):
            setattr(mj.opt, param, array[world])
        else:
            getattr(mj, param)[...] = array[world]
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    return load_model(mj)


def states(name: str) -> dict[str, np.ndarray]:
    """A state of one world after MuJoCo has let the model fall, and random controls."""
    mj = fresh(name)
    data = mujoco.MjData(mj)
    rng = np.random.default_rng(2)
    data.ctrl[:] = rng.uniform(-0.5, 0.5, mj.nu)
    mujoco.mj_step(mj, data, 120)
    return {"qpos": data.qpos.copy(), "qvel": data.qvel.copy(), "ctrl": data.ctrl.copy()}


def simulated(of: Model, worlds: int, state: dict[str, np.ndarray], **options: Any) -> Simulation:
    """A simulation of worlds in equal states, on the host unless the options name another backend."""
    sim = Simulation(of, worlds, **{"backend": "host", **options})
    sim.set_state(**state)
    return sim


def errors(name: str, dtype: str, backend: str) -> list[float]:
    """Largest relative error of accelerations and bias forces of each world against its compiled model."""
    values, state = drawn(name), states(name)
    options = {"dtype": dtype, "backend": backend}
    sim = simulated(model(name), WORLDS, state, **options)
    sim.set_params(**values)
    sim.forward()
    host = sim.groups[0].to_host
    ours = {field: host(sim.field(field)) for field in ("nefc", "qacc", "qfrc_bias", "qacc_smooth")}
    assert all(np.abs(ours["qacc"][world] - ours["qacc"][0]).max() > 0.01 for world in range(1, WORLDS))
    found = []
    for world in range(WORLDS):
        other = simulated(compiled(name, values, world), 1, state, **options)
        other.forward()
        theirs = {field: host(other.field(field))[0] for field in ours}
        assert ours["nefc"][world] == theirs["nefc"]
        found.append(
            max(float(np.abs(ours[f][world] - theirs[f]).max() / max(1.0, np.abs(theirs[f]).max())) for f in ours)
        )
    return found
