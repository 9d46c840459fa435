"""`GroupParameters`: a copy of the model table's real numbers for each world, if worlds differ in parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from simengine.backends.base import Backend
from simengine.model.blob import pack_models
from simengine.model.model_table import ModelTable
from simengine.model.params import WorldParameters, together

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
            stride = -(-len(self._reals) // _ALIGN) * _ALIGN
            self.table = self._backend.zeros((self._num_worlds, stride), self._dtype)
            self.table[:, : len(self._reals)] = self._backend.stage(self._reals)

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
        given = {name: self.values(name)[chosen] for name in names}
        self.damped |= "dof_damping" in fields
        for field, entries in self._meaning.derive(self._backend.arrays, given).items():
            first, number = self._meaning.places[field]
            self.table[chosen, first : first + number] = entries

    def nbytes(self) -> int:
        """Bytes of the parameters and of the table that follows from them."""
        held = (*self._given.values(), *(() if self.table is None else (self.table,)))
        return sum(int(array.nbytes) for array in held)
