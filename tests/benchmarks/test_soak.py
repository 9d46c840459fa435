"""The soak: what grows is told from what does not, and a short one is flat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.soak import Soak, measured, trend

SECONDS = np.arange(200.0)


def test_a_line_that_rises_is_told_from_noise() -> None:
    noise = np.random.default_rng(0).normal(size=200)
    assert trend("memory_mib", SECONDS, 300 + noise).is_flat
    assert not trend("memory_mib", SECONDS, 300 + noise + 0.1 * SECONDS).is_flat
    assert trend("memory_mib", SECONDS, 300 + np.minimum(SECONDS, 80)).is_flat, "only the second half counts"
    assert not trend("file_handles", SECONDS, 20 + SECONDS // 50).is_flat
    assert trend("threads", SECONDS, np.full(200, 9.0)).is_flat


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
