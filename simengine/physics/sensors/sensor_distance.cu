// Sensors of the two nearest points of geoms, or of the geoms of two bodies: MuJoCo documentation, "XML Reference",
// "sensor/distance", and "API Reference", mj_geomDistance.

// The shortest distance that was found, and the points it is between, on the sensor's first geom and on the second.
struct Shortest {
  real dist, from[3], to[3];
};

DEVICE void take_nearer(const Contact& c, real sign, Shortest& best) {
  if (!(c.dist < best.dist)) return;
  best.dist = c.dist;
  for (int i = 0; i < 3; ++i) {
    const real half = R(0.5) * sign * c.dist * c.frame[i];
    best.from[i] = c.pos[i] - half;
    best.to[i] = c.pos[i] + half;
  }
}

// (1) convex shapes have one shortest distance, be it of penetration
DEVICE_CALL void convex_distance(const Pair& p, real cutoff, real sign, Shortest& best) {
  Simplex simplex;
  Kinks kinks;
  Contact contact;
#if SIMENGINE_GPU
  if (convex_contact(difference_of(p), p.pos1, cutoff, simplex, kinks, &contact)) take_nearer(contact, sign, best);
#else
  Difference d = difference_of(p);
  d.several = false;  // the midpoint of what touches, and not a corner of it
  if (convex_contact(d, p.pos1, cutoff, simplex, kinks, &contact)) take_nearer(contact, sign, best);
#endif
}

// (2) of a height field the prisms that MuJoCo would list
DEVICE_CALL void field_distance(const Pair& p, real cutoff, real sign, Shortest& best) {
  Patch patch;
  if (!patch_of(p, cutoff, patch)) return;
  int found = 0;
  ROLLED for (int k = 0; k < 2 * patch.number[0] * patch.number[1] && found < MAX_HFIELD; ++k) {
    Contact contact;
    if (!prism_contact(p, patch, k, cutoff, &contact)) continue;
    take_nearer(contact, sign, best);
    ++found;
  }
}

// (3) of other pairs the nearest of their contacts
DEVICE_CALL void pair_distance(const Pair& p, int type, real cutoff, real sign, Shortest& best) {
  if (type == TYPE_CONVEX || type == TYPE_BOX_BOX) return convex_distance(p, cutoff, sign, best);
  if (type == TYPE_HFIELD) return field_distance(p, cutoff, sign, best);
  Contact found[MAX_CONTACTS];
  const int number = collide_any(type, p, cutoff, found);
  for (int k = 0; k < number; ++k) take_nearer(found[k], sign, best);
}

// (4) what a sensor tells of them; nothing but the cutoff where all are farther
DEVICE void put_distance(int type, real cutoff, const Shortest& best, real* out) {
  if (type == SENS_GEOMDIST) {
    out[0] = cutoff > 0 ? clamp_(best.dist, -cutoff, cutoff) : best.dist;
    return;
  }
  real along[3];
  for (int i = 0; i < 3; ++i) along[i] = best.to[i] - best.from[i];
  if (type == SENS_GEOMNORMAL) {
    if (dot3(along, along) > 0) normalize3(along);
    for (int i = 0; i < 3; ++i) out[i] = along[i];
    return;
  }
  for (int i = 0; i < 3; ++i) {
    out[i] = best.from[i];
    out[3 + i] = best.to[i];
  }
}

DEVICE void sensor_distance(const Model& m, const real* geom_xpos, const real* geom_xmat, real* sensordata) {
  LANE_FOR(i, m.nsensor()) {
    const int type = m.sensor_type()[i];
    if (type != SENS_GEOMDIST && type != SENS_GEOMNORMAL && type != SENS_GEOMFROMTO) continue;
    const real cutoff = m.sensor_cutoff()[i];
    Shortest best = {cutoff, {0, 0, 0}, {0, 0, 0}};
    ROLLED for (int k = m.sensor_distadr()[i]; k < m.sensor_distadr()[i + 1]; ++k) {
      const int geom1 = m.distance_pair()[4 * k], geom2 = m.distance_pair()[4 * k + 1];
      const int code = m.distance_pair()[4 * k + 2], sign = m.distance_pair()[4 * k + 3];
      pair_distance(pair_of(m, geom1, geom2, geom_xpos, geom_xmat), code, cutoff, real(sign), best);
    }
    put_distance(type, cutoff, best, sensordata + m.sensor_adr()[i]);
  }
  lane_sync();
}
