"""Candidates of the automatic executor that get faster in the course of the trials, as those do that keep graphs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from simengine_scheduler import KernelCall
from tests.scheduler.timed_executors import Clock, Slow, counting, of, settled


class Learner(Slow):
    """Takes less time the more runs it has had."""

    def run(self, emitters: Any) -> Any:
        self.seconds *= 0.97
        return super().run(emitters)


@pytest.mark.parametrize(("first", "chosen"), [(2e-3, "learner"), (20e-3, "steady")])
def test_a_candidate_that_learns_has_more_turns(clock: Clock, first: float, chosen: str) -> None:
    executor, made = of(clock, steady=0.5e-3, learner=(Learner, first))
    settled(executor, 2)
    assert executor.executor is made[chosen]
    assert made["steady"].ran <= 129
    least, most = (50, 129) if chosen == "learner" else (5, 50)  # one that is far off has few turns
    assert least < made["learner"].ran <= most


class Keeper(Slow):
    """Makes a graph for each list that it sees for the first time."""

    def __init__(self, name: str, seconds: float, clock: Clock) -> None:
        super().__init__(name, seconds, clock)
        self.seen: set[int] = set()

    @property
    def built(self) -> int:
        return len(self.seen)

    def key(self, calls: list[KernelCall]) -> int:
        return len(calls)

    def run(self, emitters: Any) -> Any:
        (calls,) = emitters
        key = self.key(calls)
        self.clock.now += 0.0 if key in self.seen else 5e-3
        self.seen.add(key)
        return super().run(emitters)


def test_a_candidate_that_makes_graphs_has_turns_until_it_has_them(clock: Clock) -> None:
    executor, made = of(clock, steady=1e-3, keeper=(Keeper, 0.5e-3))
    draw = random.Random(1)
    settled(executor, lambda: [counting(draw.randint(1, 12))[1]()])
    assert executor.executor is made["keeper"]


def test_a_candidate_that_says_that_it_learns_has_turns_until_it_has(clock: Clock) -> None:
    """It takes twice as long as the other one in its first 70 runs, each of which makes a graph, and then half."""

    class Learner(Slow):
        @property
        def learning(self) -> bool:
            return self.ran < 70

        @property
        def built(self) -> int:
            return min(self.ran, 70)

        def run(self, emitters: Any) -> Any:
            self.seconds = 2e-3 if self.learning else 0.5e-3
            return super().run(emitters)

    executor, made = of(clock, steady=1e-3, learner=(Learner, 2e-3))
    settled(executor)
    assert executor.executor is made["learner"]


def test_a_candidate_is_judged_by_what_comes_when_it_has_learned(clock: Clock) -> None:
    """While it learns, which takes it 400 runs, it is a little slower than the other one, and afterwards faster."""

    class Learner(Slow):
        @property
        def learning(self) -> bool:
            return self.ran < 400

        def run(self, emitters: Any) -> Any:
            self.seconds = 1.1e-3 if self.learning else 0.2e-3
            return super().run(emitters)

    executor, made = of(clock, steady=1e-3, learner=(Learner, 1e-3))
    settled(executor)
    assert executor.executor is made["learner"]
    assert executor.reason.startswith("learner 200 us, steady 1,000 us")


def test_no_time_is_taken_of_runs_in_which_a_candidate_compares_its_own_ways(clock: Clock) -> None:
    class Comparing(Slow):
        """Is slow in some runs, and says so before."""

        @property
        def comparing(self) -> bool:
            return 20 <= self.ran < 44

        def run(self, emitters: Any) -> Any:
            self.seconds = 3e-3 if self.comparing else 0.9e-3
            return super().run(emitters)

    executor, made = of(clock, steady=1e-3, comparing=(Comparing, 2e-3))
    settled(executor)
    assert executor.executor is made["comparing"]
    assert executor.reason.startswith("comparing 900 us")


def test_a_candidate_that_makes_graphs_for_ever_has_few_turns(clock: Clock) -> None:
    class Forgetful(Keeper):
        def key(self, calls: list[KernelCall]) -> int:
            return len(self.seen)

    executor, made = of(clock, steady=1e-3, keeper=(Forgetful, 0.5e-3))
    settled(executor)
    assert executor.executor is made["steady"]
    assert made["keeper"].ran <= 29


def test_a_candidate_that_is_fast_only_between_graphs_is_judged_by_all_its_turns(clock: Clock) -> None:
    class Uneven(Keeper):
        def key(self, calls: list[KernelCall]) -> int:
            return self.ran // 8  # in every second turn or so it meets a list that is new

    executor, made = of(clock, steady=1e-3, uneven=(Uneven, 0.8e-3))
    settled(executor)
    assert executor.executor is made["steady"]


def test_one_turn_that_was_disturbed_is_not_held_against_a_candidate_that_makes_graphs(clock: Clock) -> None:
    class Disturbed(Slow):
        """Makes a graph now and then, which takes little time. Another program once takes its processor."""

        @property
        def built(self) -> int:
            return self.ran // 8

        def run(self, emitters: Any) -> Any:
            self.clock.now += 50e-3 if self.ran == 18 else 0.0
            return super().run(emitters)

    executor, made = of(clock, steady=1e-3, disturbed=(Disturbed, 0.8e-3))
    settled(executor)
    assert executor.executor is made["disturbed"]
