"""Sensors of the two nearest points of geoms in JAX, for one world."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.collision.narrowphase import NARROWPHASE
from simengine.physics.collision.narrowphase_jax import GeomPairs, pair_contacts
from simengine.physics.math.vector_jax import const

_MOST_OF_FIELD = 50  # contacts of a pair that MuJoCo lists

Shortest = tuple[jax.Array, jax.Array, jax.Array]
"""Distance [m], point half-way [m] and normal, from the first geom to the second."""


def sensor_distance(m: Any, geom_xpos: jax.Array, geom_xmat: jax.Array, sensordata: jax.Array) -> tuple[jax.Array]:
    """sensordata (nsensordata,) with the sensors of distances filled in.

    Args: geom_xpos (ngeom, 3) [m], geom_xmat (ngeom, 9), sensordata (nsensordata,).
    """
    measured = [i for i, name in enumerate(m.sensor_names) if name in _TOLD]
    if not measured:
        return (sensordata,)
    found = _of_pairs(m, geom_xpos, geom_xmat)
    values, places = [], []
    for i in measured:
        own = slice(int(m.sensor_distadr[i]), int(m.sensor_distadr[i + 1]))
        cutoff = float(m.sensor_cutoff[i])
        nowhere = jnp.zeros(3, geom_xpos.dtype)
        best = jnp.asarray(cutoff, geom_xpos.dtype), nowhere, nowhere
        if own.stop > own.start:
            place = jnp.argmin(found[0][own])
            dist, pos, normal = (x[own][place] for x in found)
            near = dist < cutoff
            best = jnp.where(near, dist, cutoff), jnp.where(near, pos, 0.0), jnp.where(near, normal, 0.0)
        # (4) what a sensor tells of them; nothing but the cutoff where all are farther
        values.append(_TOLD[m.sensor_names[i]](*best, cutoff))
        places.append(int(m.sensor_adr[i]) + np.arange(int(m.sensor_dim[i])))
    return (sensordata.at[np.concatenate(places)].set(jnp.concatenate(values)),)


def _of_pairs(m: Any, geom_xpos: jax.Array, geom_xmat: jax.Array) -> Shortest:
    """Of each pair of geoms the distance (n,), the point half-way (n, 3) and the normal (n, 3)."""
    cutoff = np.repeat(np.asarray(m.sensor_cutoff, np.float64), np.diff(m.sensor_distadr))
    asked = np.column_stack([np.asarray(m.distance_pair)[:, :3], cutoff])
    # what several sensors ask for is found once
    rows, first, which = np.unique(asked, axis=0, return_index=True, return_inverse=True)
    geoms, reach = np.asarray(m.distance_pair)[first], rows[:, 3]
    dist, pos = jnp.zeros(len(rows), geom_xpos.dtype), jnp.zeros((len(rows), 3), geom_xpos.dtype)
    normal = jnp.zeros_like(pos)
    for code, name in enumerate(NARROWPHASE):
        own = np.flatnonzero(geoms[:, 2] == code)
        if not own.size:
            continue
        # (1) convex shapes have one shortest distance, be it of penetration
        stage = NARROWPHASE["convex" if name == "box_box" else name]
        # (2) of a height field the prisms that MuJoCo would list
        slots = np.full(own.size, _MOST_OF_FIELD if name == "hfield" else 1)
        pairs = GeomPairs(geoms[own, 0], geoms[own, 1], reach[own], slots)
        # (3) of other pairs the nearest of their contacts
        contacts = pair_contacts(m, stage, pairs, geom_xpos, geom_xmat)
        dists, places, frames = (x.reshape(own.size, -1, width) for x, width in zip(contacts, (1, 3, 9), strict=True))
        best = np.arange(own.size), jnp.argmin(dists[..., 0], axis=1)
        dist, pos = dist.at[own].set(dists[best][:, 0]), pos.at[own].set(places[best])
        normal = normal.at[own].set(frames[best][:, :3])
    which = which.ravel()
    return dist[which], pos[which], normal[which] * const(np.asarray(m.distance_pair)[:, 3:], geom_xpos)


def _distance(dist: jax.Array, pos: jax.Array, normal: jax.Array, cutoff: float) -> jax.Array:
    return (jnp.clip(dist, -cutoff, cutoff) if cutoff > 0 else dist)[None]


def _direction(dist: jax.Array, pos: jax.Array, normal: jax.Array, cutoff: float) -> jax.Array:
    return jnp.sign(dist) * normal


def _segment(dist: jax.Array, pos: jax.Array, normal: jax.Array, cutoff: float) -> jax.Array:
    half = 0.5 * dist * normal
    return jnp.concatenate([pos - half, pos + half])


_TOLD = {"GEOMDIST": _distance, "GEOMNORMAL": _direction, "GEOMFROMTO": _segment}
