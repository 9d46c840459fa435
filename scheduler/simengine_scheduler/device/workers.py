"""Resource classes of bodies, and which bodies are linked to one worker."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import pairwise
from typing import NamedTuple

from ..launch.tasks import DeviceBody

_OWN_WORKERS = 3  # workers of a class that are each linked for one list


class Kind(NamedTuple):
    """What bodies of a resource class have in common.

    Attributes:
        threads: of a block.
        registers: most registers of a thread.
        family: of the bodies, see `DeviceBody`.
        merged: whether the class takes all bodies of a list, also those with fewer threads and registers, and one of
            its blocks is the window.
        ready: whether its blocks take tickets of any ready task.
        known: whether the host knows what calls wait for, so that blocks take tickets of chains of calls.
    """

    threads: int
    registers: int
    family: str = ""
    merged: bool = False
    ready: bool = False
    known: bool = False


class Worker(NamedTuple):
    """A program for one resource class: its bodies in the order of their numbers, and the registers of a thread."""

    bodies: tuple[DeviceBody, ...]
    registers: int


WorkersOf = Callable[[dict[Kind, frozenset[DeviceBody]]], dict[Kind, Worker]]


def numbered(bodies: frozenset[DeviceBody]) -> tuple[DeviceBody, ...]:
    """Return bodies in the order of their names. Raises ValueError if two have one name."""
    ordered = sorted(bodies, key=lambda body: body.name)
    for body, following in pairwise(ordered):
        if body.name == following.name:
            raise ValueError(f"two bodies of a list are named {body.name!r}; use one body, or give them other names")
    return tuple(ordered)


def all_to_run(known: Collection[frozenset[DeviceBody]], wanted: frozenset[DeviceBody]) -> frozenset[DeviceBody]:
    """Return the bodies of the worker that runs given bodies: a known worker that has them all, or one to be linked.

    A list gets a worker of its own bodies, since this is linked soonest. Once there are several workers, as for lists
    that vary, all known bodies are linked to one, so that not every combination is linked. This is left out where two
    of them have one name.
    """
    enough = [bodies for bodies in known if wanted <= bodies]
    if enough:
        return min(enough, key=len)
    every = wanted.union(*known)
    if len(known) < _OWN_WORKERS or len({body.name for body in every}) < len(every):
        return wanted
    return every


def just_these(wanted: dict[Kind, frozenset[DeviceBody]]) -> dict[Kind, Worker]:
    """Return workers of these bodies and no others, where nothing has to be linked."""
    return {kind: Worker(numbered(bodies), kind.registers) for kind, bodies in wanted.items()}
