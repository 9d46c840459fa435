"""Whether `streams` launches runs of calls as graphs follows from what took less time."""

from __future__ import annotations

import random

import pytest

from simengine_scheduler.executors.pieces_trial import PiecesTrial


class Clock:
    """Time goes on as runs take it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.synchronised = 0

    def synchronize(self) -> None:
        self.synchronised += 1


def runs(
    trial: PiecesTrial, clock: Clock, number: int, with_pieces: float, without: float, built: int = 1
) -> list[bool]:
    """Make runs of ten calls that take so long with and without pieces. Returns which of them had some."""
    found = []
    for _ in range(number):
        found.append(trial.begins())
        clock.now += with_pieces if found[-1] else without
        trial.ended(10, built)
    return found


@pytest.mark.parametrize(("with_pieces", "without"), [(1.0, 2.0), (2.0, 1.0)])
def test_what_took_less_time_runs_on(with_pieces: float, without: float) -> None:
    clock = Clock()
    trial = PiecesTrial(clock.synchronize, lambda: clock.now)
    assert all(runs(trial, clock, 32, with_pieces, without))
    turns = runs(trial, clock, 48, with_pieces, without)
    assert turns == ([True] * 8 + [False] * 8) * 3
    assert clock.synchronised == 48
    assert set(runs(trial, clock, 200, with_pieces, without)) == {with_pieces < without}
    assert clock.synchronised == 48


def test_there_is_another_trial_when_times_may_have_changed() -> None:
    clock = Clock()
    trial = PiecesTrial(clock.synchronize, lambda: clock.now)
    runs(trial, clock, 32 + 48, 2.0, 1.0)
    assert not trial.pays
    runs(trial, clock, 256 + 48, 1.0, 2.0)
    assert trial.pays
    runs(trial, clock, 4096 + 48, 2.0, 1.0)
    assert not trial.pays


def test_learning_goes_on_where_few_graphs_make_no_difference() -> None:
    """Runs with pieces get faster only when most graphs have been built, which is after the first trial."""
    clock = Clock()
    trial = PiecesTrial(clock.synchronize, lambda: clock.now)
    runs(trial, clock, 32 + 160, 1.05, 1.0)
    assert trial.learning
    assert trial.pays
    runs(trial, clock, 256 + 48, 0.5, 1.0)
    assert trial.pays
    assert not trial.learning
    slower = PiecesTrial(clock.synchronize, lambda: clock.now)
    runs(slower, clock, 32 + 160 + 256 + 160, 1.05, 1.0)
    assert not slower.pays
    assert not slower.learning


def test_there_is_no_trial_while_graphs_are_built_or_without_graphs() -> None:
    clock = Clock()
    trial = PiecesTrial(clock.synchronize, lambda: clock.now)
    assert all(runs(trial, clock, 200, 2.0, 1.0, built=0))
    trial = PiecesTrial(clock.synchronize, lambda: clock.now)
    for built in range(1, 100):
        assert trial.begins()
        trial.ended(10, built)
    assert clock.synchronised == 0


def test_one_slow_run_decides_nothing() -> None:
    clock = Clock()
    trial = PiecesTrial(clock.synchronize, lambda: clock.now)
    runs(trial, clock, 34, 1.0, 2.0)
    runs(trial, clock, 1, 1000.0, 2000.0)  # another program takes the processor
    runs(trial, clock, 45, 1.0, 2.0)
    assert trial.pays


def test_what_a_program_does_between_runs_does_not_count() -> None:
    clock = Clock()
    trial = PiecesTrial(clock.synchronize, lambda: clock.now)
    runs(trial, clock, 32, 1.0, 2.0)
    for number in range(48):
        clock.now += 1000.0 if number // 8 % 2 == 0 else 0.0
        runs(trial, clock, 1, 1.0, 2.0)
    assert trial.pays


def test_the_device_counts_where_a_program_waits_for_it_between_runs() -> None:
    clock, left = Clock(), [0.0]  # and what the device has still to do

    def synchronize() -> None:
        clock.now += left[0]
        left[0] = 0.0

    trial = PiecesTrial(synchronize, lambda: clock.now)
    for _ in range(32 + 160):
        with_pieces = trial.begins()
        clock.now += 0.5 if with_pieces else 1.0
        left[0] += 2.0 if with_pieces else 1.0
        trial.ended(10, 1)
        synchronize()
    assert not trial.pays


def test_pieces_that_keep_a_busy_host_longer_do_not_pay() -> None:
    """A launch of a graph takes longer while others are under way."""
    clock, under_way = Clock(), [0]

    def synchronize() -> None:
        under_way[0] = 0

    trial = PiecesTrial(synchronize, lambda: clock.now)
    for _ in range(32 + 160):
        with_pieces = trial.begins()
        clock.now += (0.5 + 0.6 * under_way[0]) if with_pieces else 1.0
        under_way[0] += 1
        trial.ended(10, 1)
    assert not trial.pays


def test_pieces_that_are_a_tenth_faster_are_mostly_found_although_runs_are_disturbed() -> None:
    found = 0
    for seed in range(40):
        clock, draw = Clock(), random.Random(seed)
        trial = PiecesTrial(clock.synchronize, lambda clock=clock: clock.now)  # type: ignore[misc]
        while trial.learning or not trial._trials:
            runs(trial, clock, 1, 0.9 * draw.uniform(1.0, 1.6), draw.uniform(1.0, 1.6))
        found += trial.pays
    assert found >= 36


def test_ways_that_take_about_as_long_have_a_longer_trial() -> None:
    lengths = []
    for with_pieces in (0.5, 0.95, 2.0):
        clock = Clock()
        trial = PiecesTrial(clock.synchronize, lambda clock=clock: clock.now)  # type: ignore[misc]
        runs(trial, clock, 32, with_pieces, 1.0)
        lengths.append(0)
        while trial.comparing:
            runs(trial, clock, 1, with_pieces, 1.0)
            lengths[-1] += 1
        assert trial.pays is (with_pieces < 1.0)
    assert lengths == [48, 160, 48]
