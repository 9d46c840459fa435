// Forward kinematics: MuJoCo's mj_kinematics; MuJoCo documentation, "Computation", "Simulation pipeline".

// World frame of one body, from its parent's frame and its joints.
DEVICE void kinematics_body(const Model& m, int body, const real* qpos, const real* mocap_pos, const real* mocap_quat,
                            real* xpos, real* xquat, real* xanchor, real* xaxis) {
  const int parent = m.body_parentid()[body], jntadr = m.body_jntadr()[body], jntnum = m.body_jntnum()[body];
  // (1) pose in the parent, moved by the joints in their order
  real pos[3], quat[4];
  if (jntnum && m.jnt_type()[jntadr] == JNT_FREE) {
    const real* q = qpos + m.jnt_qposadr()[jntadr];
    for (int i = 0; i < 3; ++i) pos[i] = q[i];
    for (int i = 0; i < 4; ++i) quat[i] = q[3 + i];
    normalize4(quat);
    for (int i = 0; i < 3; ++i) {
      xanchor[3 * jntadr + i] = pos[i];
      xaxis[3 * jntadr + i] = m.jnt_axis()[3 * jntadr + i];
    }
  } else if (m.nmocap() && m.body_mocapid()[body] >= 0) {
    // a mocap body: the caller gives its pose, and its parent is the world
    const int id = m.body_mocapid()[body];
    for (int i = 0; i < 3; ++i) pos[i] = mocap_pos[3 * id + i];
    for (int i = 0; i < 4; ++i) quat[i] = mocap_quat[4 * id + i];
    normalize4(quat);
  } else {
    quat_rotate(pos, xquat + 4 * parent, m.body_pos() + 3 * body);
    for (int i = 0; i < 3; ++i) pos[i] += xpos[3 * parent + i];
    quat_mul(quat, xquat + 4 * parent, m.body_quat() + 4 * body);
    ROLLED for (int j = jntadr; j < jntadr + jntnum; ++j) {
      const int adr = m.jnt_qposadr()[j];
      const real moved = qpos[adr] - m.qpos0()[adr];
      // (3) anchor and axis of the joint
      real anchor[3], axis[3];
      quat_rotate(anchor, quat, m.jnt_pos() + 3 * j);
      quat_rotate(axis, quat, m.jnt_axis() + 3 * j);
      for (int i = 0; i < 3; ++i) {
        anchor[i] += pos[i];
        xanchor[3 * j + i] = anchor[i];
        xaxis[3 * j + i] = axis[i];
      }
      if (m.jnt_type()[j] == JNT_SLIDE) {
        for (int i = 0; i < 3; ++i) pos[i] = fma_(axis[i], moved, pos[i]);
      } else {
        real turn[4], arm[3];
        if (m.jnt_type()[j] == JNT_BALL) {
          for (int i = 0; i < 4; ++i) turn[i] = qpos[adr + i];
          normalize4(turn);
        } else {
          quat_axis_angle(turn, m.jnt_axis() + 3 * j, moved);
        }
        quat_mul(quat, quat, turn);
        quat_rotate(arm, quat, m.jnt_pos() + 3 * j);
        for (int i = 0; i < 3; ++i) pos[i] = anchor[i] - arm[i];
      }
    }
    normalize4(quat);
  }
  for (int i = 0; i < 3; ++i) xpos[3 * body + i] = pos[i];
  for (int i = 0; i < 4; ++i) xquat[4 * body + i] = quat[i];
}

#if SIMENGINE_GPU
// Lanes share the bodies and the joints. First each body has the frame that its parent or, if it has none, the world
// sees; then rounds put it into the frames of the bodies above (simengine/model/rounds.py). Nothing waits for anchors
// and axes, which come last.

// How far joint j, not a free one, has turned, or in the first word, slid.
DEVICE void joint_motion(const Model& m, int j, const real* qpos, real* motion) {
  const int adr = m.jnt_qposadr()[j];
  if (m.jnt_type()[j] == JNT_BALL) {
    for (int i = 0; i < 4; ++i) motion[i] = qpos[adr + i];
    normalize4(motion);
    return;
  }
  const real moved = qpos[adr] - m.qpos0()[adr];
  motion[0] = moved;
  if (m.jnt_type()[j] != JNT_SLIDE) quat_axis_angle(motion, m.jnt_axis() + 3 * j, moved);
}

