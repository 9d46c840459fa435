"""What the JAX engine compiles: steps and evaluations of all worlds of a group, as functions of arrays by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from simengine.model.model_table import ModelTable
from simengine.state.fields import FIELD, INTEGRATION_STATE, STATUS, entry_shape

if TYPE_CHECKING:
    from simengine.physics.constraints.row_layout_jax import RowLayout

_INPUTS = ("ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")


def initial_fields(model: ModelTable, num_worlds: int, dtype: str) -> dict[str, Any]:
    """State fields of a group, by name, all zero."""
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
    """The step of all worlds: a function of state arrays and of table fields in which worlds differ."""
    import jax

    from simengine.engines.jax_step import make_step

    step = make_step(model, derived=True)
    return jax.vmap(lambda arrays, own: step(_world_state(arrays, model), arrays["ctrl"], own))


def batched_forward(model: ModelTable) -> Any:
    """The evaluation of all worlds, compiled: a function of the same arguments to derived fields."""
    import jax

    from simengine.engines.jax_step import make_forward

    forward = make_forward(model)
    batch = jax.vmap(lambda arrays, own: forward(_world_state(arrays, model), arrays["ctrl"], own))
    return jax.jit(batch, compiler_options=compiler_options())


@cache
def compiler_options() -> dict[str, Any]:
    """On a CPU, XLA's older emitters: they compile a step in half the time, and it runs no slower.

    Nothing where JAX has another device, or no such option.
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


def guarded_status(arrays: dict[str, Any]) -> Any:
    """The status of every world, those flagged whose state or input is not finite, (num_worlds,)."""
    import jax.numpy as jnp

    status = arrays["world_status"]
    good = _finite([arrays[n] for n in ("qpos", "qvel", *_INPUTS)])
    return jnp.where(good | (status != 0), status, STATUS.index("input")).astype(status.dtype)


def step_batch(
    step: Any, arrays: dict[str, Any], own: dict[str, Any], keep: tuple[str, ...]
) -> tuple[dict[str, Any], dict, dict]:
    """One step of all worlds; a world whose input or result is not finite is flagged and stays as it was."""
    import jax.numpy as jnp

    new, fields = step(arrays, own)
    status = guarded_status(arrays)
    good_smooth, good_solve = _finite([fields["qacc_smooth"]]), _finite([fields["qacc"]])
    good_result = _finite([new.qpos, new.qvel])
    code = jnp.where(good_result, 0, STATUS.index("integrate"))
    code = jnp.where(good_solve, code, STATUS.index("solve"))
    code = jnp.where(good_smooth, code, STATUS.index("acceleration"))
    status = jnp.where(status == 0, code.astype(status.dtype), status)
    healthy = status == 0
    result = dict(arrays, world_status=status, nstep=arrays["nstep"] + healthy.astype(arrays["nstep"].dtype))
    for name in ("qpos", "qvel", "act", "qacc_warmstart"):
        result[name] = jnp.where(healthy[:, None], getattr(new, name), arrays[name])
    return result, {name: fields[name] for name in keep if name in fields}, count_of(fields, status)


def count_of(fields: dict[str, Any], status: Any) -> dict[str, Any]:
    """Contacts and rows of healthy worlds, and the number of the others."""
    healthy = (status == 0)[:, None]
    return {
        "ncon": (fields["contact_active"] & healthy).sum(),
        "nefc": (fields["efc_active"] & healthy).sum(),
        "bad": (status != 0).sum(),
    }


def row_addresses(model: ModelTable, fields: dict[str, Any], world: int) -> np.ndarray:
    """First row of each contact slot among the active rows of a world, -1 where the slot has none."""
    from simengine.physics.constraints.row_layout_jax import row_layout

    first = row_layout(model).first_of_slot(model.nslot)
    active = np.asarray(fields["efc_active"][world]).astype(bool)
    before = np.cumsum(active) - active
    if not len(first):
        return np.zeros(0, dtype=np.int32)
    return np.where(active[first], before[first], -1).astype(np.int32)


def row_ids(layout: RowLayout, listed: np.ndarray) -> np.ndarray:
    """efc_id of every row slot: contacts are numbered by the slots that list one."""
    contact = np.cumsum(listed) - 1
    ids = layout.id.copy()
    ids[layout.first_contact :] = contact[layout.contact_slot]
    return ids
