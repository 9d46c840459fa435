// Actuators on joints: MuJoCo documentation, "Computation", "Actuation model".

DEVICE void actuation(const Model& m, const real* qpos, const real* qvel, const real* ctrl, real* actuator_force,
                      real* qfrc_actuator) {
  LANE_FOR(u, m.nu()) {
    const int j = m.actuator_trnid()[u];
    const real gear = m.actuator_gear()[u], *bias = m.actuator_biasprm() + 3 * u;
    const real length = gear * qpos[m.jnt_qposadr()[j]], velocity = gear * qvel[m.jnt_dofadr()[j]];
    // (1) control within its range
    real control = ctrl[u];
    if (m.actuator_ctrllimited()[u]) {
      control = clamp_(control, m.actuator_ctrlrange()[2 * u], m.actuator_ctrlrange()[2 * u + 1]);
    }
    // (2) force = gain * control + bias, within its range
    real force = m.actuator_gainprm()[u] * control + (bias[0] + bias[1] * length + bias[2] * velocity);
    if (m.actuator_forcelimited()[u]) {
      force = clamp_(force, m.actuator_forcerange()[2 * u], m.actuator_forcerange()[2 * u + 1]);
    }
    actuator_force[u] = force;
  }
  lane_sync();
  // (3) sum over the actuators of each joint, in their order; the joint's own limit comes last
  DOF_FOR(v, m.nv()) {
    const int j = m.dof_jntid()[v];
    real sum = 0;
    for (int k = 0; k < m.jnt_actuatornum()[j]; ++k) {
      const int u = m.actuator_byjnt()[m.jnt_actuatoradr()[j] + k];
      sum = fma_(m.actuator_gear()[u], actuator_force[u], sum);
    }
    if (m.jnt_actfrclimited()[j]) {
      sum = clamp_(sum, m.jnt_actfrcrange()[2 * j], m.jnt_actfrcrange()[2 * j + 1]);
    }
    qfrc_actuator[v] = sum;
  }
  lane_sync();
}
