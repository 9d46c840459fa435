"""Bad input fails at the call, in one sentence that says what, where and what to do, and changes nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simengine import BackendError, NonFiniteError, Simulation, available_backends, load_model
from simengine_scheduler.native import compiling
from tests.emission.worlds import BALL, host, refused, snapshot
from tests.models import OWN

WORLDS = 4


def make(**options: Any) -> Simulation:
    """A simulation of four balls, with options that a test spoils."""
    return Simulation(**{"model": BALL, "num_worlds": WORLDS, "backend": "host", **options})


# -------------------------------------------------------------------------------------------------- constructor


@pytest.mark.parametrize("worlds", [0, -3, 2.0, "4", True, np.float32(2)])
def test_numbers_of_worlds(worlds: Any) -> None:
    words = rf"model 'ball' was given {re.escape(repr(worlds))} worlds; give a positive integer"
    refused(lambda: make(num_worlds=worlds), ValueError, words)
    refused(lambda: make(model=[(BALL, worlds)], num_worlds=None), ValueError, words)


def test_an_empty_list_of_models() -> None:
    refused(lambda: make(model=[], num_worlds=None), ValueError, "empty list of models; give at least one")


@pytest.mark.parametrize("models", [[BALL], [(BALL,)], [(BALL, 2, 3)], [load_model(BALL)]])
def test_a_list_without_numbers_of_worlds(models: Any) -> None:
    refused(
        lambda: make(model=models, num_worlds=None), ValueError, r"entry 0 of the list .*\(model, number of worlds\)"
    )


def test_a_list_and_a_number_of_worlds() -> None:
    refused(lambda: make(model=[(BALL, 2)]), ValueError, "num_worlds goes with a single model")


def test_a_misspelt_backend() -> None:
    words = r"unknown backend 'hots' \(did you mean 'host'\?\); choose one of auto, cuda, host, jax"
    refused(lambda: make(backend="hots"), ValueError, words)


def test_a_misspelt_emission() -> None:
    words = r"unknown emission 'count' \(did you mean 'counted'\?\); choose one of auto, counted, ahead, whole"
    refused(lambda: make(emission="count"), ValueError, words)


def test_executor_options_mean_nothing_to_jax() -> None:
    words = "backend 'jax' has no executors, so executor_options={'seed': 1} mean nothing; leave them out"
    refused(lambda: make(backend="jax", executor_options={"seed": 1}), ValueError, words)


def test_unknown_backend() -> None:
    refused(lambda: make(backend="vulkan"), ValueError, "unknown backend 'vulkan'; choose one of auto, cuda, host, jax")


def test_a_misspelt_executor() -> None:
    words = r"unknown executor 'treads' \(did you mean 'threads' or .*\?\); choose one of auto, device, graph"
    refused(lambda: make(executor="treads"), ValueError, words)


@pytest.mark.parametrize("name", ["graph-cached", "device", "streams"])
def test_executors_that_the_host_cannot_run(name: str) -> None:
    words = f"executor '{name}' cannot run on backend 'host'; choose one of auto, serial, shuffled, threads, simulated"
    refused(lambda: make(executor=name), ValueError, words)


def test_executors_mean_nothing_to_jax() -> None:
    refused(
        lambda: make(backend="jax", executor="threads"),
        ValueError,
        "backend 'jax' has no executors.*leave it at 'auto'",
    )


def test_unknown_executor_option() -> None:
    refused(
        lambda: make(executor_options={"windows": 3}),
        ValueError,
        r"unknown executor option 'windows' \(did you mean 'window'\?\); the options are window, streams",
    )


@pytest.mark.parametrize("window", [0, -1])
def test_windows_too_small(window: int) -> None:
    refused(
        lambda: make(executor_options={"window": window}), ValueError, f"window={window} is too small; give at least 1"
    )


@pytest.mark.parametrize("dtype", ["float16", np.float16, int, "real", None, 3])
def test_unknown_dtype(dtype: Any) -> None:
    refused(lambda: make(dtype=dtype), ValueError, "unknown dtype .*; choose one of float32, float64")


@pytest.mark.parametrize("shards", [0, -2, 1.5, "2", True])
def test_numbers_of_shards(shards: Any) -> None:
    refused(lambda: make(shards=shards), ValueError, "shards is .*; give a positive integer, or None")


def test_unknown_answer_to_non_finite_worlds() -> None:
    refused(
        lambda: make(on_nonfinite="ignore"),
        ValueError,
        "unknown on_nonfinite 'ignore'; choose one of raise, freeze, reset",
    )


@pytest.mark.parametrize("keep", ["qacceleration", ("xpos", "efc_J"), ("contact_dist",), ("counts",)])
def test_keep_of_what_is_no_world_field(keep: Any) -> None:
    refused(lambda: make(keep=keep), ValueError, "keep names '.*', which is no world field.*; see")


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    words = r"no C\+\+ compiler .*; install one, set CXX, or use backend='jax'"
    compiling.compiler.cache_clear()
    monkeypatch.setattr(compiling.shutil, "which", lambda name: None)
    try:
        refused(make, BackendError, words)
        assert re.search(words, available_backends()["host"])
    finally:
        compiling.compiler.cache_clear()


def test_a_compiler_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    false = tmp_path / "cc-that-fails"
    false.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo cc 1.0 && exit 0\necho "error: out of order" >&2\nexit 1\n'
    )
    false.chmod(0o755)
    compiling.compiler.cache_clear()
    monkeypatch.setenv("CXX", str(false))
    monkeypatch.setenv("SIMENGINE_CACHE_DIR", str(tmp_path / "cache"))
    try:
        refused(make, BackendError, "could not compile kernel .*: error: out of order; try another compiler with CXX=")
        assert [p for p in (tmp_path / "cache").iterdir() if p.is_file()] == []
    finally:
        compiling.compiler.cache_clear()


def test_no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    refused(
        lambda: make(backend="cuda"), BackendError, r"needs CuPy; install simengine\[cuda13\].*or use backend='host'"
    )


def test_no_gpu() -> None:
    if available_backends()["cuda"] == "":
        pytest.skip("there is a GPU here")
    refused(lambda: make(backend="cuda"), BackendError, "cuda backend (found no GPU|needs CuPy).*use backend='host'")


# --------------------------------------------------------------------------------------------- a living simulation

NAN, INF = float("nan"), float("inf")
LONE = [0.0, NAN, 0.0]

CALLS: dict[str, tuple[Callable[[Simulation], Any], type[Exception], str]] = {
    "control shape": (
        lambda s: s.step(ctrl=np.zeros((WORLDS, 3))),
        ValueError,
        r"ctrl has shape \(4, 3\), expected \(4, 2\) or \(2,\)",
    ),
    "scalar control": (lambda s: s.step(ctrl=1.0), ValueError, r"ctrl has shape \(\), expected"),
    "control NaN": (
        lambda s: s.step(ctrl=[[0, 0], [0, NAN], [0, 0], [0, 0]]),
        ValueError,
        r"ctrl holds nan at \[1, 1\]; give numbers that are finite",
    ),
    "control of text": (
        lambda s: s.step(ctrl=["fast", "slow"]),
        ValueError,
        "ctrl is no rectangular array of real numbers",
    ),
    "ragged control": (
        lambda s: s.step(ctrl=[[0, 0], [0]]),
        ValueError,
        "ctrl is no rectangular array of real numbers",
    ),
    "qpos shape": (
        lambda s: s.set_state(qpos=np.zeros((3, 3))),
        ValueError,
        r"qpos has shape \(3, 3\), expected \(4, 3\) or \(3,\)",
    ),
    "qpos transposed": (lambda s: s.set_state(qpos=np.zeros((3, 4))), ValueError, r"qpos has shape \(3, 4\)"),
    "qpos of some": (
        lambda s: s.set_state([0, 1], qpos=np.zeros((4, 3))),
        ValueError,
        r"qpos has shape \(4, 3\), expected \(2, 3\)",
    ),
    "qpos NaN": (
        lambda s: s.set_state(qpos=LONE),
        ValueError,
        r"qpos holds nan at \[1\]; give numbers that are finite",
    ),
    "qvel infinite": (
        lambda s: s.set_state(qpos=[1, 2, 3], qvel=[0, 0, -INF]),
        ValueError,
        r"qvel holds -inf at \[2\]",
    ),
    "beyond float32": (lambda s: s.set_state(qvel=[0, 1e39, 0]), ValueError, r"qvel holds 1e\+39 at \[1\].*float32"),
    "qpos masked": (lambda s: s.set_state(qpos=None), ValueError, "qpos is no rectangular array of real numbers"),
    "complex qpos": (
        lambda s: s.set_state(qpos=[1j, 0, 0]),
        ValueError,
        "qpos is no rectangular array of real numbers",
    ),
    "no state field": (
        lambda s: s.set_state(xpos=[0, 0, 0]),
        ValueError,
        "'xpos' is not a state field that can be set.*; choose from qpos",
    ),
    "world too large": (
        lambda s: s.set_state([1, 4], qpos=[1, 2, 3]),
        ValueError,
        "world 4 does not exist; there are 4, numbered from 0",
    ),
    "world negative": (lambda s: s.reset([-1]), ValueError, "world -1 does not exist; there are 4, numbered from 0"),
    "world fraction": (lambda s: s.reset([0.5]), ValueError, r"worlds must be None, a mask or a list of indices"),
    "world text": (lambda s: s.reset("all"), ValueError, r"worlds must be None, a mask or a list of indices"),
    "worlds twice": (lambda s: s.set_state([1, 1], qpos=np.ones((2, 3))), ValueError, "world 1 .*twice"),
    "mask shape": (
        lambda s: s.reset(np.ones(3, dtype=bool)),
        ValueError,
        r"mask of worlds has shape \(3,\), expected \(4,\)",
    ),
    "mask of matrix": (
        lambda s: s.reset(np.ones((4, 1), dtype=bool)),
        ValueError,
        r"mask of worlds has shape \(4, 1\)",
    ),
    "no step": (lambda s: s.step(0), ValueError, r"step\(n\) takes a positive number of steps, got 0"),
    "negative steps": (lambda s: s.step(-2), ValueError, "positive number of steps, got -2"),
    "half a step": (lambda s: s.step(0.5), ValueError, "positive number of steps, got 0.5"),
    "true steps": (lambda s: s.step(True), ValueError, "positive number of steps, got True"),
    "controls as steps": (lambda s: s.step(np.zeros((4, 2))), ValueError, "positive number of steps"),
    "unknown field": (
        lambda s: s.field("qacceleration"),
        ValueError,
        "the state table has no field 'qacceleration'.*; see",
    ),
    "misspelt field": (lambda s: s.field("qfrc_bais"), ValueError, r"no field 'qfrc_bais' \(did you mean 'qfrc_bias'"),
    "misspelt state field": (
        lambda s: s.set_state(qpso=[0, 0, 0]),
        ValueError,
        r"'qpso' is not a state field that can be set \(did you mean 'qpos'",
    ),
    "misspelt parameter": (
        lambda s: s.set_params(geom_frictions=1.0),
        ValueError,
        r"'geom_frictions' is not a parameter that worlds may differ in \(did you mean 'geom_friction'",
    ),
    "misspelt parameter to read": (lambda s: s.params("body_mas"), ValueError, r"\(did you mean 'body_mass'"),
    "misspelt sensor": (lambda s: s.sensor("heigth"), ValueError, r"no sensor 'heigth' \(did you mean 'height'\?\)"),
    "misspelt keyframe": (
        lambda s: s.reset(keyframe="alfot"),
        ValueError,
        r"no keyframe 'alfot' \(did you mean 'aloft'\?\); it has numbers 0 to 0 and names 'aloft'",
    ),
    "unknown group": (lambda s: s.schedule.counts(3), IndexError, "there is no group 3; sim.groups has 1"),
    "stale field": (
        lambda s: s.field("qacc"),
        ValueError,
        r"'qacc' does not hold the latest step; call forward\(\), or pass keep=",
    ),
    "stale qacc": (lambda s: s.qacc, ValueError, "'qacc' does not hold the latest step"),
    "contact field": (
        lambda s: s.field("contact_dist"),
        ValueError,
        r"no fixed number of entries a world; use contacts\(world\)",
    ),
    "row field": (
        lambda s: s.field("efc_J"),
        ValueError,
        r"no fixed number of entries a world; use constraints\(world\)",
    ),
    "column field": (lambda s: s.field("counts"), ValueError, "the state table has no field 'counts'"),
    "stale contacts": (
        lambda s: s.contacts(0),
        ValueError,
        r"contacts\(world\) shows the latest forward\(\); call forward\(\) first",
    ),
    "stale rows": (lambda s: s.constraints(0), ValueError, r"constraints\(world\) shows the latest forward"),
    "contacts of none": (lambda s: s.contacts(4), ValueError, "world 4 does not exist; there are 4, numbered from 0"),
    "contacts of -1": (lambda s: s.contacts(-1), ValueError, "world -1 does not exist"),
    "contacts of text": (lambda s: s.contacts("0"), ValueError, "world '0' does not exist"),
}


OF_THE_LIST = ("unknown group",)
"""Calls to what only backends with kernel lists have."""


@cache
def on_jax() -> Simulation:
    """One simulation for all calls, since it is compiled."""
    return make(backend="jax")


@pytest.mark.parametrize(
    ("name", "backend"), [*((n, "host") for n in CALLS), *((n, "jax") for n in CALLS if n not in OF_THE_LIST)]
)
def test_a_bad_call_changes_nothing(name: str, backend: str) -> None:
    call, kind, words = CALLS[name]
    sim = make() if backend == "host" else on_jax()
    sim.set_state(qpos=np.random.default_rng(0).normal(size=(WORLDS, 3)), qvel=[1, 2, 3], ctrl=[0.5, -0.5])
    sim.step(3)
    before = snapshot(sim)
    refused(lambda: call(sim), kind, words)
    assert snapshot(sim) == before
    sim.step()
    assert snapshot(sim) != before


def test_fields_of_an_earlier_forward_are_stale_after_a_step() -> None:
    sim = make()
    sim.forward()
    assert sim.qacc.shape == (WORLDS, 3)
    sim.step()
    refused(lambda: sim.qacc, ValueError, "does not hold the latest step")
    refused(lambda: sim.contacts(0), ValueError, "call forward")


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.qpos,
        lambda s: s.qvel,
        lambda s: s.ctrl,
        lambda s: s.time,
        lambda s: s.model,
        lambda s: s.field("qpos"),
        lambda s: s.contacts(0),
        lambda s: s.constraints(0),
        lambda s: s.reset([0]),
        lambda s: s.set_state(ctrl=[0, 0]),
        lambda s: s.step(ctrl=np.zeros((2, 2))),
    ],
)
def test_single_model_calls_on_several_models(call: Callable[[Simulation], Any]) -> None:
    sim = Simulation([(BALL, 2), (OWN["pile"], 1)], backend="host")
    before = snapshot(sim)
    refused(
        lambda: call(sim), ValueError, r"needs to know the group of a simulation of several models; use sim.groups\[i\]"
    )
    assert snapshot(sim) == before


def test_stepping_after_close() -> None:
    sim = make()
    sim.close()
    sim.close()
    calls: dict[str, Callable[[], Any]] = {
        "step": sim.step,
        "forward": sim.forward,
        "reset": sim.reset,
        "qpos": lambda: sim.qpos,
        "set_state": lambda: sim.set_state(qpos=[0, 0, 0]),
        "add_group": lambda: sim.add_group(BALL, 1),
        "kernel_list": lambda: sim.schedule.kernel_list,
        "trace_step": sim.schedule.trace_step,
    }
    for name, call in calls.items():
        assert refused(call, RuntimeError, "closed; make a new Simulation"), name
    assert repr(sim) == "Simulation(4 x 'ball', closed)"


def test_a_trace_of_jax() -> None:
    sim = make(backend="jax")
    refused(sim.schedule.trace_step, BackendError, "backend 'jax' runs no kernel list.*use backend='host' or 'cuda'")


def test_fields_that_jax_does_not_compute() -> None:
    sim = make(backend="jax", keep="solver_niter")
    sim.step()
    refused(
        lambda: sim.field("solver_niter"),
        ValueError,
        "backend 'jax' does not compute field 'solver_niter'; use backend=",
    )


def test_a_world_gone_bad_says_where_and_what_to_do() -> None:
    sim = host(BALL, 9)
    np.asarray(sim.qpos)[[1, 2, 3, 4, 7], 0] = NAN
    error = refused(sim.step, NonFiniteError, r"world 1 \(in input\).*and 1 more; those worlds are frozen .*reset them")
    assert isinstance(error, FloatingPointError)
    assert error.worlds == (1, 2, 3, 4, 7)
    assert error.stages == ("input",) * 5
