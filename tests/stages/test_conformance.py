"""Every stage's kernel: declaration against signature, reach of its reads and writes, results against JAX and MuJoCo.

Each kernel of one stage is called directly on states of models that hold every joint, pair and row type; its inputs are
the fields of the stages before it in float64, rounded to the kernel's precision.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine.model import load_table
from simengine.model.pair_types import PAIR_SLOTS, PAIR_TYPES
from simengine.model.support import INTEGRATORS
from simengine.physics.stage import Stage
from simengine.plan import catalogue
from simengine.plan.stages import (
    ACTIVATION,
    ACTUATION,
    ACTUATION_GENERAL,
    PASSIVE,
    PASSIVE_GENERAL,
    RK4,
    SENSOR_ACC,
    SENSOR_DISTANCE,
    SENSOR_POS,
    SENSOR_VEL,
    STAGES,
)
from simengine.state.fields import FIELD, WORLD_ARENAS, WORLD_STATUS
from tests.helpers.oracle import COMMON_PAIRS, coverage, oracle_model
from tests.models import COMPILED_IN_JAX
from tests.stages.harness import FRONT, WORLD_SPACES, Memory, arguments, call, changed, list_worlds, near_list
from tests.stages.harness_chain import (
    BY_NAME,
    MODELS,
    arena_sizes,
    fresh,
    most_rows,
    prepared,
    run_chain,
    serves,
    single,
)
from tests.stages.harness_expected import Fields, expected, in_mujoco, is_implied, owner, runs_alone
from tests.stages.harness_mujoco import mujoco_expected, sensor_entries, stepped
from tests.stages.special_positions import SPECIAL

CASES = [(stage, 0) for stage in STAGES] + [(s, k) for s in (RK4, ACTIVATION) for k in (1, 2, 3)]
ON_MODELS = [(name, *case) for name in MODELS for case in CASES if serves(case[0], oracle_model(name)[1])]
CASE_IDS = [f"{name}-{stage.name}{k or ''}" for name, stage, k in ON_MODELS]
stages_on_models = pytest.mark.parametrize(("name", "stage", "rk_stage"), ON_MODELS, ids=CASE_IDS)
models = pytest.mark.parametrize("name", MODELS)
dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])
one_dtype = pytest.mark.parametrize("dtype", ["float32"])  # which words a stage touches depends on no precision
in_double = pytest.mark.parametrize("dtype", ["float64"])  # float32 is compared with MuJoCo, here it is the two forms


def own_integrator(name: str) -> str:
    """The integrator that a model asks for."""
    return oracle_model(name)[1].opt_integrator


ORACLE = [(name, stage) for name, stage, k in ON_MODELS if k == 0 and in_mujoco(name, stage)]
"""Stages whose results MuJoCo has, for every world."""

TOLERANCE = {"contact": (1e-8, 1e-4), "row": (1e-8, 2e-4), "solution": (1e-6, 2e-3), "smooth": (1e-9, 5e-5)}
SOLUTION = ("qacc", "efc_force", "qfrc_constraint", "cfrc_ext", "cacc", "cfrc_int", "sensordata")
WORKING = (
    *("solver_niter", "efc_jar", "efc_jv"),
    *("efc_Y", "efc_b", "efc_diagAR", "efc_before", "efc_island", "efc_order", "efc_weight"),
)
"""Outputs that say how the solver got there; its residual is checked by itself."""


SENSING = (SENSOR_POS, SENSOR_VEL, SENSOR_DISTANCE, SENSOR_ACC)


def tolerance(name: str, dtype: str) -> float:
    """Largest relative error of a field in one state."""
    if name == "cfrc_int":  # what is left of forces that cancel
        return (2e-5, 2e-3)[dtype == "float32"]
    kind = "solution" if name in SOLUTION else FIELD[name].space
    return TOLERANCE.get(kind, TOLERANCE["smooth"])[dtype == "float32"]


def errors(memory: Memory, wanted: Fields, dtype: str) -> dict[str, float]:
    """Errors beyond the tolerance, by field; integers must be equal. Words whose expectation is NaN are left out."""
    wrong = {}
    for name, value in wanted.items():
        actual = memory.own(name)
        care = ~np.isnan(value.astype(np.float64))
        if FIELD[name].kind == "int":
            if (actual[care] != value[care]).any():
                wrong[name] = float((actual[care] != value[care]).sum())
            continue
        world = {"contact": "ncon", "row": "nefc", "jacobian": "nefc"}.get(FIELD[name].space)
        of = owner(memory.own(world)) if world else np.arange(len(value))
        difference = np.where(care, np.abs(actual - np.where(care, value, 0.0)), 0.0)
        scale = np.ones(memory.num_worlds)
        worst = np.zeros(memory.num_worlds)
        entry = tuple(range(1, value.ndim))
        np.maximum.at(scale, of, np.abs(np.where(care, value, 0.0)).max(axis=entry, initial=0.0))
        np.maximum.at(worst, of, difference.max(axis=entry, initial=0.0))
        error = float((worst / scale).max(initial=0.0))
        if not error <= tolerance(name, dtype) or not np.isfinite(actual[care]).all():
            wrong[name] = error
    return wrong


LISTS = ("near_cand", "near_adr", "pair_tally", "search_near", "search_found", "kept_contact", "kept_prism")
"""Fields that counting writes as far as a world has pairs; see `left_alone`."""


def left_alone(stage: Stage, memory: Memory, name: str) -> np.ndarray:
    """Words of the shard's part of an output that the stage does not write."""
    mask: np.ndarray = np.zeros(memory.own(name).shape, bool)
    if stage.name in PAIR_TYPES:
        mask[memory.model.cand_type[memory.own("contact_cand")] != PAIR_TYPES.index(stage.name)] = True
    if name in LISTS:  # other forms of the stage, which may have run before, list other near pairs
        memory = memory.copy()
        run(stage, memory, 0, most_rows(memory))
    if name == "kept_contact":
        mask[...] = ~kept(memory)[:, :, None]
    if name == "kept_prism":
        mask[...] = np.arange(mask.shape[1])[:, None] >= of_fields(memory, stage)[:, None, None]
    if name in ("near_cand", "near_adr"):
        entries = memory.own("pair_tally")[:, :1] + (name == "near_adr")
        in_a_word = 2 if memory.model.nnear < memory.model.ncand else 1
        mask[...] = np.arange(mask.shape[1]) >= -(-entries // in_a_word)
    if name in ("search_near", "search_found"):
        mask[...] = np.arange(mask.shape[1]) >= memory.own("pair_tally")[:, 1:2]
    if name == "ten_J":  # entries that are not in the table are zero from the start
        mask[...] = True
        mask[:, *memory.model.ten_J_entry.T] = False
    if name == "lists":
        mask = np.isnan(expected(stage, "", memory)["lists"])
    return mask


def without_spare_half(memory: Memory, name: str) -> np.ndarray:
    """An output, with zero in the half of a word that a list of near pairs leaves alone after an odd number of them."""
    values = np.ascontiguousarray(memory.own(name))
    if name in ("near_cand", "near_adr") and memory.model.nnear < memory.model.ncand:
        values = values.copy()
        entries = memory.own("pair_tally")[:, :1] + (name == "near_adr")
        halves = values.view(np.uint16)
        halves[np.arange(halves.shape[1]) == entries] = 0
    return values


SLOTS = PAIR_SLOTS[PAIR_TYPES.index("convex")]


def kept(memory: Memory) -> np.ndarray:
    """Which contacts of pairs with a search counting keeps, (num_worlds, nkept)."""
    there = np.zeros((memory.num_worlds, memory.model.nkept), bool)
    addresses = near_list(memory, "near_adr").astype(int)
    listed = zip(there, addresses, memory.own("search_near"), memory.own("pair_tally")[:, 1], strict=True)
    for row, adr, near, number in listed:
        for k, i in enumerate(near[:number]):
            if (k + 1) * SLOTS <= len(row):
                row[k * SLOTS : k * SLOTS + adr[i + 1] - adr[i]] = True
    return there


def of_fields(memory: Memory, stage: Stage) -> np.ndarray:
    """Contacts with height fields, (num_worlds,)."""
    listing = stage.name in ("collision_list", "list_culled")  # leave the number of contacts in place of their address
    found = np.zeros(memory.num_worlds, int)
    lists = (near_list(memory, name).astype(int) for name in ("near_cand", "near_adr"))
    listed = zip(*lists, memory.own("pair_tally")[:, 0], strict=True)
    for world, (near, adr, number) in enumerate(listed):
        on_field = memory.model.cand_type[near[:number]] == PAIR_TYPES.index("hfield")
        found[world] = (adr[:number] if listing else np.diff(adr[: number + 1]))[on_field].sum()
    return found


def run(stage: Stage, memory: Memory, rk_stage: int, rows: int, worlds: np.ndarray | None = None) -> None:
    """Call the stage's kernel on the shard, or on some of its worlds; `rows` bounds the rows of a world."""
    if worlds is not None:
        list_worlds(memory, worlds)
    kernel = catalogue.single(stage)
    call(kernel, memory, arguments(kernel, memory, worlds is not None, rows, {"rk_stage": rk_stage, "rk_last": 3}))


def outside(memory: Memory, name: str) -> np.ndarray:
    """Words of a buffer that are not the shard's."""
    mask = np.ones(memory.arrays[name].shape, bool)
    if FIELD[name].space in WORLD_SPACES:
        mask[FRONT : FRONT + memory.num_worlds] = False
    else:
        mask[: len(memory.own(name))] = False
    return mask


@stages_on_models
@one_dtype
def test_reads_and_writes_what_it_declares_and_nothing_else(name: str, dtype: str, stage: Stage, rk_stage: int) -> None:
    """Neither other fields, nor what outputs held before, nor which worlds run beside them change a bit of outputs."""
    kernel = catalogue.single(stage)
    whole, other = prepared(name, dtype), prepared(name, dtype)
    outputs = (*stage.writes, *stage.updates)
    rows, alone = most_rows(whole), {n: left_alone(stage, whole, n) for n in stage.writes}
    world = {n: _worlds(whole, n) for n in outputs}
    whole.poison(stage.writes)
    before = whole.snapshot()
    run(stage, whole, rk_stage, rows)
    assert not whole.broken_guards()
    for field in (n for n in before if n not in ("listed", "num_listed")):
        words = changed(before[field], whole.arrays[field])
        if field not in (*stage.writes, *stage.updates):
            assert not words.any(), f"{field} is not an output of {stage.name}"
            continue
        assert not words[outside(whole, field)].any(), f"{stage.name} writes {field} outside its worlds"
        if field in stage.writes:
            own = words[~outside(whole, field)].reshape(whole.own(field).shape)
            assert (own == ~alone[field]).all(), f"{stage.name} leaves {(own == alone[field]).sum()} words of {field}"

    other.poison(n for n in FIELD if n not in (*kernel.reads, *kernel.updates, *kernel.addresses, *stage.writes))
    for field in stage.writes:
        other.arrays[field].fill(77)
    start = {n: other.own(n).copy() for n in outputs}
    chosen = np.arange(other.num_worlds, dtype=np.int32)[:: 2 if kernel.unit == "world" else 1]
    run(stage, other, rk_stage, rows, chosen if kernel.unit == "world" else None)
    for field in outputs:
        ours, theirs = without_spare_half(other, field), without_spare_half(whole, field)
        ran = np.isin(world[field], chosen).reshape((-1,) + (1,) * (ours.ndim - 1))
        ran = np.broadcast_to(ran, ours.shape) & ~alone.get(field, np.zeros(ours.shape, bool))
        assert not changed(ours, theirs)[ran].any(), f"{field} of {stage.name} depends on what it must not"
        assert not changed(other.own(field), start[field])[~ran].any(), f"{field} changed in a world that did not run"


def _worlds(memory: Memory, name: str) -> np.ndarray:
    """World of each entry of a field."""
    space = FIELD[name].space
    if space in WORLD_ARENAS:
        return owner(memory.own("ncon" if space == "contact" else "nefc"))
    entries = len(memory.own(name))
    return np.arange(entries) % memory.num_worlds if space == "column" else np.arange(entries)


def marks_of(name: str, stage: Stage) -> list[pytest.MarkDecorator]:
    """Where other comparisons imply that of a kernel and its JAX form, or it takes a program of JAX that no other test
    of the first stage takes, it is in the second stage."""
    compiled = FORMS_ALONE if runs_alone(stage) else COMPILED_IN_JAX
    return [pytest.mark.slow] if is_implied(name, stage) or name not in compiled else []


FORMS_ALONE = ("pile", "actuators", "ropes", "ragdoll", "glider", "linkage")
"""Models on which every JAX form that runs alone has work to do."""


@pytest.mark.parametrize(
    ("name", "stage", "rk_stage"),
    [
        pytest.param(*case, marks=marks_of(*case[:2]), id=case_id)
        for case, case_id in zip(ON_MODELS, CASE_IDS, strict=True)
    ],
)
@in_double
def test_agrees_with_the_jax_form(name: str, dtype: str, stage: Stage, rk_stage: int) -> None:
    memory = prepared(name, dtype)
    wanted = expected(stage, name, memory, rk_stage)
    run(stage, memory, rk_stage, most_rows(memory))
    missing = {*stage.writes, *stage.updates} - {*wanted, *WORKING, *OTHERWISE}
    assert not missing, f"nothing says what {missing} should be"
    assert not errors(memory, wanted, dtype)


OTHERWISE = (
    *("contact_cand", "contact_efc_address", "efc_type", "efc_id", "efc_frictionloss"),
    *LISTS,
)
"""Outputs that JAX's fixed slots do not need; they, or the contacts that follow from them, are compared with
MuJoCo's."""


@pytest.mark.parametrize(("name", "stage"), ORACLE, ids=[f"{name}-{stage.name}" for name, stage in ORACLE])
@dtypes
def test_agrees_with_mujoco(name: str, dtype: str, stage: Stage) -> None:
    memory = prepared(name, dtype)
    pristine = {n: left_alone(stage, memory, n) for n in stage.writes}
    wanted = mujoco_expected(name, memory, stage.writes)
    to = np.where(memory.model.ngravcomp, memory.model.jnt_gravcomp, 0)[memory.model.dof_jntid]
    if stage in (PASSIVE, PASSIVE_GENERAL):
        # the shares of fluid and gravity compensation are added by stages of their own
        added = mujoco_expected(name, memory, ("qfrc_fluid", "qfrc_gravcomp"))
        wanted["qfrc_passive"] = wanted["qfrc_passive"] - added["qfrc_fluid"] - added["qfrc_gravcomp"] * (to == 0)
    if stage in (ACTUATION, ACTUATION_GENERAL):
        wanted["qfrc_actuator"] = np.where(to == 0, wanted["qfrc_actuator"], np.nan)
    for field, value in wanted.items():
        wanted[field] = np.where(pristine[field], np.nan, value) if pristine[field].any() else value
    if stage in SENSING:
        entries = sensor_entries(memory.model, stage)
        memory.own("sensordata")[:, entries] = np.nan
        sensordata = mujoco_expected(name, memory, ("sensordata",))["sensordata"]
        wanted["sensordata"] = np.where(entries, sensordata, np.nan)
    run(stage, memory, 0, most_rows(memory))
    assert not errors(memory, wanted, dtype)
    if stage.name == "factor_m":
        factor, M = memory.own("qLD").astype(np.float64), mujoco_expected(name, memory, ("qM",))["qM"]
        assert (np.triu(factor, 1) == 0).all()
        assert not errors(memory_with(memory, "qM", factor @ factor.transpose(0, 2, 1)), {"qM": M}, dtype)
    if stage.name == "solve_newton_unilateral":
        f = {n: memory.own(n).astype(np.float64) for n in ("efc_J", "efc_aref", "qacc", "efc_jar")}
        world = owner(memory.own("nefc"))
        residual = np.einsum("rv,rv->r", f["efc_J"][:, : memory.model.nv], f["qacc"][world]) - f["efc_aref"]
        assert not errors(memory, {"efc_jar": residual}, dtype)
        assert (memory.own("solver_niter") < memory.model.opt_iterations).all()


def memory_with(memory: Memory, name: str, values: np.ndarray) -> Memory:
    """A copy of a memory with other values in one field."""
    other = memory.copy()
    other.set({name: values})
    return other


BOTH = ("mixed_tree", "tendons", "actuators", "ragdoll")
"""Models that both common integrators step in the first stage, in double precision. Others step by their own."""

STEPS = [
    pytest.param(
        *(dtype, name, step),
        marks=[] if step == own_integrator(name) or (dtype, name in BOTH) == ("float64", True) else pytest.mark.slow,
    )
    for dtype in ("float64", "float32")
    for name in MODELS
    for step in dict.fromkeys(("euler", "rk4", own_integrator(name)))
    if step not in BY_NAME or serves(BY_NAME[step], oracle_model(name)[1])
]


@pytest.mark.parametrize(("dtype", "name", "integrator"), STEPS)
def test_a_step_of_single_stages_agrees_with_mj_step(dtype: str, name: str, integrator: str) -> None:
    _, model = oracle_model(name)
    n = fresh(name, dtype, 0, 0).num_worlds
    memory = fresh(name, dtype, n * model.nslot, n * model.nefc_max)
    for rk_stage in range(4 if integrator == "rk4" else 1):
        run_chain(memory, integrator, rk_stage)
    known = integrator.removesuffix("_general")
    datas = stepped(name, next(code for code, name in INTEGRATORS.items() if name == known), False)
    assert (memory.own("world_status") == WORLD_STATUS.index("healthy")).all()
    for field in ("qpos", "qvel", "act"):
        theirs = np.stack([getattr(d, field) for d in datas])
        scale = np.maximum(1.0, np.abs(theirs).max(axis=1, initial=0.0))
        error = (np.abs(memory.own(field) - theirs).max(axis=1, initial=0.0) / scale).max()
        assert error <= (1e-6 if dtype == "float64" else 1e-3), f"{field}: {error}"


@pytest.mark.parametrize(("first", "second", "pos", "quat"), SPECIAL)
def test_special_positions_agree_with_mujoco(first: str, second: str, pos: tuple, quat: tuple) -> None:
    body = "<body><freejoint/>{}</body>"
    text = f"<mujoco><worldbody>{body.format(first)}{body.format(second)}</worldbody></mujoco>"
    mj = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(mj)
    data.qpos[7:] = (*pos, *quat)
    mujoco.mj_forward(mj, data)
    assert data.ncon > 0
    memory = Memory(load_table(mj), "float64", 1, data.ncon, 0)
    memory.set({"qpos": data.qpos, "world_status": np.zeros(1, np.int32)})
    for name in ("kinematics", "collision_general", "scan", *PAIR_TYPES):
        call(single(name), memory, arguments(single(name), memory))
        assert name != "collision_general" or memory.own("ncon")[0] == data.ncon
    for name in ("dist", "pos", "frame"):
        theirs = getattr(data.contact, name)
        np.testing.assert_allclose(memory.own(f"contact_{name}"), theirs, atol=1e-8, err_msg=name)


def test_the_sample_covers_every_kind_of_contact_and_row() -> None:
    total = sum((coverage(name) for name in MODELS), start=coverage(MODELS[0]))
    assert all(total[kind] >= 20 for kind in (*COMMON_PAIRS, "limits", "tendon limits", "in gap")), total
    assert all(min(arena_sizes(name)) > 0 for name in MODELS)


def test_every_jax_form_that_runs_alone_has_a_model() -> None:
    kept = {stage for name, stage, _ in ON_MODELS if not marks_of(name, stage)}
    assert {stage for name, stage, _ in ON_MODELS if runs_alone(stage) and not is_implied(name, stage)} <= kept
