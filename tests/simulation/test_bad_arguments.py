"""Arguments that no simulation can be made with are refused in one sentence: what is wrong, where, and what to do."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simengine import BackendError, available_backends, load_model
from simengine_scheduler.native import compiling
from tests.emission.worlds import BALL, refused
from tests.simulation.test_bad_input import make


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
    words = r"unknown executor 'treads' \(did you mean 'threads'\?\); choose one of auto, device, graph"
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


def test_keep_of_what_names_nothing() -> None:
    refused(lambda: make(keep=3), ValueError, "keep is 3, which names no fields; give some of")


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
