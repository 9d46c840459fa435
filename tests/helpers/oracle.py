"""MuJoCo as the oracle of the tests: sampled states, the fields that MuJoCo computes from them, and comparisons.

States are exact in float32, so that every precision starts from the same values. The error of a field in one state is
max|a - b| / max(1, max|b|).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from simengine.check.oracle import fields_of, with_margins
from simengine.check.states import in_float32
from simengine.engines.jax_step import State, make_forward
from simengine.model import ModelTable, load_table
from simengine.model.pair_types import PAIRS
from tests.helpers.once import once
from tests.models import compile_model

NUM_STATES = 120
"""Number of states that are compared for each model."""

NEAR = 1e-6
"""Contacts and limits closer than this to their margin [m, rad] may exist in one precision and not in the other."""

STATE_FIELDS = (
    "xpos xquat xmat xipos ximat xanchor xaxis geom_xpos geom_xmat site_xpos site_xmat subtree_com cinert cdof crb "
    "ten_length ten_velocity actuator_length actuator_velocity act_dot "
    "cvel cdof_dot qfrc_fluid qfrc_gravcomp qfrc_passive qfrc_bias actuator_force qfrc_actuator qfrc_smooth "
    "qacc_smooth qacc qfrc_constraint cfrc_ext subtree_linvel subtree_angmom cacc cfrc_int sensordata"
).split()
MATRICES = ("qM", "ten_J", "actuator_moment")
CONTACT_FIELDS = ("dist", "pos", "frame")
ROW_FIELDS = ("J", "pos", "margin", "D", "aref", "force", "frictionloss")

_GEOM = {geom.name.removeprefix("mjGEOM_").lower(): int(geom) for geom in mujoco.mjtGeom.__members__.values()}
PAIR_NAMES = {(_GEOM[a], _GEOM[b]): f"{a}-{b}" for pair in PAIRS for a, b in pair.geoms}
"""Names of pairs of geom types, as coverage counts them."""

COMMON_PAIRS = tuple(
    f"{a}-{b}" for pair in PAIRS if pair.name not in ("convex", "plane_mesh", "hfield") for a, b in pair.geoms
)
"""The same without the general convex pairs, which have tests of their own."""


def quick_jit(function: Callable[..., Any]) -> Any:
    """`jax.jit` for functions that run once. It omits expensive optimisations, which halves the time to compile."""
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


class Sample(NamedTuple):
    """n states with controls and applied forces, float64 arrays whose values are exact in float32."""

    qpos: np.ndarray
    qvel: np.ndarray
    act: np.ndarray
    ctrl: np.ndarray
    qfrc_applied: np.ndarray
    xfrc_applied: np.ndarray
    mocap_pos: np.ndarray
    mocap_quat: np.ndarray
    eq_active: np.ndarray


@cache
def oracle_model(name: str) -> tuple[mujoco.MjModel, ModelTable]:
    """A model of tests.models with a solver tolerance of 1e-12, for MuJoCo and for the engine."""
    mj = compile_model(name)
    mj.opt.tolerance = 1e-12
    mj.opt.ls_tolerance = 1e-12
    mj.opt.noslip_tolerance = 0.0  # both engines then take the same number of noslip sweeps
    return mj, load_table(mj)


@cache
def sample(name: str, n: int = NUM_STATES, seed: int = 0) -> Sample:
    """Random states with joints within and slightly beyond their ranges. Half of them are moved down onto the floor."""
    mj, _ = oracle_model(name)
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(mj)
    qpos = np.stack([_random_qpos(mj, data, rng, i % 2 == 0) for i in range(n)])
    values = (
        qpos,
        rng.normal(size=(n, mj.nv)),
        rng.uniform(-0.4, 1.2, size=(n, mj.na)),
        rng.uniform(-1.2, 1.2, size=(n, mj.nu)),
        rng.normal(size=(n, mj.nv)),
        rng.normal(size=(n, mj.nbody, 6)),
        data.mocap_pos + 0.1 * rng.normal(size=(n, mj.nmocap, 3)),
        rng.normal(size=(n, mj.nmocap, 4)),
        rng.random((n, mj.neq)) < 0.8,
    )
    return Sample(*map(in_float32, values))


def _random_qpos(mj: mujoco.MjModel, data: mujoco.MjData, rng: np.random.Generator, grounded: bool) -> np.ndarray:
    qpos = mj.qpos0.copy()
    vertical = -1
    for j in range(mj.njnt):
        adr = mj.jnt_qposadr[j]
        if mj.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE:
            qpos[adr : adr + 3] += rng.normal(size=3) * 0.1
            # the length of a quaternion must not affect results
            qpos[adr + 3 : adr + 7] = rng.normal(size=4)
            vertical = adr + 2 if vertical < 0 else vertical
        elif mj.jnt_type[j] == mujoco.mjtJoint.mjJNT_BALL:
            qpos[adr : adr + 4] = (rng.normal(), *rng.normal(size=3) * 0.5)
        elif mj.jnt_limited[j]:
            low, high = mj.jnt_range[j]
            qpos[adr] = rng.uniform(low - 0.05 * (high - low), high + 0.05 * (high - low))
        else:
            qpos[adr] += rng.normal() * (0.8 if mj.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE else 0.1)
            if mj.jnt_type[j] == mujoco.mjtJoint.mjJNT_SLIDE and mj.jnt_axis[j, 2] == 1:
                vertical = adr if vertical < 0 else vertical
    has_floor = (mj.geom_type == mujoco.mjtGeom.mjGEOM_PLANE).any()
    if grounded and has_floor and vertical >= 0:
        data.qpos[:] = qpos
        mujoco.mj_kinematics(mj, data)
        qpos[vertical] -= _lowest(mj, data) + rng.uniform(-0.02, 0.04)
    return qpos


def _lowest(mj: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Height of the lowest point of the moving geoms [m]."""
    shape, size, down = mj.geom_type, mj.geom_size, np.abs(data.geom_xmat[:, 6:])
    kinds = mujoco.mjtGeom
    flat = np.sqrt(np.maximum(0.0, 1.0 - down[:, 2] ** 2))
    below = np.zeros(mj.ngeom)
    for kind, value in (
        (kinds.mjGEOM_SPHERE, size[:, 0]),
        (kinds.mjGEOM_CAPSULE, size[:, 0] + size[:, 1] * down[:, 2]),
        (kinds.mjGEOM_CYLINDER, size[:, 0] * flat + size[:, 1] * down[:, 2]),
        (kinds.mjGEOM_ELLIPSOID, np.linalg.norm(size * down, axis=1)),
        (kinds.mjGEOM_BOX, (size * down).sum(axis=1)),
    ):
        below[shape == kind] = value[shape == kind]
    touching = (mj.geom_contype | mj.geom_conaffinity) != 0
    return float((data.geom_xpos[:, 2] - below)[touching & (mj.geom_bodyid > 0)].min())


