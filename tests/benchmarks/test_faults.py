"""Injected faults: damaged files are found, nothing that is loaded runs code, and killed commands go on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.faults import gpu
from benchmarks.faults.files import flipped, kinds, torn, with_code
from benchmarks.faults.outcome import Outcomes
from benchmarks.faults.processes import (
    failing_compilers,
    full_disk,
    killed_building,
    killed_saving,
    killed_training,
    run_on,
)
from tests.helpers.checkout import ROOT


def assert_nothing_wrong(outcomes: Outcomes, trials: int) -> None:
    assert outcomes.wrong == []
    assert outcomes.as_row()["trials"] >= trials


def test_damaged_files_are_found_and_run_no_code(tmp_path: Path) -> None:
    for kind in kinds(tmp_path):
        damaged = flipped(kind, 60, seed=1)
        assert_nothing_wrong(damaged, 60)
        assert damaged.found + damaged.recovered > 20
        cut = torn(kind, 30, seed=1)
        assert_nothing_wrong(cut, 30)
        assert cut.harmless == 0
        if kind.path.suffix == ".npz":
            assert_nothing_wrong(with_code(kind, tmp_path), 4)


@pytest.mark.slow
def test_a_full_disk_and_a_failing_compiler_are_told(tmp_path: Path) -> None:
    assert_nothing_wrong(full_disk(tmp_path), 6)
    assert_nothing_wrong(failing_compilers(tmp_path), 5)


@pytest.mark.slow
def test_what_was_killed_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    for kill in (killed_building, killed_saving, killed_training):
        assert_nothing_wrong(kill(tmp_path, 2, seed=1), 2)


@pytest.mark.slow
def test_the_script_counts_and_its_exit_code_tells(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.faults", "--only", "files", "--files", "5", "--json", "-"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(row["trials"] >= 4 and not row["wrong"] for row in json.loads(done.stdout)["rows"])


def test_faults_on_a_gpu_are_counted_by_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter(
        [
            *({"fatal": True, "call": "step", "said": "a CUDA fault was noticed at call step"},) * 3,
            {"fatal": True, "call": "step", "said": "a fault. It was somewhere"},
            None,
        ]
    )
    monkeypatch.setattr(gpu, "_printed", lambda *_: ([told] if (told := next(said)) else [], "it died"))
    row = gpu.writing_beyond().as_row()
    assert (row["trials"], row["found"], len(row["wrong"])) == (len(gpu.HOW), 3, 2)
    assert row["wrong"][-1].endswith("it died")
    ends = [{"more": 1, "said": said, "same": True} for said in (None, "out of memory", "something else")]
    monkeypatch.setattr(gpu, "_printed", lambda *_: ([*ends, {**ends[0], "same": False}] * 2, ""))
    row = gpu.ending_memory().as_row()
    assert (row["harmless"], row["found"], len(row["wrong"])) == (8, 8, 16)


@pytest.mark.gpu
def test_damaged_kernels_of_a_gpu_are_built_again(tmp_path: Path) -> None:
    for fault in gpu.DAMAGES:
        row = gpu.damaged_kernels(fault, tmp_path, run_on("cuda"), 1, 0).as_row()
        assert (row["recovered"], row["wrong"]) == (1, [])
