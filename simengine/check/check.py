"""`check_model`: find states that cover a model, and compare this engine with MuJoCo at these states."""

from __future__ import annotations

import os
from collections import Counter
from copy import copy

import mujoco
import numpy as np

from simengine.check.budget import compare_budget, with_budget_of
from simengine.check.compare import compare_forward, compare_steps
from simengine.check.edges import knife_edges
from simengine.check.oracle import Oracle, pair_type, with_margins
from simengine.check.report import LEAST_MARGIN, CheckReport, Coverage, StepCoverage
from simengine.check.search import Found, Progress, find_states, targets
from simengine.check.states import Sampler
from simengine.check.trajectory import Trajectory, follow, pairs_of
from simengine.loading import load_model
from simengine.model.model import Model
from simengine.simulation import Simulation

SOLVER_TOLERANCE = 1e-15  # relative to the cost; about its square root is left in MuJoCo's acceleration
CCD_TOLERANCE, CCD_ITERATIONS = 1e-12, 500
_PROBES = 20  # random states that show whether most states of a model are on a margin
_WIDER = 1e-3  # [m, rad] by which margins are then widened for the check
_ON_FIELDS = ("hfield-box", "hfield-mesh")  # pair types for which MuJoCo needs a margin to find the least penetration
_ITERATIONS, _LS_ITERATIONS = 100, 50  # MuJoCo's defaults, which suffice to converge


def check_model(
    source: str | os.PathLike[str] | mujoco.MjModel | Model,
    *,
    backend: str = "auto",
    dtype: str = "float32",
    num_states: int = 200,
    num_steps: int = 1000,
    tries: int = 20,
    seed: int = 0,
    progress: Progress | None = None,
) -> CheckReport:
    """Compare this engine with MuJoCo on one model, stage by stage and over single steps.

    There are three kinds of states: random ones, states in which MuJoCo lets the model fall and settle, and states in
    which chosen geoms are thrown at each other. Pair types and joint limits that these states do not reach are searched
    for. Both solvers run until they converge, to 1e-15, on copies of the model. The solution is compared with the
    model's own iterations and tolerance, too; that is reported and does not decide the outcome.

    Some comparisons are left out and counted. States are left out if a contact or limit is within 1e-6 of its margin,
    if rounding chooses among contacts, or if MuJoCo itself does not find all contacts of meshes. For a single field, a
    state is left out in three cases:

    - The difference is at most a few times the change of MuJoCo's own value when the poses, inertia, rows and forces
      that every engine stores are rounded.
    - It is at most a few times the change when the state is rounded, as long as such states are few.
    - The field is the reading of a touch sensor, and a force points at the edge of its site; or of a distance sensor,
      and other points are as near as the nearest ones.

    If most states of a model are on a margin, the comparison uses margins wider by 1e-3 on both sides. If boxes or
    meshes touch height fields without a margin, it uses margins of 1e-9, because without one MuJoCo reports less than
    the least penetration.

    Args:
        source: anything that `load_model` takes. If it is a `Model`, the engine uses its table, and MuJoCo its `mj`.
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64".
        num_states: states at which fields are compared, before the search for missing pair types and limits.
        num_steps: steps of MuJoCo; one step is compared from the state before each.
        tries: most states that are tried for each missing pair type and joint limit.
        seed: equal seeds give equal states.
        progress: called as progress(what, done, total), with a total of 0 where it is not known.

    Returns:
        The report; `report.passed` is the outcome.

    Raises:
        ValueError: a bad argument, named in the message.
        UnsupportedModelError: the engine lacks features the model needs; the message names every element.
        BackendError: the backend cannot run here.
    """
    for name, value in (("num_states", num_states), ("num_steps", num_steps), ("tries", tries)):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} is {value!r}; give a whole number of at least 1")
    given = load_model(source)
    model = _converging(given)
    used = _backend(model, backend, dtype)
    widened = 0.0
    if _touches_fields_without_margin(model):
        widened = LEAST_MARGIN
        model = _converging(load_model(with_margins(model.mj, widened)))
    if _lies_on_margins(model, seed):
        widened += _WIDER
        model = _converging(load_model(with_margins(model.mj, _WIDER)))
    sampler, oracle = Sampler(model.mj, seed), Oracle(model.mj, dtype)
    found = find_states(model, oracle, sampler, num_states, tries, progress)
    steps = follow(oracle, sampler, num_steps, progress)
    if progress:
        progress(f"comparing on {used}", 0, 0)
    forward = compare_forward(model, oracle, found.evaluations, used, dtype)
    stepped = compare_steps(model, oracle, steps, used, dtype)
    return CheckReport(
        model=model.name,
        backend=used,
        dtype=dtype,
        seed=seed,
        mujoco=mujoco.__version__,
        fields=(*forward, *stepped),
        coverage=_coverage(model, found),
        trajectory=_step_coverage(steps),
        widened=widened,
        budget=compare_budget(with_budget_of(model, given), found.evaluations, used, dtype),
        knife_edges=knife_edges(given.mj),
    )


