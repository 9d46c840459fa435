// Body velocities and the rates of the motion axes: MuJoCo's mj_comVel.

DEVICE void com_vel(const Model& m, const real* qvel, const real* cdof, real* cvel, real* cdof_dot) {
  // (1) velocity of the parent plus that of each dof; the world body does not move
  const real still[3] = {0, 0, 0};
  sum_branches(m, cdof, qvel, still, cvel);
  // (2) a motion axis turns with the frame in which it is fixed
  DOF_FOR(v, m.nv()) {
    const int j = m.dof_jntid()[v], b = m.dof_bodyid()[v], adr = m.jnt_dofadr()[j];
    const bool free = m.jnt_type()[j] == JNT_FREE;
    // a free joint's translation axes are fixed in the world; its rotation axes, and a ball joint's, turn with the body
    const int until = free ? adr + 3 : m.jnt_type()[j] == JNT_BALL ? adr : v;
    if (free && v < until) {
      for (int i = 0; i < 6; ++i) cdof_dot[6 * v + i] = 0;
    } else {
      real vel[6];
      for (int i = 0; i < 6; ++i) vel[i] = cvel[6 * m.body_parentid()[b] + i];
      ROLLED for (int u = m.body_dofadr()[b]; u < until; ++u) {
        for (int i = 0; i < 6; ++i) vel[i] = fma_(cdof[6 * u + i], qvel[u], vel[i]);
      }
      cross_motion(cdof_dot + 6 * v, vel, cdof + 6 * v);
    }
  }
  lane_sync();
}
