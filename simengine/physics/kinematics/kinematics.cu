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

DEVICE void kinematics(const Model& m, const real* qpos, const real* mocap_pos, const real* mocap_quat, real* xpos,
                       real* xquat, real* xmat, real* xipos, real* ximat, real* xanchor, real* xaxis, real* geom_xpos,
                       real* geom_xmat) {
  // frame of the world body
  LANE_FOR(i, 4) {
    if (i < 3) xpos[i] = 0;
    xquat[i] = i == 0;
  }
  lane_sync();
  // (2) body frames, parents before children
  ROLLED for (int level = 0; level < m.nlevel(); ++level) {
    const int begin = m.level_adr()[level], end = m.level_adr()[level + 1];
    LANE_FOR(k, end - begin) {
      kinematics_body(m, m.level_body()[begin + k], qpos, mocap_pos, mocap_quat, xpos, xquat, xanchor, xaxis);
    }
    lane_sync();
  }
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
