// Actuators on joints and fixed tendons: MuJoCo documentation, "Computation", "Actuation model".

DEVICE void actuation(const Model& m, const real* qpos, const real* qvel, const real* ctrl, real* actuator_force,
                      real* qfrc_actuator) {
  LANE_FOR(u, m.nu()) {
    const Length at = length_of(m, m.actuator_lengthid()[u], qpos, qvel);
    const real gear = m.actuator_gear()[6 * u];
    const auto bias = m.actuator_biasprm() + ACTUATOR_PRM * u;
    const real length = gear * at.length, velocity = gear * at.velocity;
    // (1) control within its range
    real control = ctrl[u];
    if (m.actuator_ctrllimited()[u]) {
      control = clamp_(control, m.actuator_ctrlrange()[2 * u], m.actuator_ctrlrange()[2 * u + 1]);
    }
    // (2) force = gain * control + bias, within its range
    real force = m.actuator_gainprm()[ACTUATOR_PRM * u] * control + (bias[0] + bias[1] * length + bias[2] * velocity);
    if (m.actuator_forcelimited()[u]) {
      force = clamp_(force, m.actuator_forcerange()[2 * u], m.actuator_forcerange()[2 * u + 1]);
    }
    actuator_force[u] = force;
  }
  lane_sync();
  // (3) sum over the actuators that act on each joint, in their order, clamped to the joint's force range
  DOF_FOR(v, m.nv()) {
    const int j = m.dof_jntid()[v];
    real sum = 0;
    const int begin = m.jnt_momentadr()[j], end = begin + m.jnt_momentnum()[j];
    ROLLED for (int k = begin; k < end; ++k) sum = fma_(m.moment()[k], actuator_force[m.moment_actuator()[k]], sum);
    if (m.jnt_actfrclimited()[j]) {
      sum = clamp_(sum, m.jnt_actfrcrange()[2 * j], m.jnt_actfrcrange()[2 * j + 1]);
    }
    qfrc_actuator[v] = sum;
  }
  lane_sync();
}
