// Sensors of contacts: MuJoCo documentation, "XML Reference", "sensor/contact".
#pragma once

// The contacts of a world, and the fields from which the frames of its sensors follow.
struct Contacts {
  int number;
  const real *dist, *pos, *frame;
  const int *cand, *address;
  const real *force, *xpos, *xquat, *cvel, *subtree_com;
};

// Does geom g meet criterion `side` of sensor i, which is either a geom or a range of bodies?
DEVICE bool meets(const Model& m, int i, int side, int g) {
  const int* match = m.sensor_match() + 6 * i + 3 * side;
  const int number = match[0] ? g : m.geom_bodyid()[g];
  return match[1] <= number && number <= match[2];
}

// 1 if contact k matches sensor i, -1 if it matches with its geoms in reverse order, else 0.
DEVICE int matched(const Model& m, int i, const Contacts& c, int k) {
  if (m.sensor_site()[i] >= 0) {
    const SensorFrame site = sensor_frame(m, i, 0, c.xpos, c.xquat);
    real mat[9];
    quat_to_mat(mat, site.quat);
    if (!inside_geom(m.sensor_site()[i], site.pos, mat, m.sensor_size() + 3 * i, c.pos + 3 * k)) return 0;
  }
  const int g1 = m.cand_geom1()[c.cand[k]], g2 = m.cand_geom2()[c.cand[k]];
  if (meets(m, i, 0, g1) && meets(m, i, 1, g2)) return 1;
  return meets(m, i, 0, g2) && meets(m, i, 1, g1) ? -1 : 0;
}

// Force and torque of contact k in its frame.
DEVICE void force_in_frame(const Model& m, const Contacts& c, int k, real* out) {
  for (int i = 0; i < 6; ++i) out[i] = 0;
  const int cand = c.cand[k], dim = m.cand_condim()[cand];
  if (c.address[k] < 0) return;
  const real *f = c.force + c.address[k], *friction = m.cand_friction() + 5 * cand;
  out[0] = f[0];
  if (m.opt_cone() == CONE_ELLIPTIC) {
    for (int i = 1; i < 6; ++i) out[i] = i < dim ? f[i] : R(0.0);
  } else if (dim > 1) {
    out[0] = 0;
    for (int i = 1; i < 6; ++i) {
      if (i >= dim) continue;
      out[0] += f[2 * i - 2] + f[2 * i - 1];
      out[i] = friction[i - 1] * (f[2 * i - 2] - f[2 * i - 1]);
    }
  }
}

// Velocity of the second geom relative to the first at contact k, in the contact frame: along the axes, then about
// them.
DEVICE void slip_in_frame(const Model& m, const Contacts& c, int k, real* out) {
  real v1[6], v2[6];
  const int b1 = m.geom_bodyid()[m.cand_geom1()[c.cand[k]]], b2 = m.geom_bodyid()[m.cand_geom2()[c.cand[k]]];
  motion_at(m, b1, c.cvel, c.subtree_com, c.pos + 3 * k, v1);
  motion_at(m, b2, c.cvel, c.subtree_com, c.pos + 3 * k, v2);
  for (int i = 0; i < 6; ++i) v2[i] -= v1[i];
  for (int i = 0; i < 3; ++i) {
    out[i] = dot3(c.frame + 9 * k + 3 * i, v2 + 3);
    out[3 + i] = dot3(c.frame + 9 * k + 3 * i, v2);
  }
}

// Entries of the data of a contact: found, force, torque, dist, pos, normal, tangent, velocity, angular velocity.
#define CONTACT_DATA 23

// Write the entries that sensor i asks for, from index `at` on; returns the index after the last.
DEVICE int put_contact(const Model& m, int i, const real* data, int at, real* sensordata) {
  int from = 0;
  for (int field = 0; field < 9; ++field) {
    const int width = field == 0 || field == 3 ? 1 : 3;
    for (int k = 0; k < width; ++k) {
      if (m.sensor_prm()[3 * i] >> field & 1) sensordata[at++] = data[from + k];
    }
    from += width;
  }
  return at;
}

