// Two capsules: contact of the nearest spheres inside them or, if their axes are parallel, a contact at each end of the
// part of the first segment that lies beside the second; the same contact twice if there is no such part.

// Squared sine of the angle below which two axes count as parallel.
#define PARALLEL R(1e-8)
// That below which the determinant has lost digits, so that the nearest points of the axes take a second step.
#define NARROW R(0.0625)

// (3) sphere against sphere at a pair of points.
DEVICE int capsule_points(const Pair& p, const real* half1, const real* half2, real x1, real x2, bool crossed,
                          real margin, Contact* out) {
  real point1[3], point2[3], axis1[3], axis2[3];
  mat_col(axis1, p.mat1, 2);
  mat_col(axis2, p.mat2, 2);
  for (int i = 0; i < 3; ++i) {
    point1[i] = fma_(x1, half1[i], p.pos1[i]);
    point2[i] = fma_(x2, half2[i], p.pos2[i]);
  }
  const bool inner1 = crossed && abs_(x1) < 1, inner2 = crossed && abs_(x2) < 1;
  return sphere_contact(point1, p.size1[0], point2, p.size2[0], axis1, axis2, inner1, inner2, margin, out);
}

DEVICE real unit_clamp(real x) { return clamp_(x, R(-1.0), R(1.0)); }

DEVICE int collide_capsule_capsule(const Pair& p, real margin, Contact* out) {
  real axis1[3], axis2[3], across[3], half1[3], half2[3], offset[3];
  mat_col(axis1, p.mat1, 2);
  mat_col(axis2, p.mat2, 2);
  cross3(across, axis1, axis2);
  for (int i = 0; i < 3; ++i) {
    half1[i] = p.size1[1] * axis1[i];
    half2[i] = p.size2[1] * axis2[i];
    offset[i] = p.pos1[i] - p.pos2[i];
  }
  // (1) half-axes and the normal equations of the nearest points, each parameter in [-1, 1]
  const real ma = dot3(half1, half1), mb = -dot3(half1, half2), mc = dot3(half2, half2);
  const real u = -dot3(half1, offset), v = dot3(half2, offset);
  const real sine2 = dot3(across, across);
  if (sine2 >= PARALLEL) {
    // (2) nearest points: the unconstrained optimum, clamped one parameter after the other. The determinant is computed
    // from the matrix itself, because their rounding errors then cancel in the solution; a lower bound keeps it
    // positive
    const real det = max_(ma * mc - mb * mb, REAL_EPS * ma * mc);
    real x1 = (mc * u - mb * v) / det, x2 = (ma * v - mb * u) / det;
    if (sine2 < NARROW) {
      for (int i = 0; i < 3; ++i) offset[i] = fma_(x1, half1[i], fma_(-x2, half2[i], offset[i]));
      const real left1 = -dot3(half1, offset), left2 = dot3(half2, offset);
      x1 += (mc * left1 - mb * left2) / det;
      x2 += (ma * left2 - mb * left1) / det;
    }
    if (x1 > 1 || x1 < -1) {
      x1 = unit_clamp(x1);
      x2 = (v - x1 * mb) / mc;
    }
    if (x2 > 1 || x2 < -1) {
      x2 = unit_clamp(x2);
      x1 = unit_clamp((u - x2 * mb) / ma);
    }
    return capsule_points(p, half1, half2, x1, x2, true, margin, out);
  }
  // or, if parallel, the ends of the overlap, and the points of the second capsule beside them
  int number = 0;
  for (int end = 0; end < 2; ++end) {
    const real reach = end == 0 ? -abs_(mb) : abs_(mb);
    const real x1 = unit_clamp((u + reach) / ma), x2 = unit_clamp((v - x1 * mb) / mc);
    number += capsule_points(p, half1, half2, x1, x2, false, margin, out + number);
  }
  return number;
}

DEVICE void capsule_capsule(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                            const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                            real* contact_frame, int* contact_cand) {
  fill_contacts<collide_capsule_capsule, MAX_CAPSULE_CAPSULE>(m, TYPE_CAPSULE_CAPSULE, geom_xpos, geom_xmat, near_cand,
                                                              near_adr, pair_tally, contact_dist, contact_pos,
                                                              contact_frame, contact_cand);
}
