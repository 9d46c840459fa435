"""Workloads by name: simulations of one model, of several models and of piles, and the scheduler's networks."""

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
from simengine_scheduler.study.workloads import NETWORKS, CudaTarget, HostTarget, Workload, make_network

FIVE = ("ant", "grasp", "humanoid", "half_cheetah", "walker2d")
"""The simulations of ACS (arXiv 2401.12377)."""

WORKLOADS = (*FIVE, "mixed", "pile", *sorted(NETWORKS))

_OF_LISTS = ("shards", "emission")  # options that change the kernel list and nothing else


def loaded(name: str) -> Model:
    """Load a model by name. Newton replaces PGS, as in the other benchmarks and in the engines they compare with."""
    mj = mujoco.MjModel.from_xml_path(str(model_path(name)))
    if mj.opt.solver == mujoco.mjtSolver.mjSOL_PGS:
        mj.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    return load_model(mj)


def make_workload(spec: Spec, backend: str, dtype: str = "float32", seed: int = 0) -> Workload:
    """Make a workload from its spec, such as `ant:worlds=8192,shards=2,emission=ahead` or `population:rows=64`.

    Args:
        spec: a name in WORKLOADS, or the name or file of a model, with options. Simulations have the options `worlds`
            (number of worlds of each model), `shards`, `emission` and `settle` (number of steps before the first
            state). A pile also has `bodies` and `kind`. The options of networks are the arguments of their classes in
            `simengine_scheduler.study.workloads`.
        backend: "host" or "cuda".
        dtype: precision of simulations.
        seed: seed of states, controls and weights.

    Raises:
        UsageError: the workload has no such option.
        ValueError, BackendError: the value of an option is invalid, or the workload cannot run here.
    """
    options = dict(spec.options)
    try:
        if spec.name in NETWORKS:
            return make_network(spec.name, HostTarget() if backend == "host" else CudaTarget(), seed=seed, **options)
        return _simulation(spec.name, backend, dtype, seed, **options)
    except TypeError as error:
        raise UsageError(f"workload {str(spec)!r} has an option that {spec.name!r} does not know: {error}") from error


def is_fixed(spec: Spec) -> bool:
    """Whether all steps of the workload are the same kernel list, or parts of one list."""
    return spec.name in NETWORKS or spec.options.get("emission") == "ahead"


def is_whole(spec: Spec) -> bool:
    """Whether the workload takes whole steps, not steps kernel by kernel."""
    return spec.options.get("emission") == "whole"


def family(spec: Spec) -> Spec:
    """Return the spec without options that only change the kernel list. A family of workloads steps the same worlds."""
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
    # the steps before the measured ones run on `serial`, which every backend has
    sim = Simulation(groups, backend=backend, executor="serial", dtype=dtype, shards=shards, emission=emission)
    return SimulationWorkload(name, sim, settle, seed)


def models_of(name: str, **options: Any) -> list[Model]:
    """Return the model of each group of a simulation.

    Args:
        name: the name of the workload or model.
        options: options of a pile.

    Raises:
        TypeError: the workload has no such option.
    """
    makers: dict[str, Callable[..., list[Model]]] = {"pile": _pile, "mixed": lambda: [loaded(one) for one in FIVE]}
    return makers[name](**options) if name in makers else _one(name, **options)


def _one(name: str) -> list[Model]:
    return [loaded(name)]


def _pile(bodies: int = 24, kind: str = "mixed") -> list[Model]:
    return [load_model(pile_xml(bodies, kind))]
