"""Runs of the models: steps in every emission, evaluations, and each stage alone."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

import simengine
from benchmarks.every_kernel.models import comb_xml, states
from simengine.backends.base import lanes_for
from simengine.check.states import STATE_ARRAYS, Sampler
from simengine.emission.shard import ShardEmitter
from simengine.engines.list_engine import ListEngine
from simengine.kernels.step_kernel import step_kernel
from simengine.model.pair_types import PAIR_TYPES
from simengine.physics.stage import Stage
from simengine.plan import catalogue
from simengine.plan.evaluation import plan_evaluation
from simengine.plan.launches import Launch, Listed
from simengine.plan.selection import Selection
from simengine.plan.stages import CONSTRAINT, INTEGRATORS, SOLVERS, STAGES, UNCONSTRAINED
from simengine.state.fields import FIELDS, ROW_CLASSES
from simengine_scheduler.core.calls import Item

HOW = ("counted", "ahead")

Runs = Counter[tuple[str, str]]
"""How often a call ran, by its name and the kind of model."""


def worlds_of(stage: Stage) -> tuple[Listed | None, ...]:
    """The lists of worlds that a stage works on in a step, as the step itself would give them; None is all worlds."""
    columns = (*(f"rows_{bound}" for bound in ROW_CLASSES), "rows_more")
    classes = tuple(Listed(column, "size class", number) for number, column in enumerate(columns))
    if stage.name in PAIR_TYPES:
        return (Listed(stage.name, "pair type", PAIR_TYPES.index(stage.name)),)
    if stage is UNCONSTRAINED:
        return classes[:1]
    if stage is CONSTRAINT or stage in SOLVERS.values():
        return classes[1:]
    return classes if stage in INTEGRATORS.values() else (None,)


def single_stages(emitter: ShardEmitter, log: list[str]) -> Iterator[Item]:
    """Emit every stage alone, in the order of a step, after an evaluation that stored every field."""
    stored = frozenset(f.name for f in FIELDS)
    model = emitter._store.model
    evaluation = plan_evaluation(Selection(model, 1, model.opt_integrator, stored, ahead=False), 0)
    used = {stage.name for kernel in evaluation.kernels for stage in kernel.stages}
    for stage in (s for s in STAGES if s.name in used):
        for listed in worlds_of(stage):
            launch = Launch(catalogue.single(stage), listed=listed)
            call = emitter.factory.make(launch, stored, {"rk_stage": 0, "rk_last": 0}).call
            log.append(call.name)
            yield call


def variant(model: simengine.Model) -> str:
    """The kind of group that works on a world of a model."""
    lanes = lanes_for(model.nv)
    return f"{lanes} lanes" if model.nv <= lanes else f"{lanes} lanes, nv > {lanes}"


def run_model(bodies: int, integrator: str, args: argparse.Namespace, runs: Runs, option: str = "") -> list[str]:
    """Steps, an evaluation and single stages of one model; returns what is wrong with the worlds."""
    model = simengine.load_model(comb_xml(bodies, integrator, option))
    hows = HOW[:1] if model.table.finds_pairs else HOW
    return [problem for how in hows for problem in run_comb(model, how, args, runs)]


def made(model: simengine.Model, keep: tuple[str, ...], emission: str, args: argparse.Namespace) -> Any:
    """A simulation with an emission, by the executor that suits it."""
    executor = ("streams" if emission == "counted" else "graph-cached") if args.backend == "cuda" else "auto"
    return simengine.Simulation(
        model,
        args.worlds,
        backend=args.backend,
        executor=executor,
        emission=emission,
        dtype=args.dtype,
        keep=keep,
        on_nonfinite="freeze",
    )


def run_whole(
    bodies: int, integrator: str, in_fluid: bool, knob: str, args: argparse.Namespace, runs: Runs
) -> list[str]:
    """Whole steps of one model; returns what is wrong with the worlds, or with what ran."""
    model = simengine.load_model(comb_xml(bodies, integrator, "", in_fluid, knob))
    expected = step_kernel(integrator.lower(), in_fluid, bool(knob)).name
    wrong = run_comb(model, "whole", args, runs)
    return wrong if runs[expected, variant(model)] else [*wrong, f"steps of {bodies} bodies did not run {expected}"]


def run_comb(model: simengine.Model, emission: str, args: argparse.Namespace, runs: Runs) -> list[str]:
    """The same with one emission; whole steps keep nothing."""
    sim = made(model, () if emission == "whole" else ("cfrc_ext",), emission, args)
    sim.set_state(qpos=states(model, args.worlds), ctrl=np.full(model.nu, 0.5))
    bad = args.worlds - 1
    sim.qvel[bad, 0] = np.nan
    kind = variant(model)
    for evaluate in (*([sim.forward] if emission != "whole" else []), *[sim.step] * args.steps):
        evaluate()
        runs.update((entry.call.name, kind) for entry in sim.schedule.kernel_list)
    host = sim.groups[0].to_host
    status, qpos, qvel = (host(sim.field(name)) for name in ("world_status", "qpos", "qvel"))
    wrong = [f"world {w} of {model.name} is flagged {status[w]}" for w in np.flatnonzero(status) if w != bad]
    lost = (status == 0) & ~(np.isfinite(qpos).all(axis=1) & np.isfinite(qvel).all(axis=1))
    wrong += [f"world {w} of {model.name} is healthy and holds NaN" for w in np.flatnonzero(lost)]
    if status[bad] == 0:
        wrong.append(f"the bad world of {model.name} was not found")
    if emission != "whole":
        sim.forward()
        run_single(sim, kind, runs)
    sim.close()
    return wrong


def run_single(sim: simengine.Simulation, kind: str, runs: Runs) -> None:
    """Each stage of a model's steps alone, after an evaluation; worlds of many trees have them in their steps."""
    engine = sim._engine
    assert isinstance(engine, ListEngine), "single stages need a backend with kernel lists: host or cuda"
    if engine.stores[0].model.has_islands:
        return
    for emitter in engine.emitters[0]:
        log: list[str] = []
        engine.executor.run([single_stages(emitter, log)])
        runs.update((name, kind) for name in log)
    sim.synchronize()


