// Sensors of accelerations and forces: MuJoCo documentation, "XML Reference", "sensor".

// Fields on accelerations, forces and contacts that the sensors read.
struct Forces {
  const real *actuator_force, *qfrc_actuator;
  int ncon, nefc;
  const real *contact_dist, *contact_pos, *contact_frame;
  const int *contact_cand, *contact_efc_address, *efc_type, *efc_id;
  const real* efc_force;
};

// (1) acceleration of a frame: in its own axes for an accelerometer, in world axes otherwise
DEVICE void frame_acceleration(const Model& m, int i, int type, const real* xpos, const real* xquat,
                               const real* subtree_com, const real* cvel, const real* cacc, real* value) {
  const SensorFrame own = sensor_frame(m, i, 0, xpos, xquat);
  real v[6], a[6], turned[3];
  motion_at(m, own.body, cvel, subtree_com, own.pos, v);
  motion_at(m, own.body, cacc, subtree_com, own.pos, a);
  // the spatial acceleration is that at a fixed point in space; w x v turns it into that of the body's point
  cross3(turned, v, v + 3);
  for (int k = 0; k < 3; ++k) a[3 + k] += turned[k];
  if (type == SENS_ACCELEROMETER) {
    into_frame(value, own.quat, a + 3);
  } else {
    for (int k = 0; k < 3; ++k) value[k] = type == SENS_FRAMELINACC ? a[3 + k] : a[k];
  }
}

// (2) force or torque of the parent on the frame's body, at the frame's origin and in its axes
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

// (4) sum of the normal forces of those contacts of the frame's body whose normal, as a ray, hits the site
DEVICE real touch(const Model& m, int i, const real* xpos, const real* xquat, const Forces& f) {
  const SensorFrame site = sensor_frame(m, i, 0, xpos, xquat);
  real mat[9], sum = 0;
  quat_to_mat(mat, site.quat);
  ROLLED for (int k = 0; k < f.ncon; ++k) {
    const int c = f.contact_cand[k], first = f.contact_efc_address[k];
    const int b1 = m.geom_bodyid()[m.cand_geom1()[c]], b2 = m.geom_bodyid()[m.cand_geom2()[c]];
    if (first < 0 || (site.body != b1 && site.body != b2)) continue;
    const int rows = m.opt_cone() == CONE_ELLIPTIC ? 1 : rows_of(m, c);
    real normal = 0, direction[3];
    for (int r = 0; r < rows; ++r) normal += f.efc_force[first + r];
    if (normal <= 0) continue;
    const real sign = site.body == b2 ? R(-1.0) : R(1.0);
    for (int n = 0; n < 3; ++n) direction[n] = sign * f.contact_frame[9 * k + n];
    const real* size = m.sensor_size() + 3 * i;
    const real hit = ray_geom(m.sensor_site()[i], site.pos, mat, size, f.contact_pos + 3 * k, direction);
    if (hit >= 0) sum += normal;
  }
  return sum;
}

// (5) force of the first row of a limit
DEVICE real limit_force(int row_type, int id, const Forces& f) {
  ROLLED for (int r = 0; r < f.nefc; ++r) {
    if (f.efc_type[r] == row_type && f.efc_id[r] == id) return f.efc_force[r];
  }
  return 0;
}

// Reading of one sensor; returns false if it is not a sensor of accelerations or forces.
DEVICE bool read_acceleration(const Model& m, int i, const real* xpos, const real* xquat, const real* subtree_com,
                              const real* cvel, const real* cacc, const real* cfrc_int, const Forces& f, real* value) {
  const int type = m.sensor_type()[i], id = m.sensor_objid()[i];
  switch (type) {
    case SENS_ACCELEROMETER:
    case SENS_FRAMELINACC:
    case SENS_FRAMEANGACC: frame_acceleration(m, i, type, xpos, xquat, subtree_com, cvel, cacc, value); return true;
    case SENS_FORCE:
    case SENS_TORQUE: frame_force(m, i, type, xpos, xquat, subtree_com, cfrc_int, value); return true;
    // (3) actuators
    case SENS_ACTUATORFRC: value[0] = f.actuator_force[id]; return true;
    case SENS_JOINTACTFRC: value[0] = f.qfrc_actuator[m.jnt_dofadr()[id]]; return true;
    case SENS_TENDONACTFRC:
      ROLLED for (int u = 0; u < m.nu(); ++u) {
        if (m.actuator_trntype()[u] == TRN_TENDON && m.actuator_trnid()[2 * u] == id) value[0] += f.actuator_force[u];
      }
      return true;
    case SENS_TOUCH: value[0] = touch(m, i, xpos, xquat, f); return true;
    case SENS_JOINTLIMITFRC: value[0] = limit_force(ROW_LIMIT_JOINT, id, f); return true;
    case SENS_TENDONLIMITFRC: value[0] = limit_force(ROW_LIMIT_TENDON, id, f); return true;
  }
  return false;
}

DEVICE void sensor_acc(const Model& m, const real* xpos, const real* xquat, const real* subtree_com, const real* cvel,
                       const real* cacc, const real* cfrc_int, const real* actuator_force, const real* qfrc_actuator,
                       const int* ncon, const int* nefc, const real* contact_dist, const real* contact_pos,
                       const real* contact_frame, const int* contact_cand, const int* contact_efc_address,
                       const int* efc_type, const int* efc_id, const real* efc_force, real* sensordata) {
  const Forces forces = {actuator_force, qfrc_actuator, ncon[0], nefc[0], contact_dist, contact_pos,
                         contact_frame, contact_cand, contact_efc_address, efc_type, efc_id, efc_force};
  const Contacts contacts = {ncon[0], contact_dist, contact_pos, contact_frame, contact_cand, contact_efc_address,
                             efc_force, xpos, xquat, cvel, subtree_com};
  LANE_FOR(i, m.nsensor()) {
    // (6) contacts
    if (m.sensor_type()[i] == SENS_CONTACT) {
      read_contacts(m, i, contacts, sensordata);
      continue;
    }
    real value[MAX_SENSOR_DIM] = {};
    if (read_acceleration(m, i, xpos, xquat, subtree_com, cvel, cacc, cfrc_int, forces, value)) {
      put_sensor(m, i, value, sensordata);
    }
  }
  lane_sync();
}
