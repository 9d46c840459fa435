"""`BatchState`: all that a step of many worlds depends on, as arrays of JAX."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.model.model import Model, table_of
from simengine.model.model_table import ModelTable
from simengine.state.fields import FIELD, INTEGRATION_STATE, entry_shape

STATE_FIELDS: tuple[str, ...] = tuple(name for name in INTEGRATION_STATE if name != "ctrl")
"""Fields of the engine's state that a `BatchState` holds. Controls are arguments of a step."""


class BatchState(NamedTuple):
    """The state of n worlds of one model. The first axis of each array is the world.

    For JAX it is a tree of the arrays that have entries, so activations of a model without any are no leaf of it.

    Attributes:
        qpos: (n, nq) coordinates [m, rad].
        qvel: (n, nv) velocities [m/s, rad/s].
        act: (n, na) activations.
        qfrc_applied: (n, nv) applied generalised force [N, N m].
        xfrc_applied: (n, nbody, 6) applied force [N] at each body's centre of mass, then torque [N m], world frame.
        mocap_pos, mocap_quat: (n, nmocap, 3) [m], (n, nmocap, 4) poses of the mocap bodies.
        eq_active: (n, neq) int32, 1 for an active equality constraint.
        qacc_warmstart: (n, nv) acceleration from which the solver starts.
        nstep: (n,) int32, steps since the reset. The time is `nstep` times the model's time step.
        world_status: (n,) int32, 0 for a healthy world, else the index in `simengine.WORLD_STATUS` of the stage
            whose result was not finite. Such a world keeps its last finite state until its status is set to 0.
        stalled: (n,) int32, number of steps that the world did not make since the memory for contacts was too small;
            see `make_batch_step`.
    """

    qpos: jax.Array
    qvel: jax.Array
    act: jax.Array
    qfrc_applied: jax.Array
    xfrc_applied: jax.Array
    mocap_pos: jax.Array
    mocap_quat: jax.Array
    eq_active: jax.Array
    qacc_warmstart: jax.Array
    nstep: jax.Array
    world_status: jax.Array
    stalled: jax.Array


class _Empty(NamedTuple):
    """Stands for an array without entries in a tree whose leaves are no arrays.

    Attributes:
        entry: shape of one world's entry, as in (n, *entry).
        dtype: name of the array's type.
    """

    entry: tuple[int, ...]
    dtype: str


Shape = tuple[tuple[str, _Empty], ...]  # the fields without entries, by name


@cache
def _placeholder(entry: tuple[int, ...], dtype: Any) -> _Empty:
    return _Empty(tuple(entry), np.dtype(dtype).name)


def _flatten(state: BatchState) -> tuple[list[Any], Shape]:
    """The fields that have entries, and what stands for the others. Every call of a compiled function asks for it."""
    worlds = getattr(state.nstep, "shape", None)
    if worlds is not None and 0 in worlds:
        worlds = None  # the sizes of entries cannot be told
    leaves, empty = [], []
    for name, value in zip(BatchState._fields, state, strict=True):
        if isinstance(value, _Empty):
            empty.append((name, value))
        elif worlds is not None and 0 in getattr(value, "shape", ()):
            empty.append((name, _placeholder(value.shape[len(worlds) :], value.dtype)))
        else:
            leaves.append(value)
    return leaves, tuple(empty)


def _flatten_with_keys(state: BatchState) -> tuple[list[tuple[Any, Any]], Shape]:
    leaves, empty = _flatten(state)
    without = dict(empty)
    names = (name for name in BatchState._fields if name not in without)
    return [(jax.tree_util.GetAttrKey(name), leaf) for name, leaf in zip(names, leaves, strict=True)], empty


def _unflatten(shape: Shape, leaves: Iterable[Any]) -> BatchState:
    empty = dict(shape)
    values = dict(zip((name for name in BatchState._fields if name not in empty), leaves, strict=True))
    worlds = getattr(values["nstep"], "shape", None)
    for name, what in empty.items():
        values[name] = what if worlds is None else np.zeros((*worlds, *what.entry), what.dtype)
    return BatchState(**values)


# XLA of jaxlib 0.11.2 crashes where `jax.shard_map` returns an array without entries
jax.tree_util.register_pytree_with_keys(BatchState, _flatten_with_keys, _unflatten, _flatten)


def entry_of(table: ModelTable, name: str, dtype: str) -> tuple[tuple[int, ...], str]:
    """Shape and type of one world's entry of a field."""
    field = FIELD[name]
    return tuple(entry_shape(field, table.sizes)), "int32" if field.kind == "int" else dtype


def initial_batch(model: Model | ModelTable, num_worlds: int, dtype: Any = "float32") -> BatchState:
    """The model's initial state in every world: qpos0 at rest, without applied forces, at time 0.

    Args:
        model: the model.
        num_worlds: number of worlds.
        dtype: "float32" or "float64"; the second needs JAX's 64-bit mode.
    """
    table = table_of(model)
    values = {"stalled": jnp.asarray(np.zeros((), np.int32))}
    for name in STATE_FIELDS:
        shape, kind = entry_of(table, name, np.dtype(dtype).name)
        start = np.broadcast_to(np.asarray(table.initial.get(name, 0)), shape)
        values[name] = jnp.asarray(start.astype(kind), kind)
    return BatchState(**_in_every_world(values, num_worlds))


@partial(jax.jit, static_argnames="num_worlds")
def _in_every_world(values: dict[str, jax.Array], num_worlds: int) -> dict[str, jax.Array]:
    """Each array once for every world: one program, which takes less time to compile than one for each array."""
    return {name: jnp.broadcast_to(value, (num_worlds, *value.shape)) for name, value in values.items()}