def run_shared(name: str, mj: mujoco.MjModel, args: argparse.Namespace, runs: Runs) -> list[str]:
    """An evaluation that stores every field and steps that keep sensors, from settled states."""
    model = simengine.load_model(mj)
    if name.startswith("tower"):  # a large world, whose islands shall be large ones though the states are of its ruins
        model.table.solve_dense_up_to(8)
    hows = HOW[:1] if model.table.finds_pairs else HOW  # such steps wait for counts
    return [problem for how in hows for problem in run_states(name, model, how, args, runs)]


def run_states(name: str, model: simengine.Model, emission: str, args: argparse.Namespace, runs: Runs) -> list[str]:
    """The same with one emission."""
    mj = model.mj
    sim = made(model, ("cfrc_ext", "site_xpos", "sensordata", "ten_length", "actuator_moment"), emission, args)
    sampler = Sampler(mj, 0)
    one_of_each, known = np.unique(model.table.examples["type"], return_index=True)[1], model.table.examples
    thrown = [sampler.thrown(int(known["geom1"][c]), int(known["geom2"][c])) for c in one_of_each]
    found = [*thrown, *sampler.settled(args.worlds), sampler.random()]
    for field in STATE_ARRAYS:
        sim.set_state(**{field: np.array([getattr(found[w % len(found)], field) for w in range(args.worlds)])})
    for evaluate in (sim.forward, *[sim.step] * args.steps):
        evaluate()
        runs.update((entry.call.name, "shared") for entry in sim.schedule.kernel_list)
    host = sim.groups[0].to_host
    status, qpos = host(sim.field("world_status")), host(sim.field("qpos"))
    sim.forward()
    run_single(sim, "shared", runs)
    sim.close()
    return [f"world {w} of {name} is flagged {status[w]}" for w in np.flatnonzero(status)] + [
        f"{name} holds NaN" for _ in range(int(not np.isfinite(qpos).all()))
    ]
