// Plane and ellipsoid: one contact, at the ellipsoid's lowest point.
DEVICE int collide_plane_ellipsoid(const Pair& p, real margin, Contact* out) {
  real normal[3], offset[3], scaled[3];
  mat_col(normal, p.mat1, 2);
  for (int i = 0; i < 3; ++i) offset[i] = p.pos2[i] - p.pos1[i];
  // (1) in the ellipsoid's frame the normal scaled by the radii points away from the lowest point of the unit sphere
  for (int i = 0; i < 3; ++i) {
    real axis[3];
    mat_col(axis, p.mat2, i);
    scaled[i] = p.size2[i] * dot3(axis, normal);
  }
  const real reach = sqrt_(dot3(scaled, scaled));
  // (2) contact midway between that point and the plane
  const real dist = dot3(offset, normal) - reach;
  if (dist > margin) return 0;
  real local[3], point[3];
  for (int i = 0; i < 3; ++i) local[i] = -p.size2[i] * divide_(scaled[i], reach);
  for (int i = 0; i < 3; ++i) point[i] = p.pos2[i] + dot3(p.mat2 + 3 * i, local);
  plane_contact(normal, point, dist, out);
  return 1;
}

DEVICE void plane_ellipsoid(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                            const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                            real* contact_frame, int* contact_cand) {
  fill_contacts<collide_plane_ellipsoid, MAX_PLANE_ELLIPSOID>(m, TYPE_PLANE_ELLIPSOID, geom_xpos, geom_xmat, near_cand,
                                                              near_adr, pair_tally, contact_dist, contact_pos,
                                                              contact_frame, contact_cand);
}
