"""The expected outputs of each stage, computed from the same inputs by its JAX form or by NumPy.

`expected(stage, memory)` returns float64 arrays in the shape of the shard's part of the fields. JAX forms have fixed
slots for contacts and rows. This file spreads arena entries over the slots and gathers them again, in order. JAX takes
long to compile each stage. Results that follow from the state alone therefore come from one evaluation of all stages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import numpy as np

from simengine.model.pair_types import PAIR_TYPES
from simengine.physics.actuation.actuators_jax import advance_activation
from simengine.physics.constraints.row_layout_jax import LIMIT_JOINT, LIMIT_TENDON, row_layout
from simengine.physics.integration.joint_space_jax import advance
from simengine.physics.integration.rk4_jax import REACH, WEIGHT
from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math import tree_jax as tree
from simengine.physics.stage import Stage
from simengine.physics.tendons.lengths_jax import length_rows
from simengine.plan.stages import INTEGRATORS, SOLVERS, STAGES
from simengine.state.fields import (
    COLUMNS,
    FIELD,
    NUM_COLUMNS,
    NUM_SUMS,
    ROW_CLASSES,
    ROW_SPACES,
    WORLD_ARENAS,
    WORLD_STATUS,
)
from tests.helpers.once import once
from tests.helpers.oracle import jax_fields, oracle_model, quick_jit
from tests.stages.harness import FRONT, Memory
from tests.stages.harness_chain import decided, prepared, serves

Fields = dict[str, np.ndarray]
RETURNS = {
    "constraint": ("efc_active", "efc_J", "efc_pos", "efc_margin", "efc_D", "efc_aref"),
    **dict.fromkeys(SOLVERS, ("qacc", "efc_force", "qfrc_constraint")),
    "adhesion": ("actuator_velocity", "actuator_moment"),
    "noslip": ("qacc", "efc_force", "qfrc_constraint"),
    "constraint_general": ("efc_active", "efc_J", "efc_pos", "efc_margin", "efc_D", "efc_aref"),
    "euler": ("qpos", "qvel"),
    "euler_general": ("qpos", "qvel"),
    "fluid": ("qfrc_fluid", "qfrc_passive"),
    "fluid_general": ("qfrc_fluid", "qfrc_passive"),
    "gravcomp": ("qfrc_gravcomp", "qfrc_passive", "qfrc_actuator"),
    "implicit": ("qpos", "qvel"),
    "implicitfast": ("qpos", "qvel"),
    "tendon_passive": ("qfrc_passive",),
    "tendon_forces": ("cfrc_ext",),
    "sensor_vel": ("sensordata",),
    "sensor_acc": ("sensordata",),
    "sensor_distance": ("sensordata",),
}
"""Outputs of JAX forms that differ from the outputs of their stages."""

_STAGE = {stage.name: stage for stage in STAGES}

_SUMMED = {name for stage in STAGES for name in stage.updates}
"""Fields to which several stages add. A complete evaluation has only their sum."""

_SOLVED = {"qacc", "efc_force", "qfrc_constraint", "cfrc_ext"}
"""Fields that depend on the warm start if the solver does not converge fully."""


def owner(entries: np.ndarray) -> np.ndarray:
    """World of each arena entry, given the number of entries of each world."""
    return np.repeat(np.arange(len(entries)), entries)


def contact_slots(memory: Memory) -> tuple[np.ndarray, np.ndarray]:
    """World and slot of each contact of the arena. Contacts of a pair use the pair's slots from the first on."""
    world = owner(memory.own("ncon"))
    cand = memory.own("contact_cand")
    place = np.arange(len(cand)) - memory.own("con_adr")[world]
    starts = np.append(True, (np.diff(cand) != 0) | (np.diff(world) != 0))[: len(cand)]  # of the contacts of a pair
    place -= place[starts][np.cumsum(starts) - 1] if len(cand) else 0
    return world, memory.model.cand_slot[cand] + place