// All data of contact k. With the geoms in reverse order, the normal and the first tangent are reversed. The force is
// then that on the other geom, and only its component along the second tangent changes sign.
DEVICE void contact_data(const Model& m, const Contacts& c, int k, int found, int side, real* data) {
  const real sign = R(1.0) * side;
  data[0] = R(1.0) * found;
  force_in_frame(m, c, k, data + 1);
  data[7] = c.dist[k];
  slip_in_frame(m, c, k, data + 17);
  for (int i = 0; i < 3; ++i) {
    data[8 + i] = c.pos[3 * k + i];
    data[11 + i] = sign * c.frame[9 * k + i];
    data[14 + i] = sign * c.frame[9 * k + 3 + i];
  }
  data[3] *= sign;
  data[6] *= sign;
  data[19] *= sign;
  data[22] *= sign;
}

// The net force of all contacts in the world frame, its centre of application, and the torque about that point.
DEVICE void net_data(const Model& m, int i, const Contacts& c, int found, real* data) {
  real local[6], force[3], torque[3], arm[3], lever[3], weight = 0;
  for (int e = 0; e < CONTACT_DATA; ++e) data[e] = 0;
  data[0] = R(1.0) * found;
  data[11] = 1;
  data[15] = 1;
  ROLLED for (int pass = 0; pass < 2; ++pass) {
    ROLLED for (int k = 0; k < c.number; ++k) {
      const int side = matched(m, i, c, k);
      if (!side) continue;
      force_in_frame(m, c, k, local);
      const real size = sqrt_(dot3(local, local));
      if (pass == 0) {
        weight += size;
        for (int e = 0; e < 3; ++e) data[8 + e] = fma_(size, c.pos[3 * k + e], data[8 + e]);
        continue;
      }
      const real* frame = c.frame + 9 * k;
      for (int e = 0; e < 3; ++e) {
        force[e] = side * (frame[e] * local[0] + frame[3 + e] * local[1] + frame[6 + e] * local[2]);
        torque[e] = side * (frame[e] * local[3] + frame[3 + e] * local[4] + frame[6 + e] * local[5]);
        arm[e] = c.pos[3 * k + e] - data[8 + e];
      }
      cross3(lever, arm, force);
      for (int e = 0; e < 3; ++e) {
        data[1 + e] += force[e];
        data[4 + e] += torque[e] + lever[e];
      }
    }
    for (int e = 0; pass == 0 && e < 3; ++e) data[8 + e] = divide_(data[8 + e], max_(MJMINVAL, weight));
  }
}

// Sort key of a sensor's contacts: the lowest comes first, and among equals the one that is listed first.
DEVICE real contact_rank(const Model& m, int reduce, const Contacts& c, int k) {
  if (reduce == REDUCE_MINDIST) return c.dist[k];
  if (reduce != REDUCE_MAXFORCE) return 0;
  real local[6];
  force_in_frame(m, c, k, local);
  return -dot3(local, local);
}

// Reading of sensor i, written to sensordata directly because it may have many entries.
DEVICE void read_contacts(const Model& m, int i, const Contacts& c, real* sensordata) {
  const int reduce = m.sensor_prm()[3 * i + 1], places = m.sensor_prm()[3 * i + 2];
  int found = 0, at = m.sensor_adr()[i], last = -1;
  const int end = at + m.sensor_dim()[i];
  real data[CONTACT_DATA], last_rank = 0;
  ROLLED for (int k = 0; k < c.number; ++k) found += matched(m, i, c, k) != 0;
  if (reduce == REDUCE_NETFORCE && found) {
    net_data(m, i, c, found, data);
    at = put_contact(m, i, data, at, sensordata);
  }
  ROLLED for (int place = 0; reduce != REDUCE_NETFORCE && place < places; ++place) {
    int best = -1;
    real best_rank = 0;
    ROLLED for (int k = 0; k < c.number; ++k) {
      if (!matched(m, i, c, k)) continue;
      const real rank = contact_rank(m, reduce, c, k);
      const bool behind = last < 0 || rank > last_rank || (rank == last_rank && k > last);
      if (behind && (best < 0 || rank < best_rank)) {
        best = k;
        best_rank = rank;
      }
    }
    if (best < 0) break;
    contact_data(m, c, best, found, matched(m, i, c, best), data);
    at = put_contact(m, i, data, at, sensordata);
    last = best;
    last_rank = best_rank;
  }
  ROLLED for (; at < end; ++at) sensordata[at] = 0;
}
