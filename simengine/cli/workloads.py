"""Workloads by name: simulations of one model, of several, piles, and the scheduler's own networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco

from simengine import Model, Simulation, load_model
from simengine.cli.errors import UsageError
from simengine.loading import model_path
from simengine.workload import SimulationWorkload
from simengine.zoo import pile_xml
from simengine_scheduler.study.specs import Spec
from simengine_scheduler.study.workloads import NETWORKS, CudaPlace, HostPlace, Workload, make_network

FIVE = ("ant", "grasp", "humanoid", "half_cheetah", "walker2d")
"""The simulations of ACS (arXiv 2401.12377)."""

WORKLOADS = (*FIVE, "mixed", "pile", *sorted(NETWORKS))

_OF_LISTS = ("shards", "emission")  # options that change the kernel list and nothing else


def loaded(name: str) -> Model:
    """A model by short name, with Newton where its file says PGS, as the other benchmarks and their peers have it."""
    mj = mujoco.MjModel.from_xml_path(str(model_path(name)))
    if mj.opt.solver == mujoco.mjtSolver.mjSOL_PGS:
        mj.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    return load_model(mj)


def make_workload(spec: Spec, backend: str, dtype: str = "float32", seed: int = 0) -> Workload:
    """Make a workload from its spec, such as `ant:worlds=8192,shards=2,emission=ahead` or `population:rows=64`.

    Args:
        spec: a name of WORKLOADS, or a model's short name or file. Simulations take `worlds` (of each model), `shards`,
            `emission` and `settle` (steps before the first state), a pile also `bodies` and `kind`; networks take the
            arguments of their classes in `simengine_scheduler.study.workloads`.
        backend: "host" or "cuda".
        dtype: of simulations.
        seed: of states, controls and weights.

    Raises:
        UsageError: an unknown option.
        ValueError, BackendError: an option's value is not possible, or it cannot run here.
    """
    options = dict(spec.options)
    try:
        if spec.name in NETWORKS:
            return make_network(spec.name, HostPlace() if backend == "host" else CudaPlace(), seed=seed, **options)
        return _simulation(spec.name, backend, dtype, seed, **options)
    except TypeError as error:
        raise UsageError(f"workload {str(spec)!r} has an option that {spec.name!r} does not know: {error}") from error


def is_fixed(spec: Spec) -> bool:
    """Whether the workload's steps are the same list again and again, or parts of one."""
    return spec.name in NETWORKS or spec.options.get("emission") == "ahead"


def is_whole(spec: Spec) -> bool:
    """Whether the workload's steps are taken whole, not kernel by kernel."""
    return spec.options.get("emission") == "whole"


def family(spec: Spec) -> Spec:
    """The spec without what changes the kernel list alone: one family steps the same worlds."""
    return Spec(spec.name, {name: value for name, value in spec.options.items() if name not in _OF_LISTS})


def _simulation(
    name: str,
    backend: str,
    dtype: str,
    seed: int,
    worlds: int = 64,
    shards: int = 1,
    emission: str = "counted",
    settle: int = 100,
    **pile: Any,
) -> SimulationWorkload:
    groups = [(model, worlds) for model in models_of(name, **pile)]
    # `serial`, which runs everywhere, takes the steps before those that are measured
    sim = Simulation(groups, backend=backend, executor="serial", dtype=dtype, shards=shards, emission=emission)
    return SimulationWorkload(name, sim, settle, seed)


def models_of(name: str, **options: Any) -> list[Model]:
    """Models of a simulation's groups; `options` are those of a pile. Raises TypeError for others."""
    makers: dict[str, Callable[..., list[Model]]] = {"pile": _pile, "mixed": lambda: [loaded(one) for one in FIVE]}
    return makers[name](**options) if name in makers else _one(name, **options)


def _one(name: str) -> list[Model]:
    return [loaded(name)]


def _pile(bodies: int = 24, kind: str = "mixed") -> list[Model]:
    return [load_model(pile_xml(bodies, kind))]
