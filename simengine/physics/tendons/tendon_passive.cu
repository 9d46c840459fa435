// Springs and dampers of spatial tendons: MuJoCo documentation, "Computation", "Passive forces". Those of fixed tendons
// belong to the stage `passive`.

DEVICE void tendon_passive(const Model& m, const real* ten_length, const real* ten_velocity, const real* ten_J,
                           real* qfrc_passive, real* force) {
  // (1) force along each tendon
  LANE_FOR(t, m.ntendon()) {
    force[t] = m.tendon_pathnum()[t] ? tendon_pull(m, t, ten_length[t], ten_velocity[t]) : R(0.0);
  }
  lane_sync();
  // (2) its projection on each dof
  DOF_FOR(v, m.nv()) {
    real sum = qfrc_passive[v];
    OVERLAPPED for (int e = m.ten_J_coladr()[v]; e < m.ten_J_coladr()[v + 1]; ++e) {
      const int t = m.ten_J_rowind()[e];
      sum = fma_(ten_J[t * m.nv() + v], force[t], sum);
    }
    qfrc_passive[v] = sum;
  }
  lane_sync();
}
