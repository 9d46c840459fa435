"""Threads of steps inside JAX programs on a CPU: as many as make a call fastest, off the processor of its caller."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import simengine
from simengine.kernels.host_build import build_library
from simengine.xla import handler_build

# Calls of a kind for whose work one thread needs `work` ns, and to wake each other one takes `wake` ns.
CALLS = """
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>
PACE
extern "C" int64_t threads_after(int64_t calls, int64_t most, int64_t work, int64_t wake) {
  Pace pace;
  for (int64_t i = 0; i < calls; ++i) {
    const int64_t threads = pace.threads(most), late = i % 5 == 0 ? 20 * work : 0;
    pace.note(threads, std::chrono::nanoseconds(work / threads + (threads > 1 ? wake : 0) + late));
  }
  return pace.threads(most);
}
"""


@pytest.fixture(scope="module")
def threads_after() -> Callable[..., int]:
    source = CALLS.replace("PACE", (Path(handler_build.__file__).parent / "pace_host.cpp").read_text())
    function = ctypes.CDLL(str(build_library("pace", source, ["-std=c++17"]))).threads_after
    function.argtypes, function.restype = [ctypes.c_int64] * 4, ctypes.c_int64
    return function


@pytest.mark.parametrize(
    ("work", "wake", "expected"),
    [(50_000, 60_000, 1), (400_000, 60_000, 8), (50_000, 0, 8), (30_000_000, 60_000_000, 8)],
)
def test_the_number_that_is_fastest(threads_after: Callable[..., int], work: int, wake: int, expected: int) -> None:
    assert threads_after(60, 8, work, wake) == expected


def test_a_call_that_lasts_long_is_not_tried_with_one_thread(threads_after: Callable[..., int]) -> None:
    assert all(threads_after(calls, 8, 30_000_000, 0) == 8 for calls in range(1, 5))


@pytest.mark.skipif(sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_helpers_are_fewer_than_processors_and_off_that_of_the_caller() -> None:
    model = simengine.load_model("hopper")
    step = simengine.make_step(model, backend="host", steps=20)
    state = simengine.initial_state(model, num_worlds=64)
    for _ in range(3):
        state = step(state, jnp.zeros((64, model.nu), jnp.float32))
        jax.block_until_ready(state)
    tasks = [int(path.name) for path in Path("/proc/self/task").iterdir()]
    helpers = [task for task in tasks if Path(f"/proc/self/task/{task}/comm").read_text() == "simengine\n"]
    allowed = os.sched_getaffinity(0)
    assert 0 < len(helpers) < len(allowed)
    assert all(len(os.sched_getaffinity(task)) == len(allowed) - 1 for task in helpers)