def row_slots(memory: Memory) -> tuple[np.ndarray, np.ndarray]:
    """World and slot, in the row layout of the JAX forms, of each row of the arena."""
    model, world = memory.model, owner(memory.own("nefc"))
    kind, ident = memory.own("efc_type"), memory.own("efc_id").copy()
    layout, contact = row_layout(model), kind > LIMIT_TENDON
    ident[contact] = contact_slots(memory)[1][memory.own("con_adr")[world[contact]] + ident[contact]]
    first = np.full((LIMIT_TENDON + 2, layout.id.max(initial=0) + 1), layout.type.size)
    np.minimum.at(first, (np.minimum(layout.type, LIMIT_TENDON + 1), layout.id), np.arange(layout.type.size))
    keys = np.stack([world, np.minimum(kind, LIMIT_TENDON + 1), ident])
    begins = np.flatnonzero(np.diff(keys, axis=1, prepend=-1).any(axis=0))
    within = np.arange(kind.size) - np.repeat(begins, np.diff(begins, append=kind.size))
    # the sign of a row's Jacobian tells which side of the limit it is for
    limit = np.flatnonzero(~contact & (kind >= LIMIT_JOINT))
    tendon, own = kind[limit] == LIMIT_TENDON, ident[limit]
    slope = length_rows(model)[1][np.where(tendon, 0, own)]
    slope[tendon] = memory.own("ten_J")[world[limit[tendon]], own[tendon]]
    along = (memory.own("efc_J")[limit, : model.nv] * slope).sum(axis=1)
    within[limit] = along < 0
    return world, first[keys[1], ident] + within


def spread(values: np.ndarray, where: tuple[np.ndarray, np.ndarray], n: int, slots: int, fill: float) -> np.ndarray:
    """Arena entries in their slots, (n, slots, ...). Other slots have the value `fill`."""
    out = np.full((n, slots, *values.shape[1:]), fill, values.dtype)
    out[where] = values
    return out


def ref_input(name: str, memory: Memory) -> np.ndarray:
    """An argument of a JAX form, (num_worlds, ...) in float64. Arena entries are spread over slots."""
    n, model = memory.num_worlds, memory.model
    if name == "time":
        return memory.own("nstep") * float(model.opt_timestep)
    if name == "contact_active":
        world, slot = contact_slots(memory)
        return spread(np.ones(len(world), bool), (world, slot), n, model.nslot, False)
    if name == "efc_active":
        world, slot = row_slots(memory)
        return spread(np.ones(len(world), bool), (world, slot), n, model.nefc_max, False)
    values = memory.own(name).astype(np.float64)
    if FIELD[name].space == "contact":
        return spread(values, contact_slots(memory), n, model.nslot, 1.0)
    if FIELD[name].space in ROW_SPACES:
        values = values[:, : model.nv] if name == "efc_J" else values
        return spread(values, row_slots(memory), n, model.nefc_max, 0.0)
    return values


def evaluated(model_name: str, memory: Memory, name: str) -> np.ndarray:
    """A field of one evaluation of all JAX forms from the worlds' states, (num_worlds, ...)."""
    keep = decided(model_name)[0][: memory.num_worlds]
    return jax_fields(model_name, "float64")[name][keep]


def follows_from_the_state(stage: Stage, names: tuple[str, ...]) -> bool:
    """Whether one evaluation of all stages gives the outputs `names` of a stage."""
    if stage.name in (*SOLVERS, *INTEGRATORS):
        return False
    return not _SUMMED & {*names, *stage.updates} and not _SOLVED & set(stage.reads)


WITHOUT_FORM = (*PAIR_TYPES, "collision", "collision_general", "scan", "guard", "rk4", "activation", "unconstrained")
"""Stages whose outputs do not come from a JAX form of their own."""


OWN = ("unconstrained", "acc_bias", "activation")
"""Stages whose results MuJoCo has not, or has not for every world."""


