// Two spheres: one contact on the line of centres.
DEVICE int collide_sphere_sphere(const Pair& p, real margin, Contact* out) {
  real axis1[3], axis2[3];
  mat_col(axis1, p.mat1, 2);
  mat_col(axis2, p.mat2, 2);
  // (1) distance, normal and midpoint
  return sphere_contact(p.pos1, p.size1[0], p.pos2, p.size2[0], axis1, axis2, false, false, margin, out);
}

DEVICE void sphere_sphere(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                          const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                          real* contact_frame, int* contact_cand) {
  fill_contacts<collide_sphere_sphere, MAX_SPHERE_SPHERE>(m, TYPE_SPHERE_SPHERE, geom_xpos, geom_xmat, near_cand,
                                                          near_adr, pair_tally, contact_dist, contact_pos,
                                                          contact_frame, contact_cand);
}
