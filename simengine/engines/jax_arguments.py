"""Checks of what is given to the functions of one world in JAX, before anything is computed."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from simengine.model import ModelTable


def check_shapes(table: ModelTable, state: Any, ctrl: Any) -> None:
    """Refuse a state or controls that do not fit a model.

    Args:
        table: the model.
        state: a `jax_step.State`.
        ctrl: its controls.

    Raises:
        TypeError: the state is no `State`.
        ValueError: an array has another shape than the model needs.
    """
    shapes: dict[str, tuple[int, ...]] = {
        **{"qpos": (table.nq,), "qvel": (table.nv,), "qacc_warmstart": (table.nv,), "time": ()},
        **{"qfrc_applied": (table.nv,), "xfrc_applied": (table.nbody, 6)},
        **{"mocap_pos": (table.nmocap, 3), "mocap_quat": (table.nmocap, 4)},
        **{"eq_active": (table.neq,), "act": (table.na,), "ctrl": (table.nu,)},
    }
    if {*getattr(state, "_fields", ()), "ctrl"} != shapes.keys():
        raise TypeError(
            f"the state is a {type(state).__name__}; give a simengine.State, such as simengine.initial_state(model)"
        )
    for name, value in (*state._asdict().items(), ("ctrl", ctrl)):
        if value is not None and jnp.shape(value) != shapes[name]:
            raise ValueError(
                f"{name} has shape {jnp.shape(value)}, expected {shapes[name]}; vmap the function over several worlds"
            )
