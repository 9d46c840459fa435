"""Calls made virtual: the same names, segments and tags, with launches that the model runs in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from ..calls import AwaitCounts, Emitter, FixedList, Item, KernelCall
from ..profiles import Need, Profile
from ..recording import LaunchShape, RecordedLaunch, shape_of
from .processors import Kernel
from .spec import GpuSpec


class Target(Protocol):
    """What a virtual launch is issued to."""

    def issue(self, launch: VirtualLaunch, stream: int) -> None:
        """Put the launch's kernel on a stream."""
        ...


class VirtualLaunch:
    """A launch in virtual time of a call, whose own body, if it has one, runs at the kernel's end."""

    __slots__ = ("_body", "call", "seconds", "shape", "target")

    def __init__(self, call: KernelCall, spec: GpuSpec, target: Target | None) -> None:
        launch: Any = call.launch
        if hasattr(launch, "grid"):
            raise TypeError(
                f"call {call.name!r} is a CUDA kernel, which virtual time cannot run; record its list on a GPU with "
                f"scheduler.ListRecorder and give that to executor 'simulated'"
            )
        self.call = call
        self.target = target
        self.shape: LaunchShape = shape_of(launch)
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
    """A fixed list whose calls tell when they are pulled."""

    def __init__(self, calls: FixedList, pulling: Callable[[], None]) -> None:
        self._calls = calls
        self._pulling = pulling

    def __iter__(self) -> Iterator[KernelCall]:
        for call in self._calls:
            self._pulling()
            yield call


class Twins:
    """Virtual calls for real ones. A call has one twin for good, so that executors find again what they know of it.

    Args:
        spec: the GPU.
        target: what the launches are issued to, where they are.
        emitting: called for each item that a generator yields.
        pulling: called for each call that a generator yields, before the executor has it.
        each_time: call it for those of fixed lists too; the executor cannot tell such lists from others then.
    """

    def __init__(
        self,
        spec: GpuSpec,
        target: Target | None,
        emitting: Callable[[], None],
        pulling: Callable[[], None] = lambda: None,
        each_time: bool = False,
    ) -> None:
        self._spec = spec
        self._target = target
        self._emitting = emitting
        self._pulling = pulling
        self._each_time = each_time
        self._calls: dict[KernelCall, KernelCall] = {}
        self._lists: dict[FixedList, FixedList] = {}
        self._real: dict[KernelCall, KernelCall] = {}

    def emitters(self, emitters: Iterable[Emitter]) -> list[Any]:
        """Return emitters of twins. What is no emitter is left for the executor to refuse."""
        if isinstance(emitters, KernelCall | AwaitCounts):
            return emitters  # type: ignore[return-value]
        return [self._emitter(emitter) for emitter in emitters]

    def real(self, twin: KernelCall) -> KernelCall:
        """Return the call whose twin this is."""
        return self._real[twin]

    def _emitter(self, emitter: Any) -> Any:
        if type(emitter) is FixedList:
            twins = self._lists.get(emitter)
            if twins is None:
                twins = self._lists[emitter] = FixedList(map(self._twin, emitter))
            return _Pulled(twins, self._pulling) if self._each_time else twins
        return self._emit(emitter) if hasattr(emitter, "__iter__") else emitter

    def _emit(self, emitter: Iterable[Item]) -> Iterator[Any]:
        items = iter(emitter)
        try:
            for item in items:
                self._emitting()
                if isinstance(item, KernelCall):
                    self._pulling()
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
