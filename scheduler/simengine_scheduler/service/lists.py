"""A client's list at the owner: its calls between guards, and the fence behind them.

    call 0   call 1   ...   call n-1   fence
       every call writes a segment that the fence reads

The fence is a call like the others. Hazards put it behind all calls of its list. If the list is submitted again, its
calls come after the fence. So a list runs at most once at a time, in the order of submission. Lists that share no
buffer with it, such as those of other clients, run beside it.

A list may be stored as one CUDA graph. It is then one call, which touches all that its calls touch.

A guard confines a failure to its list. The executor does not see the error, and the rest of the list is left out. Lists
that the client submitted before it could know of the failure are left out too, because they may need its results.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..core.calls import KernelCall, Launch, Tag
from ..core.dependencies import dependencies
from ..core.segments import Segments
from ..cuda.driver import Driver
from .memory import SharedArray
from .wire import Access, CallMessage


class Submitter(Protocol):
    """What lists and the exchange know of the session that submitted a list.

    Attributes:
        name: of the client.
        slot: a number that no other connected client has.
        lost: whether the client is gone.
        queue: submissions of which no call has been pulled.
        flying: how many submissions have been begun and have not ended.
        failures: how many lists have failed.
        failed_call, failure: the call of the latest failure, and what it raised.
        buffers: the client's memory by name.
    """

    name: str
    slot: int
    lost: bool
    queue: deque[Submission]
    flying: int
    failures: int
    failed_call: str
    failure: str
    buffers: dict[str, SharedArray]

    def begin(self, table: Segments, ended: Callable[[Submission, int], None]) -> None:
        """Take the next submission from the queue."""
        ...

    def pull(self) -> KernelCall | None:
        """Return the next call of the submission begun last, or None when there is none left."""
        ...

    def fail(self, submission: Submission) -> None:
        """Note that a call of a submission failed."""
        ...

    def report(self, submission: Submission) -> None:
        """Tell the client that a submission has ended."""
        ...

    def release(self) -> None:
        """Free everything that the client has."""
        ...


@dataclass(eq=False, slots=True)
class Submission:
    """One run of a list. `known` is the number of failures that its client knew of when it submitted the list."""

    session: Submitter
    definition: Definition
    ticket: int
    known: int
    failed: str = ""  # the call that failed, in this list or in the one because of which this list was left out
    error: str = ""
    first: bool = False  # whether the failure was in this list


class Guard:
    """Issues the launch of a call, unless its list has failed or its client is gone."""

    __slots__ = ("_definition", "_name", "launch")

    def __init__(self, launch: Launch, definition: Definition, name: str) -> None:
        self.launch: Launch | None = launch
        self._definition = definition
        self._name = name

    def issue(self, stream: int) -> None:
        """Start the kernel, or leave it out."""
        definition = self._definition
        submission = definition.running[0]
        session = submission.session
        launch = self.launch
        if submission.error or session.lost or launch is None:
            return
        if submission.known < session.failures:
            submission.failed, submission.error = session.failed_call, f"it was left out, because {session.failure}"
            return
        try:
            launch.issue(stream)
        except Exception as error:
            if definition.is_fault(error):
                raise
            submission.failed, submission.first = self._name, True
            submission.error = f"call {self._name!r} of client {session.name!r} failed: {type(error).__name__}: {error}"
            session.fail(submission)


class GraphLaunch:
    """A list as an executable graph. If CUDA cannot build it, the error is raised when it is issued."""

    __slots__ = ("_driver", "_error", "_handle")

    def __init__(self, driver: Driver, launches: Sequence[Launch], waits: Sequence[tuple[int, ...]]) -> None:
        self._driver = driver
        self._handle: int | None = None
        self._error: Exception | None = None
        try:
            self._handle = driver.build_graph(launches, waits, None)
        except Exception as error:
            self._error = error

    def issue(self, stream: int) -> None:
        """Start the graph on a stream."""
        if self._handle is None:
            raise RuntimeError(
                f"the graph of the list cannot be built ({self._error}); define the list with graph=False"
            ) from self._error
        self._driver.launch_graph(self._handle, stream)

    def destroy(self) -> None:
        """Destroy the graph. If it runs, it still completes."""
        if self._handle is not None:
            self._driver.destroy_graph(self._handle)
            self._handle = None


class Fence:
    """The last call of a list. It hands the submission to `ended`, which reports it once the fence has completed."""

    __slots__ = ("_definition", "_ended")

    def __init__(self, definition: Definition, ended: Callable[[Submission, int], None]) -> None:
        self._definition = definition
        self._ended = ended

    def issue(self, stream: int) -> None:
        """End the submission on a stream."""
        self._ended(self._definition.running.popleft(), stream)


@dataclass(eq=False, slots=True)
class Definition:
    """A list that may be submitted again and again."""

    number: int  # by which the client names it
    place: int  # the lowest free index in its session, so that names of segments repeat
    messages: tuple[CallMessage, ...]
    launches: tuple[Launch, ...]
    driver: Driver | None
    as_graph: bool
    buffers: frozenset[str]  # names of the buffers it touches
    calls: tuple[KernelCall, ...] = ()
    fence: KernelCall | None = None
    running: deque[Submission] = field(default_factory=deque)  # submissions under way; only the first may issue calls

    def is_fault(self, error: BaseException) -> bool:
        """Whether an error has ended the CUDA context."""
        return self.driver is not None and self.driver.is_fault(error)

    def bind(self, session: Submitter, table: Segments, ended: Callable[[Submission, int], None]) -> None:
        """Intern segments and make the calls.

        This runs where the executor pulls calls, never on the thread that receives, because the table must not grow
        while a hazard tracker reads it.
        """

        def segment(access: Access) -> int:
            return table.intern(session.buffers[access.buffer].key, access.shard, access.partition)

        def own(position: int) -> int:
            return table.intern(f"client {session.slot} list {self.place}", position)

        calls, written = [], set[int]()
        for position, (message, launch) in enumerate(zip(self.messages, self.launches, strict=True)):
            reads, writes, updates = (
                tuple(dict.fromkeys(map(segment, group))) for group in (message.reads, message.writes, message.updates)
            )
            if not writes and not updates:  # give the fence something to wait for
                writes = (own(position),)
            written.update(writes, updates)
            name, tag = f"{session.name}/{message.name}", Tag(shard=session.slot, stage=session.name)
            guarded = launch if self.as_graph else Guard(launch, self, message.name)
            calls.append(KernelCall(name, guarded, reads, writes, updates, tag=tag))
        if self.as_graph and calls and self.driver is not None:
            calls = [self._whole(calls, self.driver, table)]
        self.calls = tuple(calls)
        self.fence = KernelCall(
            f"{session.name}/end", Fence(self, ended), tuple(sorted(written)), (own(len(self.messages)),)
        )

    def _whole(self, calls: Sequence[KernelCall], driver: Driver, table: Segments) -> KernelCall:
        """Return one call for a list, whose launch is a graph of it."""
        graph = GraphLaunch(driver, [call.launch for call in calls], dependencies(calls, table.conflicts))
        read = {s for call in calls for s in call.reads}
        written = {s for call in calls for s in call.writes + call.updates}
        guard, tag = Guard(graph, self, f"list {self.number}"), calls[0].tag
        updates = tuple(sorted(written))
        return KernelCall(f"{tag.stage}/list {self.number}", guard, tuple(sorted(read - written)), (), updates, tag=tag)

    def drop(self) -> None:
        """Forget launches and what they hold. Executors may still know the calls."""
        self.launches = ()
        for call in self.calls:
            guard: Any = call.launch
            if isinstance(guard.launch, GraphLaunch):
                guard.launch.destroy()
            guard.launch = None
