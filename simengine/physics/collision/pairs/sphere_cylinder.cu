// Sphere and cylinder: one contact with the side, a cap or a rim, whichever is nearest to the centre of the sphere.
DEVICE int collide_sphere_cylinder(const Pair& p, real margin, Contact* out) {
  const real radius = p.size2[0], half = p.size2[1];
  real axis[3], sphere_axis[3], aside[3], nearest[3];
  mat_col(axis, p.mat2, 2);
  mat_col(sphere_axis, p.mat1, 2);
  // (1) the components of the sphere's centre along the axis and perpendicular to it
  for (int i = 0; i < 3; ++i) aside[i] = p.pos1[i] - p.pos2[i];
  const real along = dot3(axis, aside);
  for (int i = 0; i < 3; ++i) aside[i] = fma_(-along, axis[i], aside[i]);
  const real away = sqrt_(dot3(aside, aside));
  bool side = abs_(along) < half, cap = away < radius;
  if (side && cap) {
    // centre inside the cylinder: the shorter way out
    side = half - abs_(along) >= radius - away;
    cap = !side;
  }
  // (2) the side: contact with the sphere of the cylinder's radius at that height; a rim: with its nearest point
  if (!cap) {
    const real end = along > 0 ? half : -half, scale = divide_(radius, away);
    for (int i = 0; i < 3; ++i) {
      nearest[i] = side ? fma_(along, axis[i], p.pos2[i]) : fma_(scale, aside[i], fma_(end, axis[i], p.pos2[i]));
    }
    return sphere_contact(p.pos1, p.size1[0], nearest, side ? radius : R(0.0), sphere_axis, axis, false, side, margin,
                          out);
  }
  // (3) a cap: contact with its plane
  const real up = along > 0 ? R(1.0) : R(-1.0), dist = abs_(along) - half - p.size1[0];
  if (dist > margin) return 0;
  out->dist = dist;
  for (int i = 0; i < 3; ++i) {
    out->frame[i] = -up * axis[i];
    out->frame[3 + i] = 0;
    out->pos[i] = fma_(-up * axis[i], p.size1[0] + R(0.5) * dist, p.pos1[i]);
  }
  make_frame(out->frame);
  return 1;
}

DEVICE void sphere_cylinder(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                            const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                            real* contact_frame, int* contact_cand) {
  fill_contacts<collide_sphere_cylinder, MAX_SPHERE_CYLINDER>(m, TYPE_SPHERE_CYLINDER, geom_xpos, geom_xmat, near_cand,
                                                              near_adr, pair_tally, contact_dist, contact_pos,
                                                              contact_frame, contact_cand);
}
