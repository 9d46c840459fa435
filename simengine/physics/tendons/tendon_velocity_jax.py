"""Rates of the tendons' lengths in JAX, for one world. Quantities as after mj_fwdVelocity."""

from __future__ import annotations

from typing import Any

import jax

from simengine.physics.math.vector_jax import matmul


def tendon_velocity(m: Any, qvel: jax.Array, ten_J: jax.Array) -> tuple[jax.Array]:
    """ten_velocity (ntendon,) from qvel (nv,) and ten_J (ntendon, nv)."""
    # (1) rate of each length
    return (matmul(ten_J, qvel),)
