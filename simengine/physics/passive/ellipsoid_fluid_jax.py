"""Forces of a fluid on ellipsoids: added mass, Magnus and Kutta lift, viscous drag and Stokes drag.

Source: MuJoCo documentation, chapter "Computation", section "Fluid forces", "Ellipsoid model".
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.vector_jax import const, cross, dot, norm, normalize, tables


def ellipsoid_forces(m: Any, geom: np.ndarray, w: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Force [N] and torque [N m], each (n, 3), on the geoms `geom` (n,), in the geoms' frames.

    Let u be the direction of v, a the squared areas of the ellipsoid's sections, and n = a u. The area projected along
    the flow is pi sqrt(n n / n u), and n lies along the normal at the stagnation point.

    Args: w (n, 3) angular velocity [rad/s], v (n, 3) velocity through the fluid [m/s], in the geoms' frames.
    """
    fluid, shapes = (m.opt_density, m.opt_viscosity), (m.geom_semiaxes[geom], m.geom_fluid[geom])
    xp, density, viscosity, axes, coef = tables(*fluid, *shapes)
    blunt, slender, angular, kutta, magnus = (coef[:, i : i + 1] for i in range(1, 6))
    middle, longest = (column[:, None] for column in xp.sort(axes, axis=1)[:, 1:].T)
    first, second = xp.roll(axes, -1, axis=1), xp.roll(axes, -2, axis=1)

    # added mass, and the Magnus lift of a spinning body
    momentum = const(density * coef[:, 6:9], v) * v
    spin = const(density * coef[:, 9:12], w) * w
    displaced = magnus * density * 4 / 3 * np.pi * axes.prod(axis=1, keepdims=True)
    force = cross(momentum, w) + const(displaced, v) * cross(w, v)
    torque = cross(momentum, v) + cross(spin, w)

    # Stokes drag, and drag that grows with the angular velocity
    radius = axes.mean(axis=1, keepdims=True)
    own = 8 / 15 * np.pi * axes * xp.maximum(first, second) ** 4
    stirred = const(angular * own + slender * (8 / 15 * np.pi * middle * longest**4 - own), w) * w
    torque = torque - (const(8 * np.pi * radius**3 * viscosity, w) + const(density, w) * norm(stirred)[:, None]) * w
    force = force - const(6 * np.pi * radius * viscosity, v) * v

    # drag by the area projected along the flow, and the Kutta lift of a body oblique to it
    widest = np.pi * longest * middle
    u, speed = normalize(v, jnp.broadcast_to(const(np.array([1.0, 0.0, 0.0]), v), v.shape))
    n = const((first * second / (longest * middle)) ** 2, v) * u
    along, square, speed = dot(n, u)[:, None], dot(n, n)[:, None], speed[:, None]
    area = const(widest, v) * jnp.sqrt(square / along)
    lift = const(kutta * density, v) * speed * speed * along / square * area
    drag = const(density, v) * speed * (const(slender * widest, v) + const(blunt - slender, v) * area)
    force = force + lift * cross(cross(n, u), u) - drag * v
    interaction = const(coef[:, :1], v)
    return interaction * force, interaction * torque
