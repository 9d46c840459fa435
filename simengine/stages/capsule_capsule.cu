// Two capsules: the nearest spheres inside them, or one contact at each end of the overlap if they are parallel.
// Below this determinant (relative in float32, where rounding hides parallel axes) capsules count as parallel.
DEVICE real parallel_threshold(real ma, real mc) {
#if REAL_IS_FLOAT
  return max_(MJMINVAL, R(1e-6) * ma * mc);
#else
  return MJMINVAL;
#endif
}

DEVICE int capsule_points(const Pair& p, const real* half1, const real* half2, real x1, real x2, real margin,
                          Contact* out) {
  real point1[3], point2[3];
  for (int i = 0; i < 3; ++i) {
    point1[i] = fma_(x1, half1[i], p.pos1[i]);
    point2[i] = fma_(x2, half2[i], p.pos2[i]);
  }
  return sphere_contact(point1, p.size1[0], point2, p.size2[0], half1, half2, margin, out);
}

DEVICE int collide_capsule_capsule(const Pair& p, real margin, Contact* out) {
  real half1[3], half2[3], offset[3];
  mat_col(half1, p.mat1, 2);
  mat_col(half2, p.mat2, 2);
  for (int i = 0; i < 3; ++i) {
    half1[i] *= p.size1[1];
    half2[i] *= p.size2[1];
    offset[i] = p.pos1[i] - p.pos2[i];
  }
  // (1) normal equations of the nearest points, each parameter in [-1, 1]
  const real ma = dot3(half1, half1), mb = -dot3(half1, half2), mc = dot3(half2, half2);
  const real u = -dot3(half1, offset), v = dot3(half2, offset), det = ma * mc - mb * mb;
  if (abs_(det) >= parallel_threshold(ma, mc)) {
    // (2) the unconstrained optimum, clamped one parameter after the other
    real x1 = (mc * u - mb * v) / det, x2 = (ma * v - mb * u) / det;
    if (x1 > 1 || x1 < -1) {
      x1 = x1 > 1 ? R(1.0) : R(-1.0);
      x2 = (v - x1 * mb) / mc;
    }
    if (x2 > 1 || x2 < -1) {
      x2 = x2 > 1 ? R(1.0) : R(-1.0);
      x1 = clamp_((u - x2 * mb) / ma, R(-1.0), R(1.0));
    }
    return capsule_points(p, half1, half2, x1, x2, margin, out);
  }
  // (3) parallel: the ends of the first, then of the second, until there are two contacts
  int number = 0;
  for (int k = 0; k < 4 && number < 2; ++k) {
    const real end = k % 2 == 0 ? R(1.0) : R(-1.0);
    const real x1 = k < 2 ? end : clamp_((u - end * mb) / ma, R(-1.0), R(1.0));
    const real x2 = k < 2 ? clamp_((v - end * mb) / mc, R(-1.0), R(1.0)) : end;
    number += capsule_points(p, half1, half2, x1, x2, margin, out + number);
  }
  return number;
}

DEVICE void capsule_capsule(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* cand_adr, real* contact_dist,
                            real* contact_pos, real* contact_frame, int* contact_cand) {
  fill_contacts<collide_capsule_capsule>(m, 4, geom_xpos, geom_xmat, cand_adr, contact_dist, contact_pos, contact_frame,
                                        contact_cand);
}
