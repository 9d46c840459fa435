"""Energies in JAX, for one world. Quantities as after mj_energyPos and mj_energyVel."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.tree_matrices_jax import Matrix, times
from simengine.physics.math.vector_jax import const, dot, matmul, present
from simengine.physics.passive.springs_jax import joint_stretch, spring_energy


def energy(
    m: Any, qpos: jax.Array, qvel: jax.Array, xipos: jax.Array, ten_length: jax.Array, qM: Matrix
) -> tuple[jax.Array]:
    """energy (2,): potential and kinetic [J].

    Args: qpos (nq,) [m, rad], qvel (nv,), xipos (nbody, 3) [m], ten_length (ntendon,), qM (nv, nv).
    """
    # (1) of position and (2) of velocity
    return (jnp.stack([potential_energy(m, qpos, xipos, ten_length), kinetic_energy(qvel, qM)]),)


def potential_energy(m: Any, qpos: jax.Array, xipos: jax.Array, ten_length: jax.Array) -> jax.Array:
    """Energy () of gravity and of the springs of joints and tendons [J]."""
    energy = -dot(const(m.body_mass, qpos), matmul(xipos, const(m.opt_gravity, qpos)))
    stiffness, poly = m.jnt_stiffness, np.asarray(m.jnt_stiffnesspoly)
    if present(stiffness).any() or poly.any():
        s = joint_stretch(m, qpos)
        first = np.flatnonzero(s.first)
        energy = energy + spring_energy(stiffness[s.joint[first]], poly[s.joint[first]], s.size[first])
    if m.ntendon:
        low, high = const(m.tendon_lengthspring, qpos).T
        stretch = ten_length - jnp.clip(ten_length, low, high)
        energy = energy + spring_energy(m.tendon_stiffness, m.tendon_stiffnesspoly, stretch)
    return energy


def kinetic_energy(qvel: jax.Array, qM: Matrix) -> jax.Array:
    """Half of qvel' M qvel, () [J]."""
    return 0.5 * dot(qvel, times(qM, qvel))
