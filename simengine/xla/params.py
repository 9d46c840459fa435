"""`make_batch_params`: fields of the model table that follow from parameters of many worlds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from simengine.backends.select import make_backend
from simengine.engines.jax_params import make_params
from simengine.model.model import Model, table_of
from simengine.model.model_table import ModelTable
from simengine.model.params import MASSES, WorldParameters, together
from simengine.xla.calls import register
from simengine.xla.folding import folded
from simengine.xla.invweights import WEIGHTS, WeightsCall
from simengine.xla.memories import memory_of

Values = dict[str, jax.Array]


def make_batch_params(model: Model | ModelTable, backend: str = "auto") -> Callable[..., Values]:
    """Make the function from parameters of many worlds to fields of the model table, for a step from `make_step`.

    Args:
        model: the model.
        backend: that of the step: "cuda", "host", "jax", or "auto" for the first of these that can run here.

    Returns:
        A function `params(given, worlds=None, known=None)` that returns fields (n, ...) by name. `given` has parameters
            (n, ...) by name, as `make_params` takes them for one world. `worlds` (n,) bool chooses the worlds in which
            the fields are valid; others take no time on backends "host" and "cuda". `known` has fields in which the
            worlds differ already, such as masses that were given before.

    Raises:
        BackendError: the backend cannot run here, or the model's steps wait for counts on a GPU.
    """
    return _Parameters(table_of(model), backend)


class _Parameters:
    """The function of a model, and its custom calls by number of worlds and precision."""

    def __init__(self, table: ModelTable, backend: str):
        self._table = table.with_candidates()
        self._meaning = WorldParameters(self._table)
        made = make_backend(backend)
        self._memories = None if made is None else memory_of(made.name)
        self._in_advance = made is not None and made.name == "cuda"
        self._calls: dict[tuple[int, str], WeightsCall] = {}
        if self._memories is not None:
            self._memories.load(table)

    def __call__(
        self,
        given: Mapping[str, jax.Array],
        worlds: jax.Array | None = None,
        known: Mapping[str, jax.Array] | None = None,
    ) -> Values:
        if not given:
            return {}
        count, dtype = self._checked(given)
        if self._memories is None:
            return jax.vmap(lambda own: make_params(self._table, **own))(dict(given))
        chosen, there = jnp.ones(count, bool) if worlds is None else worlds, known or {}
        every = {name: jnp.asarray(value, dtype) for name, value in given.items()}
        for name in together(given):
            if name in given:
                continue
            default = self._meaning.default(name)
            own = there[name].reshape(count, *default.shape) if name in MASSES and name in there else default
            every[name] = jnp.broadcast_to(jnp.asarray(own, dtype), (count, *default.shape))

        def weights(*masses: jax.Array) -> Values:
            return self._weights(masses, chosen, dtype)

        with jax.numpy_rank_promotion("allow"):
            fields = self._meaning.derive(jnp, every, weights)
        arrays = self._table.arrays
        return {name: values.reshape(count, *arrays[name].shape) for name, values in fields.items()}

    def _checked(self, given: Mapping[str, Any]) -> tuple[int, str]:
        """The number of worlds and the precision. Raises ValueError for a wrong shape or an unknown parameter."""
        counts = {name: jnp.shape(value)[:1] for name, value in given.items()}
        count = next(iter(counts.values()))
        for name, value in given.items():
            shape = (*count, *self._meaning.default(name).shape)
            if not count or jnp.shape(value) != shape:
                raise ValueError(f"{name} has shape {jnp.shape(value)}, expected {shape or '(worlds, ...)'}")
        return count[0], jnp.result_type(*given.values()).name

    def _weights(self, masses: tuple[jax.Array, ...], worlds: jax.Array, dtype: str) -> Values:
        """Inverse weights in the chosen worlds, and zeros in others."""
        call = self._call(len(worlds), dtype)
        values = dict(zip(MASSES, masses, strict=True))
        arguments = [values[name] for name in call.inputs]
        results = folded(call, lambda count: self._call(count, dtype))(*arguments, worlds.astype(jnp.int32))
        found = {name: jnp.zeros((len(worlds), *call.entry(name)[0]), dtype) for name in WEIGHTS}
        found |= zip(call.outputs, results, strict=True)
        return {k: jnp.where(worlds.reshape(-1, *(1,) * (v.ndim - 1)), v, 0) for k, v in found.items()}

    def _call(self, count: int, dtype: str) -> WeightsCall:
        """The custom call of a number of worlds, which lives as long as this object."""
        if (count, dtype) not in self._calls:
            call = register(WeightsCall(self._table, dtype, count))
            if self._in_advance and self._memories is not None:  # while nothing runs; XLA's threads would wait for it
                self._memories.prepare(call)
            self._calls[count, dtype] = call
        return self._calls[count, dtype]