def place(states: Sample, index: int, data: mujoco.MjData) -> None:
    """Write one of n states into MuJoCo's data."""
    for field in Sample._fields:
        getattr(data, field)[:] = getattr(states, field)[index]


@cache
def mujoco_fields(name: str) -> list[dict[str, np.ndarray]]:
    """For each sampled state, MuJoCo's fields after mj_forward and mj_rnePostConstraint, with qM as a full matrix."""
    mj, _ = oracle_model(name)
    states = sample(name)
    out = []
    for i in range(len(states.qpos)):
        data = mujoco.MjData(mj)
        place(states, i, data)
        mujoco.mj_forward(mj, data)
        mujoco.mj_rnePostConstraint(mj, data)
        mujoco.mj_subtreeVel(mj, data)
        out.append(collect(mj, data))
    return out


def collect(mj: mujoco.MjModel, data: mujoco.MjData) -> dict[str, np.ndarray]:
    """Copies of MuJoCo's fields under the engine's names."""
    found = fields_of(mj, data)
    names = (*STATE_FIELDS, *MATRICES, *(f"contact_{f}" for f in CONTACT_FIELDS), *(f"efc_{f}" for f in ROW_FIELDS))
    fields = {name: found[name] for name in names}
    fields["contact_exclude"] = np.array(data.contact.exclude)
    fields["efc_type"] = np.array(data.efc_type)
    fields["contact_type"] = np.sort(mj.geom_type[np.array(data.contact.geom).reshape(-1, 2)], axis=1)
    return fields


def states_of(model: ModelTable, states: Sample, dtype: Any) -> tuple[State, jax.Array]:
    """Sampled states and controls as batches for the JAX functions."""
    n = len(states.qpos)

    def array(x: np.ndarray) -> jax.Array:
        return jnp.asarray(x, dtype)

    zero, at_rest = jnp.zeros(n, dtype), jnp.zeros((n, model.nv), dtype)
    applied = (
        array(states.qfrc_applied),
        array(states.xfrc_applied),
        array(states.mocap_pos),
        array(states.mocap_quat),
        array(states.eq_active),
    )
    state = State(array(states.qpos), array(states.qvel), at_rest, zero, *applied, act=array(states.act))
    return state, array(states.ctrl)


