// Sphere and capsule: one contact, with the nearest of the spheres that make up the capsule.
DEVICE int collide_sphere_capsule(const Pair& p, real margin, Contact* out) {
  real axis1[3], axis2[3], offset[3], nearest[3];
  mat_col(axis1, p.mat1, 2);
  mat_col(axis2, p.mat2, 2);
  // (1) nearest point of the segment
  for (int i = 0; i < 3; ++i) offset[i] = p.pos1[i] - p.pos2[i];
  const real along = clamp_(dot3(axis2, offset), -p.size2[1], p.size2[1]);
  for (int i = 0; i < 3; ++i) nearest[i] = fma_(along, axis2[i], p.pos2[i]);
  // (2) two spheres
  return sphere_contact(p.pos1, p.size1[0], nearest, p.size2[0], axis1, axis2, false,
                        abs_(along) < p.size2[1], margin, out);
}

DEVICE void sphere_capsule(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                           const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                           real* contact_frame, int* contact_cand) {
  fill_contacts<collide_sphere_capsule, MAX_SPHERE_CAPSULE>(m, TYPE_SPHERE_CAPSULE, geom_xpos, geom_xmat, near_cand,
                                                            near_adr, pair_tally, contact_dist, contact_pos,
                                                            contact_frame, contact_cand);
}
