// Springs and dampers of spatial tendons: MuJoCo documentation, "Computation", "Passive forces". Those of fixed tendons
// are the stage `passive`'s.

DEVICE void tendon_passive(const Model& m, const real* ten_length, const real* ten_velocity, const real* ten_J,
                           real* qfrc_passive, real* force) {
  // (1) force along each tendon; its spring rests within a range of lengths
  LANE_FOR(t, m.ntendon()) {
    const real* rest = m.tendon_lengthspring() + 2 * t;
    const real stretch = ten_length[t] - clamp_(ten_length[t], rest[0], rest[1]);
    const real along = -(m.tendon_stiffness()[t] * stretch) - m.tendon_damping()[t] * ten_velocity[t];
    force[t] = m.tendon_pathnum()[t] ? along : R(0.0);
  }
  lane_sync();
  // (2) its share along each dof
  DOF_FOR(v, m.nv()) {
    real sum = qfrc_passive[v];
    ROLLED for (int t = 0; t < m.ntendon(); ++t) sum = fma_(ten_J[t * m.nv() + v], force[t], sum);
    qfrc_passive[v] = sum;
  }
  lane_sync();
}
