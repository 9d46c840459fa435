"""Profiles: what calls take of the machine, by their cost hints and launch shapes, or by a measured run."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from statistics import median
from typing import Any, Literal, NamedTuple

from ..core.calls import KernelCall
from ..tracing.trace import Trace

_THREADS = 2048  # threads of a multiprocessor, compute capability 8.0 to 10.0
_SHARED = 227 * 1024  # bytes of shared memory of a multiprocessor, compute capability 9.0 and 10.0


class Need(NamedTuple):
    """What a call takes.

    Attributes:
        bound: the resource that limits it.
        demand: how many multiprocessors its blocks fill.
        seconds: its duration where it runs alone [s].
    """

    bound: Literal["memory", "compute"]
    demand: float
    seconds: float


class Profile:
    """Looks up what a call needs.

    Args:
        needs: what calls need, by name. A call that is not named here is judged by its cost hint and launch.
        balance: with at least so many floating point operations per byte a call counts as bound by compute. 14 is the
            ratio of the float32 rate and the memory rate of an H200.
    """

    def __init__(self, needs: Mapping[str, Need] | None = None, balance: float = 14.0) -> None:
        if not balance > 0:
            raise ValueError(
                f"a profile with balance={balance} operations per byte separates nothing; give a positive number"
            )
        self.needs = dict(needs or {})
        self.balance = balance
        self._scale = 1.0  # seconds of a call over what its hint says

    @classmethod
    def measured(cls, trace: Trace, balance: float = 14.0) -> Profile:
        """Return the profile of a run that was recorded with times. Executor `serial` times each call alone.

        A call whose hint gives no bytes counts as bound by compute if its operations per second and multiprocessor are
        at least the median of all such calls. Raises ValueError for a trace without times.
        """
        profile = cls(balance=balance)
        profile.learn(trace)
        return profile

    def learn(self, trace: Trace) -> None:
        """Take what a run that was recorded with times tells of its calls; see `measured`.

        Calls that have not run yet are judged by their hints, which tell durations in the scale of those that have.
        """
        times: dict[str, list[float]] = {}
        calls = {call.name: call for call in trace.order}
        for event in trace.events:
            if event.end == event.end:  # NaN differs from itself
                times.setdefault(event.name, []).append(event.end - event.start)
        if not times:
            raise ValueError(f"a profile needs times, but the run recorded {trace.record!r}; run with record='times'")
        hints = {name: self._hinted(calls[name]) for name in times}
        seconds = {name: median(of) for name, of in times.items()}
        rates = {
            name: calls[name].cost.flops / (max(seconds[name], 1e-9) * max(hints[name].demand, 1e-9))
            for name in times
            if not calls[name].cost.bytes
        }
        usual = median(rates.values()) if rates else 0.0
        for name, hint in hints.items():
            bound = hint.bound
            if name in rates:
                bound = "compute" if rates[name] >= usual and rates[name] > 0 else "memory"
            self.needs[name] = Need(bound, hint.demand, seconds[name])
        self._scale = median(seconds[name] / hint.seconds for name, hint in hints.items())

    def need(self, call: KernelCall) -> Need:
        """Return what a call needs. A call of which nothing is known takes a second and no part of the machine."""
        known = self.needs.get(call.name)
        if known is not None:
            return known
        hint = self._hinted(call)
        return hint._replace(seconds=hint.seconds * self._scale)

    def _hinted(self, call: KernelCall) -> Need:
        flops, nbytes, _ = call.cost
        compute = flops >= self.balance * nbytes and flops > 0
        return Need("compute" if compute else "memory", _demand(call), max(flops / self.balance, nbytes) or 1.0)


def _demand(call: KernelCall) -> float:
    """Return the multiprocessors that a call's blocks fill, by threads or shared memory; without a grid, its bytes."""
    launch: Any = call.launch
    grid, block = getattr(launch, "grid", None), getattr(launch, "block", None)
    if grid is None or block is None:
        return call.cost.bytes
    shared = max(getattr(launch, "shared", 0), call.cost.shared)
    return prod(grid) * max(prod(block) / _THREADS, shared / _SHARED)
