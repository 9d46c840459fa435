// Sensors of positions: MuJoCo documentation, "XML Reference", "sensor".

// (1) pose of the measured frame relative to the reference
DEVICE void frame_position(const Model& m, int i, int type, const real* xpos, const real* xquat, real* value) {
  const SensorFrame own = sensor_frame(m, i, 0, xpos, xquat), from = sensor_frame(m, i, 1, xpos, xquat);
  if (type == SENS_FRAMEPOS) {
    real away[3];
    for (int k = 0; k < 3; ++k) away[k] = own.pos[k] - from.pos[k];
    into_frame(value, from.quat, away);
  } else if (type == SENS_FRAMEQUAT) {
    const real back[4] = {from.quat[0], -from.quat[1], -from.quat[2], -from.quat[3]};
    quat_mul(value, back, own.quat);
  } else if (type == SENS_MAGNETOMETER) {
    into_frame(value, own.quat, m.opt_magnetic());
  } else {
    const real unit[3] = {real(type == SENS_FRAMEXAXIS), real(type == SENS_FRAMEYAXIS), real(type == SENS_FRAMEZAXIS)};
    real axis[3];
    quat_rotate(axis, own.quat, unit);
    into_frame(value, from.quat, axis);
  }
}

// (1) pixel of the measured frame's origin in the image of the reference, a camera that looks along its -z axis
DEVICE void projection(const Model& m, int i, const real* xpos, const real* xquat, real* value) {
  const real* lens = m.sensor_lens() + 4 * i;
  real seen[3];
  frame_position(m, i, SENS_FRAMEPOS, xpos, xquat, seen);
  const real depth = seen[2] < 0 ? min_(seen[2], -MJMINVAL) : max_(seen[2], MJMINVAL);
  value[0] = lens[2] - divide_(lens[0] * seen[0], depth);
  value[1] = lens[3] + divide_(lens[1] * seen[1], depth);
}

// (3) distance along the z axis of a frame to the nearest visible geom of another body
DEVICE real range(const Model& m, int i, const real* xpos, const real* xquat, const real* geom_xpos,
                  const real* geom_xmat) {
  const SensorFrame own = sensor_frame(m, i, 0, xpos, xquat);
  const real up[3] = {0, 0, 1};
  real direction[3], best = NO_HIT;
  quat_rotate(direction, own.quat, up);
  ROLLED for (int g = 0; g < m.ngeom(); ++g) {
    if (!m.geom_visible()[g] || m.geom_bodyid()[g] == own.body) continue;
    const real *size = m.geom_size() + 3 * g, *pos = geom_xpos + 3 * g, *mat = geom_xmat + 9 * g;
    if (m.geom_type()[g] == GEOM_HFIELD) {
      real p[3], v[3];
      into_geom(pos, mat, own.pos, direction, p, v);
      best = nearer(best, ray_hfield(m, m.geom_hfieldid()[g], p, v));
      continue;
    }
    best = nearer(best, ray_geom(m.geom_type()[g], pos, mat, size, own.pos, direction));
  }
  return best;
}

// (4) whether the measured frame's origin is inside a site, which is the reference
DEVICE real inside_site(const Model& m, int i, const real* xpos, const real* xquat) {
  const SensorFrame own = sensor_frame(m, i, 0, xpos, xquat), site = sensor_frame(m, i, 1, xpos, xquat);
  real mat[9];
  quat_to_mat(mat, site.quat);
  return real(inside_geom(m.sensor_site()[i], site.pos, mat, m.sensor_size() + 3 * i, own.pos));
}

// Reading of one sensor; zero if it is not a sensor of positions.
DEVICE void read_position(const Model& m, int i, const real* qpos, int nstep, const real* xpos, const real* xquat,
                          const real* xipos, const real* subtree_com, const real* geom_xpos, const real* geom_xmat,
                          const real* ten_length, const real* actuator_length, real* value) {
  const int type = m.sensor_type()[i], id = m.sensor_objid()[i];
  switch (type) {
    // (2) lengths and limits
    case SENS_JOINTPOS: value[0] = qpos[m.jnt_qposadr()[id]]; break;
    case SENS_BALLQUAT:
      for (int k = 0; k < 4; ++k) value[k] = qpos[m.jnt_qposadr()[id] + k];
      normalize4(value);
      break;
    case SENS_TENDONPOS: value[0] = ten_length[id]; break;
    case SENS_ACTUATORPOS: value[0] = actuator_length[id]; break;
    case SENS_JOINTLIMITPOS:
    case SENS_TENDONLIMITPOS: {
      const Limit limit = limit_of(m, type == SENS_JOINTLIMITPOS ? id : m.njnt() + id, qpos, ten_length);
      const real dist = limit.dist[0] < limit.margin ? limit.dist[0] : limit.dist[1];
      value[0] = min_(dist - limit.margin, R(0.0));
      break;
    }
    case SENS_FRAMEPOS:
    case SENS_FRAMEQUAT:
    case SENS_FRAMEXAXIS:
    case SENS_FRAMEYAXIS:
    case SENS_FRAMEZAXIS:
    case SENS_MAGNETOMETER: frame_position(m, i, type, xpos, xquat, value); break;
    case SENS_CAMPROJECTION: projection(m, i, xpos, xquat, value); break;
    case SENS_SUBTREECOM:
      for (int k = 0; k < 3; ++k) value[k] = subtree_com[3 * id + k];
      break;
    case SENS_CLOCK: value[0] = real(nstep) * m.opt_timestep()[0]; break;
    case SENS_RANGEFINDER: value[0] = range(m, i, xpos, xquat, geom_xpos, geom_xmat); break;
    case SENS_INSIDESITE: value[0] = inside_site(m, i, xpos, xquat); break;
    // (5) energy
    case SENS_E_POTENTIAL: value[0] = potential_energy(m, qpos, xipos, ten_length); break;
  }
}

DEVICE void sensor_pos(const Model& m, const real* qpos, const int* nstep, const real* xpos, const real* xquat,
                       const real* xipos, const real* subtree_com, const real* geom_xpos, const real* geom_xmat,
                       const real* ten_length, const real* actuator_length, real* sensordata) {
  LANE_FOR(i, m.nsensor()) {
    real value[MAX_SENSOR_DIM] = {};
    read_position(m, i, qpos, nstep[0], xpos, xquat, xipos, subtree_com, geom_xpos, geom_xmat, ten_length,
                  actuator_length, value);
    put_sensor(m, i, value, sensordata);
  }
  lane_sync();
}
