"""Every executor after a failed run: it raises a clear error, and the next run is not affected."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import AwaitCounts, CallError, Executor, KernelCall, PythonLaunch, Segments, make_executor
from simengine_scheduler.testing.fake_device import DeviceFault, FakeDevice
from tests.scheduler.programs import Program, Spec, run_and_check, specs

HOST = ["shuffled", "threads"]
DEVICE = ["streams", "polling", "planned", "graph", "graph-cached", "pipeline"]
EVERY = ["serial", *HOST, "serial on a device", *DEVICE]


class Refused:
    """A launch that the driver refuses."""

    def issue(self, stream: int) -> None:
        raise ValueError("invalid configuration")


def raises_in_emitter(call: Callable[..., KernelCall]) -> Iterator[Any]:
    yield call()
    raise LookupError("world 3 is not finite")


def yields_what_is_no_call(call: Callable[..., KernelCall]) -> Iterator[Any]:
    yield call()
    yield "not a call"


def awaits_what_it_has_not_yielded(call: Callable[..., KernelCall]) -> Iterator[Any]:
    yield call()
    yield AwaitCounts(call())


def names_an_unknown_segment(call: Callable[..., KernelCall]) -> Iterator[Any]:
    yield call()
    yield call(writes=(10**6,))


def is_refused_by_the_driver(call: Callable[..., KernelCall]) -> Iterator[Any]:
    yield call()
    yield call(launch=Refused())


FAULTS: list[tuple[Callable[..., Iterator[Any]], type[Exception], str]] = [
    (raises_in_emitter, LookupError, "world 3 is not finite"),
    (yields_what_is_no_call, TypeError, "an emitter yielded a str; yield KernelCall or AwaitCounts"),
    (awaits_what_it_has_not_yielded, ValueError, "an emitter awaits call 'extra', which it has not yielded"),
    (names_an_unknown_segment, ValueError, "call 'extra' names segment 1000000, but the table holds .*; intern"),
    (is_refused_by_the_driver, CallError, "call 'extra' .* failed under executor .*invalid configuration"),
]


def make(kind: str, emitters: list[list[Spec]], seed: int) -> tuple[Program, Executor, Callable[..., KernelCall]]:
    """A program, its executor, and what makes further calls for it."""
    device = FakeDevice(seed, eagerness=0.2) if kind in DEVICE or "device" in kind else None
    program = Program(emitters, PythonLaunch if device is None else device.launch)
    options: dict[str, Any] = {"segments": program.segments, "record": "order", "seed": seed, "workers": 2}
    if device is not None:
        options |= {"driver": device, "stream": 0, "device": "cuda"}
    if kind == "polling":
        options["completion"] = "polling"
    if kind == "planned":
        options["stream_policy"] = "opara"
    name = {"polling": "streams", "planned": "streams", "serial on a device": "serial"}.get(kind, kind)

    def call(launch: Any = None, writes: tuple[int, ...] = ()) -> KernelCall:
        made = launch or (PythonLaunch if device is None else device.launch)(lambda: None)
        return KernelCall("extra", made, (), writes)

    return program, make_executor(name, **options), call


@pytest.mark.parametrize(("fault", "error", "message"), FAULTS, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("kind", EVERY)
@settings(max_examples=4, deadline=None)
@given(emitters=specs(), seed=st.integers(0, 99))
def test_a_run_after_one_that_failed(
    fault: Any, error: type[Exception], message: str, kind: str, emitters: list[list[Spec]], seed: int
) -> None:
    if fault is names_an_unknown_segment and kind.startswith("serial"):
        return  # serial checks no hazards
    if fault is is_refused_by_the_driver and kind.startswith("graph"):
        return  # see test_graphs.py: a graph that cannot be built
    program, executor, call = make(kind, emitters, seed)
    run_and_check(program, executor)
    with pytest.raises(error, match=message):
        executor.run([*program.emitters(), fault(call)])
    run_and_check(program, executor)
    executor.close()


def emit_a_fault(device: FakeDevice) -> Iterator[KernelCall]:
    """Thirty calls, the twelfth of which faults."""

    def illegal() -> None:
        raise MemoryError("illegal address")

    for k in range(30):
        yield KernelCall(f"k{k}", device.launch(illegal if k == 11 else lambda: None), (), ())


ON_A_DEVICE: dict[str, dict[str, Any]] = {
    "serial": {"device": "cuda"},
    "streams": {},
    "streams polling": {"completion": "polling"},
    "streams planned": {"stream_policy": "kesco"},
    "graph": {},
    "graph-cached": {},
    "pipeline": {},
}


@pytest.mark.parametrize("kind", ON_A_DEVICE)
@pytest.mark.parametrize("notice", ["synchronize", "run"])
def test_a_fault_is_said_to_be_one_and_a_serial_rerun_names_the_call(kind: str, notice: str) -> None:
    """A fault surfaces late: while the run is issued, when the host waits for it, or in the next run."""
    device = FakeDevice(3, eagerness=0.0)
    options = {"segments": Segments(), "driver": device, "stream": 0, "window": 40, **ON_A_DEVICE[kind]}
    executor = make_executor(kind.split()[0], **options)
    later = [KernelCall(f"later{k}", device.launch(lambda: None), (), ()) for k in range(50)]

    def use() -> None:
        executor.run([emit_a_fault(device)])
        if notice == "run":
            for stream in device.streams:  # someone else waits for the device
                with contextlib.suppress(DeviceFault):
                    device.synchronize(stream)
            executor.run([later])
        executor.synchronize()

    with pytest.raises(CallError, match=r"rerun with executor='serial', check_each=True") as info:
        use()
    assert info.value.fatal
    assert info.value.call.name.startswith(("k", "later0"))  # where it was noticed
    fresh = FakeDevice(1)  # a new process has a new context
    rerun = make_executor("serial", device="cuda", driver=fresh, stream=0, check_each=True)
    with pytest.raises(CallError) as named:
        rerun.run([emit_a_fault(fresh)])
    assert named.value.call.name == "k11"
    executor.close()
    rerun.close()


def test_a_fault_of_another_program_is_not_blamed_on_a_call() -> None:
    device = FakeDevice(0)

    def illegal() -> None:
        raise MemoryError("illegal address")

    executor = make_executor("streams", segments=Segments(), driver=device, stream=0)
    device.enqueue(0, illegal)
    with pytest.raises(DeviceFault):
        device.synchronize(0)
    with pytest.raises(DeviceFault):
        executor.run([emit_a_fault(device)])
    with pytest.raises(DeviceFault):
        executor.synchronize()