// Frame of a body as its parent holds it.
DEVICE void held_frame(const Model& m, int body, const real* xpos, const real* xquat, real* pos, real* quat) {
  const int parent = m.body_parentid()[body];
  quat_rotate(pos, xquat + 4 * parent, m.body_pos() + 3 * body);
  for (int i = 0; i < 3; ++i) pos[i] += xpos[3 * parent + i];
  quat_mul(quat, xquat + 4 * parent, m.body_quat() + 4 * body);
}

// Move a frame by joint j.
DEVICE void move_frame(const Model& m, int j, const real* motion, real* pos, real* quat) {
  if (m.jnt_type()[j] == JNT_SLIDE) {
    real axis[3];
    quat_rotate(axis, quat, m.jnt_axis() + 3 * j);
    for (int i = 0; i < 3; ++i) pos[i] = fma_(axis[i], motion[0], pos[i]);
    return;
  }
  const real* at = m.jnt_pos() + 3 * j;
  if (at[0] == 0 && at[1] == 0 && at[2] == 0) {  // most joints: what is added and subtracted below is zero
    for (int i = 0; i < 3; ++i) pos[i] += R(0.0);
    quat_mul(quat, quat, motion);
    return;
  }
  real anchor[3], arm[3];
  quat_rotate(anchor, quat, at);
  quat_mul(quat, quat, motion);
  quat_rotate(arm, quat, at);
  for (int i = 0; i < 3; ++i) pos[i] = (anchor[i] + pos[i]) - arm[i];
}

// Whether a body has more than 16 above it. Rotations by quaternions that are not of length one stretch what they turn,
// so that in long chains quaternions have length one in every round, and in others at the end alone.
DEVICE bool has_long_chains(const Model& m) { return m.nround() > 4; }

// Frame of a body in that of its parent, or in the world where a free joint or the caller gives it; the motion of joint
// j is in xanchor[j] and the first word of xaxis[j].
DEVICE void frame_in_parent(const Model& m, int body, const real* qpos, const real* mocap_pos, const real* mocap_quat,
                            const real* xanchor, const real* xaxis, real* xpos, real* xquat) {
  const int jntadr = m.body_jntadr()[body], jntnum = m.body_jntnum()[body];
  const int mocap = m.nmocap() ? m.body_mocapid()[body] : -1;
  const bool free = jntnum && m.jnt_type()[jntadr] == JNT_FREE;
  const real* q = qpos + (free ? m.jnt_qposadr()[jntadr] : 0);
  const real* own_pos = free ? q : mocap >= 0 ? mocap_pos + 3 * mocap : m.body_pos() + 3 * body;
  const real* own_quat = free ? q + 3 : mocap >= 0 ? mocap_quat + 4 * mocap : m.body_quat() + 4 * body;
  real pos[3], quat[4];
  for (int i = 0; i < 3; ++i) pos[i] = own_pos[i];
  for (int i = 0; i < 4; ++i) quat[i] = own_quat[i];
  if (!free && mocap < 0) {
    ROLLED for (int j = jntadr; j < jntadr + jntnum; ++j) {
      const real motion[4] = {xanchor[3 * j], xanchor[3 * j + 1], xanchor[3 * j + 2], xaxis[3 * j]};
      move_frame(m, j, motion, pos, quat);
    }
  }
  if (free || mocap >= 0 || has_long_chains(m)) normalize4(quat);
  for (int i = 0; i < 3; ++i) xpos[3 * body + i] = pos[i];
  for (int i = 0; i < 4; ++i) xquat[4 * body + i] = quat[i];
}

// Put the frame of a body, as another body sees it, into that of the other body.
DEVICE void put_into(int body, int base, bool in_long_chain, real* xpos, real* xquat) {
  real pos[3], quat[4];
  quat_rotate(pos, xquat + 4 * base, xpos + 3 * body);
  quat_mul(quat, xquat + 4 * base, xquat + 4 * body);
  if (in_long_chain) normalize4(quat);
  for (int i = 0; i < 3; ++i) xpos[3 * body + i] = xpos[3 * base + i] + pos[i];
  for (int i = 0; i < 4; ++i) xquat[4 * body + i] = quat[i];
}

