"""Sensors of positions in JAX, for one world; sensordata as after mj_sensorPos."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import MINVAL, const, norm, tables
from simengine.physics.sensors import ray_jax as ray
from simengine.physics.sensors.energy_jax import potential_energy
from simengine.physics.sensors.ray_hfield_jax import Field, hfield
from simengine.physics.sensors.sensor_jax import Reading, conjugate, frames, into_frame, put_sensors


def sensor_pos(
    m: Any,
    qpos: jax.Array,
    time: jax.Array,
    xpos: jax.Array,
    xquat: jax.Array,
    xipos: jax.Array,
    subtree_com: jax.Array,
    geom_xpos: jax.Array,
    geom_xmat: jax.Array,
    ten_length: jax.Array,
    actuator_length: jax.Array,
) -> tuple[jax.Array]:
    """sensordata (nsensordata,) with the readings of the sensors of positions, zero elsewhere.

    Args: qpos (nq,) [m, rad], time () [s], xpos (nbody, 3) [m], xquat (nbody, 4), xipos (nbody, 3) [m],
        subtree_com (nbody, 3) [m], geom_xpos (ngeom, 3) [m], geom_xmat (ngeom, 9), ten_length (ntendon,),
        actuator_length (nu,).
    """
    if not m.nsensor:
        return (jnp.zeros(0, qpos.dtype),)

    # (1) pose of the measured frame relative to the reference
    def position(ids: np.ndarray) -> jax.Array:
        (own, _), (origin, quat) = (frames(m, ids, side, xpos, xquat) for side in (0, 1))
        return into_frame(quat, own - origin)

    def projection(ids: np.ndarray) -> jax.Array:
        seen, lens = position(ids), const(np.asarray(m.sensor_lens)[ids], xpos)
        z = seen[:, 2:]
        depth = jnp.where(z < 0, jnp.minimum(z, -MINVAL), jnp.maximum(z, MINVAL))
        return lens[:, 2:] + lens[:, :2] * seen[:, :2] * const(np.array([[-1.0, 1.0]]), xpos) / depth

    def orientation(ids: np.ndarray) -> jax.Array:
        return quaternion.mul(conjugate(frames(m, ids, 1, xpos, xquat)[1]), frames(m, ids, 0, xpos, xquat)[1])

    def axis(k: int) -> Reading:
        def read(ids: np.ndarray) -> jax.Array:
            turn = orientation(ids)
            return quaternion.rotate(turn, const(np.tile(np.eye(3)[k], (len(ids), 1)), turn))

        return read

    def magnetic(ids: np.ndarray) -> jax.Array:
        quat = frames(m, ids, 0, xpos, xquat)[1]
        return into_frame(quat, const(np.tile(m.opt_magnetic, (len(ids), 1)), quat))

    # (2) lengths and limits
    def limit(kind: str) -> Reading:
        return lambda ids: jnp.minimum(nearest_limit(m, kind, ids, qpos, ten_length)[0], 0.0)[:, None]

    def distance(ids: np.ndarray) -> jax.Array:
        return range_ahead(m, ids, *frames(m, ids, 0, xpos, xquat), geom_xpos, geom_xmat)

    # (4) whether the measured frame's origin is inside a site, which is the reference
    def inside_site(ids: np.ndarray) -> jax.Array:
        here = position(ids)
        return jnp.stack([_inside(m, i, point) for i, point in zip(ids, here, strict=True)]).astype(qpos.dtype)[:, None]

    def ball(ids: np.ndarray) -> jax.Array:
        return quaternion.renormalize(qpos[m.jnt_qposadr[m.sensor_objid[ids]][:, None] + np.arange(4)])

    readings = {
        "JOINTPOS": lambda ids: qpos[m.jnt_qposadr[m.sensor_objid[ids]]][:, None],
        "BALLQUAT": ball,
        "TENDONPOS": lambda ids: ten_length[m.sensor_objid[ids]][:, None],
        "ACTUATORPOS": lambda ids: actuator_length[m.sensor_objid[ids]][:, None],
        "JOINTLIMITPOS": limit("joint"),
        "TENDONLIMITPOS": limit("tendon"),
        "MAGNETOMETER": magnetic,
        "FRAMEPOS": position,
        "CAMPROJECTION": projection,
        "FRAMEQUAT": orientation,
        **{f"FRAME{name}AXIS": axis(k) for k, name in enumerate("XYZ")},
        "SUBTREECOM": lambda ids: subtree_com[m.sensor_objid[ids]],
        "RANGEFINDER": distance,
        "INSIDESITE": inside_site,
        "CLOCK": lambda ids: jnp.broadcast_to(time, (len(ids), 1)),
        # (5) energy
        "E_POTENTIAL": lambda ids: jnp.broadcast_to(potential_energy(m, qpos, xipos, ten_length), (len(ids), 1)),
    }
    return (put_sensors(m, jnp.zeros(m.nsensordata, qpos.dtype), readings),)


# (3) distance along the z axis of a frame to the nearest visible geom of another body
def range_ahead(
    m: Any, ids: np.ndarray, pos: jax.Array, quat: jax.Array, geom_xpos: jax.Array, geom_xmat: jax.Array
) -> jax.Array:
    """Readings (k, 1) [m] of range finders.

    Args: ids (k,), pos (k, 3) and quat (k, 4) of their frames, geom_xpos (ngeom, 3), geom_xmat (ngeom, 9).
    """
    direction = quaternion.rotate(quat, const(np.tile([0.0, 0.0, 1.0], (len(ids), 1)), quat))
    hits = [jnp.full(len(ids), ray.NO_HIT, pos.dtype)]
    for kind, meet in ray.RAYS.items():
        geoms = np.flatnonzero((m.geom_type == kind) & (m.geom_visible != 0))
        if geoms.size:
            rays = ray.into_geom(geom_xpos[None, geoms], geom_xmat[None, geoms], pos[:, None], direction[:, None])
            found = meet(*rays, const(m.geom_size[geoms], pos)[None])
            other = m.geom_bodyid[geoms][None, :] != m.sensor_bodyid[ids, 0][:, None]
            hits += list(jnp.where(other, found, ray.NO_HIT).T)
    for geom in np.flatnonzero((m.geom_hfieldid >= 0) & (m.geom_visible != 0)).tolist():
        rays = ray.into_geom(geom_xpos[None, geom], geom_xmat[None, geom], pos, direction)
        found = hfield(*rays, _field(m, geom))
        hits.append(jnp.where(m.geom_bodyid[geom] != m.sensor_bodyid[ids, 0], found, ray.NO_HIT))
    return ray.nearest(hits)[:, None]


def _field(m: Any, geom: int) -> Field:
    number = m.geom_hfieldid[geom]
    shape = int(m.hfield_nrow[number]), int(m.hfield_ncol[number])
    return Field(m.hfield_data[m.hfield_adr[number] :][: shape[0] * shape[1]].reshape(shape), m.hfield_size[number])


def _inside(m: Any, i: int, point: jax.Array) -> jax.Array:
    return ray.inside(int(m.sensor_site[i]), point, const(m.sensor_size[i], point))


def nearest_limit(
    m: Any, kind: str, ids: np.ndarray, qpos: jax.Array, ten_length: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Distance minus margin (k,) of the limit that a sensor reads, and whether (k,) it is the lower limit.

    If both limits are within the margin, it is the lower one. The angle of a ball joint has an upper limit only.
    """
    measured = m.sensor_objid[ids]
    if kind == "joint":
        xp, bounds, margin = tables(m.jnt_range[measured], m.jnt_margin[measured])
    else:
        xp, bounds, margin = tables(m.tendon_range[measured], m.tendon_margin[measured])
    length = qpos[m.jnt_qposadr[measured]] if kind == "joint" else ten_length[measured]
    low, high = bounds[:, 0] + margin, bounds[:, 1] - margin
    ball = balls(m, kind, ids)
    if ball.size:
        length = length.at[ball].set(norm(ball_rotation(m, measured[ball], qpos)))
        is_ball = np.isin(np.arange(ids.size), ball)
        low, high = xp.where(is_ball, -np.inf, low), xp.where(is_ball, bounds.max(axis=1) - margin, high)
    lower = length < const(low, qpos)
    return jnp.where(lower, length - const(low, qpos), const(high, qpos) - length), lower


def balls(m: Any, kind: str, ids: np.ndarray) -> np.ndarray:
    """Which of the sensors measure ball joints."""
    return np.flatnonzero(m.jnt_type[m.sensor_objid[ids]] == tree.BALL) if kind == "joint" else np.zeros(0, int)


def ball_rotation(m: Any, joint: np.ndarray, qpos: jax.Array) -> jax.Array:
    """Rotation vectors (k, 3) [rad] of ball joints (k,)."""
    return quaternion.log(quaternion.renormalize(qpos[m.jnt_qposadr[joint][:, None] + np.arange(4)]))
