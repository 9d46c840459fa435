"""Measuring executors: consistent figures, failures that affect only their row, and verdicts that can be negative."""

from __future__ import annotations

from typing import Any

import pytest

from simengine_scheduler import CallError, KernelCall, PythonLaunch, Segments, Trace
from simengine_scheduler.core import Tag
from simengine_scheduler.executors.base import Options
from simengine_scheduler.executors.serial import SerialExecutor
from simengine_scheduler.registry import EXECUTORS
from simengine_scheduler.study.measure import Figures, Plan, measure, parallelism
from simengine_scheduler.study.specs import Spec, offered
from simengine_scheduler.study.workloads import HostTarget, make_network
from simengine_scheduler.testing.fake_device import FakeDevice
from simengine_scheduler.tracing.events import Event

PLAN = Plan(warmup=1, steps=3, repeats=2, traces=2)


def population(place: HostTarget | None = None) -> Any:
    return make_network("population", place or HostTarget(), rows=6, policies=2, most=8)


def figures_of(executors: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *texts: str) -> list[Figures]:
    for name, maker in executors.items():
        monkeypatch.setitem(EXECUTORS, name, maker)
    return measure(population(), [Spec.parse(text) for text in texts], PLAN)


def test_figures_of_a_device() -> None:
    device = FakeDevice()
    workload = population(HostTarget(device.launch, {"device": "cuda", "driver": device}))
    told: list[str] = []
    specs = [Spec.parse(text) for text in ("streams:streams=4", "serial", "graph")]
    streams, serial, graph = measure(workload, specs, PLAN, told.append)
    assert told == ["serial", "streams:streams=4", "graph"]
    for figures in (streams, serial, graph):
        assert figures.good
        assert figures.us_per_step is not None
        assert figures.units_per_s == pytest.approx(12 * 1e6 / figures.us_per_step)
        assert figures.kernels_per_step is not None
        assert 10 <= figures.kernels_per_step <= 32
        assert figures.awaits_per_step == 2
        assert figures.dispatch_us is not None
        assert figures.dispatch_us >= 0
    assert serial.check_us is None
    assert serial.waits_inserted == 0
    assert streams.check_us is not None
    assert streams.issue_us is not None
    assert streams.waits_inserted is not None
    assert streams.waits_inserted == streams.counters["waits_inserted"] > 0
    assert serial.concurrency is not None
    assert streams.concurrency is not None
    assert streams.concurrency > 1 >= serial.concurrency


def test_trials_have_runs_that_follow_each_other_as_those_that_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deciding(SerialExecutor):
        runs = 0

        @property
        def undecided(self) -> bool:
            return self.runs < 5

        def run(self, emitters: Any) -> Trace:
            self.runs += 1
            return super().run(emitters)

    workload, asked = population(), list[int]()
    run = workload.run
    monkeypatch.setattr(workload, "run", lambda executor, steps: (asked.append(steps), run(executor, steps))[1])
    monkeypatch.setitem(EXECUTORS, "deciding", Deciding)
    _, figures = measure(workload, [Spec.parse("serial"), Spec.parse("deciding")], PLAN)
    assert figures.good
    of_serial = [PLAN.warmup, PLAN.steps, *[1] * (3 + PLAN.traces)]
    assert asked[: len(of_serial)] == of_serial
    assert asked[len(of_serial) :][:4] == [PLAN.steps, PLAN.steps, PLAN.warmup, PLAN.steps]


class Wrong(SerialExecutor):
    """Leaves the last call of every run out, and does not record it."""

    def run(self, emitters: Any) -> Trace:
        return super().run([[call for call in emitter if isinstance(call, KernelCall)][:-1] for emitter in emitters])


class Unseen(SerialExecutor):
    """Does what `serial` does, but its log has the first call of each run issued twice."""

    def run(self, emitters: Any) -> Trace:
        trace = super().run(emitters)
        trace.log += [step for step in trace.log[:1] if trace.record != "off"]
        return trace


class Fatal(SerialExecutor):
    """Loses the context in its second run."""

    runs = 0

    def run(self, emitters: Any) -> Trace:
        self.runs += 1
        if self.runs > 1:
            call = KernelCall("broken", PythonLaunch(lambda: None), (), ())
            raise CallError("a CUDA fault ended the context", call, RuntimeError(), fatal=True)
        return super().run(emitters)


