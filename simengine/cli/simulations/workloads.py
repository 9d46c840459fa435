"""Workloads by name: simulations of one model, of several models and of piles, and the scheduler's networks.

In *asynchronous* and *generations*, robots pause, or are born and die, so that lists vary in every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco

from simengine import Model, Simulation, load_model
from simengine.cli.options.errors import UsageError
from simengine.loading import model_path
from simengine.varying_workload import AsynchronousWorkload, GenerationsWorkload
from simengine.workload import SimulationWorkload
from simengine.zoo import pile_xml, random_robot
from simengine_scheduler.study.specs import Spec
from simengine_scheduler.study.workloads import NETWORKS, CudaTarget, HostTarget, Workload, make_network

FIVE = ("ant", "grasp", "humanoid", "half_cheetah", "walker2d")
"""The simulations of ACS (arXiv 2401.12377)."""

WORKLOADS = (*FIVE, "asynchronous", "clutter", "generations", "mixed", "pile", "robots", *sorted(NETWORKS))

_OWN = {"asynchronous": ("form",), "generations": ("every",)}  # options that are not of the models
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
            state). A pile also has `bodies` and `kind`, and those with robots have `count`. `asynchronous` has `form`,
            "varying" or "fixed", and `generations` has `every` (steps between births). The options of networks are the
            arguments of their classes in `simengine_scheduler.study.workloads`.
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
    """Whether the lists of the workload wait for no counts, so that executors of fixed lists can run them."""
    return spec.name in NETWORKS or spec.options.get("emission") in ("ahead", "stages-ahead")


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
    **own: Any,
) -> SimulationWorkload:
    of_workload = {option: own.pop(option) for option in _OWN.get(name, ()) if option in own}
    models = models_of(name, **own)
    # the steps before the measured ones run on `serial`, which every backend has
    options: dict[str, Any] = {"backend": backend, "executor": "serial", "dtype": dtype}
    born = [models.pop() for _ in range(len(models) // 3)] if name == "generations" else []
    sim = Simulation([(model, worlds) for model in models], **options, shards=shards, emission=emission)
    if name == "generations":
        return GenerationsWorkload(name, sim, born, settle=settle, seed=seed, **of_workload)
    if name == "asynchronous":
        return AsynchronousWorkload(name, sim, settle, seed, **of_workload)
    return SimulationWorkload(name, sim, settle, seed)


def models_of(name: str, **options: Any) -> list[Model]:
    """Return the model of each group of a simulation.

    Args:
        name: the name of the workload or model.
        options: options of a pile.

    Raises:
        TypeError: the workload has no such option.
    """
    makers: dict[str, Callable[..., list[Model]]] = {
        "asynchronous": _robots,
        "clutter": _clutter,
        "generations": lambda count=16: _robots(count + count // 2),  # half as many are born
        "mixed": lambda: [loaded(one) for one in FIVE],
        "pile": _pile,
        "robots": _robots,
    }
    return makers[name](**options) if name in makers else _one(name, **options)


def _one(name: str) -> list[Model]:
    return [loaded(name)]


def _pile(bodies: int = 24, kind: str = "mixed") -> list[Model]:
    return [load_model(pile_xml(bodies, kind))]


def _clutter() -> list[Model]:
    """Heaps of 8 to 24 bodies, which are solved island by island."""
    return [model for bodies in (8, 12, 16, 24) for model in _pile(bodies)]


def _robots(count: int = 64) -> list[Model]:
    """Robots that all differ."""
    return [load_model(random_robot(seed)) for seed in range(count)]