def is_part(model_name: str, stage: Stage) -> bool:
    """Whether a stage computes a part of MuJoCo's field, to which others add theirs or which others improve."""
    model = oracle_model(model_name)[1]
    if model.opt_noslip_iterations and stage.name in ("noslip", *SOLVERS):
        return True
    if stage.name == "transmission" and model.has_adhesion:
        return True
    return stage.name in ("passive", "passive_general", "rne_post_general") and model.npath > 0


def in_mujoco(model_name: str, stage: Stage) -> bool:
    """Whether MuJoCo has the results of a stage, for every world."""
    return stage.name not in OWN and not is_part(model_name, stage)


def runs_alone(stage: Stage) -> bool:
    """Whether a stage has a JAX form whose outputs one evaluation of all stages does not give."""
    return stage.name not in WITHOUT_FORM and not follows_from_the_state(stage, RETURNS.get(stage.name, stage.writes))


def is_implied(model_name: str, stage: Stage) -> bool:
    """Whether the JAX form of a stage runs alone, and both it and the kernel are compared with MuJoCo elsewhere.

    What a stage updates is not compared there.
    """
    known = in_mujoco(model_name, stage) and stage.name not in INTEGRATORS and not stage.updates
    return known and runs_alone(stage)


@cache
def forms_alone(model_name: str, implied: bool) -> dict[str, np.ndarray]:
    """Outputs, as "STAGE NUMBER", of the JAX forms that run alone on the fields of `prepared`, those that are implied
    or the others. They are one program, which compiles in less time than one for each."""
    return once(f"forms-{model_name}-{implied}", lambda: _computed_forms(model_name, implied))


def _computed_forms(model_name: str, implied: bool) -> dict[str, np.ndarray]:
    model, memory = oracle_model(model_name)[1], prepared(model_name, "float64")
    alone = [stage for stage in STAGES if runs_alone(stage) and serves(stage, model)]
    forms = {stage.name: stage.load_jax() for stage in alone if is_implied(model_name, stage) == implied}
    names = {stage: tuple(inspect.signature(form).parameters)[1:] for stage, form in forms.items()}
    inputs = {name: ref_input(name, memory) for name in sorted({n for own in names.values() for n in own})}

    def outputs(values: dict[str, jax.Array]) -> dict[str, tuple[jax.Array, ...]]:
        return {stage: form(model, *(values[n] for n in names[stage])) for stage, form in forms.items()}

    found = quick_jit(jax.vmap(outputs))(inputs)
    return {f"{stage} {k}": np.asarray(value) for stage, own in found.items() for k, value in enumerate(own)}


def by_jax(stage: Stage, model_name: str, memory: Memory) -> Fields:
    """Outputs of a stage's JAX form in float64, on the fields of `prepared`."""
    returned = RETURNS.get(stage.name, stage.writes)
    if follows_from_the_state(stage, returned):
        out = {name: evaluated(model_name, memory, name) for name in returned}
    else:
        found = forms_alone(model_name, is_implied(model_name, stage))
        out = {name: found[f"{stage.name} {k}"] for k, name in enumerate(returned)}
        assert f"{stage.name} {len(returned)}" not in found
    if stage.name in ("constraint", "constraint_general"):
        # the active slots, in their order, are the arena's rows
        active = out.pop("efc_active")
        assert (active.sum(axis=1) == memory.own("nefc")).all(), "the JAX form has other rows than were counted"
        out = {k: v[active] for k, v in out.items()}
        pad = memory.own("efc_J").shape[1] - memory.model.nv
        out["efc_J"] = np.pad(out["efc_J"], ((0, 0), (0, pad)))
    elif stage.name in ("noslip", *SOLVERS):
        out["efc_force"] = out["efc_force"][row_slots(memory)]
    return out


