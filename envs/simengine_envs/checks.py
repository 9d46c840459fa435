"""Checks of what the functions of a task return, made when they are traced. Errors name the task and the term."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from simengine import BatchState
from simengine.errors import did_you_mean
from simengine_envs.sums import sum_of_arrays
from simengine_envs.task import Task

Values = dict[str, jax.Array]


class Checks:
    """Checks the values that a task returns, and converts them.

    Args:
        task: the task.

    Raises:
        TypeError: the task's `__post_init__` did not call that of its base.
    """

    def __init__(self, task: Task):
        self._task = type(task).__name__
        self._weights = dict(task.weights)
        self._inherited = task.inherited_weights
        if not self._weights.keys() >= task.default_weights.keys():
            raise TypeError(f"__post_init__ of task {self._task} must call super().__post_init__() first")

    def named(self, function: str, values: Any) -> Mapping[str, Any]:
        """What a function returns that must return values by name. Raises TypeError."""
        if not isinstance(values, Mapping):
            found = "an array" if isinstance(values, jax.Array) else repr(values)
            raise TypeError(f"{function} of task {self._task} returns {found}; return a dictionary of arrays by name")
        return values

    def array(self, name: str, value: Any, shape: tuple[int, ...]) -> jax.Array:
        """An array that must have this shape. Raises ValueError."""
        array = jnp.asarray(value)
        if array.shape != shape:
            raise ValueError(f"{name} of task {self._task} has shape {array.shape}, expected {shape}")
        return array

    def mask(self, name: str, value: Any, count: int) -> jax.Array:
        """An array (count,) of bool. Raises ValueError or TypeError."""
        array = self.array(name, value, (count,))
        if array.dtype != jnp.bool_:
            raise TypeError(f"{name} of task {self._task} has type {array.dtype}, expected bool")
        return array

    def observation(self, value: Any, count: int) -> jax.Array:
        """Observations (count, size). Raises ValueError."""
        array = jnp.asarray(value)
        if array.ndim != 2 or len(array) != count:
            raise ValueError(f"observation of task {self._task} has shape {array.shape}, expected ({count}, size)")
        return array

    def rewards(self, terms: Mapping[str, Any], count: int, dtype: str) -> tuple[Values, jax.Array]:
        """Weighted reward terms by name, and their sum, each (count,). Raises ValueError or TypeError."""
        if not self.named("rewards", terms):
            raise ValueError(f"rewards of task {self._task} is empty; return at least one term")
        for name, weight in self._weights.items():
            # a subclass may have fewer terms than its base has weights
            if name not in terms and self._inherited.get(name) != weight:
                hint = did_you_mean(name, terms)
                raise ValueError(f"weights of task {self._task} name {name!r}, which is no reward term{hint}")
        weighted = {}
        for name, value in terms.items():
            array = self.array(f"reward term {name!r}", value, (count,)).astype(dtype)
            weighted[name] = array * self._weights[name] if name in self._weights else array
        return weighted, sum_of_arrays(list(weighted.values()))

    def memory(self, values: Mapping[str, Any], known: Values | None) -> Values:
        """The memory after changes. Raises ValueError for a name, shape or type that `start` did not give."""
        values = self.named("remember" if known is not None else 'the "memory" of start', values)
        if known is None:
            return {name: jnp.asarray(value) for name, value in values.items()}
        changed = dict(known)
        for name, value in values.items():
            if name not in known:
                raise ValueError(
                    f"remember of task {self._task} returns {name!r}{did_you_mean(name, known)}, which start does not "
                    "put into the memory; give it a first value there"
                )
            changed[name] = self.array(f"memory {name!r}", value, known[name].shape).astype(known[name].dtype)
        return changed

    def info(self, values: Mapping[str, Any], count: int) -> Values:
        """Infos (count, ...). Raises ValueError."""
        values = self.named("info", values)
        found = {}
        for name, value in values.items():
            array = found[name] = jnp.asarray(value)
            if array.ndim == 0 or len(array) != count:
                raise ValueError(f"info {name!r} of task {self._task} has shape {array.shape}, expected ({count}, ...)")
        return found

    def state(self, values: Mapping[str, Any], worlds: BatchState) -> Values:
        """State fields to replace. Raises ValueError for an unknown name or a wrong shape."""
        changed = {}
        for name, value in values.items():
            known = getattr(worlds, name, None) if name in BatchState._fields else None
            if known is None:
                hint = did_you_mean(name, BatchState._fields)
                raise ValueError(f"task {self._task} sets {name!r}, which is no field of the state{hint}")
            changed[name] = self.array(f"state field {name!r}", value, known.shape).astype(known.dtype)
        return changed

    def params(self, values: Mapping[str, Any], known: Sequence[str], count: int, dtype: str) -> Values:
        """Parameters (count, ...). Raises ValueError for an unknown name or a wrong first axis."""
        found = {}
        for name, value in values.items():
            if name not in known:
                raise ValueError(
                    f"task {self._task} sets {name!r}, which is no parameter in which worlds may differ"
                    f"{did_you_mean(name, known)}; see simengine.model.params.PARAMS"
                )
            array = found[name] = jnp.asarray(value, dtype)
            if array.ndim == 0 or len(array) != count:
                raise ValueError(
                    f"parameter {name!r} of task {self._task} has shape {array.shape}, expected ({count}, ...)"
                )
        return found
