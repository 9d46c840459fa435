// Plane and capsule: a contact at each end, tangent along the capsule.

struct PlaneCapsule {
  // Call put(k, contact) for each contact; returns their number.
  template <class Put>
  static DEVICE_METHOD int each(const Pair& p, real margin, Put put) {
    real normal[3], axis[3];
    mat_col(normal, p.mat1, 2);
    mat_col(axis, p.mat2, 2);
    int number = 0;
    for (int end = 0; end < 2; ++end) {
      // (1) centre of the cap and its distance
      const real along = end == 0 ? p.size2[1] : -p.size2[1];
      real centre[3], from_plane[3];
      for (int i = 0; i < 3; ++i) {
        centre[i] = fma_(along, axis[i], p.pos2[i]);
        from_plane[i] = centre[i] - p.pos1[i];
      }
      const real dist = dot3(from_plane, normal) - p.size2[0];
      if (dist > margin) continue;
      // (2) contact midway between the surfaces
      Contact contact;
      contact.dist = dist;
      for (int i = 0; i < 3; ++i) {
        contact.frame[i] = normal[i];
        contact.frame[3 + i] = axis[i];
        contact.pos[i] = fma_(-normal[i], p.size2[0] + R(0.5) * dist, centre[i]);
      }
      make_frame(contact.frame);
      put(number++, contact);
    }
    return number;
  }
};

DEVICE int collide_plane_capsule(const Pair& p, real margin, Contact* out) {
  return PlaneCapsule::each(p, margin, [&](int k, const Contact& found) { out[k] = found; });
}

DEVICE void plane_capsule(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                          const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                          real* contact_frame, int* contact_cand) {
  fill_one_by_one<PlaneCapsule>(m, TYPE_PLANE_CAPSULE, geom_xpos, geom_xmat, near_cand, near_adr, pair_tally,
                                {contact_dist, contact_pos, contact_frame, contact_cand});
}
