"""Controls of groups that differ from step to step, as `ListEngine.step` gets them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simengine.arrays import Array
from simengine.backends.base import Backend
from simengine.emission.steps import Controls
from simengine.emission.store import GroupStore


def controls_of(stores: Mapping[int, GroupStore], backend: Backend, given: Mapping[int, Array]) -> list[Controls]:
    """Return the controls of groups. Those of all groups are copied together: the first group's `set` copies them."""
    rows = {group: _in_memory(backend, own) for group, own in given.items()}
    copies = backend.copier_of_many([(stores[group].array("ctrl"), own) for group, own in rows.items()])
    made = []
    for number, (group, own) in enumerate(rows.items()):
        store, whole = stores[group], None
        if backend.name == "host":
            whole = np.ascontiguousarray(own, store.array("ctrl").dtype)

        def put(first: int, rounds: int, store: GroupStore = store, own: Any = own) -> None:
            backend.copier(store.controls_ahead(rounds)[0], own)(first, rounds)

        made.append(Controls(group, put, _nothing if number else copies, whole))
    return made


def _in_memory(backend: Backend, controls: Any) -> Any:
    """Controls in the memory of the backend."""
    return backend.stage(controls) if isinstance(controls, np.ndarray) else backend.arrays.asarray(controls)


def _nothing(step: int) -> None:
    """The controls of this group have been copied with those of the first."""
