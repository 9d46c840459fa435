"""Bounds of workloads: the work, the longest chain, and that nothing stays changed."""

from __future__ import annotations

from time import sleep
from typing import Any

import pytest

from simengine_scheduler import KernelCall, PythonLaunch
from simengine_scheduler.study.bounds import Bound, bound_of
from simengine_scheduler.study.workloads import HostTarget, Network, make_network
from simengine_scheduler.testing.fake_device import FakeDevice


class Sleepers(Network):
    """Two chains of two calls, of which one call takes long."""

    def __init__(self) -> None:
        super().__init__("sleepers", HostTarget(), 1)
        ids = [self.segments.intern(name) for name in ("a", "b")]
        self.ran: list[float] = []
        self.calls = [self._call(s, ids[k % 2]) for k, s in enumerate((0.004, 0.001, 0.001, 0.001))]

    def _call(self, seconds: float, segment: int) -> KernelCall:
        def body() -> None:
            self.ran.append(seconds)
            sleep(seconds)

        return KernelCall(f"{seconds}", PythonLaunch(body), (), (), (segment,))

    def emitters(self) -> Any:
        return [self.calls]


@pytest.mark.parametrize("name", ["population", "skipping"])
@pytest.mark.parametrize("on_device", [False, True])
def test_a_bound_leaves_the_workload_as_it_was(name: str, on_device: bool) -> None:
    device = FakeDevice(1)
    options: dict[str, Any] = {"device": "cuda", "driver": device, "stream": 0}
    workload = make_network(name, HostTarget(device.launch, options) if on_device else HostTarget())
    before = workload.state()
    bound = bound_of(workload)
    assert workload.state() == before
    assert bound.calls > bound.awaits > 0
    assert 0 < bound.chain_us <= bound.work_us
    assert (bound.launch_us is not None) == on_device
    assert bound.least_us >= bound.chain_us
    assert not device.graphs


def test_the_longest_chain_is_that_of_the_durations() -> None:
    workload = Sleepers()
    bound = bound_of(workload)
    assert workload.ran == [0.004, 0.001, 0.001, 0.001] * 12  # each step twice, and twice the steps before it
    assert bound.work_us >= 7000
    assert 5000 <= bound.chain_us < bound.work_us - 1900
    assert bound.parallelism == pytest.approx(bound.work_us / bound.chain_us)


def test_a_step_without_calls_has_no_chain() -> None:
    assert Bound(0, 0, 0.0, 0.0, None).parallelism == 1.0


class Growing(Network):
    """A call counts, and the size of the next call follows from the count, which differs from step to step."""

    def __init__(self, target: HostTarget, launch: Any) -> None:
        super().__init__("growing", target, 1)
        self.launch = launch
        self.field = self.segments.intern("field")
        self.emitted, self.steps, self.harm = 0, 0, 0

    def emitters(self) -> Any:
        self.emitted += 1
        size = self.emitted

        def count() -> None:
            self.steps += 1

        def fill() -> None:
            self.harm += size != self.steps

        return [[KernelCall(f.__name__, self.launch(f), (), (), (self.field,)) for f in (count, fill)]]

    def reset(self) -> None:
        self.emitted = self.steps = 0


@pytest.mark.parametrize("on_device", [False, True])
def test_calls_run_once_more_from_where_their_step_began(on_device: bool) -> None:
    device = FakeDevice(1)
    options: dict[str, Any] = {"device": "cuda", "driver": device, "stream": 0}
    launch: Any = device.launch if on_device else PythonLaunch
    workload = Growing(HostTarget(launch, options) if on_device else HostTarget(), launch)
    bound_of(workload)
    assert workload.harm == 0
    assert workload.steps == 0
