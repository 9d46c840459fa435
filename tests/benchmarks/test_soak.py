"""The soak: what grows is told from what does not, and a short one is flat."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from benchmarks.soak import Soak, Trend, measured, of_process, trend

SECONDS = np.arange(200.0)


def line(name: str, values: np.ndarray, rounds: float = 400) -> Trend:
    return trend(name, SECONDS, values, rounds)


def test_a_line_that_rises_is_told_from_noise() -> None:
    noise = np.random.default_rng(0).normal(size=200)
    assert line("memory_mib", 300 + noise).is_flat
    assert not line("memory_mib", 300 + noise + 0.1 * SECONDS).is_flat
    assert line("memory_mib", 300 + np.minimum(SECONDS, 80)).is_flat, "only the second half counts"
    assert not line("file_handles", 20 + SECONDS // 50).is_flat
    assert line("threads", np.full(200, 9.0)).is_flat


def test_a_leak_of_a_few_kib_a_round_is_told_from_what_comes_and_goes() -> None:
    noise = 0.3 * np.random.default_rng(0).normal(size=200)
    filled = 300 + noise + np.minimum(0.5 * SECONDS, 40)
    assert line("in_use_mib", filled).is_flat, "caches fill up in the first half"
    leak = 6 / 1024 * 2 * SECONDS  # 6 KiB in each of 400 rounds
    assert not line("in_use_mib", filled + leak).is_flat
    assert not line("gpu_in_use_mib", filled + leak).is_flat
    assert line("memory_mib", filled + leak).is_flat, "a percent of all memory is more than that"
    assert not line("python_blocks", 5e5 + 30 * noise + 2 * 30 * SECONDS).is_flat


def test_memory_of_a_gpu_is_that_of_the_process_alone() -> None:
    answer = "4711, 512\n12, 90000\n4711, 34\n"
    assert of_process(answer, 4711) == 546
    assert of_process(answer, 1) is None
    assert of_process("4711, [N/A]\n", 4711) is None
    assert of_process("No devices were found\n", 4711) is None


def test_memory_in_use_counts_what_is_allocated_and_not_what_is_freed() -> None:
    before = measured("host")
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    leaked = [libc.malloc(4096) for _ in range(1000)]
    during = measured("host")
    for each in leaked:
        libc.free(each)
    assert during["in_use_mib"] - before["in_use_mib"] == pytest.approx(4.0, abs=0.5)
    assert measured("host")["in_use_mib"] - before["in_use_mib"] == pytest.approx(0.0, abs=0.5)


@pytest.mark.slow
def test_rounds_leave_no_threads_and_no_files(tmp_path: Path) -> None:
    running = Soak("host", 0, tmp_path)
    for _ in range(4):
        running.round()
    before = measured("host")
    for _ in range(6):
        running.round()
    after = measured("host")
    running.close()
    assert after["threads"] <= before["threads"]
    assert after["file_handles"] <= before["file_handles"]
