// Springs and dampers: MuJoCo documentation, "Computation", "Passive forces".

DEVICE void passive(const Model& m, const real* qpos, const real* qvel, real* qfrc_passive) {
  DOF_FOR(v, m.nv()) {
    const int j = m.dof_jntid()[v], adr = m.jnt_qposadr()[j];
    // (1) damper
    real force = -m.dof_damping()[v] * qvel[v];
    // (2) spring
    const real stiffness = m.jnt_stiffness()[j];
    if (stiffness != 0) force = fma_(-stiffness, qpos[adr] - m.qpos_spring()[adr], force);
    qfrc_passive[v] = force;
  }
  lane_sync();
}
