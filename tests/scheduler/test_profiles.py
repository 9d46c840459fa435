"""Resources of calls, derived from hints, launch shapes and recorded times."""

from __future__ import annotations

from typing import Any

import pytest

from simengine_scheduler import KernelCall, Trace
from simengine_scheduler.core import Cost, Tag
from simengine_scheduler.planning.planners import Need, Profile
from simengine_scheduler.tracing import Event


class Shaped:
    """A launch with a grid."""

    def __init__(self, grid: tuple[int, ...], block: tuple[int, ...], shared: int = 0) -> None:
        self.grid, self.block, self.shared = grid, block, shared

    def issue(self, stream: int) -> None: ...


def call(name: str, cost: Cost = Cost(), launch: Any = None) -> KernelCall:  # noqa: B008
    return KernelCall(name, launch, (), (), cost=cost)


def test_hints_and_shape() -> None:
    profile = Profile(balance=10.0)
    assert profile.need(call("nothing")) == Need("memory", 0.0, 1.0)
    assert profile.need(call("copy", Cost(5.0, 8.0))) == Need("memory", 8.0, 8.0)
    assert profile.need(call("product", Cost(800.0, 8.0))) == Need("compute", 8.0, 80.0)
    # 8 blocks of 512 threads fill two multiprocessors; of 113.5 KiB shared memory each, four
    assert profile.need(call("wide", launch=Shaped((4, 2), (512,)))).demand == 2.0
    assert profile.need(call("deep", launch=Shaped((8,), (32,), 227 * 512))).demand == 4.0
    assert profile.need(call("hinted", Cost(shared=227 * 1024), Shaped((3,), (32,)))).demand == 3.0


def test_what_is_given_goes_before_hints() -> None:
    need = Need("compute", 3.0, 1e-5)
    assert Profile({"copy": need}).need(call("copy", Cost(5.0, 8.0))) == need


def trace_of(calls: list[KernelCall], seconds: list[float]) -> Trace:
    events = [
        Event(i, c.name, 0, 0.0, 1.0, 1.0 + s, Tag()) for i, (c, s) in enumerate(zip(calls, seconds, strict=True))
    ]
    return Trace("serial", "times", order=calls, events=events)


def test_measured_times_are_medians_by_name() -> None:
    calls = [call("a", Cost(1.0, 8.0)), call("b", Cost(900.0, 8.0)), *[call("a", Cost(1.0, 8.0))] * 2]
    needs = Profile.measured(trace_of(calls, [1.0, 2.0, 5.0, 0.5])).needs
    assert needs["a"].seconds == pytest.approx(1.0)
    assert needs["b"].seconds == pytest.approx(2.0)
    assert (needs["a"].bound, needs["b"].bound) == ("memory", "compute")


def test_calls_that_have_not_run_are_judged_in_the_scale_of_those_that_have() -> None:
    calls = [call("a", Cost(1.0, 8.0)), call("b", Cost(1.0, 4.0)), call("c", Cost(1.0, 2.0))]
    profile = Profile.measured(trace_of(calls, [16e-6, 4e-6, 8e-6]))
    assert profile.need(call("new", Cost(1.0, 100.0))).seconds == pytest.approx(200e-6)
    profile.learn(trace_of([call("new", Cost(1.0, 100.0))], [3e-6]))
    assert profile.need(call("new", Cost(1.0, 100.0))).seconds == pytest.approx(3e-6)
    assert profile.need(calls[0]).seconds == pytest.approx(16e-6)


def test_without_bytes_the_rate_of_operations_tells() -> None:
    calls = [call(name, Cost(flops), Shaped((4,), (512,))) for name, flops in (("slow", 10.0), ("fast", 30.0))]
    calls += [call("idle", Cost(0.0), Shaped((4,), (512,)))]
    needs = Profile.measured(trace_of(calls, [1.0, 1.0, 1.0])).needs
    assert {name: need.bound for name, need in needs.items()} == {
        "slow": "compute",
        "fast": "compute",
        "idle": "memory",
    }
    calls += [call("faster", Cost(90.0), Shaped((4,), (512,))), call("fastest", Cost(99.0), Shaped((4,), (512,)))]
    assert Profile.measured(trace_of(calls, [1.0] * 5)).needs["slow"].bound == "memory"


def test_what_is_refused() -> None:
    with pytest.raises(
        ValueError, match="a profile needs times, but the run recorded 'order'; run with record='times'"
    ):
        Profile.measured(Trace("serial", "order"))
    with pytest.raises(ValueError, match="a profile with balance=0 operations per byte separates nothing"):
        Profile(balance=0)
