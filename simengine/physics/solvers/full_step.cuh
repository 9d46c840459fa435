// Does a full step of Newton's method end at the optimum?
#pragma once

// Squared length of a step, relative to that of the acceleration, below which its rounding errors do not count.
// Kernels with wide matrices, in which one iteration more takes long, take any step.
#ifdef MATRIX_ROWS
#define SHORT_STEP2 REAL_MAX
#else
#define SHORT_STEP2 R(1e-2)
#endif

// Force of a row that only pushes, at its residual.
DEVICE real push_of_row(const real* D, const real* jar, int r) {
  return select(jar[r] < 0, -(D[r] * jar[r]), R(0.0));
}

// Has the cost of row r, or of the cone whose first row is r, the same second derivatives all along a full step?
DEVICE bool is_quadratic(const Model& m, const Rows& rows, int r, int dim, const real* jar, const real* jv) {
  if (!in_cone(rows.type[r])) {
    const real x = jar[0] + jv[0];
    const Zone before = scalar_zone(rows, r, jar[0]);
    return before == scalar_zone(rows, r, x) && (before != BETWEEN || (jar[0] < 0) == (x < 0));
  }
  const Zone before = cone_at(m, rows, r, dim, jar).zone;
  if (before == BETWEEN) return false;
  return before == cone_of(m, rows, r, dim, [&](int i) { return jar[i] + jv[i]; }).zone;
}

// Is the cost quadratic along a full step, which then ends at the optimum?
DEVICE bool is_full_step(const Model& m, const Rows& rows, const real* jar, const real* jv) {
#ifdef PLAIN_ROWS
  if (are_plain(m)) return plain_full_step(rows, jar, jv);
  if (rows.cones) return plain_full_step(before_cones(rows), jar, jv) && cones_full_step(*rows.cones, jar, jv);
#endif
  int bends = 0;
  lane_sync();
  LANE_FOR(r, rows.n) {
    const int dim = rows_together(m, rows, r);
    if (dim) bends |= !is_quadratic(m, rows, r, dim, jar + r, jv + r);
  }
  return !lane_any(bends);
}

// Do inertial, smooth and constraint forces balance, but for rounding? Where rows are far harder than inertia, as edges
// of pyramids with hardly any friction, the Hessian has few digits of the inertia, and a full step ends beside the
// optimum. This is asked in double precision only. `force(r)` gives the force of row r.
template <class Force>
DEVICE truth is_balanced(int nv, int n, const real* J, int stride, const real* Ma, const real* qfrc_smooth,
                         const Force& force) {
  truth off = real(0) < 0;
#if !REAL_IS_FLOAT
  real total = 0;  // where a dof has no forces, rounding is that of other dofs
  DOF_FOR(i, nv) total += abs_(Ma[i]) + abs_(qfrc_smooth[i]);
  total = lane_sum(total);
  DOF_FOR(i, nv) {
    real left = Ma[i] - qfrc_smooth[i], size = abs_(Ma[i]) + abs_(qfrc_smooth[i]);
    for (int r = 0; r < n; ++r) {
      const real x = J[r * stride + i] * force(r);
      left -= x;
      size += abs_(x);
    }
    off = off | (abs_(left) > 1e-9 * size + 1e-14 * total);
  }
  off = any_lane(off);
#endif
  return !off;
}
