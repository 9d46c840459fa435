// Plane and cylinder: contacts at the lowest point of the lower rim, at the point of the upper rim above it, and at two
// more points of the lower rim, which form an equilateral triangle with the first.
struct PlaneCylinder {
  // Call put(k, contact) for each contact; returns their number.
  template <class Put>
  static DEVICE_METHOD int each(const Pair& p, real margin, Put put) {
    Contact found;
    const real radius = p.size2[0];
    real normal[3], axis[3], offset[3], down[3];
    mat_col(normal, p.mat1, 2);
    mat_col(axis, p.mat2, 2);
    for (int i = 0; i < 3; ++i) offset[i] = p.pos2[i] - p.pos1[i];
    // (1) the half-axis that points to the plane, and the radius that descends most steeply; any radius if the axis is
    // upright
    real slope = dot3(normal, axis);
    const real half = slope > 0 ? -p.size2[1] : p.size2[1];
    for (int i = 0; i < 3; ++i) down[i] = fma_(slope, axis[i], -normal[i]);
    // if the axis is almost upright, this vector is so short that rounding could turn it along the axis
    const real along = dot3(down, axis);
    for (int i = 0; i < 3; ++i) {
      down[i] = fma_(-along, axis[i], down[i]);
      axis[i] *= half;
    }
    const real level = sqrt_(dot3(down, down));
    if (level >= 8 * REAL_EPS) {
      for (int i = 0; i < 3; ++i) down[i] *= divide_(radius, level);
    } else {
      mat_col(down, p.mat2, 0);
      for (int i = 0; i < 3; ++i) down[i] *= radius;
    }
    // (2) heights of the centre, and of the two vectors
    const real height = dot3(offset, normal), fall = dot3(normal, axis), drop = dot3(normal, down);
    if (height + fall + drop > margin) return 0;
    real point[3];
    for (int i = 0; i < 3; ++i) point[i] = p.pos2[i] + axis[i] + down[i];
    plane_contact(normal, point, height + fall + drop, &found);
    put(0, found);
    int number = 1;
    if (height - fall + drop <= margin) {
      for (int i = 0; i < 3; ++i) point[i] = p.pos2[i] - axis[i] + down[i];
      plane_contact(normal, point, height - fall + drop, &found);
      put(number++, found);
    }
    // (3) the other corners of the triangle, a third of a turn to either side
    const real dist = height + fall - R(0.5) * drop;
    if (dist > margin) return number;
    real aside[3];
    cross3(aside, down, axis);
    normalize3(aside);
    for (int side = 0; side < 2; ++side) {
      const real reach = (side == 0 ? R(0.8660254037844386) : R(-0.8660254037844386)) * radius;
      for (int i = 0; i < 3; ++i) point[i] = fma_(reach, aside[i], p.pos2[i] + axis[i] - R(0.5) * down[i]);
      plane_contact(normal, point, dist, &found);
      put(number++, found);
    }
    return number;
  }
};

DEVICE int collide_plane_cylinder(const Pair& p, real margin, Contact* out) {
  return PlaneCylinder::each(p, margin, [&](int k, const Contact& found) { out[k] = found; });
}

DEVICE void plane_cylinder(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                           const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                           real* contact_frame, int* contact_cand) {
  fill_one_by_one<PlaneCylinder>(m, TYPE_PLANE_CYLINDER, geom_xpos, geom_xmat, near_cand, near_adr, pair_tally,
                                 {contact_dist, contact_pos, contact_frame, contact_cand});
}
