// Plane and sphere: one contact, whose normal is the z axis of the plane.
DEVICE int collide_plane_sphere(const Pair& p, real margin, Contact* out) {
  real normal[3], from_plane[3];
  mat_col(normal, p.mat1, 2);
  for (int i = 0; i < 3; ++i) from_plane[i] = p.pos2[i] - p.pos1[i];
  // (1) distance of the lowest point
  const real dist = dot3(from_plane, normal) - p.size2[0];
  if (dist > margin) return 0;
  // (2) contact midway between the surfaces
  out->dist = dist;
  for (int i = 0; i < 3; ++i) {
    out->frame[i] = normal[i];
    out->frame[3 + i] = 0;
    out->pos[i] = fma_(-normal[i], p.size2[0] + R(0.5) * dist, p.pos2[i]);
  }
  make_frame(out->frame);
  return 1;
}

DEVICE void plane_sphere(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                         const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                         real* contact_frame, int* contact_cand) {
  fill_contacts<collide_plane_sphere, MAX_PLANE_SPHERE>(m, TYPE_PLANE_SPHERE, geom_xpos, geom_xmat, near_cand, near_adr,
                                                        pair_tally, contact_dist, contact_pos, contact_frame,
                                                        contact_cand);
}
