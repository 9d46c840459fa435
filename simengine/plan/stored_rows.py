"""Which worlds have their constraint rows in the arenas. Others have them in the scratch of their solver alone."""

from __future__ import annotations

from collections.abc import Iterable, Set

from simengine.kernels.kernel import Kernel
from simengine.plan.launches import Launch
from simengine.state.fields import CLASS_COLUMNS, FIELD, ROW_CLASSES, ROW_SPACES

NO_WORLD = 2**31 - 1
"""More rows than a world can have."""

NOTHING_STORED = {f"{space}_beyond": NO_WORLD for space in ROW_SPACES}
"""What `stored_beyond` gives where no world has rows in the arenas."""


def stored_beyond(launches: Iterable[Launch], stored: Set[str]) -> dict[str, int]:
    """For each arena of rows, the number of rows up to which worlds have none of theirs there, as the scan is told it.

    Args:
        launches: the launches of an evaluation.
        stored: fields that they store, of those that they have in scratch.
    """
    beyond = dict(NOTHING_STORED)
    for launch in launches:
        most = _rows_below(launch)
        for space in _spaces(launch.kernel, stored):
            beyond[f"{space}_beyond"] = min(beyond[f"{space}_beyond"], most)
    return beyond


def _spaces(kernel: Kernel, stored: Set[str]) -> set[str]:
    """The arenas of rows that a kernel reads or writes."""
    kept = {name for name in kernel.in_scratch if name not in stored}
    return {FIELD[field].space for name, field, _ in kernel.touched if name not in kept}.intersection(ROW_SPACES)


def _rows_below(launch: Launch) -> int:
    """The largest number of rows that worlds outside of a launch have, of fewer rows than its own."""
    column = launch.listed.column if launch.listed else ""
    if column not in CLASS_COLUMNS:
        return 0
    size_class = CLASS_COLUMNS.index(column)
    return ROW_CLASSES[size_class - 1] if size_class else NO_WORLD  # worlds of the first class have no rows
