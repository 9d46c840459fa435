"""The trials of the automatic executor: it chooses the fastest candidate, says why, and results do not depend on it."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from simengine_scheduler import FixedList, KernelCall, PythonLaunch, Segments, make_executor, validate
from simengine_scheduler.executors.auto import AutoExecutor
from simengine_scheduler.executors.base import Executor, Options
from simengine_scheduler.testing.fake_device import FakeDevice
from tests.scheduler.timed_executors import Bodied, Clock, Slow, Workers, counting, list_of, of, settled


@pytest.mark.parametrize(("slow", "fast"), [("first", "second"), ("second", "first")])
def test_the_fastest_stays_and_every_run_is_run_once(clock: Clock, slow: str, fast: str) -> None:
    executor, made = of(clock, **{name: 2e-3 if name == slow else 1e-3 for name in ("first", "second")})
    ran, calls = counting()
    runs = 0
    while executor.undecided:
        executor.run([calls()])
        runs += 1
        assert len(ran) == 3 * runs
    assert runs == 28  # a turn of four runs that is not timed, and two of five runs of which the first is not timed
    assert made["first"].ran == made["second"].ran == 14
    assert executor.executor.name == fast
    assert executor.reason == f"{fast} 1,000 us, {slow} 2,000 us a call, by the better half of their turns"
    executor.run([calls()])
    assert made[fast].ran == 15
    assert made[slow].closed
    assert not made[fast].closed
    executor.close()
    assert made[fast].closed


def test_the_likeliest_stays_unless_another_is_clearly_faster(clock: Clock) -> None:
    for seconds, name in ((0.98e-3, "first"), (0.96e-3, "second")):
        executor, _ = of(clock, first=1e-3, second=seconds)
        settled(executor)
        assert executor.executor.name == name
        assert executor.reason.startswith(name)


def test_those_that_are_close_take_more_turns_than_those_that_are_far(clock: Clock) -> None:
    executor, made = of(clock, first=1e-3, far=1.5e-3, second=0.9e-3)
    settled(executor)
    assert [made[name].ran for name in ("first", "far", "second")] == [129, 14, 129]
    assert executor.executor is made["second"]


class Disturbed(Slow):
    """Takes a time for each run that other programs on the machine change."""

    draw = random.Random()

    def run(self, emitters: Any) -> Any:
        self.clock.now += self.seconds * max(0.0, self.draw.gauss(0.0, 0.4))
        return super().run(emitters)


def test_the_faster_of_two_that_are_close_is_found_although_runs_are_disturbed(clock: Clock) -> None:
    found = []
    for seed in range(20):
        Disturbed.draw = random.Random(seed)
        executor, _ = of(clock, first=(Disturbed, 1.07e-3), second=(Disturbed, 1e-3))
        settled(executor, 1)
        found.append(executor.executor.name)
    assert found.count("second") >= 18


def test_a_turn_lasts_until_everything_has_ended(clock: Clock) -> None:
    executor, made = of(clock, first=1e-3, second=1e-3)
    ended = dict.fromkeys(made, 0)
    for name, late in (("first", 9e-3), ("second", 1e-3)):  # what runs on after the calls were issued

        def wait(late: float = late, own: Slow = made[name]) -> None:
            clock.now += late if own.ran > ended[own.name] else 0.0
            ended[own.name] = own.ran

        made[name].synchronize = wait  # type: ignore[method-assign]
    _, calls = counting()
    while executor.undecided:
        executor.run([calls()])
        clock.now += 100.0  # what the program does itself does not count
    assert executor.executor is made["second"]


@pytest.mark.parametrize("at", [0, 5, 1000])
def test_workers_get_no_calls_without_bodies(clock: Clock, at: int) -> None:
    executor, made = of(clock, device=(Workers, 1e-3), serial=2e-3)
    ran: list[int] = []
    with_bodies, without = list_of(Bodied(lambda: ran.append(1))), list_of(PythonLaunch(lambda: ran.append(2)))
    for number in range(at):
        executor.run([with_bodies])
        assert ran == [1] * (number + 1)
    for emitters in ([without], [with_bodies, iter(with_bodies)]):
        executor.run(emitters)
    assert ran == [1] * at + [2, 1, 1]
    while executor.undecided:
        executor.run([without])
    assert executor.executor is made["device" if at == 1000 else "serial"]
    assert ("serial is the only candidate; device cannot run calls that have" in executor.reason) == (at < 1000)
    executor.close()
    assert made["device"].closed
    assert made["serial"].closed


def test_workers_that_find_no_way_to_run_a_list_are_left_out(clock: Clock) -> None:
    class Full(Slow):
        def run(self, emitters: Any) -> Any:
            raise ValueError("a body needs more registers than there are")

    executor, made = of(clock, serial=1e-3, device=(Full, 1e-3))
    ran: list[int] = []
    fixed = list_of(Bodied(lambda: ran.append(1)))
    for number in range(9):
        executor.run([fixed])
        assert len(ran) == number + 1
    assert (
        executor.reason
        == "serial is the only candidate; device cannot run the list (a body needs more registers than there are)"
    )
    assert made["device"].closed


def test_runs_that_take_long_are_few(clock: Clock) -> None:
    executor, made = of(clock, first=0.1, second=0.2)
    _, calls = counting()
    for _ in range(6):
        assert executor.undecided
        executor.run([calls()])
    assert not executor.undecided
    assert executor.executor is made["first"]


def test_the_first_run_of_a_turn_is_not_timed(clock: Clock) -> None:
    executor, made = of(clock, first=1.2e-3, second=1e-3)
    _, calls = counting()
    before: Executor | None = None
    while executor.undecided:
        made["second"].seconds = 1e-3 if executor.executor is before else 1e-2
        before = executor.executor
        executor.run([calls()])
    assert executor.executor is made["second"]
    assert executor.reason.startswith("second 1,000 us, first 1,200 us")


def test_turns_of_short_runs_have_more_of_them(clock: Clock) -> None:
    executor, made = of(clock, first=2e-4, second=1e-5)
    settled(executor)
    assert made["first"].ran == 4 + 2 * (1 + 9)  # 0.6 ms each, until a turn has taken 5 ms
    assert made["second"].ran == 4 + 2 * (1 + 16)


def test_one_slow_run_at_the_beginning_does_not_shorten_the_trials(clock: Clock) -> None:
    executor, made = of(clock, first=1e-3, second=1e-3)
    _, calls = counting()
    made["first"].seconds = 1.0
    executor.run([calls()])
    made["first"].seconds = 1e-3
    while executor.undecided:
        executor.run([calls()])
    assert made["first"].ran >= 6


def test_lists_of_other_lengths_are_compared_by_the_call(clock: Clock) -> None:
    executor, made = of(clock, first=1.3e-3, second=1e-3)
    turn = 0
    while executor.undecided:
        _, calls = counting(1 if executor.executor is made["first"] else 50)
        executor.run([calls()])
        turn += 1
    assert executor.executor is made["second"]


def test_a_repetition_is_a_trial(clock: Clock) -> None:
    executor, made = of(clock, first=2e-4, second=1e-4)
    ran, calls = counting()
    runs = 0
    while executor.undecided:
        executor.repeat([FixedList(calls())], 4)
        runs += 1
    assert runs == 14 + 16  # turns of the second are a run longer, until they have taken 5 ms
    assert len(ran) == 12 * runs
    assert executor.reason.startswith("second 100 us, first 200 us a call")
    executor.repeat([FixedList(calls())], 2)
    assert made["second"].ran == 4 * 16 + 2


def test_what_cannot_run_here_is_left_out(clock: Clock) -> None:
    def make(name: str, options: Options) -> Executor:
        if name != "first":
            raise RuntimeError("no GPU")
        return Slow(name, 1.0, clock)

    executor = AutoExecutor(Options(candidates="second+first"), make)
    assert not executor.undecided
    assert executor.reason == "first is the only candidate; second cannot run here (no GPU)"
    with pytest.raises(RuntimeError, match="no candidate left: second cannot run here"):
        AutoExecutor(Options(candidates="second"), make)


def test_an_unknown_candidate_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown executor 'treads'"):
        make_executor("auto", candidates="treads+serial")


def test_who_has_the_turn_changes_no_result() -> None:
    segments = Segments()
    total = segments.intern("total")
    values = [1]

    def double_and_add(i: int) -> None:
        values.append(2 * values[-1] + i)

    executor = make_executor("auto", segments=segments, workers=2, record="order")
    assert isinstance(executor, AutoExecutor)
    assert executor.reason == "threads and serial take turns on the first runs"
    expected, number = 1, 0
    while executor.undecided or number % 3:
        calls = [KernelCall(f"add{i}", PythonLaunch(partial(double_and_add, i)), (), (), (total,)) for i in range(4)]
        trace = executor.run([calls])
        assert validate(trace.order, trace, segments) == []
        for i in range(4):
            expected = 2 * expected + i
        assert values[-1] == expected
        number += 1
    assert executor.executor.name in ("threads", "serial")
    assert "us a call, by the better half" in executor.reason
    executor.close()


def test_candidates_on_a_device_are_its_own_and_end_before_another_begins() -> None:
    device, segments = FakeDevice(3, eagerness=0.3), Segments()
    total = segments.intern("total")
    values = [1]

    def add(i: int) -> None:
        values.append(2 * values[-1] + i)

    calls = FixedList([KernelCall(f"add{i}", device.launch(partial(add, i)), (), (), (total,)) for i in range(3)])
    executor = make_executor("auto", segments=segments, device="cuda", driver=device, stream=0)
    assert isinstance(executor, AutoExecutor)
    names = ("graph-cached", "streams", "polling", "pipeline", "serial")  # workers of `device` need a GPU
    assert executor.reason == f"{' and '.join(names)} take turns on the first runs"
    expected = 1
    while executor.undecided:
        executor.run([calls])
        executor.synchronize()
        for i in range(3):
            expected = 2 * expected + i
        assert values[-1] == expected
    assert executor.executor.name in names
    assert "device cannot run here" in executor.reason
    executor.close()


def test_polling_is_a_candidate_of_its_own(clock: Clock) -> None:
    asked: list[tuple[str, str]] = []

    def make(name: str, options: Options) -> Executor:
        asked.append((name, options.completion))
        return Slow(name, 1e-3 if options.completion == "polling" else 2e-3, clock)

    executor = AutoExecutor(Options(candidates="streams+polling"), make)
    assert asked == [("streams", "events"), ("streams", "polling")]
    settled(executor)
    assert executor.reason.startswith("polling 1,000 us, streams 2,000 us a call")
    planned = AutoExecutor(Options(candidates="serial+polling", stream_policy="kesco"), make)
    assert planned.reason == "serial is the only candidate; polling cannot run here (planners wait on the device)"