def pair_by_jax(stage: Stage, model_name: str, memory: Memory) -> Fields:
    """Contacts of one pair type in the whole arena. Contacts of other types are NaN."""
    other = memory.model.cand_type[memory.own("contact_cand")] != PAIR_TYPES.index(stage.name)
    listed = evaluated(model_name, memory, "contact_active")
    assert (listed.sum(axis=1) == memory.own("ncon")).all(), "the JAX form has other contacts than were counted"
    out = {n: evaluated(model_name, memory, n)[listed] for n in ("contact_dist", "contact_pos", "contact_frame")}
    for values in out.values():
        values[other] = np.nan
    return out


def collision_by_jax(model_name: str, memory: Memory) -> Fields:
    """Counts, computed from the fixed slots of the JAX forms."""
    model, n = memory.model, memory.num_worlds
    listed, rows = (evaluated(model_name, memory, name) for name in ("contact_active", "efc_active"))
    per_cand = np.zeros((n, model.ncand), int)
    np.add.at(per_cand, (slice(None), model.slot_cand), listed)
    ncon, nefc = per_cand.sum(axis=1), rows.sum(axis=1)
    counts = np.zeros((NUM_COLUMNS, n), int)
    counts[:NUM_SUMS] = ncon, nefc
    for code, pair in enumerate(PAIR_TYPES):
        counts[COLUMNS.index(pair)] = per_cand[:, model.cand_type == code].any(axis=1)
    which = np.searchsorted(ROW_CLASSES, nefc)
    counts[COLUMNS.index("rows_0") + which, np.arange(n)] = 1
    counts[COLUMNS.index("rows_bounded")] = which < len(ROW_CLASSES)
    return {"ncon": ncon, "nefc": nefc, "counts": counts.ravel()}


def scan_by_numpy(memory: Memory) -> Fields:
    """Prefix sums of the first count columns, and lists of worlds for the others."""
    n = memory.num_worlds
    counts = memory.own("counts").reshape(NUM_COLUMNS, n)
    before = np.cumsum(counts, axis=1) - counts
    lists = np.full((NUM_COLUMNS, n), np.nan)
    for k in range(NUM_SUMS, NUM_COLUMNS):
        ones = np.flatnonzero(counts[k])
        lists[k, : len(ones)] = FRONT + ones
    totals = np.append(counts.sum(axis=1), counts[1].sum().repeat(len(ROW_SPACES)))
    sums = {"con_adr": before[0], **dict.fromkeys(("efc_adr", "efc_J_adr"), before[1])}
    sums |= {"totals": totals, "totals_host": totals}
    found = {"lists": lists.ravel()}
    full, passed = memory.own("progress").ravel()[: 2 * len(WORLD_ARENAS)].reshape(2, -1)
    flags = full != 0  # the arenas have capacity for all, but stay full where they were
    for name in ("progress", "progress_host"):
        found[name] = memory.own(name).ravel().copy()  # with words of islands, which their own scan counts
        found[name][: 2 * len(WORLD_ARENAS)] = [*flags, *(passed + ~flags)]
    return sums | found


def guard_by_numpy(memory: Memory) -> Fields:
    """World status after the check for values that are not finite."""
    inputs = (memory.own(n).reshape(memory.num_worlds, -1) for n in _STAGE["guard"].reads)
    bad = ~np.isfinite(np.concatenate(list(inputs), axis=1)).all(axis=1)
    status = memory.own("world_status")
    return {"world_status": np.where(bad & (status == 0), WORLD_STATUS.index("input"), status)}


@cache
def batched_advance(model_name: str) -> Callable[..., Any]:
    """Coordinates of a batch of worlds after a time at constant velocities."""
    model = oracle_model(model_name)[1]
    return quick_jit(jax.vmap(lambda q, v, dt: advance(model, q, v, dt), (0, 0, None)))


