"""What the CUDA executors share: worker streams, the issue of a call, and an orderly end when something fails."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Protocol, Self
from weakref import WeakKeyDictionary

from ..core.calls import KernelCall
from ..core.emission import Feeder
from ..core.errors import CallError, call_failed, device_fault, device_stalled
from ..cuda.driver import CudaDriver, Driver, EventPool
from ..cuda.patience import PatientDriver, Stalled
from .base import Options
from .recorder import Recorder


def driver_for(options: Options) -> Driver:
    """Return the driver of an executor: CUDA or the one in the options, with a limit on waits if they have one."""
    driver: Driver = options.driver if options.driver is not None else CudaDriver()
    return driver if options.patience is None else PatientDriver(driver, options.patience)


class Lanes:
    """Worker streams between a fork from the home stream and a join back to it.

    Attributes:
        handles: of the streams.
        fork, joins: events for the fork, and for the join of each stream.
    """

    def __init__(self, driver: Driver, count: int) -> None:
        self._driver = driver
        self.handles = [driver.create_stream() for _ in range(count)]
        self._events = EventPool(driver)
        self.fork = self._behind = self._events.take()
        self.joins = [self._events.take() for _ in range(count)]
        self._used = [False] * count

    def begin(self, home: int) -> int:
        """Record on the home stream what every lane must come after. Returns the event."""
        self._used = [False] * len(self.handles)
        self._driver.record(self.fork, home)
        self._behind = self.fork
        return self.fork

    def begin_behind(self, fork: int) -> None:
        """Let every lane come after an event of another GPU, which was recorded there."""
        self._used = [False] * len(self.handles)
        self._behind = fork

    def use(self, lane: int) -> int:
        """Return the stream handle of a lane, which has been made to wait for the home stream."""
        handle = self.handles[lane]
        if not self._used[lane]:
            self._used[lane] = True
            self._driver.wait(handle, self._behind)
        return handle

    def join(self, home: int) -> None:
        """Let the home stream wait for the lanes that were used."""
        for lane, used in enumerate(self._used):
            if used:
                self._driver.record(self.joins[lane], self.handles[lane])
                self._driver.wait(home, self.joins[lane])

    def close(self) -> None:
        """Destroy streams and events."""
        self._events.close()
        for handle in self.handles:
            self._driver.destroy_stream(handle)
        self.handles.clear()


_ISSUED_LAST: WeakKeyDictionary[Driver, KernelCall] = WeakKeyDictionary()  # for faults that are noticed later


class _Closes(Protocol):
    """What has emitters that are closed at the end of a run."""

    def close(self) -> None:
        """Close the emitters that have not ended."""
        ...


class CudaRun:
    """The scope of one run on a device. After an error it waits for running calls and closes the emitters.

    A CUDA fault, or a wait beyond the limit, becomes a fatal CallError that names the call issued last. That call
    belongs to an earlier run with the same driver if this run has issued none. Other errors pass unchanged.
    """

    def __init__(self, executor: str, driver: Driver, streams: Iterable[int]) -> None:
        self.executor = executor
        self.driver = driver
        self.streams = streams
        self.feeder: Feeder | None = None
        self.flow: _Closes | None = None  # in place of a feeder
        self.recorder: Recorder | None = None
        self.latest = self._before = _ISSUED_LAST.get(driver)

    def start(self) -> None:
        """Do the first work of the run on the device."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except Exception as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.latest is not self._before and self.latest is not None:
            _ISSUED_LAST[self.driver] = self.latest
        fault = self._fault(error)
        if error is not None and fault is None:
            try:
                for stream in self.streams:
                    self.driver.synchronize(stream)
            except Exception as late:  # the device failed while the calls in flight were finishing
                fault = late if self.driver.is_fault(late) else None
        for emitters in (self.feeder, self.flow):
            if emitters is not None:
                emitters.close()
        if self.recorder is not None and fault is None:
            self.recorder.close()
        if fault is not None and self.latest is not None:
            raise _lost(self.latest, self.executor, fault) from fault

    def _fault(self, error: BaseException | None) -> BaseException | None:
        cause = error.cause if isinstance(error, CallError) else error
        return cause if cause is not None and self.driver.is_fault(cause) else None


def wait_for(stream: int, executor: str, driver: Driver) -> None:
    """Block the host until a stream is empty. A CUDA fault becomes a fatal CallError, as in `CudaRun`."""
    try:
        driver.synchronize(stream)
    except Exception as error:
        latest = _ISSUED_LAST.get(driver)
        if latest is None or not driver.is_fault(error):
            raise
        raise _lost(latest, executor, error) from error


def _lost(call: KernelCall, executor: str, cause: BaseException) -> CallError:
    return (device_stalled if isinstance(cause, Stalled) else device_fault)(call, executor, cause)


def release(pool: EventPool, lanes: Lanes) -> None:
    """Destroy what an executor holds on the device."""
    pool.close()
    lanes.close()


def issue_call(run: CudaRun, call: KernelCall, seq: int, handle: int, stream: int) -> None:
    """Launch a call on a stream handle, and record it under stream index `stream`. Raises CallError if that fails."""
    recorder = run.recorder
    try:
        if recorder is None:
            call.launch.issue(handle)
            return
        recorder.issue(seq, stream)
        recorder.before_launch(seq, handle)
        call.launch.issue(handle)
        recorder.after_launch(seq, handle)
    except Exception as error:
        raise call_failed(call, run.executor, error) from error
