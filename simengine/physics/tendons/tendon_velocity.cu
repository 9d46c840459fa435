// Rates of the tendons' lengths.

DEVICE void tendon_velocity(const Model& m, const real* qvel, const real* ten_J, real* ten_velocity) {
  // (1) rate of each length
  LANE_FOR(t, m.ntendon()) {
    real velocity = 0;
    OVERLAPPED for (int e = m.ten_J_rowadr()[t]; e < m.ten_J_rowadr()[t + 1]; ++e) {
      const int v = m.ten_J_entry()[2 * e + 1];
      velocity = fma_(ten_J[t * m.nv() + v], qvel[v], velocity);
    }
    ten_velocity[t] = velocity;
  }
  lane_sync();
}
