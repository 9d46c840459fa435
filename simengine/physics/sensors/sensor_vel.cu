// Sensors of velocities: MuJoCo documentation, "XML Reference", "sensor".

// (1) velocity of the measured frame: in its own axes, or relative to the reference, which may move and rotate
DEVICE void frame_velocity(const Model& m, int i, int type, const real* xpos, const real* xquat,
                           const real* subtree_com, const real* cvel, real* value) {
  const SensorFrame own = sensor_frame(m, i, 0, xpos, xquat), from = sensor_frame(m, i, 1, xpos, xquat);
  real v[6];
  motion_at(m, own.body, cvel, subtree_com, own.pos, v);
  if (from.body >= 0) {
    real seen[6], away[3], swept[3];
    motion_at(m, from.body, cvel, subtree_com, from.pos, seen);
    for (int k = 0; k < 3; ++k) away[k] = own.pos[k] - from.pos[k];
    cross3(swept, seen, away);
    for (int k = 0; k < 3; ++k) {
      v[k] -= seen[k];
      v[3 + k] -= seen[3 + k] + swept[k];
    }
  }
  const bool local = type == SENS_GYRO || type == SENS_VELOCIMETER;
  const bool turning = type == SENS_GYRO || type == SENS_FRAMEANGVEL;
  into_frame(value, local ? own.quat : from.quat, turning ? v : v + 3);
}

// Rate of the distance of joint j from its lower bound; a ball joint's angle has an upper bound only.
DEVICE real limited_velocity(const Model& m, int j, const real* qpos, const real* qvel) {
  if (m.jnt_type()[j] != JNT_BALL) return qvel[m.jnt_dofadr()[j]];
  real axis[3];
  ball_angle(m, j, qpos, axis);
  return -dot3(axis, qvel + m.jnt_dofadr()[j]);
}

// Reading of one sensor; returns false if it is not a sensor of velocities.
DEVICE bool read_velocity(const Model& m, int i, const real* qpos, const real* qvel, const real* xpos,
                          const real* xquat, const real* subtree_com, const real* cvel, const real* qM,
                          const real* subtree_linvel, const real* subtree_angmom, const real* ten_length,
                          const real* ten_velocity, const real* actuator_velocity, real* value) {
  const int type = m.sensor_type()[i], id = m.sensor_objid()[i];
  switch (type) {
    // (2) lengths and limits
    case SENS_JOINTVEL: value[0] = qvel[m.jnt_dofadr()[id]]; return true;
    case SENS_BALLANGVEL:
      for (int k = 0; k < 3; ++k) value[k] = qvel[m.jnt_dofadr()[id] + k];
      return true;
    case SENS_TENDONVEL: value[0] = ten_velocity[id]; return true;
    case SENS_ACTUATORVEL: value[0] = actuator_velocity[id]; return true;
    case SENS_JOINTLIMITVEL:
    case SENS_TENDONLIMITVEL: {
      const bool joint = type == SENS_JOINTLIMITVEL;
      const Limit limit = limit_of(m, joint ? id : m.njnt() + id, qpos, ten_length);
      const real velocity = joint ? limited_velocity(m, id, qpos, qvel) : ten_velocity[id];
      value[0] = limit.dist[0] < limit.margin ? velocity : limit.dist[1] < limit.margin ? -velocity : R(0.0);
      return true;
    }
    case SENS_GYRO:
    case SENS_VELOCIMETER:
    case SENS_FRAMELINVEL:
    case SENS_FRAMEANGVEL: frame_velocity(m, i, type, xpos, xquat, subtree_com, cvel, value); return true;
    case SENS_SUBTREELINVEL:
    case SENS_SUBTREEANGMOM:
      for (int k = 0; k < 3; ++k) value[k] = (type == SENS_SUBTREELINVEL ? subtree_linvel : subtree_angmom)[3 * id + k];
      return true;
    // (3) energy
    case SENS_E_KINETIC: value[0] = kinetic_energy(m, qvel, qM); return true;
  }
  return false;
}

DEVICE void sensor_vel(const Model& m, const real* qpos, const real* qvel, const real* xpos, const real* xquat,
                       const real* subtree_com, const real* cvel, const real* qM, const real* subtree_linvel,
                       const real* subtree_angmom, const real* ten_length, const real* ten_velocity,
                       const real* actuator_velocity, real* sensordata) {
  LANE_FOR(i, m.nsensor()) {
    real value[MAX_SENSOR_DIM] = {};
    if (read_velocity(m, i, qpos, qvel, xpos, xquat, subtree_com, cvel, qM, subtree_linvel, subtree_angmom, ten_length,
                      ten_velocity, actuator_velocity, value)) {
      put_sensor(m, i, value, sensordata);
    }
  }
  lane_sync();
}
