// Sensors of accelerations and forces: MuJoCo documentation, "XML Reference", "sensor".

// (1) acceleration of a frame, its own orientation for an accelerometer and the world's for others
DEVICE void frame_acceleration(const Model& m, int i, int type, const real* xpos, const real* xquat,
                               const real* subtree_com, const real* cvel, const real* cacc, real* value) {
  const SensorFrame own = sensor_frame(m, i, 0, xpos, xquat);
  real v[6], a[6], turned[3];
  motion_at(m, own.body, cvel, subtree_com, own.pos, v);
  motion_at(m, own.body, cacc, subtree_com, own.pos, a);
  // spatial acceleration is that of the point passing by, which turns with the body
  cross3(turned, v, v + 3);
  for (int k = 0; k < 3; ++k) a[3 + k] += turned[k];
  if (type == SENS_ACCELEROMETER) {
    into_frame(value, own.quat, a + 3);
  } else {
    for (int k = 0; k < 3; ++k) value[k] = type == SENS_FRAMELINACC ? a[3 + k] : a[k];
  }
}

// (2) force or torque that the parent exerts on the frame's body, at the frame's origin and in its orientation
DEVICE void frame_force(const Model& m, int i, int type, const real* xpos, const real* xquat, const real* subtree_com,
                        const real* cfrc_int, real* value) {
  const SensorFrame own = sensor_frame(m, i, 0, xpos, xquat);
  const real *com = subtree_com + 3 * m.body_rootid()[own.body], *own_force = cfrc_int + 6 * own.body;
  real arm[3], torque[3];
  for (int k = 0; k < 3; ++k) arm[k] = com[k] - own.pos[k];
  cross3(torque, arm, own_force + 3);
  for (int k = 0; k < 3; ++k) torque[k] += own_force[k];
  into_frame(value, own.quat, type == SENS_FORCE ? own_force + 3 : torque);
}

// Reading of one sensor; false if it is no sensor of accelerations and forces.
DEVICE bool read_acceleration(const Model& m, int i, const real* xpos, const real* xquat, const real* subtree_com,
                              const real* cvel, const real* cacc, const real* cfrc_int, const real* actuator_force,
                              const real* qfrc_actuator, real* value) {
  const int type = m.sensor_type()[i], id = m.sensor_objid()[i];
  switch (type) {
    case SENS_ACCELEROMETER:
    case SENS_FRAMELINACC:
    case SENS_FRAMEANGACC: frame_acceleration(m, i, type, xpos, xquat, subtree_com, cvel, cacc, value); return true;
    case SENS_FORCE:
    case SENS_TORQUE: frame_force(m, i, type, xpos, xquat, subtree_com, cfrc_int, value); return true;
    // (3) actuators
    case SENS_ACTUATORFRC: value[0] = actuator_force[id]; return true;
    case SENS_JOINTACTFRC: value[0] = qfrc_actuator[m.jnt_dofadr()[id]]; return true;
    case SENS_TENDONACTFRC:
      ROLLED for (int u = 0; u < m.nu(); ++u) {
        if (m.actuator_trntype()[u] == TRN_TENDON && m.actuator_trnid()[2 * u] == id) value[0] += actuator_force[u];
      }
      return true;
  }
  return false;
}

DEVICE void sensor_acc(const Model& m, const real* xpos, const real* xquat, const real* subtree_com, const real* cvel,
                       const real* cacc, const real* cfrc_int, const real* actuator_force, const real* qfrc_actuator,
                       real* sensordata) {
  LANE_FOR(i, m.nsensor()) {
    real value[MAX_SENSOR_DIM] = {};
    if (read_acceleration(m, i, xpos, xquat, subtree_com, cvel, cacc, cfrc_int, actuator_force, qfrc_actuator, value)) {
      put_sensor(m, i, value, sensordata);
    }
  }
  lane_sync();
}
