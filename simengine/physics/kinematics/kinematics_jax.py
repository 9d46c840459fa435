"""Forward kinematics in JAX: poses of bodies, joints and geoms from the generalised coordinates, for one world.

Source: MuJoCo, chapter "Computation", section "General framework"; quantities as after mj_kinematics.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import const, joined


def kinematics(m: Any, qpos: jax.Array, mocap_pos: jax.Array, mocap_quat: jax.Array) -> tuple[jax.Array, ...]:
    """World poses of every body, inertial frame, joint and geom.

    Args:
        m: the model.
        qpos: (nq,) [m, rad]; quaternions of free and ball joints need not be normalised.
        mocap_pos (nmocap, 3) [m], mocap_quat (nmocap, 4): poses of the mocap bodies; need not be normalised either.
    Returns:
        xpos (nbody, 3) [m], xquat (nbody, 4), xmat (nbody, 9): body frames.
        xipos (nbody, 3), ximat (nbody, 9): inertial frames.
        xanchor (njnt, 3), xaxis (njnt, 3): joint anchors and axes.
        geom_xpos (ngeom, 3), geom_xmat (ngeom, 9): geom frames.
    """
    # (1) pose of every body in its parent, and of every joint in the parent of its body
    pos, quat, anchor, axis = _local_poses(m, qpos, mocap_pos, mocap_quat)

    # (2) world poses, level by level down the trees
    xpos, xquat = _compose(m, pos, quat)

    # (3) joint anchors and axes in the world, from those in the parent's frame
    parent = np.asarray(m.body_parentid)[m.jnt_bodyid]
    xanchor = xpos[parent] + quaternion.rotate(xquat[parent], anchor)
    xaxis = quaternion.rotate(xquat[parent], axis)

    # (4) inertial and geom frames, fixed in their bodies
    owner = np.concatenate([np.arange(m.nbody), np.asarray(m.geom_bodyid)])
    fixed_pos = const(joined(m.body_ipos, m.geom_pos), qpos)
    fixed_quat = const(np.concatenate([m.body_iquat, m.geom_quat]), qpos)
    carrier = xquat[owner]
    fixed_xpos = xpos[owner] + quaternion.rotate(carrier, fixed_pos)
    mats = quaternion.to_mat(jnp.concatenate([xquat, quaternion.mul(carrier, fixed_quat)]))
    n = m.nbody
    return xpos, xquat, mats[:n], fixed_xpos[:n], mats[n : 2 * n], xanchor, xaxis, fixed_xpos[n:], mats[2 * n :]


def _local_poses(
    m: Any, qpos: jax.Array, mocap_pos: jax.Array, mocap_quat: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Pose of each body in its parent's frame after its joints, and each joint's anchor and axis in that frame.

    The joints of one body act in their order, so the k-th joints of all bodies are handled together.
    Returns: pos (nbody, 3), quat (nbody, 4), anchor (njnt, 3), axis (njnt, 3).
    """
    pos, quat = const(m.body_pos, qpos), const(m.body_quat, qpos)
    anchor, axis = jnp.zeros((m.njnt, 3), qpos.dtype), const(m.jnt_axis, qpos)
    jnt_type = np.asarray(m.jnt_type)
    rank = np.arange(m.njnt) - np.asarray(m.body_jntadr)[m.jnt_bodyid]

    if m.nmocap:  # mocap bodies are children of the world, and the caller gives their poses
        body = np.argsort(m.body_mocapid)[-m.nmocap :]
        pos, quat = pos.at[body].set(mocap_pos), quat.at[body].set(quaternion.renormalize(mocap_quat))

    free = np.flatnonzero(jnt_type == tree.FREE)
    if free.size:
        start = np.asarray(m.jnt_qposadr)[free][:, None]
        body = np.asarray(m.jnt_bodyid)[free]
        pos = pos.at[body].set(qpos[start + np.arange(3)])
        quat = quat.at[body].set(quaternion.renormalize(qpos[start + np.arange(3, 7)]))
        anchor = anchor.at[free].set(pos[body])

    for k in range(int(rank.max(initial=-1)) + 1):
        jnt = np.flatnonzero((rank == k) & (jnt_type != tree.FREE))
        if not jnt.size:
            continue
        body = np.asarray(m.jnt_bodyid)[jnt]
        adr = np.asarray(m.jnt_qposadr)[jnt]
        hinge, slide = (const(jnt_type[jnt] == kind, qpos) for kind in (tree.HINGE, tree.SLIDE))
        moved = qpos[adr] - const(m.qpos0[adr], qpos)
        local_axis, local_pos = const(m.jnt_axis[jnt], qpos), const(m.jnt_pos[jnt], qpos)
        turn = quaternion.from_axis_angle(local_axis, moved * hinge)
        ball = np.flatnonzero(jnt_type[jnt] == tree.BALL)
        if ball.size:
            turn = turn.at[ball].set(quaternion.renormalize(qpos[adr[ball][:, None] + np.arange(4)]))
        along = quaternion.rotate(quat[body], local_axis)
        at = pos[body] + quaternion.rotate(quat[body], local_pos)
        turned = quaternion.mul(quat[body], turn)
        shift = along * (moved * slide)[:, None]
        pos = pos.at[body].set(at - quaternion.rotate(turned, local_pos) + shift)
        quat = quat.at[body].set(turned)
        anchor, axis = anchor.at[jnt].set(at), axis.at[jnt].set(along)
    return pos, quat, anchor, axis


def _compose(m: Any, pos: jax.Array, quat: jax.Array) -> tuple[jax.Array, jax.Array]:
    """World poses (nbody, 3), (nbody, 4) from poses in the parents."""
    levels = [np.asarray(m.level_body[m.level_adr[i] : m.level_adr[i + 1]]) for i in range(m.nlevel)]
    order = np.concatenate([np.zeros(1, int), *levels])
    row = np.argsort(order)
    xpos, xquat = [pos[:1]], [quat[:1]]
    above = np.zeros(1, int)
    for bodies in levels:
        index = np.argsort(above)[np.searchsorted(np.sort(above), np.asarray(m.body_parentid)[bodies])]
        parent_pos, parent_quat = xpos[-1][index], xquat[-1][index]
        xpos.append(parent_pos + quaternion.rotate(parent_quat, pos[bodies]))
        xquat.append(quaternion.mul(parent_quat, quat[bodies]))
        above = bodies
    return jnp.concatenate(xpos)[row], jnp.concatenate(xquat)[row]
