"""Forms of kernels make calls that are the same as those of `Calls.kernel`, and are checked."""

from __future__ import annotations

import ctypes
import gc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simengine_scheduler import Calls, Segments, read, update, write
from simengine_scheduler.core.hazards import conflict
from simengine_scheduler.launch import BufferSet

pytest.importorskip("cupy")
KERNEL: Any = SimpleNamespace(kernel=SimpleNamespace(ptr=7), name="mix")


class Array:
    """An array on a GPU, of which there is an address only."""

    def __init__(self, start: int) -> None:
        self.__cuda_array_interface__ = {"shape": (8,), "typestr": "<f4", "data": (start, False), "version": 3}


def words(table: int, sizes: list[int]) -> list[bytes]:
    """The bytes of the arguments that a table of pointers leads to."""
    places = (ctypes.c_uint64 * len(sizes)).from_address(table)
    return [ctypes.string_at(place, size) for place, size in zip(places, sizes, strict=True)]


def test_a_form_makes_the_calls_that_kernel_makes() -> None:
    calls, x, y = Calls(Segments()), Array(4096), Array(8192)
    form = calls.form(KERNEL, (32, 2), np.int32, read, np.float64, np.uint8, write, np.bool_, np.int64, shared=64)
    numbers = (-3, 0.25, 255, True, -(1 << 40))
    typed = (-3, read(x), np.float64(0.25), np.uint8(255), write(y), np.bool_(True), np.int64(-(1 << 40)))
    wanted = calls.kernel(KERNEL, (5, 2), (32, 2), *typed, shared=64)
    for _ in range(600):  # more than share one piece of memory
        call = form((5, 2), numbers[0], x, *numbers[1:3], y, *numbers[3:])
    assert (call.name, call.reads, call.writes, call.updates) == ("mix", wanted.reads, wanted.writes, wanted.updates)
    launch: Any = call.launch
    other: Any = wanted.launch
    assert launch.node()[:-1] == other.node()[:-1] == (7, (5, 2, 1), (32, 2, 1), 64)
    assert (launch.grid, launch.block, launch.shared, launch.function) == ((5, 2, 1), (32, 2, 1), 64, 7)
    sizes = [4, 8, 8, 1, 8, 1, 8]
    assert words(launch.node()[-1], sizes) == words(other.node()[-1], sizes)


def test_calls_of_a_form_keep_their_own_arguments() -> None:
    form = Calls(Segments()).form(KERNEL, (32,), int)
    made = [form((1,), number) for number in range(1000)]
    found = [int.from_bytes(words(call.launch.node()[-1], [4])[0], "little") for call in made]  # type: ignore[attr-defined]
    assert found == list(range(1000))


def test_arrays_at_one_address_are_told_apart() -> None:
    segments = Segments()
    form = Calls(segments).form(KERNEL, (32,), update)
    first = form((1,), Array(4096))
    gc.collect()
    place = form((1,), Array(1 << 20))  # at the address of the object that is gone, perhaps
    assert not conflict(first, place, segments.conflicts)
    assert conflict(first, form((1,), Array(4096 + 16)), segments.conflicts)


def test_a_form_without_arrays_touches_everything() -> None:
    segments = Segments()
    call = Calls(segments).form(KERNEL, (32,), np.float32)((1,), 1.0)
    assert call.updates == (segments.everything(),)


def test_what_a_form_cannot_take_is_refused() -> None:
    calls, x = Calls(Segments()), Array(4096)
    with pytest.raises(TypeError, match="takes no complex64 by value; give read, write, update or a scalar type"):
        calls.form(KERNEL, (32,), np.complex64)
    form = calls.form(KERNEL, (32,), np.int32, read)
    with pytest.raises(TypeError, match="a call of mix takes 2 arguments, not 1"):
        form((1,), 3)
    with pytest.raises(ValueError, match="are no arguments of mix"):
        form((1,), 1 << 31, x)
    with pytest.raises(TypeError, match="is no array"):
        form((1,), 3, 4)
    with pytest.raises(TypeError, match="cannot take buffer 'x', which may move"):
        form((1,), 3, BufferSet().add("x", 4096, 64))
    with pytest.raises(ValueError, match="grid .* is not one to three positive sizes"):
        form((0,), 3, x)
