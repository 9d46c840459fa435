"""`ListParameters`: the part of a `ListEngine` by which worlds have parameters of their own."""

from __future__ import annotations

import numpy as np

from simengine.arrays import Array
from simengine.engines.list_groups import ListGroups
from simengine.engines.own_gpu import on_own_gpu
from simengine.model.params import SavedParams


@on_own_gpu
class ListParameters:
    """Parameters of groups by number.

    Args:
        groups: the groups.

    Attributes:
        parameters: for each group whose worlds have parameters of their own, these parameters.
    """

    def __init__(self, groups: ListGroups) -> None:
        self._groups = groups
        self.parameters = groups.parameters

    def params(self, group: int, name: str) -> Array:
        """A copy of a parameter of every world of a group, (num_worlds, ...) float64."""
        copy: Array = self._groups.parameters_of(group).values(name).copy()
        return copy

    def param_shape(self, group: int, name: str) -> tuple[int, ...]:
        """The shape of a parameter in one world."""
        return tuple(self._groups.parameters_of(group).values(name).shape[1:])

    def given(self, group: int, name: str) -> Array | None:
        """A parameter of every world of a group, (num_worlds, ...); None if it was not set."""
        return self.parameters[group].given(name) if group in self.parameters else None

    def set_params(self, group: int, worlds: np.ndarray | None, fields: dict[str, Array]) -> None:
        """Set parameters of worlds of a group. Only the first call for a group allocates memory."""
        self._groups.change_parameters(group, lambda parameters: parameters.set(worlds, fields))

    def saved_params(self, group: int) -> SavedParams:
        """The parameters that were set for worlds of a group, and what follows from them, on the host."""
        return self.parameters[group].saved() if group in self.parameters else SavedParams({}, {})

    def restore_params(self, group: int, saved: SavedParams) -> None:
        """Give all worlds of a group the parameters that were saved, and the model's values of all others."""
        known = self.parameters.get(group)
        if saved.given or (known is not None and known.table is not None):
            self._groups.change_parameters(group, lambda parameters: parameters.restore(saved))

    def parameter_table(self, group: int, damped: bool) -> Array:
        """The real numbers of the model table of every world of a group, (num_worlds, stride), for the caller to write.

        Args:
            group: number of the group.
            damped: whether the damping of dofs will be written; see `GroupParameters.damped`.
        """
        parameters = self._groups.parameters_of(group)
        parameters.allocate()
        parameters.damped |= damped
        self._groups.use_table(group, parameters)
        table: Array = parameters.table
        return table
