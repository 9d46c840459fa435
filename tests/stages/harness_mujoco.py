"""MuJoCo's fields for the sampled states, in the shape of the shard's part of the engine's fields."""

from __future__ import annotations

from functools import cache

import mujoco
import numpy as np

from simengine.model import ModelTable
from simengine.model.sensors import measured_in
from simengine.physics.stage import Stage
from simengine.state.fields import FIELD
from tests.helpers.oracle import MATRICES, STATE_FIELDS, Sample, collect, oracle_model
from tests.stages.harness import Memory
from tests.stages.harness_chain import decided

_STATE = (*Sample._fields, "qacc_warmstart")


@cache
def stepped(name: str, integrator: int, forward: bool) -> list[mujoco.MjData]:
    """MuJoCo's data after mj_forward and mj_rnePostConstraint, or after mj_step with an integrator.

    There is one for each sampled state that lies on no margin.
    """
    mj, _ = oracle_model(name)
    keep, states = decided(name)
    out = []
    kept_integrator = int(mj.opt.integrator)
    mj.opt.integrator = integrator
    for i in range(len(keep)):
        data = mujoco.MjData(mj)
        data.time = states["nstep"][i] * mj.opt.timestep
        for field in _STATE:
            getattr(data, field)[:] = states[field][i]
        if forward:
            mujoco.mj_forward(mj, data)
            mujoco.mj_rnePostConstraint(mj, data)
            mujoco.mj_subtreeVel(mj, data)
        else:
            mujoco.mj_step(mj, data)
        out.append(data)
    mj.opt.integrator = kept_integrator
    return out


@cache
def forward_fields(name: str) -> dict[str, np.ndarray]:
    """Fields after mj_forward, (n, ...). Contacts and rows of all states are concatenated."""
    mj, model = oracle_model(name)
    each = [collect(mj, data) for data in stepped(name, int(mj.opt.integrator), True)]
    out = {f: np.stack([fields[f] for fields in each]) for f in (*STATE_FIELDS, *MATRICES)}
    arenas = ("contact_dist", "contact_pos", "contact_frame", *(k for k in each[0] if k.startswith("efc_")))
    out |= {f: np.concatenate([fields[f] for fields in each]) for f in arenas}
    datas = stepped(name, int(mj.opt.integrator), True)
    out["ncon"] = np.array([d.ncon for d in datas])
    out["nefc"] = np.array([d.nefc for d in datas])
    out["contact_efc_address"] = np.concatenate([np.array(d.contact.efc_address) for d in datas])
    pairs = {(int(a), int(b)): c for c, (a, b) in enumerate(zip(model.cand_geom1, model.cand_geom2, strict=True))}
    geoms = [tuple(int(g) for g in pair) for d in datas for pair in np.array(d.contact.geom).reshape(-1, 2)]
    out["contact_cand"] = np.array([pairs[g] for g in geoms], int)
    out |= {f: np.concatenate([getattr(d, f) for d in datas]) for f in ("efc_type", "efc_id")}
    return out


def sensor_entries(model: ModelTable, stage: Stage) -> np.ndarray:
    """Which entries of sensordata a stage of sensors writes, (nsensordata,) bool."""
    return np.repeat(measured_in(model.mj, stage.name.removeprefix("sensor_")), model.mj.sensor_dim)


def mujoco_expected(name: str, memory: Memory, outputs: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The outputs of a stage that MuJoCo has too, in the shape of the shard's part of the fields."""
    fields = forward_fields(name)
    out = {n: fields[n] for n in outputs if n in fields}
    if "efc_J" in out:
        pad = memory.own("efc_J").shape[1] - memory.model.nv
        out["efc_J"] = np.pad(out["efc_J"], ((0, 0), (0, pad)))
    return {n: v.reshape(memory.own(n).shape) for n, v in out.items() if n in FIELD}
