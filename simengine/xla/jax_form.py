"""Steps of many worlds with the stages' JAX forms, on any device of JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from simengine.engines.jax_batch import batched_evaluation, batched_step, step_batch
from simengine.model.model_table import ModelTable
from simengine.xla.state import STATE_FIELDS, BatchState


def run_in_jax(
    table: ModelTable,
    steps: int,
    keep: tuple[str, ...],
    state: BatchState,
    ctrl: jax.Array,
    params: dict[str, jax.Array],
) -> tuple[BatchState, dict[str, jax.Array]]:
    """Take `steps` steps, or with none evaluate the dynamics, and return the state and the fields in `keep`."""
    model = table.with_candidates()
    arrays: dict[str, Any] = {name: getattr(state, name) for name in STATE_FIELDS} | {"ctrl": ctrl}
    if not steps:
        found = batched_evaluation(model)(arrays, params)
        return state, {name: found[name] for name in keep}
    step = batched_step(model)

    def one(_: Any, now: dict[str, Any]) -> dict[str, Any]:
        return step_batch(step, now, params, ())[0]

    arrays = jax.lax.fori_loop(0, steps - 1, one, arrays)
    arrays, fields, _ = step_batch(step, arrays, params, keep)
    new = {name: jnp.asarray(arrays[name], getattr(state, name).dtype) for name in STATE_FIELDS}
    return state._replace(**new), fields
