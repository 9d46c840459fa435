"""Launches: packing, rebinding, refusals; a host function through ctypes; CUDA launches up to the driver call."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest

from simengine_scheduler import CudaLaunch, HostLaunch
from simengine_scheduler.launch import BufferSet

SLOTS = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint64))


def received(launch_args: tuple[Any, ...], buffers: BufferSet | None = None) -> bytes:
    """Return the slots that a foreign function sees."""
    got: list[bytes] = []
    function = SLOTS(lambda slots: got.append(ctypes.string_at(slots, 8 * len(launch_args))))
    HostLaunch(function, launch_args, buffers).issue(0)
    return got[0]


def test_slots_hold_every_kind_of_argument() -> None:
    buffers = BufferSet()
    x = buffers.add("x", 0x7F0000001000, 64)
    args = (-3, np.float32(0.5), np.float64(-2.0), np.int64(2**40), np.uint8(7), x, (x, 16), None, np.bool_(True))
    expected = struct.pack("<ixxxxfxxxxdqBxxxxxxxQQQBxxxxxxx", -3, 0.5, -2.0, 2**40, 7, x.ptr, x.ptr + 16, 0, 1)
    assert received(args, buffers) == expected


def test_host_function_writes_through_its_buffers_and_follows_a_rebind() -> None:
    @SLOTS
    def scale(slots: Any) -> None:
        count = ctypes.c_int32.from_address(ctypes.addressof(slots.contents)).value
        factor = ctypes.c_float.from_address(ctypes.addressof(slots.contents) + 8).value
        for i in range(count):
            cell = ctypes.c_float.from_address(slots[2] + 4 * i)
            cell.value *= factor

    first, second = np.ones(4, np.float32), np.full(8, 3, np.float32)
    buffers = BufferSet()
    data = buffers.add("data", first.ctypes.data, first.nbytes)
    launch = HostLaunch(scale, (3, np.float32(2.0), data), buffers)
    launch.issue(0)
    assert first.tolist() == [2, 2, 2, 1]
    data.rebind(second.ctypes.data, second.nbytes)
    assert buffers.epoch == 1
    launch.issue(0)
    assert second.tolist() == [6, 6, 6, 3, 3, 3, 3, 3]
    assert first.tolist() == [2, 2, 2, 1]


def test_a_scalar_is_read_when_a_launch_is_issued() -> None:
    buffers, got = BufferSet(), list[bytes]()
    count, factor = buffers.scalar(3), buffers.scalar(np.float32(0.5))
    launch = HostLaunch(SLOTS(lambda slots: got.append(ctypes.string_at(slots, 24))), (7, count, factor), buffers)
    table = launch._packed.current()[3]
    launch.issue(0)
    count.value, factor.value = -4, 2.0  # type: ignore[assignment]
    launch.issue(0)
    assert got == [struct.pack("<ixxxxixxxxfxxxx", 7, *values) for values in ((3, 0.5), (-4, 2.0))]
    assert (count.value, factor.value, buffers.scalars, buffers.epoch, buffers.moves) == (-4, 2.0, 2, 2, 0)
    assert launch._packed.current()[3] == table  # nothing was packed again
    second = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[1] or 0  # where CUDA reads the argument
    assert ctypes.c_int32.from_address(second).value == -4
    buffers.add("x", 4096, 8).rebind(8192, 8)
    assert (buffers.epoch, buffers.moves) == (3, 1)


def test_refusals() -> None:
    buffers = BufferSet()
    x = buffers.add("x", 4096, 64)
    function = SLOTS(lambda slots: None)
    with pytest.raises(TypeError, match=r"argument 1 is a float; pass .* np.float32\(x\)"):
        HostLaunch(function, (1, 0.5))
    with pytest.raises(ValueError, match="argument 0 is 2147483648, beyond int32"):
        HostLaunch(function, (2**31,))
    with pytest.raises(ValueError, match="offset 65 lies outside buffer 'x' of 64 bytes"):
        HostLaunch(function, ((x, 65),), buffers)
    with pytest.raises(ValueError, match="buffer 'x' is already in this set"):
        buffers.add("x", 0, 1)
    assert buffers["x"] is x
    assert "y" not in buffers


class Driver:
    """Stands where CuPy's driver module stands, and reads the arguments as CUDA would."""

    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8

    def __init__(self) -> None:
        self.launches: list[tuple[Any, ...]] = []
        self.tables: list[int] = []
        self.attributes: list[tuple[int, int, int]] = []

    def funcGetAttribute(self, attribute: int, function: int) -> int:
        return max((value for f, a, value in self.attributes if (f, a) == (function, attribute)), default=0)

    def funcSetAttribute(self, function: int, attribute: int, value: int) -> None:
        self.attributes.append((function, attribute, value))

    def launchKernel(self, f: int, *rest: int) -> None:
        *dims, stream, params, extra = rest
        self.tables.append(params)
        table = (ctypes.c_void_p * 2).from_address(params)
        count = ctypes.c_int32.from_address(table[0] or 0).value
        pointer = ctypes.c_uint64.from_address(table[1] or 0).value
        self.launches.append((f, *dims, stream, count, pointer, extra))


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    cuda = pytest.importorskip("cupy.cuda")
    fake = Driver()
    monkeypatch.setattr(cuda, "driver", fake)
    return fake


