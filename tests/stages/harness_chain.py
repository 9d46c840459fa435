"""The chain of stages, each as a kernel of its own. It computes the input fields of every stage for sampled states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache

import numpy as np

from simengine.kernels.kernel import Kernel
from simengine.model import ModelTable
from simengine.model.pair_types import PAIR_TYPES
from simengine.model.springs import has_polynomials
from simengine.physics.stage import Stage
from simengine.plan import catalogue, contact_kernels, smooth_kernels
from simengine.plan.stages import CONSTRAINT, RNE_POST, SOLVERS, STAGES
from simengine.state.fields import FIELD, FIELDS
from tests.helpers.oracle import Sample, oracle_model, sample, undecided
from tests.stages.harness import FRONT, Argument, Memory, arguments, call, list_worlds

MODELS = (
    *("ant", "mixed_tree", "pile", "contact_parameters"),
    *("sunken", "tendons", "actuators", "ropes", "crates", "ragdoll", "glider", "dual", "linkage", "rollers"),
)

BY_NAME: dict[str, Stage] = {stage.name: stage for stage in STAGES}
SENSE_MOTION = ("subtree_vel", "acc_bias", "sensor_pos", "sensor_vel", "sensor_distance")
SENSE_FORCES = ("body_forces", "sensor_acc")
PAIRS = tuple(contact_kernels.NARROW)
RUNGE_KUTTA = ("rk_qpos", "rk_qvel", "rk_act", "rk_rate", "rk_dqpos", "rk_dqvel", "rk_dact")

Step = tuple[Kernel, bool, str]
"""A kernel, whether it takes a list of worlds, and which worlds: "all", "rows" or "free"."""


def single(name: str) -> Kernel:
    """The kernel of one stage."""
    return catalogue.single(BY_NAME[name])


def position(model: ModelTable) -> tuple[str, ...]:
    """Stages that depend on positions, up to the count."""
    return (
        "guard",
        "kinematics",
        "sites",
        "com_pos",
        "tendon",
        "collision_general" if model.general_position else "collision",
    )


def smooth(model: ModelTable) -> tuple[str, ...]:
    """Stages of the smooth forces, and stages that only the comparison needs."""
    fused = tuple(
        stage.name for stage in smooth_kernels.smooth(model.general_smooth, model.has_fluid, model.has_adhesion).stages
    )
    return (*(name for name in ("tendon_velocity", "transmission") if name not in fused), *fused, "energy")


def serves(stage: Stage, model: ModelTable) -> bool:
    """Whether a stage supports a model and has work to do on it."""
    if stage.name in SOLVERS:
        return stage.name == model.solver
    if stage.name in PAIR_TYPES:
        return PAIR_TYPES.index(stage.name) in model.cand_type
    if stage in (CONSTRAINT, RNE_POST):
        return not model.has_general_rows
    lean = {"collision": model.general_position, "actuation": model.general_smooth, "fluid": model.body_fluid.any()}
    size = {"sites": model.nsite, "tendon": model.ntendon, "tendon_velocity": model.ntendon}
    size |= {"tendon_passive": model.npath, "tendon_forces": model.npath}
    size |= {
        "adhesion": model.has_adhesion,
        "transmission": model.nu,
        "activation": model.na,
        "gravcomp": model.ngravcomp,
    }
    size |= {"sensor_distance": model.ndistance}
    size |= {"noslip": model.opt_noslip_iterations}
    size |= {name: model.opt_integrator == name for name in ("implicit", "implicitfast", "euler_general")}
    size |= {"euler": model.opt_integrator != "euler_general", "passive": not has_polynomials(model.mj)}
    return not lean.get(stage.name, False) and size.get(stage.name, 1) > 0


def steps(model: ModelTable, integrator: str) -> Iterator[Step]:
    """Kernels of single stages in the order of a step, or of a forward evaluation if there is no integrator."""
    motion, pairs = (*smooth(model), *SENSE_MOTION), PAIRS
    for name in (*position(model), "scan", *((*pairs, *motion) if model.has_adhesion else (*motion, *pairs))):
        yield single(name), False, "all"
    fused = catalogue.is_fused(integrator, model.solver)
    end = (integrator,) if integrator and fused else ()
    for name in (catalogue.constraint(model.solver).name, model.solver, *end):
        yield single(name), True, "rows"
    for name in ("unconstrained", *end):
        yield single(name), True, "free"
    noslip = ("noslip",) if model.opt_noslip_iterations else ()
    for name in (*noslip, catalogue.post(model.has_general_rows).name, "tendon_forces", *SENSE_FORCES):
        yield single(name), False, "all"
    if integrator and not fused:
        yield single(integrator), False, "all"
    if integrator and model.na:
        yield single("activation"), False, "all"


def worlds_of(memory: Memory, kind: str) -> np.ndarray:
    """Indices in the shard of the worlds that have constraint rows ("rows") or that have none ("free")."""
    rows = memory.own("nefc") > 0
    return np.flatnonzero(rows if kind == "rows" else ~rows).astype(np.int32)


def most_rows(memory: Memory) -> int:
    """Largest number of constraint rows of a world."""
    return int(memory.own("nefc").max(initial=1))


Calls = Iterator[tuple[Kernel, list[Argument]]]


def rk_scalars(integrator: str, rk_stage: int) -> dict[str, int]:
    """Scalars of the stages that integrate."""
    return {"rk_stage": rk_stage, "rk_last": 3 if integrator == "rk4" else 0}


def calls(memory: Memory, integrator: str, rk_stage: int) -> Calls:
    """Yield the calls of `steps` on a memory. Carry out each call before asking for the next."""
    for kernel, listed, kind in steps(memory.model, integrator):
        if listed:
            list_worlds(memory, worlds_of(memory, kind))
        yield kernel, arguments(kernel, memory, listed, most_rows(memory), rk_scalars(integrator, rk_stage))


def fused_calls(
    memory: Memory, integrator: str, rk_stage: int, arena: bool, null: Mapping[str, frozenset[str]]
) -> Calls:
    """Yield the calls of a step's fused kernels. Carry out each call before asking for the next.

    Args:
        memory, integrator, rk_stage: as for `calls`.
        arena: whether rows are in their arena, not in scratch.
        null: outputs that each kernel does not store, by kernel. Kernels for sensors, and the three that divide the
            smooth motion, run only if they are named here.
    """
    model = memory.model
    fused_smooth = smooth_kernels.smooth(model.general_smooth, model.has_fluid, model.has_adhesion)
    solver = model.solver
    sensing = [k for k in (catalogue.SENSE_MOTION, catalogue.SENSE_DISTANCE, catalogue.SENSE_FORCES) if k.name in null]
    # a specialised kernel and its general form write the same fields
    lean = () if model.general_position else (catalogue.POSES, catalogue.POSITION)
    siteless = (catalogue.POSES_SITELESS, catalogue.POSITION_SITELESS)  # behind those that compute frames of sites
    first = (catalogue.POSES_GENERAL, catalogue.POSITION_GENERAL, *siteless, *lean, contact_kernels.SCAN_KERNEL)
    # the kernel of the transmission alone would overwrite what adhesion has added to actuator_moment
    asked = [k for k in catalogue.ON_DEMAND if not model.has_adhesion or "actuator_moment" not in k.produced]
    in_three = smooth_kernels.smooth_in_three(model.general_smooth, model.has_fluid, driven=False)
    by_block = (catalogue.TENDONS_BY_BLOCK, catalogue.ACTUATORS_BY_BLOCK, catalogue.SMOOTH_DRIVEN)
    apart = (*in_three, *(by_block if model.general_smooth else ()))
    parts = [k for k in apart if k.name in null and not model.has_adhesion]
    light = (contact_kernels.NARROW_LIGHT, contact_kernels.NARROW_OWN_ADDRESSES)
    motion, pairs = (fused_smooth, *parts, *asked, *sensing[:-1]), (*light, *contact_kernels.NARROW.values())
    for kernel in (*first, *((*pairs, *motion) if model.has_adhesion else (*motion, *pairs))):
        yield kernel, arguments(kernel, memory, null=null[kernel.name])
    last = ((catalogue.finish(integrator, solver, arena), "rows"), (catalogue.advance(integrator, solver), "free"))
    for kernel, kind in last:
        list_worlds(memory, worlds_of(memory, kind))
        nrow = 0 if arena and kind == "rows" else most_rows(memory)
        yield kernel, arguments(kernel, memory, True, nrow, rk_scalars(integrator, rk_stage), null[kernel.name])
    activation = (catalogue.ACTIVATION_KERNEL,) if integrator and model.na else ()
    noslip = (catalogue.NOSLIP_KERNEL,) if model.opt_noslip_iterations else ()
    after = (*noslip, catalogue.post(model.has_general_rows), catalogue.TENDON_POST, *sensing[-1:])
    after += catalogue.integrate(integrator, solver)
    for kernel in (*after, *activation):
        yield kernel, arguments(kernel, memory, scalars=rk_scalars(integrator, rk_stage))


def run_chain(memory: Memory, integrator: str = "", rk_stage: int = 0) -> None:
    """Carry out all stages on a memory that contains the states."""
    for kernel, slots in calls(memory, integrator, rk_stage):
        call(kernel, memory, slots)


def state_fields(model: ModelTable, states: Sample) -> dict[str, np.ndarray]:
    """State fields of sampled states, with random warm starts. No world is frozen."""
    n = len(states.qpos)
    warm = np.random.default_rng(7).normal(size=(n, model.nv)).astype(np.float32)
    fields = {name: np.asarray(getattr(states, name)) for name in Sample._fields}
    return fields | {
        "qacc_warmstart": warm.astype(np.float64),
        "nstep": np.arange(n, dtype=np.int32),
        "world_status": np.zeros(n, np.int32),
    }


@cache
def decided(name: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Indices of the sampled states that lie on no margin, and their state fields."""
    keep = np.flatnonzero(~undecided(name))
    assert len(keep) >= 100, f"only {len(keep)} states of {name} are away from the margins"
    _, model = oracle_model(name)
    return keep, {k: v[keep] for k, v in state_fields(model, sample(name)).items()}


