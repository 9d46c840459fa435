// Sphere and box: one contact, at the box's point nearest to the sphere's centre.
DEVICE int collide_sphere_box(const Pair& p, real margin, Contact* out) {
  // (1) the nearest point, or the nearest face if the box contains the centre
  return sphere_against_box(p.pos1, p.size1[0], p, margin, out);
}

DEVICE void sphere_box(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                       const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                       real* contact_frame, int* contact_cand) {
  fill_contacts<collide_sphere_box, MAX_SPHERE_BOX>(m, TYPE_SPHERE_BOX, geom_xpos, geom_xmat, near_cand, near_adr,
                                                    pair_tally, contact_dist, contact_pos, contact_frame, contact_cand);
}