// Anchor and axis of joint j.
DEVICE void joint_frame(const Model& m, int j, const real* qpos, const real* xpos, const real* xquat, real* anchor,
                        real* axis) {
  const int body = m.jnt_bodyid()[j];
  if (m.jnt_type()[j] == JNT_FREE) {
    for (int i = 0; i < 3; ++i) {
      anchor[i] = xpos[3 * body + i];
      axis[i] = m.jnt_axis()[3 * j + i];
    }
    return;
  }
  real pos[3], quat[4], motion[4];
  held_frame(m, body, xpos, xquat, pos, quat);
  ROLLED for (int k = m.body_jntadr()[body]; k < j; ++k) {
    joint_motion(m, k, qpos, motion);
    move_frame(m, k, motion, pos, quat);
  }
  quat_rotate(anchor, quat, m.jnt_pos() + 3 * j);
  quat_rotate(axis, quat, m.jnt_axis() + 3 * j);
  for (int i = 0; i < 3; ++i) anchor[i] += pos[i];
}

// (2) body frames and (3) anchors and axes of joints
DEVICE void body_frames(const Model& m, const real* qpos, const real* mocap_pos, const real* mocap_quat, real* xpos,
                        real* xquat, real* xanchor, real* xaxis) {
  LANE_FOR(j, m.njnt()) {
    if (m.jnt_type()[j] == JNT_FREE) continue;
    real motion[4] = {0, 0, 0, 0};
    joint_motion(m, j, qpos, motion);
    for (int i = 0; i < 3; ++i) xanchor[3 * j + i] = motion[i];
    xaxis[3 * j] = motion[3];
  }
  lane_sync();
  LANE_FOR(e, m.nbody() - 1) {
    frame_in_parent(m, e + 1, qpos, mocap_pos, mocap_quat, xanchor, xaxis, xpos, xquat);
  }
  lane_sync();
  ROLLED for (int round = 0; round < m.nround(); ++round) {
    const int begin = m.round_adr()[round], end = m.round_adr()[round + 1];
    LANE_FOR(k, end - begin) {
      put_into(m.round_body()[begin + k], m.round_base()[begin + k], has_long_chains(m), xpos, xquat);
    }
    lane_sync();
  }
  LANE_FOR(e, m.nbody() - 1) normalize4(xquat + 4 * (e + 1));
  lane_sync();
  LANE_FOR(j, m.njnt()) joint_frame(m, j, qpos, xpos, xquat, xanchor + 3 * j, xaxis + 3 * j);
  lane_sync();
}
#else
// (2) body frames, parents before children, and (3) anchors and axes of joints
DEVICE void body_frames(const Model& m, const real* qpos, const real* mocap_pos, const real* mocap_quat, real* xpos,
                        real* xquat, real* xanchor, real* xaxis) {
  for (int level = 0; level < m.nlevel(); ++level) {
    const int begin = m.level_adr()[level], end = m.level_adr()[level + 1];
    LANE_FOR(k, end - begin) {
      kinematics_body(m, m.level_body()[begin + k], qpos, mocap_pos, mocap_quat, xpos, xquat, xanchor, xaxis);
    }
    lane_sync();
  }
}
#endif

DEVICE void kinematics(const Model& m, const real* qpos, const real* mocap_pos, const real* mocap_quat, real* xpos,
                       real* xquat, real* xmat, real* xipos, real* ximat, real* xanchor, real* xaxis, real* geom_xpos,
                       real* geom_xmat) {
  // frame of the world body
  LANE_FOR(i, 4) {
    if (i < 3) xpos[i] = 0;
    xquat[i] = i == 0;
  }
  lane_sync();
  body_frames(m, qpos, mocap_pos, mocap_quat, xpos, xquat, xanchor, xaxis);
  // (4) matrices, inertial and geom frames, fixed in their bodies
  LANE_FOR(b, m.nbody()) {
    real quat[4], offset[3];
    quat_to_mat(xmat + 9 * b, xquat + 4 * b);
    quat_rotate(offset, xquat + 4 * b, m.body_ipos() + 3 * b);
    for (int i = 0; i < 3; ++i) xipos[3 * b + i] = xpos[3 * b + i] + offset[i];
    quat_mul(quat, xquat + 4 * b, m.body_iquat() + 4 * b);
    quat_to_mat(ximat + 9 * b, quat);
  }
  LANE_FOR(g, m.ngeom()) {
    const int b = m.geom_bodyid()[g];
    real quat[4], offset[3];
    quat_rotate(offset, xquat + 4 * b, m.geom_pos() + 3 * g);
    for (int i = 0; i < 3; ++i) geom_xpos[3 * g + i] = xpos[3 * b + i] + offset[i];
    quat_mul(quat, xquat + 4 * b, m.geom_quat() + 4 * g);
    quat_to_mat(geom_xmat + 9 * g, quat);
  }
  lane_sync();
}
