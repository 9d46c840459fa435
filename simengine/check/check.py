"""`check_model`: find states that cover a model, and compare this engine with MuJoCo in them."""

from __future__ import annotations

import os
from collections import Counter
from copy import copy

import mujoco
import numpy as np

from simengine import Model, Simulation, load_model
from simengine.check.compare import compare_forward, compare_steps
from simengine.check.oracle import Oracle, pair_type, with_margins
from simengine.check.report import LEAST_MARGIN, CheckReport, Coverage, StepCoverage
from simengine.check.search import Found, Progress, find_states, targets
from simengine.check.states import Sampler
from simengine.check.trajectory import Trajectory, follow, pairs_of

SOLVER_TOLERANCE = 1e-15  # of the cost: its square root, nearly, remains in the acceleration where MuJoCo stops
CCD_TOLERANCE, CCD_ITERATIONS = 1e-12, 500
_PROBES = 20  # random states that tell whether a model always lies on a margin
_WIDER = 1e-3  # [m, rad] by which margins are then widened for the check
_ON_FIELDS = ("hfield-box", "hfield-mesh")  # of which MuJoCo needs a margin to find the least penetration
_ITERATIONS, _LS_ITERATIONS = 100, 50  # MuJoCo's defaults, enough to get there


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

    The states are random, settled by letting MuJoCo drop the model, and thrown so that chosen geoms touch. What they
    miss of the model's pair types and joint limits is searched for. Both solvers run until they converge, to 1e-15, on
    copies of the model. States whose contacts or limits are within 1e-6 of their margin are left out and counted; so
    are, field by field, states in which a difference is no more than a few times what rounding the poses, inertia,
    rows and forces that any engine holds does to MuJoCo's own value, the few in which rounding the state does, and
    readings of touch sensors of forces that point at the very edge of a site, and of nearest points where others are as
    near. States with contacts of meshes that MuJoCo itself does not find are left out with those on a margin.

    A model that lies on a margin in most states is compared with all margins 1e-3 wider, on both sides. One in which
    boxes or meshes touch height fields without a margin is compared with margins of 1e-9: without one MuJoCo does not
    find the least penetration of these, but less.

    Args:
        source: anything `load_model` takes. Of a `Model` its table is what the engine computes with, and its `mj` what
            MuJoCo does.
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64".
        num_states: states in which fields are compared, before the search for what they miss.
        num_steps: steps of MuJoCo from whose states one step is compared.
        tries: most states tried for each pair type and joint limit that the states miss.
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
    model = _converging(load_model(source))
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
    )


def _lies_on_margins(model: Model, seed: int) -> bool:
    """Whether most random states have a contact or limit on its margin, as where a body slides exactly on the floor."""
    sampler, oracle = Sampler(model.mj, seed), Oracle(model.mj)
    decided = [oracle.evaluate(sampler.random()) is not None for _ in range(_PROBES)]
    return sum(decided) < _PROBES / 2


def _touches_fields_without_margin(model: Model) -> bool:
    """Whether there are pairs of a height field and a box or a mesh whose contacts begin where they touch."""
    if not model.mj.nhfield:
        return False
    pairs = zip(model.cand_geom1.tolist(), model.cand_geom2.tolist(), strict=True)
    found = np.array([pair_type(model.mj, *pair) in _ON_FIELDS for pair in pairs], dtype=bool)
    return bool((model.cand_margin + model.cand_gap)[found].min(initial=1.0) <= 0)


def _backend(model: Model, backend: str, dtype: str) -> str:
    """The backend that `backend` stands for; fails before anything takes long if it cannot run here."""
    sim = Simulation(model, num_worlds=1, backend=backend, dtype=dtype)
    sim.close()
    return sim.backend


def _converging(model: Model) -> Model:
    """A copy whose solver runs until it converges, in MuJoCo's model as in the engine's table; so do MuJoCo's convex
    collisions, which the engine finds as exactly as the precision allows in any case."""
    tight = copy(model)
    tight.mj = copy(model.mj)
    tight.mj.opt.tolerance = tight.mj.opt.ls_tolerance = SOLVER_TOLERANCE
    tight.mj.opt.noslip_tolerance = 0.0  # so that both do the same number of sweeps
    tight.mj.opt.iterations = max(tight.mj.opt.iterations, _ITERATIONS)
    tight.mj.opt.ls_iterations = max(tight.mj.opt.ls_iterations, _LS_ITERATIONS)
    tight.mj.opt.ccd_tolerance, tight.mj.opt.ccd_iterations = CCD_TOLERANCE, CCD_ITERATIONS
    tight.mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE  # large models would list their rows sparse
    tolerance = np.array(SOLVER_TOLERANCE)
    tight.arrays = {**model.arrays, "opt_tolerance": tolerance, "opt_ls_tolerance": tolerance}
    tight.arrays["opt_noslip_tolerance"] = np.array(0.0)
    iterations = {"opt_iterations": tight.mj.opt.iterations, "opt_ls_iterations": tight.mj.opt.ls_iterations}
    tight.options = {**model.options, **iterations}
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
        contacts=sum(t.ncon for t in touched),
        rows=sum(t.nefc for t in touched),
        rows_max=max((t.nefc for t in touched), default=0),
        limit_rows=sum(t.limit_rows for t in touched),
        pairs=dict(sorted(pairs_of(touched).items())),
    )
