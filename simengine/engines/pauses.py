"""`Pauses`: which paused groups stay in the lists of a step, where a flag ends their kernels at once.

A kept graph from which other lists are absent than before costs the host a look at each of them, and the driver a
change of each of their nodes. A kernel of whole steps reads a flag instead, so that the graph stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from simengine.emission.store import GroupStore

_SETTLED = 8  # steps in a row in which the same groups pause, from which on these are left out


class Pauses:
    """The flags of groups. While a flag is set, kernels of whole steps leave the worlds of the group as they are."""

    def __init__(self, stores: Mapping[int, GroupStore]):
        self._stores = stores
        self._asleep: frozenset[int] = frozenset()
        self._paused: frozenset[int] = frozenset()
        self._alike = 0

    def stay(self, paused: set[int], whole: bool) -> frozenset[int]:
        """Set the flags for steps. Returns the paused groups that should stay in their lists.

        Groups that pause for long are left out. So are all that pause if they are more than three quarters, since a
        kernel that ends at once has to be launched, too.

        Args:
            paused: the groups that pause.
            whole: whether kept graphs launch kernels of whole steps, and nothing else for groups that have them.
        """
        if not paused and not self._paused:
            return self._asleep
        self._alike = self._alike + 1 if paused == self._paused else 0
        if not self._alike:
            self._paused = frozenset(paused)
        often = whole and self._alike < _SETTLED and 4 * len(paused) <= 3 * len(self._stores)
        self._set(frozenset(g for g in paused if self._stores[g].plan.step_kernel) if often else frozenset())
        return self._asleep

    def wake(self) -> None:
        """Clear all flags."""
        self._set(frozenset())

    def _set(self, asleep: frozenset[int]) -> None:
        for group in asleep ^ self._asleep:
            if group in self._stores:
                self._stores[group].let_sleep(group in asleep)
        self._asleep = asleep
