"""Paired speeds of two checkouts: the arithmetic, what each process imports, and a run of this checkout with itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import paired, timed_checkout

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("n", "low", "high", "confidence"),
    [
        (1, 0, 0, 0.0),
        (5, 0, 4, 1 - 2 / 32),
        (6, 0, 5, 1 - 2 / 64),
        (8, 0, 7, 1 - 2 / 256),
        (9, 1, 7, 1 - 2 * 10 / 512),
        (12, 2, 9, 1 - 2 * 79 / 4096),
    ],
)
def test_the_interval_of_a_median_is_that_of_the_sign_test(n: int, low: int, high: int, confidence: float) -> None:
    values = [float(i * 5 % n) if n in (6, 8, 9, 12) else float(n - 1 - i) for i in range(n)]
    assert paired.median_interval(sorted(values, reverse=True)) == pytest.approx((low, high, confidence))


def test_a_ratio_above_one_is_faster_and_pairs_are_of_one_round() -> None:
    row = paired.summary([100.0, 300.0, 120.0], [50.0, 150.0, 40.0])
    assert row["ratio"] == 2.0
    assert row["ratio_interval"] == [2.0, 3.0]
    assert row["before_us"] == 120.0
    assert row["after_us_spread"] == [40.0, 150.0]
    assert not row["slower"]


@pytest.mark.parametrize(
    ("ratios", "slower"),
    [([0.9] * 9, True), ([0.9] * 8 + [1.1], True), ([0.9] * 7 + [1.1] * 2, False), ([0.98] * 9, False)],
)
def test_only_what_is_slower_beyond_the_spread_is_called_slower(ratios: list[float], slower: bool) -> None:
    row = paired.summary(ratios, [1.0] * len(ratios))
    assert row["slower"] is slower
    assert ("SLOWER" in paired.printed({"case": "ant", "worlds_each": 2, **row})) is slower


def test_steps_fill_the_time_in_whole_sets_of_controls() -> None:
    assert paired.steps_within(1000.0, 0.5) == 500
    assert paired.steps_within(1e9, 0.5) == 10


def test_folders_of_packages_come_after_the_checkout_and_packages_do_not(tmp_path: Path) -> None:
    for name in ("envs", "scheduler"):
        (tmp_path / name / f"simengine_{name}").mkdir(parents=True)
    (tmp_path / "scheduler" / "__init__.py").touch()
    assert timed_checkout.import_folders(tmp_path) == [str(tmp_path), str(tmp_path / "envs")]


def test_another_checkout_is_never_timed_in_place_of_the_one_that_was_named(tmp_path: Path) -> None:
    options = ["--checkout", str(tmp_path), "--model", "ant", "--worlds", "1", "--backend", "host", "--steps", "1"]
    command = [sys.executable, "-P", timed_checkout.__file__, *options]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)})
    assert answer.returncode == 1
    assert f"{tmp_path} holds no package simengine" in answer.stderr


def test_a_folder_that_is_no_checkout_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", ["paired", "--before", str(tmp_path), "--after", str(ROOT)])
    with pytest.raises(SystemExit):
        paired.main()
    assert "give the root of a checkout" in capsys.readouterr().err


def test_order_alternates_and_the_loss_is_the_exit_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    turns: list[tuple[str, int]] = []
    other = tmp_path / "other"
    (other / "simengine").mkdir(parents=True)
    (other / "simengine" / "__init__.py").touch()

    def fake(checkout: Path, models: object, worlds: int, steps: int, args: object) -> float:
        turns.append((checkout.name, steps))
        return 130.0 if checkout == other else 100.0

    monkeypatch.setattr(paired, "timed", fake)
    common = ["--case", "ant", "--worlds", "3", "--rounds", "2", "--seconds", "0.5"]
    monkeypatch.setattr("sys.argv", ["paired", "--before", str(ROOT), "--after", str(other), *common])
    assert paired.main() == 1
    assert turns == [(name, 50) for name in ("other", ROOT.name)] + [
        (name, 5000) for name in (ROOT.name, "other", "other", ROOT.name)
    ]
    monkeypatch.setattr("sys.argv", ["paired", "--before", str(other), "--after", str(ROOT), *common])
    assert paired.main() == 0


def test_a_checkout_is_compared_with_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "out" / "paired.json"
    small = ["--case", "ant", "--worlds", "2", "--rounds", "1", "--seconds", "0.001", "--warmup", "10"]
    monkeypatch.setattr(
        "sys.argv", ["paired", "--before", str(ROOT), "--after", str(ROOT), *small, "--json", str(file)]
    )
    assert paired.main() in (0, 1)
    found = json.loads(file.read_text())
    assert {"hardware", "versions", "date"} < set(found)
    assert str(ROOT) not in file.read_text()
    assert found["command"].endswith("--rounds 1 --seconds 0.001 --warmup 10 --case 'ant' --worlds 2")
    (row,) = found["rows"]
    assert row["before_us"] > 0
    assert 0.01 < row["ratio"] < 100
    assert "ant" in capsys.readouterr().out
