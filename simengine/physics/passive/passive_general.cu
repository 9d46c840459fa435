// Springs and dampers of joints and fixed tendons, linear or polynomial: MuJoCo documentation, "Computation", "Passive
// forces"; see springs.cuh.

DEVICE void passive_general(const Model& m, const real* qpos, const real* qvel, real* qfrc_passive, real* ten_force) {
  DOF_FOR(v, m.nv()) {
    const int j = m.dof_jntid()[v], k = v - m.jnt_dofadr()[j];
    // (1) damper
    real force = damper_force(m.dof_damping()[v], m.dof_dampingpoly() + 2 * v, qvel[v]);
    // (2) spring
    if (is_sprung(m, j)) {
      const real stretch = joint_stretch(m, j, k, qpos);
      force = fma_(-joint_stiffness(m, j, k, stretch, qpos), stretch, force);
    }
    qfrc_passive[v] = force;
  }
  lane_sync();
  if (m.ntendon() == 0) return;
  // (3) tendons: force along each, then its projection on each dof
  LANE_FOR(t, m.ntendon()) {
    ten_force[t] = tendon_pull(m, t, tendon_length(m, t, qpos), tendon_velocity(m, t, qvel));
  }
  lane_sync();
  add_tendon_forces(m, ten_force, qfrc_passive);
}