def fresh(name: str, dtype: str, contacts: int, rows: int, worlds: int | None = None) -> Memory:
    """A memory with the sampled states of a model, or with the first `worlds`. Everything else is poisoned."""
    keep, states = decided(name)
    n = worlds or len(keep)
    memory = Memory(oracle_model(name)[1], dtype, n, contacts, rows)
    memory.set({k: v[:n] for k, v in states.items()})
    return memory


def start(name: str, dtype: str, rk_stage: int, worlds: int | None = None) -> Memory:
    """A memory with arenas of exactly the size of this precision's counts. rk_stage > 0 is in the middle of a step."""
    memory = fresh(name, dtype, 0, 0, worlds)
    for stage in (*position(memory.model), "scan"):
        call(single(stage), memory, arguments(single(stage), memory))
    contacts, rows = memory.own("totals")[:2]
    memory = fresh(name, dtype, int(contacts), int(rows), worlds)
    rng = np.random.default_rng(3)
    for field in RUNGE_KUTTA:
        if rk_stage:
            memory.own(field)[...] = rng.normal(size=memory.own(field).shape)
    return memory


@cache
def arena_sizes(name: str) -> tuple[int, int]:
    """Numbers of contacts and rows of all sampled states, as the stages collision and scan count them."""
    memory = fresh(name, "float64", 0, 0)
    for stage in (*position(memory.model), "scan"):
        call(single(stage), memory, arguments(single(stage), memory))
    totals = memory.own("totals")
    return int(totals[0]), int(totals[1])


@cache
def reference(name: str) -> dict[str, np.ndarray]:
    """Every field of all sampled states in float64: (n, ...), and (entries, ...) for arenas."""
    memory = fresh(name, "float64", *arena_sizes(name))
    run_chain(memory)
    return {field.name: memory.own(field.name).copy() for field in FIELDS}


def prepared(name: str, dtype: str) -> Memory:
    """A memory with every field of the reference, rounded to the precision."""
    return _prepared(name, dtype).copy()


@lru_cache(maxsize=2)
def _prepared(name: str, dtype: str) -> Memory:
    memory = fresh(name, dtype, *arena_sizes(name))
    memory.set({k: v for k, v in reference(name).items() if not k.startswith("rk_")})
    rng = np.random.default_rng(11)
    for field in (FIELD[n] for n in RUNGE_KUTTA):
        own = memory.own(field.name)
        own[...] = rng.normal(size=own.shape).astype(np.float32)
    # what counting keeps for the narrowphase, as found in this precision
    counting = single(position(memory.model)[-1])
    call(counting, memory, arguments(counting, memory))
    # indices of worlds in lists count from the start of the buffers
    assert (memory.own("lists")[memory.own("lists") > 0] >= FRONT).all()
    return memory
