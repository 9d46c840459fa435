"""Calls made virtual: the same names, segments and tags, with launches that the model runs in virtual time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Protocol

from ..core.calls import AwaitCounts, Emitter, FixedList, Item, KernelCall
from ..planning.profiles import Need, Profile
from .processors import Kernel
from .recording import LaunchShape, RecordedLaunch, shape_of
from .spec import GpuSpec


class Target(Protocol):
    """What a virtual launch is issued to."""

    def issue(self, launch: VirtualLaunch, stream: int) -> None:
        """Put the launch's kernel on a stream."""
        ...


class VirtualLaunch:
    """A launch in virtual time of a call, whose own body, if it has one, runs at the kernel's end.

    Planners look for what a call demands of the GPU in `grid`, `block` and `shared`, as they do in a CUDA launch.
    """

    __slots__ = ("_body", "block", "call", "grid", "seconds", "shape", "shared", "target")

    def __init__(self, call: KernelCall, spec: GpuSpec, target: Target | None) -> None:
        launch: Any = call.launch
        if hasattr(launch, "grid"):
            raise TypeError(
                f"call {call.name!r} is a CUDA kernel, which virtual time cannot run; record its list on a GPU with "
                f"simengine_scheduler.ListRecorder and give that to executor 'simulated'"
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

    def issue(self, stream: int) -> None:
        """Put it on a stream of the target."""
        assert self.target is not None
        self.target.issue(self, stream)


class ChargedProfile(Profile):
    """A planner's profile that tells when it is asked: planners ask once for each call that they plan.

    Args:
        inner: where needs are looked up.
        planning: called for each call.
    """

    def __init__(self, inner: Profile, planning: Callable[[], None]) -> None:
        super().__init__(inner.needs, inner.balance)
        self._inner = inner
        self._planning = planning

    def need(self, call: KernelCall) -> Need:
        """Return what a call needs, at the price of planning it."""
        self._planning()
        return self._inner.need(call)


class _Pulled:
    """A fixed list whose calls tell when they are pulled, so that they are checked then."""

    def __init__(self, calls: FixedList, checking: Callable[[], None]) -> None:
        self._calls = calls
        self._checking = checking

    def __iter__(self) -> Iterator[KernelCall]:
        for call in self._calls:
            self._checking()
            yield call


class Twins:
    """Virtual calls for real ones. A call has one twin for good, so that executors find again what they know of it.

    Args:
        spec: the GPU.
        target: what the launches are issued to, where they are.
        emitting: called for each item that a generator yields.
        checking: called for each call that the executor checks for hazards as it pulls it, before it has it; None for
            executors that do not.
        scripts: how many scripts of fixed lists the executor keeps. Calls of such lists are checked as a script is
            made, and in every run where they come with other emitters, or where there are no scripts.
    """

    def __init__(
        self,
        spec: GpuSpec,
        target: Target | None,
        emitting: Callable[[], None],
        checking: Callable[[], None] | None = None,
        scripts: int = 0,
    ) -> None:
        self._spec = spec
        self._target = target
        self._emitting = emitting
        self._checking = checking
        self._kept = scripts
        self._scripts: OrderedDict[tuple[FixedList, ...], None] = OrderedDict()  # those that the executor has
        self._calls: dict[KernelCall, KernelCall] = {}
        self._lists: dict[FixedList, FixedList] = {}
        self._real: dict[KernelCall, KernelCall] = {}

    def emitters(self, emitters: Iterable[Emitter]) -> list[Any]:
        """Return emitters of twins. What is no emitter is left for the executor to refuse."""
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
        """Check the calls of lists of which the executor has no script yet, or none any more."""
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
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def _twin(self, call: KernelCall) -> KernelCall:
        twin = self._calls.get(call)
        if twin is None:
            launch = VirtualLaunch(call, self._spec, self._target)
            touched = call.reads, call.writes, call.updates
            twin = self._calls[call] = KernelCall(call.name, launch, *touched, call.cost, call.tag)
            self._real[twin] = call
        return twin