@cache
def jax_fields(name: str, dtype: str) -> dict[str, np.ndarray]:
    """Every derived field of all sampled states, (n, ...), traced under strict promotion rules."""
    return once(f"fields-{name}-{dtype}", lambda: _computed_fields(name, dtype))


def _computed_fields(name: str, dtype: str) -> dict[str, np.ndarray]:
    fields = strictly(quick_jit, name, dtype)
    return {k: np.asarray(v) for k, v in fields.items()}


def strictly(transform: Callable[..., Any], name: str, dtype: str) -> dict[str, Any]:
    """Every derived field of the sampled states by a transformed function, traced under strict promotion rules.

    Args:
        transform: `quick_jit` for values, or a function that gives shapes and types alone.
        name: the model.
        dtype: the precision, which no field may leave.
    """
    _, model = oracle_model(name)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        fields = transform(jax.vmap(make_forward(model)))(*states_of(model, sample(name), dtype))
    wrong = [k for k, v in fields.items() if v.dtype not in (jnp.dtype(dtype), jnp.dtype(bool))]
    assert not wrong, f"fields {wrong} left {dtype}"
    found: dict[str, Any] = fields
    return found


def on_a_margin(mj: mujoco.MjModel, states: Sample) -> np.ndarray:
    """Which states have a contact or limit within NEAR of its margin, (n,) bool: with margins NEAR wider and NEAR
    narrower, MuJoCo lists others."""
    models = [with_margins(mj, change) for change in (NEAR, -NEAR)]
    datas = [mujoco.MjData(model) for model in models]
    found = np.zeros(len(states.qpos), bool)
    for i in range(len(found)):
        lists = []
        for model, data in zip(models, datas, strict=True):
            place(states, i, data)
            mujoco.mj_fwdPosition(model, data)
            arrays = (data.contact.geom, data.contact.exclude, data.efc_type, data.efc_id)
            lists.append([np.asarray(array).tobytes() for array in arrays])
        found[i] = lists[0] != lists[1]
    return found


@cache
def undecided(name: str) -> np.ndarray:
    """Which sampled states lie on a margin, (n,) bool. Comparisons leave them out."""
    return on_a_margin(oracle_model(name)[0], sample(name))


def error(actual: np.ndarray, expected: np.ndarray) -> float:
    """Relative error of one field in one state. The sizes must be equal; the shapes may differ."""
    assert actual.size == expected.size, f"sizes {actual.shape} and {expected.shape}"
    if not expected.size:
        return 0.0
    difference = np.abs(actual.astype(np.float64).ravel() - expected.ravel()).max()
    return float(difference / max(1.0, np.abs(expected).max()))


def worst_errors(name: str, dtype: str, fields: tuple[str, ...]) -> dict[str, float]:
    """Largest error of each field over the sampled states.

    Only active contacts and rows are compared, in the order of their slots. Their number must be MuJoCo's.
    """
    ours, theirs, skip = jax_fields(name, dtype), mujoco_fields(name), undecided(name)
    assert skip.mean() < 0.02, f"{skip.sum()} states of {name} lie on a margin"
    worst = dict.fromkeys(fields, 0.0)
    for i in np.flatnonzero(~skip):
        for field in fields:
            actual = ours[field][i]
            if field.startswith("contact_"):
                actual = actual[ours["contact_active"][i]]
            elif field.startswith("efc_"):
                actual = actual[ours["efc_active"][i]]
            value = error(actual, theirs[i][field])
            worst[field] = max(worst[field], value if np.isfinite(value) else np.inf)
    return worst


def coverage(name: str) -> Counter[str]:
    """Numbers of limits, contacts by pair type, contacts in the gap, and states without rows in the sample."""
    count: Counter[str] = Counter()
    for fields in mujoco_fields(name):
        limits = int((fields["efc_type"] == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT).sum())
        count["limits"] += limits
        count["tendon limits"] += int((fields["efc_type"] == mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON).sum())
        count["contacts"] += len(fields["contact_type"])
        count["in gap"] += int((fields["contact_exclude"] == 1).sum())
        count["free states"] += len(fields["efc_type"]) == 0
        for pair in fields["contact_type"]:
            count[PAIR_NAMES[int(pair[0]), int(pair[1])]] += 1
    return count


def check(name: str, dtype: str, fields: tuple[str, ...], float64: float, float32: float) -> None:
    """Assert that every field agrees with MuJoCo's within the tolerance of the precision."""
    tolerance = {"float64": float64, "float32": float32}[dtype]
    worst = worst_errors(name, dtype, fields)
    wrong = {k: v for k, v in worst.items() if not v <= tolerance}
    assert not wrong, f"{name} in {dtype}: beyond {tolerance}: {wrong}"
