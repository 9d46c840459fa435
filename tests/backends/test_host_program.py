"""A program of host calls: its order, calls over no worlds, growing arenas, and buffers that move while it runs."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from simengine.backends.host_program import CallOp, CapacityOp, HostProgram, RepeatedProgram, Rows
from simengine_scheduler import HostLaunch
from simengine_scheduler.launch import Buffer, BufferSet

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint64))


class Shelf:
    """An arena of no content; its buffer moves with its capacity."""

    def __init__(self, buffers: BufferSet) -> None:
        self.capacity = 2
        self.asked: list[int] = []
        self.buffer: Buffer = buffers.add("shelf", 2, 2)

    def reserve(self, need: int) -> None:
        self.asked.append(need)
        self.capacity = need
        self.buffer.rebind(need, need)


@pytest.fixture
def buffers() -> BufferSet:
    return BufferSet()


def test_calls_run_in_order_and_those_over_nothing_are_left_out(buffers: BufferSet) -> None:
    seen: list[int] = []
    note = FUNCTION(lambda slots: seen.append(slots[0]))
    counts = np.array([0, 7], np.int32)
    ops = [
        CallOp(HostLaunch(note, [10], buffers), 3, None),
        CallOp(HostLaunch(note, [11], buffers), 3, counts[:1]),
        CallOp(HostLaunch(note, [12], buffers), 3, counts[1:]),
        CallOp(HostLaunch(note, [13], buffers), 0, None),
    ]
    program = HostProgram(ops, buffers)
    program.issue(0)
    assert seen == [10, 12]
    assert program.over.tolist() == [3, 0, 7, 0]
    counts[:] = 5, 0
    program.issue(0)
    assert seen == [10, 12, 10, 11]
    assert program.over.tolist() == [3, 5, 0, 0]


def test_a_program_makes_room_for_what_it_counts_and_goes_on_with_what_has_moved(buffers: BufferSet) -> None:
    shelf = Shelf(buffers)
    counts = np.zeros(3, np.int32)
    seen: list[tuple[str, int]] = []

    def count(slots: object) -> None:
        seen.append(("count", 0))
        counts[:] = 4, 5, 1

    counting = FUNCTION(count)
    use = FUNCTION(lambda slots: seen.append(("use", slots[0])))
    ops = [
        CallOp(HostLaunch(counting, [], buffers), 1, None),
        CapacityOp(counts[:2], shelf),
        CapacityOp(counts[2:], shelf),
        CallOp(HostLaunch(use, [shelf.buffer], buffers), 1, None),
    ]
    program = HostProgram(ops, buffers)
    program.issue(0)
    assert shelf.asked == [9]
    assert seen == [("count", 0), ("use", 9)]
    program.issue(0)
    assert shelf.asked == [9]
    shelf.buffer.rebind(77, 9)  # moved by someone else
    program.issue(0)
    assert seen[-1] == ("use", 77)


def test_room_in_an_arena_without_fields_is_made_once(buffers: BufferSet) -> None:
    """Nothing moves then, and so no buffer says that the program must look again."""

    class Empty(Shelf):
        def reserve(self, need: int) -> None:
            self.asked.append(need)
            self.capacity = need

    shelf = Empty(buffers)
    HostProgram([CapacityOp(np.array([9], np.int32), shelf)], buffers).issue(0)
    assert shelf.asked == [9]


def test_what_fails_to_make_room_ends_the_program(buffers: BufferSet) -> None:
    class Full(Shelf):
        def reserve(self, need: int) -> None:
            raise MemoryError(f"no room for {need}")

    ran: list[int] = []
    note = FUNCTION(lambda slots: ran.append(slots[0]))
    counts = np.array([3], np.int32)
    ops = [CapacityOp(counts, Full(buffers)), CallOp(HostLaunch(note, [1], buffers), 1, None)]
    program = HostProgram(ops, buffers)
    with pytest.raises(MemoryError, match="no room for 3"):
        program.issue(0)
    assert ran == []


def test_a_repeated_program_copies_a_row_before_each_run_and_goes_on_where_room_was_made(buffers: BufferSet) -> None:
    shelf = Shelf(buffers)
    counts, to = np.zeros(1, np.int32), np.zeros(2, np.float32)
    seen: list[tuple[float, ...]] = []

    def count(slots: object) -> None:
        seen.append(tuple(to.tolist()))
        counts[0] = 3 * len(seen)

    used: list[int] = []
    counting, use = FUNCTION(count), FUNCTION(lambda slots: used.append(slots[0]))
    ops = [
        CallOp(HostLaunch(counting, [], buffers), 1, None),
        CapacityOp(counts, shelf),
        CallOp(HostLaunch(use, [shelf.buffer], buffers), 1, None),
    ]
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    repeated = RepeatedProgram(HostProgram(ops, buffers))
    repeated.set(3, Rows(rows[:, 1:3], to))
    repeated.issue(0)
    assert seen == [(1, 2), (5, 6), (9, 10)]
    assert shelf.asked == [3, 6, 9]
    assert used == [3, 6, 9]
    repeated.set(2, None)
    repeated.issue(0)
    assert seen[3:] == [(9, 10), (9, 10)]


def test_a_timed_program_makes_the_same_calls_and_tells_of_each_that_has_units(buffers: BufferSet) -> None:
    shelf = Shelf(buffers)
    counts = np.zeros(1, np.int32)
    seen: list[int] = []

    def count(slots: object) -> None:
        counts[0] = 5

    counting, use = FUNCTION(count), FUNCTION(lambda slots: seen.append(slots[0]))
    ops = [
        CallOp(HostLaunch(counting, [], buffers), 1, None),
        CapacityOp(counts, shelf),
        CallOp(HostLaunch(use, [1], buffers), 0, None),
        CallOp(HostLaunch(use, [shelf.buffer], buffers), 1, counts),
    ]
    times = dict(HostProgram(ops, buffers).timed())
    assert shelf.asked == [5]
    assert seen == [5]
    assert list(times) == [0, 3]
    assert all(seconds > 0 for seconds in times.values())