def test_wrong_bits_and_orders_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"wrong": Wrong, "unseen": Unseen}
    wrong, unseen = figures_of(made, monkeypatch, "wrong", "unseen")
    assert (wrong.equal, wrong.good, wrong.error) == (False, False, "")
    assert (unseen.equal, unseen.legal, unseen.good) == (True, False, False)
    assert unseen.violation


def test_slow_executors_have_fewer_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []

    class Counted(SerialExecutor):
        def run(self, emitters: Any) -> Trace:
            runs.append(1)
            return super().run(emitters)

    monkeypatch.setitem(EXECUTORS, "counted", Counted)
    (figures,) = measure(population(), [Spec("counted")], Plan(1, 2, repeats=50, traces=1, limit=1e-9))
    assert figures.good
    assert len(runs) == 1 + 2 + 3 + 1  # a repeat, and the recorded steps with those that settle


@pytest.mark.parametrize("in_turns", [True, False])
def test_executors_take_turns_where_they_can(monkeypatch: pytest.MonkeyPatch, in_turns: bool) -> None:
    ran: list[str] = []

    def logged(name: str) -> Any:
        class Logged(SerialExecutor):
            def run(self, emitters: Any) -> Trace:
                ran.extend([name] * (not ran or ran[-1] != name))
                return super().run(emitters)

        return Logged

    for name in "ab":
        monkeypatch.setitem(EXECUTORS, name, logged(name))
    workload = population()
    workload.in_turns = in_turns
    found = measure(workload, [Spec("a"), Spec("b")], Plan(1, 2, repeats=3, traces=1))
    assert all(figures.good for figures in found)
    assert "".join(ran) == ("ababab" if in_turns else "ab")


def test_without_serial_nothing_is_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(SerialExecutor):
        def run(self, emitters: Any) -> Trace:
            raise RuntimeError("broken")

    (shuffled,) = figures_of({"serial": Broken}, monkeypatch, "shuffled")
    assert (shuffled.error, shuffled.legal, shuffled.equal, shuffled.good) == ("", True, None, False)


def test_a_failure_stays_in_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(options: Options) -> Any:
        raise RuntimeError("no such device")

    refused, serial = figures_of({"refuses": refuses}, monkeypatch, "refuses", "serial")
    assert refused.error == "RuntimeError: no such device"
    assert (refused.us_per_step, refused.equal) == (None, None)
    assert serial.good


def test_nothing_runs_after_the_context_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    before, fatal, after = figures_of({"fatal": Fatal}, monkeypatch, "shuffled", "fatal", "threads")
    assert before.good
    assert fatal.error == "CallError: a CUDA fault ended the context"
    assert after.error == "not run: the CUDA context was lost before"


@pytest.mark.parametrize("name", ["warmup", "steps", "repeats", "traces"])
def test_plans_that_measure_nothing_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"a plan with {name}=0 measures nothing"):
        Plan(**{name: 0})


def test_parallelism_is_work_over_the_longest_chain() -> None:
    table = Segments()
    a, b = table.intern("a"), table.intern("b")
    launch = PythonLaunch(lambda: None)
    order = [KernelCall("a0", launch, (), (a,)), KernelCall("a1", launch, (a,), ()), KernelCall("b", launch, (), (b,))]
    events = [Event(seq, "k", 0, 0.0, 10.0 * seq, 10.0 * seq + seconds, Tag()) for seq, seconds in enumerate((1, 2, 3))]
    trace = Trace("serial", "times", order=order, events=events)
    assert parallelism(trace, table) == pytest.approx(6 / 3)
    assert parallelism(Trace("serial"), table) == 1.0


@pytest.mark.parametrize(
    "text", ["streams", "streams:completion=polling,window=16", "serial:check_each=true", "a:b=-3"]
)
def test_specs_are_read_as_they_are_written(text: str) -> None:
    assert str(Spec.parse(text)) == text


def test_values_of_specs() -> None:
    options = Spec.parse("x:a=2,b=true,c=fifo,d=-1").options
    assert options == {"a": 2, "b": True, "c": "fifo", "d": -1}


@pytest.mark.parametrize("text", ["", ":a=1", "x:", "x:a", "x:a=", "x:=1", "x:a=1,a=2", "x:a=1,,b=2", "x:a b=1"])
def test_what_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="spec"):
        Spec.parse(text)


def test_what_is_offered() -> None:
    assert offered(Spec.parse("streams:completion=polling")) == ""
    assert "unknown executor 'magic'" in offered(Spec.parse("magic"))
    assert "completion='hope' is unknown" in offered(Spec.parse("streams:completion=hope"))
    assert "widow" in offered(Spec.parse("streams:widow=3"))
