"""Compiled code in large windows and on many streams: random lists, counts, moving buffers, refusals and faults.

A list works on memory of its own in an order that shows in the bits, and adds to memory that all lists share. So the
results are those of Python's serial executor, whichever turns the lists take.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from simengine_scheduler import (
    AwaitCounts,
    CallError,
    FixedList,
    KernelCall,
    PythonLaunch,
    Segments,
    make_executor,
    validate,
)
from simengine_scheduler.core import IDLE, Arrival, Counted, CountedList
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.testing import CalledDevice
from simengine_scheduler.testing.fake_device import FakeLaunch

CELLS, SHARED, MODULUS = 5, 3, 2**61 - 1
CHOSEN = 100  # numbers of chosen calls begin here


class Refused(Exception):
    """The device takes no launch."""


class Shard:
    """Memory and calls of one list. A call of a buffer that has moved must get its new place."""

    def __init__(self, number: int, table: Segments, draw: random.Random, device: CalledDevice | None) -> None:
        self.number, self.table, self.draw, self.device = number, table, draw, device
        self.foreign = random.Random(number) if draw.random() < 0.3 else None
        self.counts = np.zeros(4, np.int32)
        self.buffers = BufferSet()
        self.room = self.buffers.add("room", 1, 8)
        self.made: dict[tuple[int, int], KernelCall] = {}
        self.reset()
        self.calls = [self.call(k) for k in range(draw.randrange(3, 14))]
        self.count = self._make("count", self._count, [], [0, CELLS])
        self.fixed = FixedList(self.calls)
        chosen = [Counted(self.counts[k : k + 1], partial(self._chosen, k)) for k in range(4)]
        self.counted = CountedList(
            [*self.calls[:2], self.count, *self.calls[2:4], Arrival(self.count, self._move), *chosen]
        )

    def reset(self) -> None:
        self.cells = [(k + 1) * (self.number + 3) for k in range(CELLS)]
        self.runs = 0
        self.counts[:] = 0
        self.room.rebind(1, 8)

    def call(self, number: int) -> KernelCall:
        reads = self.draw.sample(range(CELLS), self.draw.randrange(3))
        writes = self.draw.sample(range(CELLS), self.draw.randrange(1, 3))
        shared = self.draw.randrange(SHARED) if self.draw.random() < 0.3 else None
        return self._make(
            f"call {self.number}.{number}", partial(self._work, number, reads, writes, shared), reads, writes, shared
        )

    def emit(self) -> Iterator[Any]:
        """Yield the calls of the counted list, idle calls and calls that were never seen."""
        yield from self.calls[:2]
        yield self.count
        yield IDLE
        yield AwaitCounts(self.count)
        self._move()
        for place, count in enumerate(map(int, self.counts)):
            if count:
                yield self._new(place, count)

    def _make(self, name: str, body: Any, reads: list[int], writes: list[int], shared: int | None = None) -> KernelCall:
        ids = [[self.table.intern(f"cell {k}", self.number) for k in own] for own in (reads, writes)]
        updates = () if shared is None else (self.table.intern(f"shared {shared}"),)
        if self.device is None:
            launch: Any = PythonLaunch(lambda: body(self.room.ptr))
        elif self.foreign is not None and self.foreign.random() < 0.5:
            launch = FakeLaunch(self.device, body, [self.room], self.buffers)  # which only Python can issue
        else:
            launch = self.device.launch(body, [self.room], self.buffers)
        return KernelCall(name, launch, tuple(ids[0]), tuple(ids[1]), updates)

    def _work(self, number: int, reads: list[int], writes: list[int], shared: int | None, room: int) -> None:
        value = number + 7 * room * (number >= CHOSEN)  # calls that wait in a window may get the new place or the old
        for cell in reads:
            value = value * 6364136223846793005 + self.cells[cell]
        for cell in writes:
            self.cells[cell] = (self.cells[cell] * 31 + value) % MODULUS
        if shared is not None:
            SUMS[shared] += number + 1

    def _count(self, room: int) -> None:
        self.runs += 1
        self.counts[:] = [(self.cells[0] >> (11 + 3 * k)) % 4 for k in range(4)]
        self.cells[0] = (self.cells[0] * 5 + self.runs) % MODULUS

    def _move(self) -> None:
        if self.runs % 3 == 1:
            self.room.rebind(self.room.ptr + 1, 8)

    def _of(self, place: int, count: int) -> tuple[list[int], list[int]]:
        return [(place + count) % CELLS], [place, CELLS - 1]

    def _new(self, place: int, count: int) -> KernelCall:
        reads, writes = self._of(place, count)
        body = partial(self._work, CHOSEN * (place + 1) + count, reads, writes, place % SHARED)
        return self._make(f"chosen {self.number}", body, reads, writes, place % SHARED)

    def _chosen(self, place: int, count: int) -> KernelCall:
        if (place, count) not in self.made:
            self.made[place, count] = self._new(place, count)
        return self.made[place, count]


SUMS = [0] * SHARED


class Case:
    """Shards, and what each of them runs in each of some runs."""

    def __init__(self, seed: int, device: CalledDevice | None) -> None:
        draw = random.Random(seed)
        self.table = Segments()
        self.shards = [Shard(n, self.table, random.Random(100 * seed + n), device) for n in range(draw.randrange(1, 9))]
        kinds = draw.choice([["fixed"], ["fixed", "counted"], ["counted"], ["emit"], ["fixed", "counted", "emit"]])
        self.runs = [
            [(n, draw.choice(kinds)) for n in range(len(self.shards)) if draw.random() < 0.8]
            for _ in range(draw.randrange(2, 7))
        ]
        self.reset()

    def reset(self) -> None:
        SUMS[:] = [0] * SHARED
        for shard in self.shards:
            shard.reset()

    def lists(self, run: int) -> list[Any]:
        kinds = {"fixed": lambda s: s.fixed, "counted": lambda s: s.counted, "emit": lambda s: s.emit()}
        return [kinds[kind](self.shards[n]) for n, kind in self.runs[run]]

    def bits(self) -> list[int]:
        return [cell for shard in self.shards for cell in shard.cells] + SUMS


def expected(seed: int) -> list[list[int]]:
    """The bits after each run, in Python."""
    case, bits = Case(seed, None), []
    for run in range(len(case.runs)):
        make_executor("serial").run(case.lists(run))
        bits.append(case.bits())
    return bits


def make(seed: int, case: Case, device: CalledDevice) -> tuple[Any, str]:
    draw = random.Random(seed)
    name, record = draw.choice(["serial", "streams", "streams", "polling"]), draw.choice(["off", "off", "order"])
    options: dict[str, Any] = {
        "window": draw.choice([4, 5, 8, 16, 31, 32, 64, 128, 255, 256]),
        "streams": draw.randrange(1, 17),
        "stream_policy": draw.choice(["follow", "least_loaded", "round_robin"]),
        "completion": "polling" if name == "polling" else "events",
    }
    executor = make_executor(
        name.replace("polling", "streams"),
        segments=case.table,
        driver=device,
        stream=0,
        device="cuda",
        record=record,
        **options,
    )
    return executor, record


def run_and_compare(seed: int) -> None:
    device = CalledDevice(seed, random.Random(seed).choice([0.02, 0.2, 0.6, 0.95]))
    case, wanted = Case(seed, device), expected(seed)
    case.reset()
    executor, record = make(seed, case, device)
    for run in range(len(case.runs)):
        trace = executor.run(case.lists(run))
        executor.synchronize()
        assert case.bits() == wanted[run], f"seed {seed}, run {run}"
        if record == "order":
            assert validate(trace.order, trace, case.table) == []
    executor.close()


def refuse_and_go_on(seed: int) -> None:
    """A launch is refused: the error names a call, nothing is left over, and later runs have the results of others."""
    draw, device = random.Random(seed), CalledDevice(seed, 0.3)
    case, wanted = Case(seed, device), expected(seed)
    executor, _ = make(seed, case, device)
    working, left = device.enqueue, [draw.randrange(1, 20)]

    def enqueue(stream: int, body: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Refused("no room")
        working(stream, body)

    device.enqueue = enqueue  # type: ignore[method-assign]
    if (error := _error_of(executor, case)) is not None:
        assert isinstance(error.cause, Refused)
        assert not error.fatal
        assert error.call.name.startswith(("call", "count", "chosen"))
    device.enqueue = working  # type: ignore[method-assign]
    executor.synchronize()
    case.reset()
    for run in range(len(case.runs)):
        executor.run(case.lists(run))
        executor.synchronize()
        assert case.bits() == wanted[run], f"seed {seed}, run {run}"
    executor.close()


def fault(seed: int) -> None:
    """A body fails: every run that follows ends with an error that names a call."""
    draw, device = random.Random(seed), CalledDevice(seed, 0.5)
    case = Case(seed, device)
    executor, _ = make(seed, case, device)
    left = [draw.randrange(1, 30)]
    for shard in case.shards:
        own = shard._work

        def work(*given: Any, own: Any = own) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise FloatingPointError("broken")
            own(*given)

        for call in shard.calls:
            function = call.launch.function  # type: ignore[attr-defined]
            if isinstance(function, partial):
                call.launch.function = partial(work, *function.args)  # type: ignore[attr-defined]
    error = _error_of(executor, case)
    if error is None:
        assert left[0] > 0
        executor.close()
        return
    assert error.fatal
    assert "broken" in str(error)
    later = _error_of(executor, case)  # nothing is forgotten
    assert later is not None
    assert later.fatal


def _error_of(executor: Any, case: Case) -> CallError | None:
    try:
        for run in range(len(case.runs)):
            executor.run(case.lists(run))
            executor.synchronize()
    except CallError as error:
        return error
    return None


@pytest.mark.parametrize("check", [run_and_compare, refuse_and_go_on, fault])
def test_random_lists(check: Any) -> None:
    for seed in range(60):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("check", [run_and_compare, refuse_and_go_on, fault])
def test_many_random_lists(check: Any) -> None:
    for seed in range(1000, 2500):
        check(seed)
