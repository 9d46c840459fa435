"""The functions that `JaxEngine` compiles: a step and an evaluation of all worlds of a group.

Their arguments are dictionaries of arrays by field name. The first axis of each array is the world.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from simengine.model.model_table import ModelTable
from simengine.state.fields import FIELD, INTEGRATION_STATE, WORLD_STATUS, entry_shape

if TYPE_CHECKING:
    from simengine.physics.constraints.row_layout_jax import RowLayout

_LOADS = ("qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")


def initial_fields(model: ModelTable, num_worlds: int, dtype: str) -> dict[str, Any]:
    """State fields of a group by name, (num_worlds, ...), all zero."""
    import jax.numpy as jnp

    state = {}
    for name in INTEGRATION_STATE:
        field = FIELD[name]
        kind = "int32" if field.kind == "int" else dtype
        state[name] = jnp.zeros((num_worlds, *entry_shape(field, model.sizes)), dtype=kind)
    return state


def _world_state(arrays: dict[str, Any], model: ModelTable) -> Any:
    from simengine.engines.jax_step import State

    return State(
        qpos=arrays["qpos"],
        qvel=arrays["qvel"],
        qacc_warmstart=arrays["qacc_warmstart"],
        time=arrays["nstep"].astype(arrays["qpos"].dtype) * float(model.opt_timestep),
        qfrc_applied=arrays["qfrc_applied"],
        xfrc_applied=arrays["xfrc_applied"],
        act=arrays["act"],
        mocap_pos=arrays["mocap_pos"],
        mocap_quat=arrays["mocap_quat"],
        eq_active=arrays["eq_active"].astype(arrays["qpos"].dtype),
    )


def batched_step(model: ModelTable) -> Any:
    """Return the step of all worlds, a function of the state and of the table fields in which worlds differ."""
    import jax

    from simengine.engines.jax_step import make_step

    step = make_step(model, derived=True)
    return jax.vmap(lambda arrays, own: step(_world_state(arrays, model), arrays["ctrl"], own))


def batched_evaluation(model: ModelTable) -> Any:
    """Return the evaluation of all worlds, which maps the same arguments to derived fields."""
    import jax

    from simengine.engines.jax_step import make_forward

    forward = make_forward(model)
    return jax.vmap(lambda arrays, own: forward(_world_state(arrays, model), arrays["ctrl"], own))


def batched_forward(model: ModelTable) -> Any:
    """Return the evaluation of all worlds, compiled."""
    import jax

    return jax.jit(batched_evaluation(model), compiler_options=compiler_options())


@lru_cache(maxsize=16)
def compiled(model: ModelTable) -> tuple[Any, Any]:
    """Return `step_batch` and the evaluation of all worlds, which compile when they are first called.

    Simulations of the same model share them, so that a copy of a simulation compiles nothing.
    """
    import jax

    step = partial(step_batch, batched_step(model))
    return jax.jit(step, static_argnames=("keep",), compiler_options=compiler_options()), batched_forward(model)


@cache
def compiler_options() -> dict[str, Any]:
    """Return options for `jax.jit`, which select XLA's older emitters on a CPU.

    The older emitters compile a step in half the time, and the step runs no slower. The result is empty if JAX has
    another device or does not know the option.
    """
    import jax

    older = {"xla_cpu_use_fusion_emitters": False}
    if jax.default_backend() != "cpu":
        return {}
    try:
        jax.jit(lambda x: x, compiler_options=older)(0)
    except jax.errors.JaxRuntimeError:
        return {}
    return older


def _finite(arrays: Sequence[Any]) -> Any:
    import jax.numpy as jnp

    checks = [jnp.isfinite(a).reshape(a.shape[0], -1).all(axis=1) for a in arrays]
    return jnp.stack(checks).all(axis=0)


def _bounded(arrays: Sequence[Any]) -> Any:
    """Worlds whose numbers a state may have, as in MuJoCo, (num_worlds,)."""
    import jax.numpy as jnp

    checks = [(jnp.abs(a) <= mujoco.mjMAXVAL).reshape(a.shape[0], -1).all(axis=1) for a in arrays]
    return jnp.stack(checks).all(axis=0)


def guarded_status(arrays: dict[str, Any]) -> Any:
    """Return the status of every world, (num_worlds,). A world whose state or input cannot be used is flagged."""
    import jax.numpy as jnp

    status = arrays["world_status"]
    good = _finite([arrays[n] for n in _LOADS]) & _bounded([arrays[n] for n in ("qpos", "qvel", "ctrl")])
    return jnp.where(good | (status != 0), status, WORLD_STATUS.index("input")).astype(status.dtype)


def step_batch(
    step: Any, arrays: dict[str, Any], own: dict[str, Any], keep: tuple[str, ...]
) -> tuple[dict[str, Any], dict, dict]:
    """Take one step of all worlds. A world whose input or result cannot be used is flagged, and its state is unchanged.

    Returns:
        The new state, the derived fields named by `keep`, and the counts of `count_of`.
    """
    import jax.numpy as jnp

    new, fields = step(arrays, own)
    status = guarded_status(arrays)
    smooth = [fields["qacc_smooth"]]
    good_solve = _bounded([fields["qacc"]]) & _finite(smooth)
    code = jnp.where(_bounded([new.qpos, new.qvel]), 0, WORLD_STATUS.index("integrate"))
    code = jnp.where(
        good_solve, code, jnp.where(_bounded(smooth), WORLD_STATUS.index("solve"), WORLD_STATUS.index("acceleration"))
    )
    status = jnp.where(status == 0, code.astype(status.dtype), status)
    healthy = status == 0
    result = dict(arrays, world_status=status, nstep=arrays["nstep"] + healthy.astype(arrays["nstep"].dtype))
    for name in ("qpos", "qvel", "act", "qacc_warmstart"):
        result[name] = jnp.where(healthy[:, None], getattr(new, name), arrays[name])
    return result, {name: fields[name] for name in keep if name in fields}, count_of(fields, status)


def count_of(fields: dict[str, Any], status: Any) -> dict[str, Any]:
    """Return the numbers of contacts ("ncon") and rows ("nefc") of healthy worlds, and of frozen worlds ("bad")."""
    healthy = (status == 0)[:, None]
    return {
        "ncon": (fields["contact_active"] & healthy).sum(),
        "nefc": (fields["efc_active"] & healthy).sum(),
        "bad": (status != 0).sum(),
    }


def dense(value: Any) -> Any:
    """A derived field as an array, also if it is stored by families of bodies."""
    return value.dense() if hasattr(value, "dense") else value


def held_arrays(values: Any) -> list[Any]:
    """The arrays in a nest of lists, dictionaries and fields, some of which consist of several."""
    import jax

    return jax.tree.leaves(values)


def row_addresses(model: ModelTable, fields: dict[str, Any], world: int) -> np.ndarray:
    """Return the index of each contact slot's first row among a world's active rows, -1 for a slot without rows."""
    from simengine.physics.constraints.row_layout_jax import row_layout

    first = row_layout(model).first_of_slot(model.nslot)
    active = np.asarray(fields["efc_active"][world]).astype(bool)
    before = np.cumsum(active) - active
    if not len(first):
        return np.zeros(0, dtype=np.int32)
    return np.where(active[first], before[first], -1).astype(np.int32)


def row_ids(layout: RowLayout, listed: np.ndarray) -> np.ndarray:
    """Return efc_id of every row slot. A contact's id is its index among the active contacts.

    Args:
        layout: the row layout of the model.
        listed: whether a contact slot holds a contact, (nslot,) bool.
    """
    contact = np.cumsum(listed) - 1
    ids = layout.id.copy()
    ids[layout.first_contact :] = contact[layout.contact_slot]
    return ids
