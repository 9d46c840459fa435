"""`BatchState`: all that a step of many worlds depends on, as arrays of JAX."""

from __future__ import annotations

from functools import partial
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
        world_status: (n,) int32, 0 for a healthy world, else the index in `simengine.state.fields.STATUS` of the stage
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
