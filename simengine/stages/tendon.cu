// Lengths of the tendons and their Jacobians: MuJoCo documentation, "Computation", "Actuation model", "Tendon".

DEVICE void tendon(const Model& m, const real* qpos, real* ten_length, real* ten_J) {
  LANE_FOR(e, m.ntendon() * m.nv()) ten_J[e] = 0;
  lane_sync();
  // (1) fixed tendons: weighted sums of joint coordinates
  LANE_FOR(t, m.ntendon()) {
    const int begin = m.tendon_adr()[t], end = begin + m.tendon_num()[t];
    ten_length[t] = tendon_length(m, t, qpos);
    ROLLED for (int k = begin; k < end; ++k) ten_J[t * m.nv() + m.wrap_dofadr()[k]] = m.wrap_prm()[k];
  }
  lane_sync();
}