def test_cuda_launch_passes_dimensions_and_arguments(driver: Driver) -> None:
    buffers = BufferSet()
    x = buffers.add("x", 0xA000, 256)
    launch = CudaLaunch(77, (5, 6), (32,), 1024, (9, (x, 8)), buffers)
    wider = launch.with_grid((10,))
    launch.issue(3)
    wider.issue(4)
    x.rebind(0xB000, 512)
    wider.issue(0)
    launch.issue(0)
    assert driver.launches == [
        (77, 5, 6, 1, 32, 1, 1, 1024, 3, 9, 0xA008, 0),
        (77, 10, 1, 1, 32, 1, 1, 1024, 4, 9, 0xA008, 0),
        (77, 10, 1, 1, 32, 1, 1, 1024, 0, 9, 0xB008, 0),
        (77, 5, 6, 1, 32, 1, 1, 1024, 0, 9, 0xB008, 0),
    ]
    assert driver.tables[0] == driver.tables[1], "arguments are packed once for all grids"
    assert driver.attributes == []


def test_cuda_launch_allows_much_shared_memory_and_takes_cupy_arrays(driver: Driver) -> None:
    class Array:
        __cuda_array_interface__ = {"data": (0xC000, False)}  # noqa: RUF012

    class Kernel:
        ptr = 55

    class RawKernel:
        kernel = Kernel()

    launch = CudaLaunch.from_kernel(RawKernel(), (2,), (64,), (1, Array()), shared=65536)
    assert driver.attributes == [(55, 8, 65536)]
    launch.issue(1)
    assert driver.launches == [(55, 2, 1, 1, 64, 1, 1, 65536, 1, 1, 0xC000, 0)]


def test_a_function_with_shared_variables_may_have_nearly_48_kib_beside_them(driver: Driver) -> None:
    for shared in (40_000, 49_000):
        CudaLaunch(9, (1,), (32,), shared)
    assert driver.attributes == [(9, 8, 49_000)]


def test_a_launch_does_not_take_shared_memory_from_another_of_its_function(driver: Driver) -> None:
    for shared in (150_000, 60_000, 200_000, 49_152):
        CudaLaunch(9, (1,), (32,), shared)
    assert driver.attributes == [(9, 8, 150_000), (9, 8, 200_000)]


def test_cuda_launch_refuses_empty_grids(driver: Driver) -> None:
    with pytest.raises(ValueError, match=r"grid \(0,\) is not one to three positive sizes"):
        CudaLaunch(1, (0,), (32,))
    with pytest.raises(ValueError, match="block"):
        CudaLaunch(1, (1,), (1, 1, 1, 1))
