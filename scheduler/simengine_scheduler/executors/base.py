"""What every executor offers, and the options of all executors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
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
GraphOf = Literal["list", "run"]
HazardsOn = Literal["host", "device"]


class Executor(Protocol):
    """Runs emitters to their end, in an order equivalent to program order.

    Executors derive from this class, which makes them context managers that close themselves:

        with make_executor("threads", segments=segments) as executor:
            executor.run(emitters)
    """

    name: str

    @abstractmethod
    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Run every call of every emitter once. A plain list of calls is an emitter too.

        An executor on the host returns when all calls have completed. An executor on CUDA returns when all calls are
        issued and the home stream has been made to wait for them.

        Raises:
            CallError: a call failed.
            Exception: whatever an emitter raised.
        """
        ...

    @abstractmethod
    def synchronize(self) -> None:
        """Block the host until everything that was issued has completed."""
        ...

    @abstractmethod
    def close(self) -> None:
        """Free threads, streams and events. The executor cannot be used afterwards."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class Default(int):
    """The value of an option that was not given, for which an executor may have another one."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `make_executor`. Every executor accepts all of them and uses those that concern it.

    Attributes:
        segments: the table of the calls' segments. Every executor but `serial` needs it.
        window: largest number of calls in flight; by default 128 for `streams` with completion by events, and 32
            elsewhere. Planners, graphs, `pipeline` and scripts of fixed lists plan whole
            runs of calls instead.
        streams: number of CUDA worker streams on each GPU; by default 32 for `streams` with completion by events, and
            8 elsewhere.
        gpus: numbers of the GPUs that `streams` has streams on, if there are several. The home stream is one of the
            first. A launch says by its attribute `gpu` where it runs; one that does not runs on the first.
        workers: number of host threads; by default one for each core, up to 8.
        policy: the order policy.
        stream_policy: a stream policy, for completion by events; or a planner of whole runs of calls, which also gives
            their order, for completion by events and for graphs.
        profile: durations of calls, for planners; by default these time the calls of their first runs, one after
            another. `Profile()` takes cost hints alone.
        seed: seed of the random order of `shuffled`.
        record: "off", "order" (what `validate` needs), or "times" (order and time stamps; a run on CUDA then ends
            synchronised).
        completion: "events" lets streams wait for each other on the device. "polling" issues a call once the host has
            seen that all calls which it waits for are complete.
        chains: with completion by polling, whether compiled code also issues a call behind the last call of a stream,
            without having seen its end, if it waits for that call, and for nothing elsewhere that has not ended.
        device: the processor on which `serial` and `auto` run.
        stream: handle of the CUDA home stream; None takes CuPy's current stream at each run.
        check_each: `serial` waits for each call, so that a fault names its call.
        graphs: how many graphs, or scripts of fixed lists, an executor stores.
        graph_of: by what `graph-cached` stores graphs of fixed lists. With "list", lists that wait for no other list
            share graphs, in which those that pause are switched off. With "run", each set of lists has its own.
        together: how many calls lists may have that share a graph with graph_of="list". With 1 each list has its own.
        depth: largest number of jobs of `pipeline` in flight on a stream.
        tiled: whether `device` lets calls wait for each other tile by tile, if they declare their tiles.
        watchdog: `device` gives up its list when a call has waited for longer than this [s].
        patience: a run on CUDA, or a wait for it, raises a fatal CallError if the device has not ended what the host
            waits for within so many seconds; None waits for ever.
        merged: `device` launches one kernel for each list, for checkers that run one kernel at a time. All bodies then
            share blocks, which have the most threads and registers that any of them asks for.
        hazards: where `device` finds out what calls wait for. With "host" this is done once for each list, and a block
            goes on with the same tiles of the next call where it may. With "device" a window on the GPU checks the
            hazards of every run, as in ACS-HW.
        ready: whether blocks of `device` take tiles of any ready call of the window, as in ACS-HW, which takes
            hazards="device". Otherwise they take tiles in a fixed order, and a block that has one waits until its call
            is ready.
        keep: stores the programs that `device` links. `keep(key, make)` returns the bytes stored under a key, or else
            stores and returns `make()`. It must be thread-safe.
        compiled: whether compiled code issues the calls of `serial` and `streams` where it can: with a C++ compiler,
            completion by events, and no recorded times.
        pieces: whether `streams` launches runs of calls that come again and again as kept graphs, where compiled code
            issues calls, waits are on the device, and nothing is recorded. It keeps up to 16 of them for each of
            `graphs`.
        launchers: how many threads make the driver's calls of `streams` where compiled code issues them on CUDA and
            many launches follow each other, so that these calls take place beside each other, and beside the search for
            hazards; by default 0 to 3, by the number of cores. With 0 the calling thread makes them. A thread that has
            nothing to do for 2 ms sleeps.
        driver: replaces CUDA, for example by a fake device.
        candidates: the executors that `auto` chooses from, such as "threads+serial", the likeliest first; by default
            those that suit option `device`. "polling" is `streams` with completion by polling, and chains.
        model: the executor that `simulated` models.
        gpu: the GPU that `simulated` models: a name, or a `simengine_scheduler.gpu_model.GpuSpec`.
    """

    segments: Segments | None = None
    window: int = Default(32)
    streams: int = Default(8)
    gpus: tuple[int, ...] = ()
    workers: int | None = None
    policy: str = "fifo"
    stream_policy: str = "follow"
    profile: Profile | None = None
    seed: int = 0
    record: Record = "off"
    completion: Completion = "events"
    chains: bool = False
    device: Device = "host"
    stream: int | None = None
    check_each: bool = False
    graphs: int = 64
    graph_of: GraphOf = "list"
    together: int = 2048
    depth: int = 2
    tiled: bool = True
    watchdog: float = 10.0
    patience: float | None = None
    merged: bool = False
    hazards: HazardsOn = "host"
    ready: bool = False
    keep: Callable[[str, Callable[[], bytes]], bytes] | None = None
    compiled: bool = True
    pieces: bool = True
    launchers: int | None = None
    driver: Driver | None = None
    candidates: str = ""
    model: str = "streams"
    gpu: object = "h200"

    def __post_init__(self) -> None:
        for name in ("window", "streams", "workers", "graphs", "together", "depth"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"executor option {name}={value} is too small; give at least 1")
        if self.launchers is not None and self.launchers < 0:
            raise ValueError(f"executor option launchers={self.launchers} is no number of threads; give at least 0")
        if not self.watchdog > 0:
            raise ValueError(f"executor option watchdog={self.watchdog} is no time to wait; give more than 0 seconds")
        if self.patience is not None and not self.patience > 0:
            raise ValueError(f"executor option patience={self.patience} is no time to wait; give more than 0 seconds")
        choices = {
            "policy": tuple(ORDER_POLICIES),
            "stream_policy": (*STREAM_POLICIES, *PLANNERS),
            "record": get_args(Record),
            "completion": get_args(Completion),
            "device": get_args(Device),
            "graph_of": get_args(GraphOf),
            "hazards": get_args(HazardsOn),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                value = getattr(self, name)
                raise ValueError(f"executor option {name}={value!r} is unknown; {choose_one(value, known)}")

    def or_else(self, **values: int) -> Options:
        """Return the options with other values for those that were not given."""
        missing = {name: value for name, value in values.items() if type(getattr(self, name)) is Default}
        return replace(self, **missing)  # type: ignore[arg-type]

    @property
    def knows_waits(self) -> bool:
        """Whether the host works out for `device` what the calls of a list wait for."""
        return self.hazards == "host" and not self.ready

    def table(self, executor: str) -> Segments:
        """Return the segments table. Raises ValueError where none was given."""
        if self.segments is None:
            raise ValueError(f"executor {executor!r} checks hazards and needs the segments table; pass segments=...")
        return self.segments


def run_on_host(call: KernelCall, seq: int, recorder: Recorder | None) -> None:
    """Run a host call to its end on this thread. Notes its times if times are recorded."""
    if recorder is None or not recorder.times:
        call.launch.issue(0)
        return
    start = perf_counter()
    call.launch.issue(0)
    recorder.ran(seq, start, perf_counter())


def run_repeatedly(executor: Executor, lists: Sequence[FixedList], times: int) -> Trace:
    """Run fixed lists `times` times, at least once, and return the trace of the last run.

    An executor with a `repeat` of its own may let one list begin its next round while others are in an earlier round.
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
            f"executor {trace.executor!r} stopped before its emitters ended; please report this fault of the scheduler"
        )
    trace.counters.calls = feeder.calls
    trace.counters.awaits = feeder.awaits
    if recorder is not None:
        recorder.finish()
    return trace
