"""Checks of the arguments of steps inside JAX programs, when they are traced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from simengine.errors import did_you_mean
from simengine.model.model_table import ModelTable
from simengine.xla.state import STATE_FIELDS, BatchState, entry_of


def check_arguments(table: ModelTable, state: BatchState, ctrl: Any, params: Mapping[str, Any]) -> tuple[int, str]:
    """Check shapes and types.

    Returns:
        The number of worlds, and the precision: "float32" or "float64".

    Raises:
        TypeError: the state is no `BatchState`, or an array has another type than `qpos`.
        ValueError: an array has a wrong shape, or a parameter is unknown.
    """
    if not isinstance(state, BatchState):
        raise TypeError(
            f"the state is a {type(state).__name__}; give a simengine.BatchState, such as "
            "simengine.initial_state(model, num_worlds=n)"
        )
    dtype = jnp.result_type(state.qpos).name
    if dtype not in ("float32", "float64"):
        raise TypeError(f"state.qpos has type {dtype}; give float32 or float64")
    if jnp.ndim(state.qpos) != 2:
        raise ValueError(f"state.qpos has shape {jnp.shape(state.qpos)}, expected (worlds, {table.nq})")
    count = jnp.shape(state.qpos)[0]
    values = {**state._asdict(), "ctrl": ctrl}
    for name in (*STATE_FIELDS, "ctrl"):
        entry, kind = entry_of(table, name, dtype)
        _check("ctrl" if name == "ctrl" else f"state.{name}", values[name], (count, *entry), kind)
    for name, value in params.items():
        if name not in table.arrays:
            hint = did_you_mean(name, table.arrays)
            raise ValueError(f"params holds {name!r}, which is no field of the model table{hint}; see make_params")
        if jnp.size(value) != count * table.arrays[name].size:
            raise ValueError(
                f"params holds {name} of shape {jnp.shape(value)}, expected {(count, *table.arrays[name].shape)}; "
                "vmap simengine.make_params over the worlds"
            )
    return count, dtype


def _check(name: str, value: Any, shape: tuple[int, ...], kind: str) -> None:
    if jnp.shape(value) != shape:
        raise ValueError(f"{name} has shape {jnp.shape(value)}, expected {shape}")
    if jnp.result_type(value).name != kind:
        raise TypeError(f"{name} has type {jnp.result_type(value).name}, expected {kind}; convert it with astype")
