"""The threads executor: host kernels run out of order on a pool of threads.

                      one lock
    emitters --pull--> window of N --policy--> worker 0 (the thread that called run)
                          ^                    worker 1 ... worker W-1
                          +------complete---------+

Invariants
    1. Window, feeder, log and failure are touched under the lock only. A call runs outside the lock.
    2. A worker has one call in flight. A call starts only when its upstream set is empty. What it reads was written
       before its thread took the lock, so no further memory fence is needed.
    3. Emitters are advanced under the lock, one at a time, by whichever worker is free. Different threads thus advance
       an emitter, which must not rely on thread-local state.
    4. A worker sleeps only when nothing is ready and either a call executes or emitters are idle. A worker that makes
       calls ready wakes as many others. While emitters are idle, one sleeper wakes every half millisecond to ask them.
    5. After a failure nothing is started. The run ends when the last executing call has ended, and then raises.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable

from ..core.calls import Emitter, KernelCall
from ..core.emission import Feeder
from ..core.errors import call_failed
from ..core.policies import ORDER_POLICIES, OrderPolicy
from ..core.window import Window
from ..tracing.trace import Trace
from .base import Executor, Options, finish_run, run_on_host
from .processors import Processors, usable_processors
from .recorder import start_recording

_IDLE_SECONDS = 5e-4


class _Run:
    """What the workers share during one run (invariant 1)."""

    def __init__(self, window: Window, emitters: Iterable[Emitter], trace: Trace) -> None:
        self.window = window
        window.clear()
        self.feeder = Feeder(emitters, lambda seq: seq not in window.calls, window.following)
        self.recorder = start_recording(trace, first=window.following)
        self.active: set[int] = set()  # workers with a call in flight
        self.sleeping = 0
        self.asking = False  # whether a sleeper will wake soon and ask idle emitters
        self.failure: BaseException | None = None


class _Pool:
    """Threads that serve all runs of an executor. They refer to the pool alone, so a dropped executor ends them."""

    def __init__(self, name: str, workers: int, choose: OrderPolicy) -> None:
        self._name = name
        self._choose = choose
        self._changed = threading.Condition(threading.Lock())
        self._run: _Run | None = None
        self._closed = False
        self._threads = [
            threading.Thread(target=self._serve, args=(index,), name=f"scheduler-{index}", daemon=True)
            for index in range(1, workers)
        ]
        for thread in self._threads:
            thread.start()
        self._processors = Processors(self._threads)

    def execute(self, begin: Callable[[], _Run]) -> _Run:
        """Begin a run and take part in it to its end, with the calling thread as worker 0. Raises what failed."""
        with self._changed:
            if self._closed or self._run is not None:
                state = "closed" if self._closed else "running already"
                raise RuntimeError(f"the threads executor is {state}; make one executor for each concurrent caller")
            run = self._run = begin()
            self._processors.leave_free()
            self._changed.notify_all()
        try:
            self._work(run, 0)
        except BaseException as interrupt:
            run.failure = run.failure or interrupt
            raise
        finally:
            with self._changed:
                run.active.discard(0)
                while run.active:
                    self._changed.wait()
                self._run = None
            run.feeder.close()
        if run.failure is not None:
            raise run.failure
        return run

    def close(self) -> None:
        """Stop the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        self._threads.clear()

    def _serve(self, worker: int) -> None:
        """Serve runs until the pool is closed. Each thread of the pool runs this."""
        while True:
            with self._changed:
                while self._run is None and not self._closed:
                    self._changed.wait()
                if self._closed or self._run is None:
                    return
                run = self._run
            self._work(run, worker)
            with self._changed:
                while self._run is run and not self._closed:
                    self._changed.wait()
            del run

    def _work(self, run: _Run, worker: int) -> None:
        """Take calls and run them until the run is over."""
        done = -1
        while True:
            with self._changed:
                if done >= 0:
                    self._complete(run, done, worker)
                done = self._take(run, worker)
                if done < 0:
                    return
                call = run.window.calls[done]
            try:
                run_on_host(call, done, run.recorder)
            except BaseException as error:
                with self._changed:
                    self._fail(run, call, worker, error)
                return

    def _take(self, run: _Run, worker: int) -> int:
        """Under the lock: sleep until there is a call to run and return it, or return -1 when the run is over.

        A worker that wakes late may hold a run that has ended, when the window already belongs to the next run.
        """
        window = run.window
        while run.failure is None and self._run is run:
            if not self._fill(run):
                break
            if window.ready:
                seq = self._choose(window.ready, window.calls)
                window.start(seq)
                run.active.add(worker)
                if run.recorder is not None:
                    run.recorder.issue(seq, worker)
                if run.sleeping and (window.ready or (run.feeder.idle and not run.asking)):
                    self._changed.notify(max(1, min(len(window.ready), run.sleeping)))
                return seq
            idle = run.feeder.idle
            if not window.calls and not idle:
                break  # no emitter is blocked here, since the window is empty
            self._sleep(run, asks=idle and not run.asking)
        self._changed.notify_all()
        return -1

    def _sleep(self, run: _Run, asks: bool) -> None:
        """Under the lock: wait for a change, or only for a moment if this worker asks idle emitters again."""
        run.sleeping += 1
        run.asking |= asks
        self._changed.wait(_IDLE_SECONDS if asks else None)
        run.asking ^= asks
        run.sleeping -= 1

    def _fill(self, run: _Run) -> bool:
        """Under the lock: advance emitters until the window is full or all are blocked. Returns whether none raised."""
        try:
            while not run.window.full and (call := run.feeder.pull()) is not None:
                run.window.insert(call)
                if run.recorder is not None:
                    run.recorder.enter(call)
        except BaseException as error:  # the thread that called run raises it again
            run.failure = error
            return False
        return True

    def _complete(self, run: _Run, seq: int, worker: int) -> None:
        """Under the lock: complete a call that has succeeded."""
        run.active.discard(worker)
        run.window.complete(seq)
        if run.recorder is not None:
            run.recorder.observe(seq, worker)
        if run.feeder.waiting:
            run.feeder.release(seq)

    def _fail(self, run: _Run, call: KernelCall, worker: int, error: BaseException) -> None:
        """Under the lock: end the run, because a call has raised."""
        run.active.discard(worker)
        if run.failure is None:
            run.failure = error
            if isinstance(error, Exception):
                run.failure = call_failed(call, self._name, error)
                run.failure.__cause__ = error
        self._changed.notify_all()


class ThreadsExecutor(Executor):
    """Runs ready calls on `workers` threads. The calling thread is one of them."""

    name = "threads"

    def __init__(self, options: Options) -> None:
        self._options = options
        self._window = Window(options.table(self.name), options.window)
        workers = options.workers if options.workers is not None else min(usable_processors(), 8)
        self._pool = _Pool(self.name, workers, ORDER_POLICIES[options.policy])
        self._finalizer = weakref.finalize(self, self._pool.close)

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Run the emitters' calls. The calling thread takes part."""
        trace = Trace(self.name, self._options.record)
        run = self._pool.execute(lambda: _Run(self._window, emitters, trace))
        return finish_run(trace, run.feeder, run.recorder)

    def synchronize(self) -> None:
        """Return at once: a run has ended when it returns."""

    def close(self) -> None:
        """Stop the threads."""
        self._finalizer()