def rk4_by_numpy(model_name: str, memory: Memory, rk_stage: int) -> Fields:
    """Outputs of one evaluation of a Runge-Kutta step, for worlds whose values are all finite."""
    model, h = memory.model, float(memory.model.opt_timestep)
    f = {n: memory.own(n).astype(np.float64) for n in _STAGE["rk4"].updates}
    if rk_stage == 0:
        f |= {"rk_qpos": f["qpos"], "rk_qvel": f["qvel"]}
        f |= {n: np.zeros_like(f["qvel"]) for n in ("rk_rate", "rk_dqpos", "rk_dqvel")}
    rate = f["qvel"].copy()
    for adr in tree.quaternions(model)[1]:
        turning = slice(adr, adr + 3)
        turned = quaternion.shortest(REACH[rk_stage] * h * f["rk_rate"][:, turning])
        rate[:, turning] = quaternion.rotation_rate(turned, f["qvel"][:, turning])
    dqpos = f["rk_dqpos"] + WEIGHT[rk_stage] * rate
    dqvel = f["rk_dqvel"] + WEIGHT[rk_stage] * f["qacc"]
    ahead = REACH[rk_stage + 1] * h if rk_stage < 3 else h
    velocity, slope = (rate, f["qacc"]) if rk_stage < 3 else (dqpos, dqvel)
    qpos = np.asarray(batched_advance(model_name)(f["rk_qpos"], velocity, ahead))
    return f | {
        "qpos": qpos,
        "qvel": f["rk_qvel"] + ahead * slope,
        "qacc": dqvel if rk_stage == 3 else f["qacc"],
        "qacc_warmstart": f["qacc"] if rk_stage == 3 or model.solver != "solve_pgs" else f["qacc_warmstart"],
        "nstep": f["nstep"] + (rk_stage == 3),
        "rk_rate": rate,
        "rk_dqpos": dqpos,
        "rk_dqvel": dqvel,
    }


def activation_by_numpy(memory: Memory, rk_stage: int) -> Fields:
    """Activations of healthy worlds after one evaluation of a Runge-Kutta step."""
    model, h = memory.model, float(memory.model.opt_timestep)
    f = {n: memory.own(n).astype(np.float64) for n in ("act", "rk_act", "rk_dact", "act_dot", "actuator_length")}
    start = f["act"] if rk_stage == 0 else f["rk_act"]
    rate = (0.0 if rk_stage == 0 else f["rk_dact"]) + WEIGHT[rk_stage] * f["act_dot"]
    act = start + REACH[min(rk_stage + 1, 3)] * h * f["act_dot"]
    if rk_stage == 3:
        act = np.asarray(jax.vmap(partial(advance_activation, model))(start, rate, f["actuator_length"]))
    return {"act": act, "rk_act": start, "rk_dact": rate}


def expected(stage: Stage, model_name: str, memory: Memory, rk_stage: int = 0) -> Fields:
    """Outputs of a stage, computed by its JAX form or by NumPy. Words that the stage does not write are NaN."""
    n = memory.num_worlds
    if stage.name in PAIR_TYPES:
        return pair_by_jax(stage, model_name, memory)
    if stage.name in ("collision", "collision_general"):
        return collision_by_jax(model_name, memory)
    if stage.name == "scan":
        return scan_by_numpy(memory)
    if stage.name == "guard":
        return guard_by_numpy(memory)
    if stage.name == "rk4":
        return rk4_by_numpy(model_name, memory, rk_stage)
    if stage.name == "activation":
        return activation_by_numpy(memory, rk_stage)
    if stage.name == "unconstrained":
        zero = np.zeros((n, memory.model.nv))
        smooth = memory.own("qacc_smooth").astype(np.float64)
        return {"qacc": smooth, "qfrc_constraint": zero, "solver_niter": np.zeros(n)}
    out = by_jax(stage, model_name, memory)
    if stage.name in INTEGRATORS:
        out["qacc_warmstart"] = memory.own("qacc").astype(np.float64)
        out["nstep"] = memory.own("nstep") + 1
        out["world_status"] = memory.own("world_status")
    return out
