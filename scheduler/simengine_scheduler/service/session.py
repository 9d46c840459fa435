"""Sessions: what the owner knows of one client, and how it answers requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ..core.calls import KernelCall, Launch
from ..core.segments import Segments
from ..launch.arguments import BufferSet
from .channel import Channel, MalformedMessage, Message, take
from .lists import Definition, Submission
from .memory import SharedArray, layout_from_wire, size_of
from .shared import Shared, lowest_free
from .wire import BufferAddress, CallMessage, call_from_wire

_LONGEST_ERROR = (
    2000  # characters of a report, so that the buffer of the socket holds as many reports as the limit allows
)


class Session:
    """One client. The thread that receives requests answers them. `queue` and counts belong to the exchange."""

    def __init__(self, name: str, channel: Channel, shared: Shared, limit: int) -> None:
        self.name = name
        self.slot = shared.take_slot()
        self.limit = limit
        self.lost = False
        self.queue: deque[Submission] = deque()
        self.flying = 0
        self.failures = 0
        self.failure = self.failed_call = ""
        self.buffers: dict[str, SharedArray] = {}
        self._channel = channel
        self._shared = shared
        self._set = BufferSet()
        self._arrays: dict[str, Any] = {}
        self._kernels: list[Any] = []
        self._lists: dict[int, Definition] = {}
        self._numbers = 0
        self._pulling: Iterator[KernelCall] = iter(())
        self._fence: KernelCall | None = None

    # Requests, on the receiving thread

    def answer(self, message: Message) -> None:
        """Do what a request asks, and reply. Raises ValueError, TypeError, OSError or MemoryError to refuse it."""
        kind = message["is"]
        request = getattr(self, f"_answer_{kind}", None)
        if request is None:
            raise MalformedMessage(f"there is no request {kind!r}")
        request(message)

    def _answer_allocate(self, message: Message) -> None:
        name, shared = take(message, "name", str), take(message, "shared", bool)
        shape, dtype = layout_from_wire(message)
        self._refuse_taken(name)
        block = self._shared.allocate(size_of(shape, dtype))
        key = f"shared {name}" if shared else f"client {self.slot} {name}"
        array = SharedArray(key, block, shape, dtype, {self.slot})
        if shared:
            with self._shared.lock:
                taken = self._shared.arrays.setdefault(name, array) is not array
            if taken:
                block.free()
                self._shared.give_back(array.nbytes)
                raise ValueError(f"there is a shared buffer {name!r} already; use Client.attach({name!r})")
        self._hold(name, array)

    def _answer_attach(self, message: Message) -> None:
        name = take(message, "name", str)
        self._refuse_taken(name)
        with self._shared.lock:
            array = self._shared.arrays.get(name)
            if array is None:
                raise ValueError(f"there is no shared buffer {name!r}; its owner allocates it with shared=True")
            array.holders.add(self.slot)
        self._hold(name, array)

    def _refuse_taken(self, name: str) -> None:
        if name in self.buffers:
            raise ValueError(f"client {self.name!r} has a buffer {name!r} already; choose another name")

    def _hold(self, name: str, array: SharedArray) -> None:
        self.buffers[name] = array
        if name in self._set:
            self._set[name].rebind(array.block.ptr, array.nbytes)
        else:
            self._set.add(name, array.block.ptr, array.nbytes)
        content = getattr(array.block, "bytes", None)
        if content is not None:
            self._arrays[name] = content.view(array.dtype).reshape(array.shape)
        self._reply(array.describe(), array.block.descriptor)

    def _answer_free(self, message: Message) -> None:
        name = take(message, "name", str)
        self._check_buffer(name)
        users = [number for number, definition in self._lists.items() if name in definition.buffers]
        if users:
            raise ValueError(f"buffer {name!r} is used by list {users[0]}; forget the list first")
        self._leave(name)
        self._reply({})

    def _leave(self, name: str) -> None:
        array = self.buffers.pop(name)
        self._arrays.pop(name, None)
        with self._shared.lock:
            array.holders.discard(self.slot)
            if array.holders:
                return
            if self._shared.arrays.get(name) is array:
                del self._shared.arrays[name]
        array.block.free()
        self._shared.give_back(array.nbytes)

    def _check_buffer(self, name: str) -> None:
        if name not in self.buffers:
            known = ", ".join(sorted(self.buffers)) or "none"
            raise ValueError(f"client {self.name!r} has no buffer {name!r}; it has {known}")

    def _answer_kernel(self, message: Message) -> None:
        self._kernels.append(self._shared.kernels.load(message))
        self._reply({"kernel": len(self._kernels) - 1})

    def _answer_define(self, message: Message) -> None:
        calls = tuple(map(call_from_wire, take(message, "calls", list)))
        as_graph = take(message, "graph", bool)
        if as_graph and self._shared.driver is None:
            raise ValueError("graph=True needs an owner of a GPU; leave it out")
        launches, names = [], set[str]()
        for call in calls:
            accesses = call.reads + call.writes + call.updates
            for access in accesses:
                self._check_buffer(access.buffer)
            names.update(access.buffer for access in accesses)
            launches.append(self._launch(call))
        number = self._numbers
        self._numbers += 1
        place = lowest_free({definition.place for definition in self._lists.values()})
        driver = self._shared.driver
        self._lists[number] = Definition(number, place, calls, tuple(launches), driver, as_graph, frozenset(names))
        self._reply({"list": number})

    def _launch(self, call: CallMessage) -> Launch:
        """Bind the kernel of a call to its arguments."""
        if not 0 <= call.kernel < len(self._kernels):
            raise ValueError(f"call {call.name!r} names kernel {call.kernel} of {len(self._kernels)}")
        args = []
        for argument in call.args:
            if isinstance(argument, BufferAddress):
                self._check_buffer(argument.buffer)
                if argument.buffer not in {a.buffer for a in call.reads + call.writes + call.updates}:
                    raise ValueError(
                        f"call {call.name!r} takes buffer {argument.buffer!r} but declares no access to it; "
                        f"name it in reads, writes or updates"
                    )
                buffer = self._set[argument.buffer]
                args.append((buffer, argument.offset) if argument.offset else buffer)
            else:
                args.append(argument)
        try:
            return self._shared.kernels.launch(self._kernels[call.kernel], call, args, self._set, self._arrays)
        except (TypeError, ValueError) as error:
            raise ValueError(f"call {call.name!r}: {error}") from error

    def _answer_forget(self, message: Message) -> None:
        number = take(message, "list", int)
        definition = self._definition(number)
        if definition.running or any(s.definition is definition for s in tuple(self.queue)):
            raise ValueError(f"list {number} is still running; wait for its tickets first")
        del self._lists[number]
        definition.drop()
        self._reply({})

    def _definition(self, number: int) -> Definition:
        if number not in self._lists:
            raise ValueError(f"client {self.name!r} has no list {number}")
        return self._lists[number]

    def submission(self, message: Message) -> Submission:
        """Return what a message submits. Raises ValueError for an unknown list or a full queue."""
        definition = self._definition(take(message, "list", int))
        if len(self.queue) + self.flying >= self.limit:
            raise ValueError(f"client {self.name!r} has {self.limit} lists under way already, its limit")
        return Submission(self, definition, take(message, "ticket", int), take(message, "failures", int))

    def _reply(self, content: Message, descriptor: int | None = None) -> None:
        self._channel.send({"is": "reply", "descriptor": descriptor is not None, **content}, descriptor)

    # The exchange's side, under its lock

    def begin(self, table: Segments, ended: Callable[[Submission, int], None]) -> None:
        """Take the next submission from the queue. `pull` returns its calls from then on."""
        submission = self.queue[0]
        definition = submission.definition
        if definition.fence is None:
            definition.bind(self, table, ended)
        definition.running.append(submission)
        self.flying += 1
        self.queue.popleft()  # last, so that the list is at every moment queued or running
        self._pulling, self._fence = iter(definition.calls), definition.fence

    def pull(self) -> KernelCall | None:
        """Return the next call of the submission begun last, or None when its fence has been pulled."""
        call = None if self.lost else next(self._pulling, None)
        if call is None:
            call, self._fence = self._fence, None
        return call

    # While calls run

    def fail(self, submission: Submission) -> None:
        """Note that a call failed, so that lists which the client submitted before it knew are left out."""
        self.failed_call, self.failure = submission.failed, submission.error
        self.failures += 1

    def report(self, submission: Submission) -> None:
        """Tell the client that a submission has ended."""
        if self.lost:
            return
        message: Message = {"is": "done", "ticket": submission.ticket}
        if submission.error:
            message = failure(submission.ticket, submission.failed, submission.error, submission.first)
        try:
            self._channel.send(message)
        except OSError:
            self._channel.hang_up()  # the client is gone or stuck, which the receiving thread learns

    def release(self) -> None:
        """Free everything, once the client is gone and nothing of it runs."""
        for definition in self._lists.values():
            definition.drop()
        self._lists.clear()
        self._kernels.clear()
        for name in list(self.buffers):
            self._leave(name)
        with self._shared.lock:
            self._shared.slots.discard(self.slot)


def failure(ticket: int, call: str, error: str, first: bool) -> Message:
    """Return the report of a list that did not run to its end. `first` says whether the failure was in this list."""
    return {"is": "failed", "ticket": ticket, "call": call, "error": error[:_LONGEST_ERROR], "first": first}
