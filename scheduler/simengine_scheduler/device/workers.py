"""Resource classes of bodies, and which bodies a worker of one is linked with."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import pairwise
from typing import NamedTuple

from ..launch.tasks import DeviceBody

_OWN_WORKERS = 3  # of a class that are linked for one list each


class Kind(NamedTuple):
    """What bodies of a resource class have in common.

    threads: of a block. registers: most registers a thread. merged: whether the class takes all bodies of a list, also
    those of fewer threads and registers, and a block of it is the window.
    """

    threads: int
    registers: int
    family: str = ""
    merged: bool = False


class Worker(NamedTuple):
    """A program for one resource class: its bodies by their numbers, and the registers that a thread takes."""

    bodies: tuple[DeviceBody, ...]
    registers: int


WorkersOf = Callable[[dict[Kind, frozenset[DeviceBody]]], dict[Kind, Worker]]


def numbered(bodies: frozenset[DeviceBody]) -> tuple[DeviceBody, ...]:
    """Bodies by name. Raises ValueError where two have the same."""
    ordered = sorted(bodies, key=lambda body: body.name)
    for body, following in pairwise(ordered):
        if body.name == following.name:
            raise ValueError(f"two bodies of a list are named {body.name!r}; use one body, or give them other names")
    return tuple(ordered)


def all_to_run(known: Collection[frozenset[DeviceBody]], wanted: frozenset[DeviceBody]) -> frozenset[DeviceBody]:
    """Bodies of the worker that is to run some: the fewest of a known one that has them all, or those to link.

    A list gets a worker of its own bodies, which is linked soonest. Once there are several, as for lists that vary, all
    bodies that were seen go into one, so that their combinations are not linked one by one; unless two of them have
    one name, which bodies of a list must not.
    """
    enough = [bodies for bodies in known if wanted <= bodies]
    if enough:
        return min(enough, key=len)
    every = wanted.union(*known)
    if len(known) < _OWN_WORKERS or len({body.name for body in every}) < len(every):
        return wanted
    return every


def just_these(wanted: dict[Kind, frozenset[DeviceBody]]) -> dict[Kind, Worker]:
    """Workers of these bodies and no others, where nothing has to be linked."""
    return {kind: Worker(numbered(bodies), kind.registers) for kind, bodies in wanted.items()}
