// Plane and box: contacts at the first four corners that are within the margin and below the box's centre.

struct PlaneBox {
  // Call put(k, contact) for each contact; returns their number.
  template <class Put>
  static DEVICE_METHOD int each(const Pair& p, real margin, Put put) {
    real normal[3], offset[3], along[3];
    mat_col(normal, p.mat1, 2);
    for (int i = 0; i < 3; ++i) offset[i] = p.pos2[i] - p.pos1[i];
    // (1) height of the centre, and of the half-edges along the normal
    const real height = dot3(offset, normal);
    for (int i = 0; i < 3; ++i) {
      real axis[3];
      mat_col(axis, p.mat2, i);
      along[i] = p.size2[i] * dot3(axis, normal);
    }
    int number = 0;
    for (int corner = 0; corner < 8 && number < 4; ++corner) {
      // (2) the corners, by the signs of their coordinates; x changes fastest
      real sign[3], local[3];
      for (int i = 0; i < 3; ++i) {
        sign[i] = corner >> i & 1 ? R(1.0) : R(-1.0);
        local[i] = sign[i] * p.size2[i];
      }
      const real below = dot3(sign, along), dist = height + below;
      if (below > 0 || dist > margin) continue;
      // (3) contact midway between the corner and the plane
      real point[3];
      for (int i = 0; i < 3; ++i) point[i] = p.pos2[i] + dot3(p.mat2 + 3 * i, local);
      Contact found;
      plane_contact(normal, point, dist, &found);
      put(number++, found);
    }
    return number;
  }
};

DEVICE int collide_plane_box(const Pair& p, real margin, Contact* out) {
  return PlaneBox::each(p, margin, [&](int k, const Contact& found) { out[k] = found; });
}

DEVICE void plane_box(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                      const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                      real* contact_frame, int* contact_cand) {
  fill_one_by_one<PlaneBox>(m, TYPE_PLANE_BOX, geom_xpos, geom_xmat, near_cand, near_adr, pair_tally,
                            {contact_dist, contact_pos, contact_frame, contact_cand});
}
