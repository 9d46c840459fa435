// Body velocities and the rates of the motion axes: MuJoCo's mj_comVel.

DEVICE void com_vel_body(const Model& m, int b, const real* qvel, const real* cdof, real* cvel, real* cdof_dot) {
  const int parent = m.body_parentid()[b], dofadr = m.body_dofadr()[b], dofnum = m.body_dofnum()[b];
  // (1) velocity of the parent, plus what each dof adds
  real vel[6];
  for (int i = 0; i < 6; ++i) vel[i] = cvel[6 * parent + i];
  int v = dofadr;
  ROLLED while (v < dofadr + dofnum) {
    const bool free = m.jnt_type()[m.dof_jntid()[v]] == JNT_FREE;
    if (free) {
      // the translations of a free joint are fixed in the world; its rotations turn with the velocity they give
      for (int k = 0; k < 3; ++k) {
        for (int i = 0; i < 6; ++i) cdof_dot[6 * (v + k) + i] = 0;
        for (int i = 0; i < 6; ++i) vel[i] = fma_(cdof[6 * (v + k) + i], qvel[v + k], vel[i]);
      }
      v += 3;
    }
    // (2) an axis turns with the frame it is fixed in
    const int together = free ? 3 : 1;
    for (int k = 0; k < together; ++k) cross_motion(cdof_dot + 6 * (v + k), vel, cdof + 6 * (v + k));
    for (int k = 0; k < together; ++k) {
      for (int i = 0; i < 6; ++i) vel[i] = fma_(cdof[6 * (v + k) + i], qvel[v + k], vel[i]);
    }
    v += together;
  }
  for (int i = 0; i < 6; ++i) cvel[6 * b + i] = vel[i];
}

DEVICE void com_vel(const Model& m, const real* qvel, const real* cdof, real* cvel, real* cdof_dot) {
  // the world does not move
  LANE_FOR(i, 6) cvel[i] = 0;
  lane_sync();
  // parents before children
  ROLLED for (int level = 0; level < m.nlevel(); ++level) {
    const int begin = m.level_adr()[level], end = m.level_adr()[level + 1];
    LANE_FOR(k, end - begin) com_vel_body(m, m.level_body()[begin + k], qvel, cdof, cvel, cdof_dot);
    lane_sync();
  }
}
