"""`Call`: which arrays a custom call takes and gives, and what it does between."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from simengine.emission.store import GroupStore
from simengine.model.blob import pack_models
from simengine.model.model_table import ModelTable
from simengine.state.fields import ROW_SPACES
from simengine.xla.state import STATE_FIELDS, entry_of
from simengine_scheduler.native.cache import digest

SomeCall = TypeVar("SomeCall", bound="AnyCall")

_calls: WeakValueDictionary[int, Any] = WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class Call:
    """A custom call: `steps` steps of n worlds, or an evaluation of their dynamics.

    Attributes:
        model: the model, in the form that suits the backend.
        dtype: "float32" or "float64".
        num_worlds: number of worlds.
        steps: number of steps; 0 for an evaluation, which does not change the state.
        keep: derived fields that it gives, in order.
        params: fields of the model table in which worlds differ, in order.
        room: numbers of contacts and of constraint rows of a world, on average, for which there is memory at least.
    """

    model: ModelTable
    dtype: str
    num_worlds: int
    steps: int
    keep: tuple[str, ...]
    params: tuple[str, ...]
    room: tuple[int, int] = (0, 0)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Fields of the state that the call takes, controls last. Fields without entries are left out."""
        return self._present((*STATE_FIELDS, "ctrl"))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Fields of the state that a step changes; none for an evaluation."""
        return self._present(("qpos", "qvel", "act", "qacc_warmstart", "nstep", "world_status") if self.steps else ())

    def _present(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if 0 not in self.entry(name)[0])

    def entry(self, name: str) -> tuple[tuple[int, ...], str]:
        """Shape and type of one world's entry of a field."""
        return entry_of(self.model, name, self.dtype)

    @property
    def chooses(self) -> bool:
        """Whether the call works on some worlds only, which its last argument says, (num_worlds,) int32."""
        return self.steps == 0

    def make_room(self, store: GroupStore) -> None:
        """Enlarge the arenas of a store to what `room` says, before anything runs."""
        contacts, rows = self.room
        for space, each in {"contact": contacts, **dict.fromkeys(ROW_SPACES, rows)}.items():
            for shard, (begin, end) in enumerate(pairwise(store.bounds)):
                store.arena(space, shard).reserve(each * (end - begin))
        store.retired.clear()

    @cached_property
    def number(self) -> int:
        """A number that identifies the call, which is the same in every process: XLA may store compiled programs."""
        said = (self.dtype, self.num_worlds, self.steps, self.keep, self.params, self.room)
        return number_of(self.model, *said)


def number_of(model: ModelTable, dtype: str, *said: Any) -> int:
    """A number that follows from a model, a precision and whatever else is said of a call."""
    headers, integers, reals = pack_models([model], dtype)
    text = repr((dtype, *said, sorted(model.sizes.items())))
    key = digest(text, *(np.frombuffer(b, np.uint8).tobytes().hex() for b in (headers[0], integers, reals)))
    return int(key[:15], 16)


class AnyCall(Protocol):
    """A custom call, as programs and handlers know it."""

    @property
    def num_worlds(self) -> int:
        """Number of worlds."""
        ...

    @property
    def keep(self) -> tuple[str, ...]:
        """Names of the arrays that the call gives after `outputs`."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the arrays that the call gives first."""
        ...

    @property
    def number(self) -> int:
        """A number that identifies the call."""
        ...

    def entry(self, name: str) -> tuple[tuple[int, ...], str]:
        """Shape and type of one world's entry of an array."""
        ...


def register(call: SomeCall) -> SomeCall:
    """Make a call known by its number, or return the equal call that is known already."""
    known: SomeCall = _calls.setdefault(call.number, call)
    return known


def registered(number: int) -> Any:
    """The call of a number.

    Raises:
        RuntimeError: its step function was garbage-collected.
    """
    call = _calls.get(number)
    if call is None:
        raise RuntimeError(
            "the step function that this program was compiled with is gone, and its memory with it; keep what "
            "simengine.make_step returned as long as the program runs"
        )
    return call