def _lies_on_margins(model: Model, seed: int) -> bool:
    """Whether most random states have a contact or limit on its margin, as if a body slides exactly on the floor."""
    sampler, oracle = Sampler(model.mj, seed), Oracle(model.mj)
    decided = [oracle.evaluate(sampler.random()) is not None for _ in range(_PROBES)]
    return sum(decided) < _PROBES / 2


def _touches_fields_without_margin(model: Model) -> bool:
    """Whether there are pairs of a height field and a box or a mesh without a margin."""
    if not model.mj.nhfield:
        return False
    pairs = zip(model.table.cand_geom1.tolist(), model.table.cand_geom2.tolist(), strict=True)
    found = np.array([pair_type(model.mj, *pair) in _ON_FIELDS for pair in pairs], dtype=bool)
    return bool((model.table.cand_margin + model.table.cand_gap)[found].min(initial=1.0) <= 0)


def _backend(model: Model, backend: str, dtype: str) -> str:
    """The backend that `backend` selects; fails early if it cannot run here."""
    sim = Simulation(model, num_worlds=1, backend=backend, dtype=dtype)
    sim.close()
    return sim.backend


def _converging(model: Model) -> Model:
    """A copy whose solver runs until it converges, in MuJoCo's model and in the engine's table.

    MuJoCo's convex collisions do too; the engine's are always as exact as the precision allows.
    """
    tight = copy(model)
    tight.table = copy(model.table)
    tight.table.mj = copy(model.mj)
    tight.mj.opt.tolerance = tight.mj.opt.ls_tolerance = SOLVER_TOLERANCE
    tight.mj.opt.noslip_tolerance = 0.0  # so that both do the same number of sweeps
    tight.mj.opt.iterations = max(tight.mj.opt.iterations, _ITERATIONS)
    tight.mj.opt.ls_iterations = max(tight.mj.opt.ls_iterations, _LS_ITERATIONS)
    tight.mj.opt.ccd_tolerance, tight.mj.opt.ccd_iterations = CCD_TOLERANCE, CCD_ITERATIONS
    tight.mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE  # large models would store their rows in sparse form
    tolerance = np.array(SOLVER_TOLERANCE)
    tight.table.arrays = {**model.table.arrays, "opt_tolerance": tolerance, "opt_ls_tolerance": tolerance}
    tight.table.arrays["opt_noslip_tolerance"] = np.array(0.0)
    iterations = {"opt_iterations": tight.mj.opt.iterations, "opt_ls_iterations": tight.mj.opt.ls_iterations}
    tight.table.options = {**model.table.options, **iterations}
    return tight


def _coverage(model: Model, found: Found) -> Coverage:
    touched = tuple(evaluation.touched for evaluation in found.evaluations)
    wanted, pairs = targets(model), pairs_of(touched)
    reached = frozenset[tuple[int, int]]().union(*(t.limits for t in touched))
    return Coverage(
        states=dict(Counter(evaluation.state.kind for evaluation in found.evaluations)),
        left_out=found.left_out,
        contacts=sum(t.ncon for t in touched),
        contacts_max=max((t.ncon for t in touched), default=0),
        rows=sum(t.nefc for t in touched),
        rows_max=max((t.nefc for t in touched), default=0),
        limit_rows=sum(t.limit_rows for t in touched),
        pairs={name: pairs[name] for name in sorted({*wanted.pairs, *pairs})},
        limits=len(reached),
        limits_total=len(wanted.limits),
        unreached=(
            *(f"no {name} contact" for name in found.pairs_missed),
            *(_limit_in_words(model.mj, *limit) for limit in found.limits_missed),
        ),
        by_rounding=found.by_rounding,
        readings_left_out=sum(int(np.isnan(e.fields["sensordata"]).sum()) for e in found.evaluations),
    )


def _limit_in_words(mj: mujoco.MjModel, joint: int, side: int) -> str:
    name = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_JOINT, joint)
    return f"{('lower', 'upper')[side]} limit of joint {name!r}" if name else f"a limit of joint number {joint}"


def _step_coverage(steps: Trajectory) -> StepCoverage:
    touched = steps.touched
    return StepCoverage(
        steps=len(touched),
        left_out=steps.left_out,
        by_rounding=steps.by_rounding,
        contacts=sum(t.ncon for t in touched),
        rows=sum(t.nefc for t in touched),
        rows_max=max((t.nefc for t in touched), default=0),
        limit_rows=sum(t.limit_rows for t in touched),
        pairs=dict(sorted(pairs_of(touched).items())),
    )
