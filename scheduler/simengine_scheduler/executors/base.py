"""What every executor offers, and the options that they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Literal, Protocol, Self, get_args

from ..core.calls import Emitter, FixedList, KernelCall
from ..core.emission import Feeder
from ..core.errors import choose_one
from ..core.policies import ORDER_POLICIES, STREAM_POLICIES
from ..core.segments import Segments
from ..cuda.driver import Driver
from ..planning.planners import PLANNERS
from ..planning.profiles import Profile
from ..tracing.events import Record
from ..tracing.trace import Trace
from .recorder import Recorder

Completion = Literal["events", "polling"]
Device = Literal["host", "cuda"]


class Executor(Protocol):
    """Runs emitters to their end, in an order equivalent to program order.

    Executors derive from this class, which makes them context managers that close themselves:

        with make_executor("threads", segments=segments) as executor:
            executor.run(emitters)
    """

    name: str

    @abstractmethod
    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Run every call of every emitter once; a plain list of calls is an emitter too.

        Host executors return when all is done. CUDA executors return when all is issued: the home stream has then been
        made to wait for it. Raises CallError for a call that failed, and whatever an emitter raised.
        """
        ...

    @abstractmethod
    def synchronize(self) -> None:
        """Block the host until everything that was issued has completed."""
        ...

    @abstractmethod
    def close(self) -> None:
        """Give back threads, streams and events. The executor cannot be used afterwards."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `make_executor`. Every executor accepts all of them and uses those that concern it.

    segments: the table that calls' segments come from; needed by every executor but `serial`.
    window: calls in flight at most; planners, graphs, `pipeline` and scripts of fixed lists look at whole runs of calls
        instead.
    streams: CUDA worker streams. workers: host threads, default one a core up to 8.
    policy: order policy. seed: of `shuffled`.
    stream_policy: stream policy, for completion by events; or a planner of whole runs of calls, which also gives their
    order, for completion by events and for graphs. profile: what calls take, for planners; by default from their hints.
    record: `off`, `order` (what `validate` needs) or `times` (with time stamps; CUDA runs then end synchronised).
    completion: `events` chains calls on the device, `polling` issues a call only once all before it are seen complete.
    device: of `serial` and `auto`. stream: handle of the CUDA home stream; None takes CuPy's current one at each run.
    check_each: `serial` waits for each call, so that a fault names it.
    graphs: how many graphs, or plans of fixed lists, are kept. depth: jobs of `pipeline` in flight on a stream at most.
    tiled: `device` lets calls wait for one another tile by tile where they may. watchdog: seconds after which it takes
    a call that waits to be stuck. merged: its lists are one launch each, for checkers that run one kernel at a time;
    all bodies are one class, with the most threads and registers that one asks for, and a block of it is the window.
    keep: keeps the programs that it links, as `keep(key, make)` returns what is kept under a key or else `make()`;
        called by several threads at once.
    candidates: of `auto`, its executors, "threads+serial" say, the likeliest first; by default those of `device`.
    driver: replaces CUDA, e.g. by a fake device.
    model, gpu: of `simulated`: the way of executing, and the GPU, a name or a GpuSpec.
    """

    segments: Segments | None = None
    window: int = 32
    streams: int = 8
    workers: int | None = None
    policy: str = "fifo"
    stream_policy: str = "follow"
    profile: Profile | None = None
    seed: int = 0
    record: Record = "off"
    completion: Completion = "events"
    device: Device = "host"
    stream: int | None = None
    check_each: bool = False
    graphs: int = 64
    depth: int = 2
    tiled: bool = True
    watchdog: float = 10.0
    merged: bool = False
    keep: Callable[[str, Callable[[], bytes]], bytes] | None = None
    driver: Driver | None = None
    candidates: str = ""
    model: str = "streams"
    gpu: object = "h200"

    def __post_init__(self) -> None:
        for name in ("window", "streams", "workers", "graphs", "depth"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"executor option {name}={value} is too small; give at least 1")
        if not self.watchdog > 0:
            raise ValueError(f"executor option watchdog={self.watchdog} is no time to wait; give seconds above 0")
        choices = {
            "policy": tuple(ORDER_POLICIES),
            "stream_policy": (*STREAM_POLICIES, *PLANNERS),
            "record": get_args(Record),
            "completion": get_args(Completion),
            "device": get_args(Device),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                value = getattr(self, name)
                raise ValueError(f"executor option {name}={value!r} is unknown; {choose_one(value, known)}")

    def table(self, executor: str) -> Segments:
        """Return the segments table. Raises ValueError where none was given."""
        if self.segments is None:
            raise ValueError(f"executor {executor!r} checks hazards and needs the segments table; pass segments=...")
        return self.segments


def run_on_host(call: KernelCall, seq: int, recorder: Recorder | None) -> None:
    """Run a host call to its end on this thread, and note when, if times are recorded."""
    if recorder is None or not recorder.times:
        call.launch.issue(0)
        return
    start = perf_counter()
    call.launch.issue(0)
    recorder.ran(seq, start, perf_counter())


def run_repeatedly(executor: Executor, lists: Sequence[FixedList], times: int) -> Trace:
    """Run fixed lists so many times, at least once; return the trace of the last run.

    An executor with a `repeat` of its own may let a list go on to its next round while others are in an earlier one.
    """
    repeat = getattr(executor, "repeat", None)
    if repeat is not None:
        return repeat(lists, times)
    for _ in range(times - 1):
        executor.run(lists)
    return executor.run(lists)


def finish_run(trace: Trace, feeder: Feeder, recorder: Recorder | None) -> Trace:
    """Complete a trace at the end of a run that succeeded. Raises RuntimeError if an emitter has not ended."""
    if not feeder.exhausted:
        raise RuntimeError(
            f"executor {trace.executor!r} stopped before its emitters ended; this is a fault of the scheduler"
        )
    trace.counters.calls = feeder.calls
    trace.counters.awaits = feeder.awaits
    if recorder is not None:
        recorder.finish()
    return trace
