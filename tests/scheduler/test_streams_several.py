"""Streams on several GPUs: calls on the GPU that they name, in an order that is legal, on a fake machine of several."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import Calls, FixedList, KernelCall, Segments, make_executor
from simengine_scheduler.testing import FakeDevice
from simengine_scheduler.testing.fake_device import FakeLaunch
from tests.scheduler.programs import Program, Spec, run_and_check, specs


class OnGpu(FakeLaunch):
    """A launch that is refused on a stream of another GPU, or while another one is current, as by CUDA."""

    __slots__ = ("gpu",)

    def __init__(self, device: FakeDevice, body: Callable[[], None], gpu: int | None) -> None:
        super().__init__(device, body)
        self.gpu = gpu

    def issue(self, stream: int) -> None:
        wanted = 2 if self.gpu is None else self.gpu
        assert self._device.gpu == self._device.gpu_of(stream) == wanted
        super().issue(stream)


def machine(seed: int = 0, eagerness: float = 0.3) -> FakeDevice:
    """A machine whose home stream is on GPU 2."""
    device = FakeDevice(seed, eagerness)
    device._gpus[0] = 2
    return device


@settings(max_examples=80, deadline=None)
@given(
    specs(),
    st.sampled_from([(2, 0), (2, 0, 5)]),
    st.integers(1, 3),
    st.sampled_from([1, 3, 32]),
    st.sampled_from(["follow", "least_loaded", "round_robin"]),
    st.sampled_from([0.05, 0.9]),
    st.integers(0, 99),
)
def test_any_list_on_any_gpus(
    emitters: list[list[Spec]],
    gpus: tuple[int, ...],
    streams: int,
    window: int,
    policy: str,
    eagerness: float,
    seed: int,
) -> None:
    device, draw = machine(seed, eagerness), random.Random(seed)
    device.gpu = 7  # what the program uses besides
    program = Program(emitters, lambda body: OnGpu(device, body, draw.choice([None, *gpus])))
    options: dict[str, Any] = {"streams": streams, "window": window, "stream_policy": policy, "record": "order"}
    with make_executor("streams", segments=program.segments, driver=device, stream=0, gpus=gpus, **options) as executor:
        for _ in range(2):
            run_and_check(program, executor)
        assert device.gpu == 7


def test_two_gpus_work_at_once_and_a_copy_between_them_comes_in_between() -> None:
    device, table, done = machine(1), Segments(), list[str]()
    x, y = table.intern("x"), table.intern("y")

    def call(name: str, gpu: int, reads: tuple[int, ...], updates: tuple[int, ...]) -> KernelCall:
        return KernelCall(name, OnGpu(device, lambda: done.append(name), gpu), reads, (), updates)

    steps = [call("x on 2", 2, (), (x,)), call("y on 5", 5, (), (y,))] * 20
    copy = call("copy", 5, (x,), (y,))
    after = [call("x again", 2, (), (x,)), call("y again", 5, (), (y,))]
    executor = make_executor("streams", segments=table, driver=device, stream=0, gpus=(2, 5), record="order")
    trace = executor.run([FixedList([*steps, copy, *after])])
    executor.synchronize()
    assert device.max_running > 1
    assert done.index("copy") == 40
    assert done[:40] != ["x on 2", "y on 5"] * 20
    assert {event.stream // 8 for event in trace.events} == {0, 1}
    assert trace.counters.waits_inserted >= 2  # of the copy for x, and of x for the copy
    executor.close()


def test_a_gpu_without_streams_is_named() -> None:
    device, table = machine(), Segments()
    executor = make_executor("streams", segments=table, driver=device, stream=0, gpus=(2, 5))
    with pytest.raises(ValueError, match=r"call 'k' is for GPU 3, but the executor has streams on \[2, 5\]"):
        executor.run([[KernelCall("k", OnGpu(device, lambda: None, 3), (), ())]])
    assert device.gpu == 0
    ran: list[int] = []
    executor.run([[KernelCall("k", OnGpu(device, lambda: ran.append(1), 5), (), ())]])
    executor.synchronize()
    assert ran == [1]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"record": "times"}, "record='times' needs one GPU"),
        ({"completion": "polling"}, "wait for each other on the GPUs"),
        ({"stream_policy": "kesco"}, "wait for each other on the GPUs"),
    ],
)
def test_what_several_gpus_do_not_have_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make_executor("streams", segments=Segments(), driver=machine(), stream=0, gpus=(2, 5), **options)


def test_calls_say_on_which_gpu_they_run() -> None:
    calls = Calls(Segments(), gpu=3)
    launch: Any = calls.function(lambda: None).launch
    assert launch.gpu == 3
