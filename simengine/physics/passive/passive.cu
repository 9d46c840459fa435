// Linear springs and dampers of joints and fixed tendons: MuJoCo documentation, "Computation", "Passive forces".

// Force along tendon t. Its spring has no force within a range of lengths.
DEVICE real tendon_force(const Model& m, int t, const real* qpos, const real* qvel) {
  const real length = tendon_length(m, t, qpos);
  const auto rest = m.tendon_lengthspring() + 2 * t;
  const real stretch = length - clamp_(length, rest[0], rest[1]);
  return -(m.tendon_stiffness()[t] * stretch) - m.tendon_damping()[t] * tendon_velocity(m, t, qvel);
}

DEVICE void passive(const Model& m, const real* qpos, const real* qvel, real* qfrc_passive, real* ten_force) {
  DOF_FOR(v, m.nv()) {
    const int j = m.dof_jntid()[v];
    // (1) damper
    real force = -m.dof_damping()[v] * qvel[v];
    // (2) spring
    const auto stiffness = m.jnt_stiffness()[j];
    if (any_world(stiffness != 0)) {
      const real stretch = joint_stretch(m, j, v - m.jnt_dofadr()[j], qpos);
      force = select(stiffness != 0, fma_(-stiffness, stretch, force), force);
    }
    qfrc_passive[v] = force;
  }
  lane_sync();
  if (m.ntendon() == 0) return;
  // (3) tendons: force along each, then its projection on each dof
  LANE_FOR(t, m.ntendon()) ten_force[t] = tendon_force(m, t, qpos, qvel);
  lane_sync();
  add_tendon_forces(m, ten_force, qfrc_passive);
}
