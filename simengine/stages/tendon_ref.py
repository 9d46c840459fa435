"""Tendons in JAX, for one world: lengths and Jacobians. Quantities as after mj_tendon."""

from __future__ import annotations

from typing import Any

import jax

from simengine.math.lengths import length_rows
from simengine.math.vector import const, matmul


def tendon(m: Any, qpos: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Length of every tendon and its derivatives.

    Args: qpos (nq,) [m, rad].
    Returns: ten_length (ntendon,), ten_J (ntendon, nv).
    """
    # (1) fixed tendons: weighted sums of joint coordinates
    by_qpos, by_qvel = (rows[m.njnt :] for rows in length_rows(m))
    return matmul(const(by_qpos, qpos), qpos), const(by_qvel, qpos)
