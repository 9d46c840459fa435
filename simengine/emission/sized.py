"""`SizedCall`: a call, and its copies for other numbers of units."""

from __future__ import annotations

from dataclasses import replace

from simengine.backends.base import Extent
from simengine.emission.store import GroupStore
from simengine_scheduler import KernelCall

_FINER = 512  # units beyond which there are four sizes between two powers of two
_WARP = 32  # lanes; groups of so many at most are a call of no fewer units than
_FEWEST = 64  # these, since they fill a small part of a GPU and end at once where there is no unit


def rounded(units: int, most: int | None, least: int = 1) -> int:
    """A number of units that is at least `units`, of which there are few, so that calls for it come again.

    It is a power of two, and beyond 512 one of four steps between two. Groups of lanes without a unit end at once.

    Args:
        units: how many there are, at least 1.
        most: the largest number that there may be; None if it is not known.
        least: the smallest number of a call.
    """
    up = rounded_alike(units, least)[-1]
    return up if most is None else min(up, most)


def rounded_alike(units: int, least: int = 1) -> range:
    """The numbers of units that are rounded to the same number, which is the last of them."""
    if units <= least:
        return range(1, least + 1)
    if units > _FINER:
        step = 1 << (units - 1).bit_length() - 3
        up = -(-units // step) * step
        return range(up - step + 1, up + 1)
    up = 1 << (units - 1).bit_length()
    return range(up // 2 + 1, up + 1)


class SizedCall:
    """A call, and its copies for other numbers of units. A scan has one call, since its number of columns is fixed.

    Several groups of lanes work on a unit if it has `parts`. There are at most `most` units, if that is known.
    """

    __slots__ = ("_by_units", "_extent", "_least", "_most", "_packed", "_parts", "_store", "call")

    def __init__(
        self,
        call: KernelCall,
        store: GroupStore,
        extent: Extent,
        packed: bool,
        parts: int = 1,
        most: int | None = None,
    ):
        self.call = call
        self._most = most
        self._least = _FEWEST if extent.lanes * parts <= _WARP else 1
        self._parts = parts
        self._store = store
        self._extent = extent
        self._packed = packed
        self._by_units: dict[int, KernelCall] = {}

    def sized(self, units: int) -> KernelCall:
        """The call over `units` worlds or islands."""
        if self._extent.columns:
            return self.call
        call = self._by_units.get(units)
        if call is None:
            extent = self._extent._replace(units=units * self._parts)
            launch = self._store.backend.resize(self.call.launch, extent, self._packed)
            call = self._by_units[units] = replace(self.call, launch=launch)
        return call

    def counted(self, units: int) -> KernelCall:
        """The call over as many units as were counted, which kernels find in memory.

        Numbers that are close have the same call, so that an executor may keep graphs of what varies.
        """
        return self.sized(rounded(units, self._most, self._least))

    def alike(self, units: int) -> range:
        """The numbers that have the same call as `units` when they are counted."""
        return rounded_alike(units, self._least)
