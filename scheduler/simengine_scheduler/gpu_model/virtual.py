"""Virtual calls: the same names, segments and tags as real calls, with launches that the model runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Protocol

from ..core.calls import AwaitCounts, Emitter, FixedList, Item, KernelCall
from ..core.counted import Arrival, Counted, CountedList, Entry
from ..planning.profiles import Need, Profile
from .processors import Kernel
from .recording import LaunchShape, RecordedLaunch, shape_of
from .spec import GpuSpec


class Target(Protocol):
    """What a virtual launch is issued to."""

    def issue(self, launch: VirtualLaunch, stream: int) -> None:
        """Put the kernel of a launch on a stream."""
        ...

    def bind(self, launch: VirtualLaunch) -> int:
        """Return a number by which compiled code knows a launch."""
        ...


class VirtualLaunch:
    """The launch of a call in virtual time. The body of the call, if it has one, runs at the end of the kernel.

    `grid`, `block` and `shared` show planners what the call demands of the GPU, as in a CUDA launch.
    """

    __slots__ = ("_body", "block", "call", "grid", "seconds", "shape", "shared", "target")

    def __init__(self, call: KernelCall, spec: GpuSpec, target: Target | None) -> None:
        launch: Any = call.launch
        if hasattr(launch, "grid"):
            raise TypeError(
                f"call {call.name!r} is a CUDA kernel, which virtual time cannot run; record its list on a GPU with "
                f"simengine_scheduler.gpu_model.ListRecorder and give that to executor 'simulated'"
            )
        self.call = call
        self.target = target
        self.shape: LaunchShape = shape_of(launch)
        self.grid, self.block, self.shared = (self.shape.blocks,), (self.shape.threads,), self.shape.shared
        recorded = isinstance(launch, RecordedLaunch)
        self.seconds: float = launch.seconds if recorded else spec.estimate(call.cost)
        self._body: Callable[[], None] | None = None if recorded else lambda: launch.issue(0)

    def kernel(self) -> Kernel:
        """Return a run of the kernel."""
        return Kernel(self.call, self.shape, self.seconds, self._body)

    def node(self) -> tuple[int, tuple[int, ...], tuple[int, ...], int, int]:
        """Return what compiled code needs, with the number under which the target knows it for arguments."""
        assert self.target is not None
        return 1, (*self.grid, 1, 1), (*self.block, 1, 1), self.shared, self.target.bind(self)

    def issue(self, stream: int) -> None:
        """Put the kernel on a stream of the target."""
        assert self.target is not None
        self.target.issue(self, stream)


class ChargedProfile(Profile):
    """A profile that charges for planning. Planners ask a profile once for each call that they plan.

    Args:
        inner: returns the needs.
        planning: called for each call.
    """

    def __init__(self, inner: Profile, planning: Callable[[], None]) -> None:
        super().__init__(inner.needs, inner.balance)
        self._inner = inner
        self._planning = planning

    def need(self, call: KernelCall) -> Need:
        """Return what a call needs, and charge for planning it."""
        self._planning()
        return self._inner.need(call)


class _Pulled:
    """A fixed list that charges for a hazard check as each call is pulled."""

    def __init__(self, calls: FixedList, checking: Callable[[], None]) -> None:
        self._calls = calls
        self._checking = checking

    def __iter__(self) -> Iterator[KernelCall]:
        for call in self._calls:
            self._checking()
            yield call


class Twins:
    """Virtual calls for real ones. A call always gets the same twin, so that executors recognise it.

    Args:
        spec: the GPU.
        target: what launches are issued to, if they are issued.
        emitting: called for each item that a generator yields.
        resuming: called when a generator goes on that has awaited a call.
        checking: called for each call that the executor checks for hazards, just before it gets the call; None for
            executors that check none.
        scripts: how many scripts of fixed lists the executor stores. Calls of fixed lists are checked when their script
            is made. They are checked in every run if there are no scripts, or if other emitters run beside them.
    """

    def __init__(
        self,
        spec: GpuSpec,
        target: Target | None,
        emitting: Callable[[], None],
        resuming: Callable[[], None] = lambda: None,
        checking: Callable[[], None] | None = None,
        scripts: int = 0,
    ) -> None:
        self._spec = spec
        self._target = target
        self._emitting = emitting
        self._resuming = resuming
        self._checking = checking
        self._kept = scripts
        self._scripts: OrderedDict[tuple[FixedList, ...], None] = OrderedDict()  # the scripts that the executor has
        self._calls: dict[KernelCall, KernelCall] = {}
        self._lists: dict[FixedList, FixedList] = {}
        self._real: dict[KernelCall, KernelCall] = {}
        self._counted: dict[CountedList, CountedList] = {}

    def emitters(self, emitters: Iterable[Emitter]) -> list[Any]:
        """Return emitters of twins. What is no emitter is passed on, and the executor refuses it."""
        if isinstance(emitters, KernelCall | AwaitCounts):
            return emitters  # type: ignore[return-value]
        twins = [self._emitter(emitter) for emitter in emitters]
        if self._checking is None:
            return twins
        fixed = [twin for twin in twins if type(twin) is FixedList]
        if self._kept and len(fixed) == len(twins):
            self._script(tuple(fixed), self._checking)
            return twins
        return [_Pulled(twin, self._checking) if type(twin) is FixedList else twin for twin in twins]

    def real(self, twin: KernelCall) -> KernelCall:
        """Return the call whose twin this is."""
        return self._real[twin]

    def _script(self, lists: tuple[FixedList, ...], checking: Callable[[], None]) -> None:
        """Charge for the checks of lists of which the executor has no script."""
        if lists not in self._scripts:
            self._scripts[lists] = None
            for _ in chain.from_iterable(lists):
                checking()
            if len(self._scripts) > self._kept:
                self._scripts.popitem(last=False)
        self._scripts.move_to_end(lists)

    def _emitter(self, emitter: Any) -> Any:
        if type(emitter) is FixedList:
            twins = self._lists.get(emitter)
            if twins is None:
                twins = self._lists[emitter] = FixedList(map(self._twin, emitter))
            return twins
        if self._spec.host.compiled and type(emitter) is CountedList:
            return self._counted_twin(emitter)
        return self._emit(emitter) if hasattr(emitter, "__iter__") else emitter

    def _emit(self, emitter: Iterable[Item]) -> Iterator[Any]:
        items = iter(emitter)
        try:
            for item in items:
                self._emitting()
                if isinstance(item, KernelCall):
                    if self._checking is not None:
                        self._checking()
                    yield self._twin(item)
                else:
                    yield AwaitCounts(self._twin(item.call)) if isinstance(item, AwaitCounts) else item
                    if isinstance(item, AwaitCounts):
                        self._resuming()
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def _counted_twin(self, given: CountedList) -> CountedList:
        """Return a counted list of twins, which compiled code recognises."""
        twin = self._counted.get(given)
        if twin is None:
            twin = self._counted[given] = CountedList([self._entry(entry) for entry in given.entries])
        return twin

    def _entry(self, entry: Entry) -> Entry:
        if isinstance(entry, Arrival):

            def arrive(then: Callable[[], None] = entry.then) -> None:
                self._emitting()
                then()

            return Arrival(self._twin(entry.call), arrive, entry.rooms)
        if isinstance(entry, Counted):
            return Counted(entry.count, lambda count: self._twin(entry.call(count)), entry.seen, entry.alike)
        return self._twin(entry)

    def _twin(self, call: KernelCall) -> KernelCall:
        twin = self._calls.get(call)
        if twin is None:
            launch = VirtualLaunch(call, self._spec, self._target)
            touched = call.reads, call.writes, call.updates
            twin = self._calls[call] = KernelCall(call.name, launch, *touched, call.cost, call.tag)
            self._real[twin] = call
        return twin
