// Actuators of every kind: MuJoCo documentation, "Computation", "Actuation model"; see actuators.cuh.

// Force of actuator u after the force limit of its tendon, which scales all forces on the tendon by one factor.
DEVICE real within_tendon_limit(const Model& m, int u, const real* force) {
  if (m.actuator_trntype()[u] != TRN_TENDON) return force[u];
  const int t = m.actuator_trnid()[2 * u];
  if (!m.tendon_actfrclimited()[t]) return force[u];
  real total = 0;
  ROLLED for (int w = 0; w < m.nu(); ++w) {
    if (m.actuator_trntype()[w] == TRN_TENDON && m.actuator_trnid()[2 * w] == t) total += force[w];
  }
  const real bounded = clamp_(total, m.tendon_actfrcrange()[2 * t], m.tendon_actfrcrange()[2 * t + 1]);
  return bounded == total ? force[u] : force[u] * divide_(bounded, total);
}

DEVICE void actuation_general(const Model& m, const real* ctrl, const real* act, const real* actuator_length,
                          const real* actuator_velocity, const real* actuator_moment, real* act_dot,
                          real* actuator_force, real* qfrc_actuator, real* force) {
  LANE_FOR(u, m.nu()) {
    // (1) rate of the activation, from the control within its range
    const int a = m.actuator_actadr()[u];
    if (a >= 0) {
      const real rate = activation_rate(m, u, actuator_control(m, u, ctrl), act[a]);
      act_dot[a] = m.opt_actuation() ? rate : R(0.0);
    }
    // (2) force = gain * input + bias
    const real input = actuator_input(m, u, ctrl, act, act_dot);
    const real full = force_of(m, u, input, actuator_length[u], actuator_velocity[u]).force;
    force[u] = m.actuator_disabled()[u] ? R(0.0) : full;
  }
  lane_sync();
  // (3) clamped to the force range of its tendon, then to its own
  LANE_FOR(u, m.nu()) {
    const real own = within_tendon_limit(m, u, force), *range = m.actuator_forcerange() + 2 * u;
    actuator_force[u] = m.actuator_forcelimited()[u] ? clamp_(own, range[0], range[1]) : own;
  }
  lane_sync();
  // (4) generalised force, clamped to the joint's force range
  DOF_FOR(v, m.nv()) {
    const int j = m.dof_jntid()[v];
    real sum = 0;
    OVERLAPPED for (int e = m.moment_coladr()[v]; e < m.moment_coladr()[v + 1]; ++e) {
      const int u = m.moment_rowind()[e];
      sum = fma_(actuator_moment[u * m.nv() + v], actuator_force[u], sum);
    }
    if (m.jnt_actfrclimited()[j]) {
      sum = clamp_(sum, m.jnt_actfrcrange()[2 * j], m.jnt_actfrcrange()[2 * j + 1]);
    }
    qfrc_actuator[v] = sum;
  }
  lane_sync();
}
