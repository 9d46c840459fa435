"""`GroupParameters`: a copy of the model table's real numbers for each world, if worlds differ in parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from simengine.backends.base import Backend
from simengine.model.blob import pack_models
from simengine.model.model_table import ModelTable
from simengine.model.params import SavedParams, WorldParameters, together

_ALIGN = 4  # words, so that the numbers of every world have the same alignment


class GroupParameters:
    """Parameters of the worlds of one group, in the backend's memory.

    Attributes:
        table: the real numbers of the model table, (num_worlds, stride); None until a parameter is set.
        damped: whether the damping of dofs has been set.
    """

    def __init__(self, model: ModelTable, num_worlds: int, backend: Backend, dtype: str):
        self._backend = backend
        self._num_worlds = num_worlds
        self._meaning = WorldParameters(model)
        self._given: dict[str, Any] = {}
        self._chosen: set[str] = set()  # names in _given that were set, not only read
        _, _, self._reals = pack_models([model], dtype)
        self._dtype = dtype
        self.table: Any = None
        self.damped = False

    def values(self, name: str) -> Any:
        """A parameter of every world, (num_worlds, ...) float64.

        Raises:
            ValueError: `name` is not a parameter.
        """
        if name not in self._given:
            default = self._meaning.default(name)
            array = self._backend.zeros((self._num_worlds, *default.shape), "float64")
            array[...] = self._backend.stage(default)
            self._given[name] = array
        return self._given[name]

    def given(self, name: str) -> Any:
        """A parameter of every world, (num_worlds, ...) float64, or None if it was not set."""
        return None if self.table is None else self._given.get(name)

    def allocate(self) -> None:
        """Make the table, if there is none, with the numbers of the model in every world."""
        if self.table is None:
            self._fill_table()

    def set(self, worlds: np.ndarray | None, fields: dict[str, Any]) -> None:
        """Set parameters, and the fields of the model table that follow from them.

        Args:
            worlds: indices of the worlds; None for all worlds.
            fields: values under the names of the parameters, (len(worlds), ...) or what broadcasts to that.
        """
        chosen = slice(None) if worlds is None else worlds
        self.allocate()
        for name, value in fields.items():
            self.values(name)[chosen] = self._backend.stage(value) if isinstance(value, np.ndarray) else value
        names = together(fields)
        self._chosen |= set(names)
        given = {name: self.values(name)[chosen] for name in names}
        self.damped |= "dof_damping" in fields
        for field, entries in self._meaning.derive(self._backend.arrays, given).items():
            first, number = self._meaning.places[field]
            self.table[chosen, first : first + number] = entries

    def _fill_table(self) -> None:
        """Give every world the numbers of the model."""
        if self.table is None:
            stride = -(-len(self._reals) // _ALIGN) * _ALIGN
            self.table = self._backend.zeros((self._num_worlds, stride), self._dtype)
        self.table[:, : len(self._reals)] = self._backend.stage(self._reals)

    def saved(self) -> SavedParams:
        """The parameters that were set, and the table fields that follow from them, on the host."""
        given = {name: np.array(self._backend.to_host(self._given[name])) for name in sorted(self._chosen)}
        places = {field: self._meaning.places[field] for field in self._meaning.widths(given)}
        rows = {field: self.table[:, first : first + number] for field, (first, number) in places.items()}
        return SavedParams(given, {field: np.array(self._backend.to_host(row)) for field, row in rows.items()})

    def restore(self, saved: SavedParams) -> None:
        """Take parameters and table fields as they were saved, and the model's values of all others."""
        self._given.clear()
        self._chosen.clear()
        self.damped = False
        self._fill_table()
        if not self._meaning.fits(saved):
            self.set(None, saved.given)
            return
        for name, values in saved.given.items():
            self.values(name)[...] = self._backend.stage(values.astype(np.float64))
        for field, rows in saved.fields.items():
            first, number = self._meaning.places[field]
            self.table[:, first : first + number] = self._backend.stage(rows.astype(self._dtype))
        self._chosen |= set(saved.given)
        self.damped = "dof_damping" in saved.given

    def nbytes(self) -> int:
        """Bytes of the parameters and of the table that follows from them."""
        held = (*self._given.values(), *(() if self.table is None else (self.table,)))
        return sum(int(array.nbytes) for array in held)
