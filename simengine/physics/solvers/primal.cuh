// Functions shared by the primal solvers. These minimise a convex cost over accelerations a, where s is the cost of the
// rows from row_law.cuh (MuJoCo documentation, "Computation", "Constraint solver", "Primal problem"):
//
//   1/2 (a - a0)' M (a - a0) + s(J a - aref)        a0  qacc_smooth    M  qM    J, aref  efc_J, efc_aref
#pragma once

// The current point of a primal solver: acceleration, M times it, and the residual and force of each row.
struct Point {
  real *a, *Ma, *jar, *force;
};

// Cost of the rows at residuals jar; `force` and `weight` as in row_law.
DEVICE real rows_cost(const Model& m, const Rows& rows, const real* jar, real* force, real* weight) {
#ifdef PLAIN_ROWS
  if (are_plain(m)) return plain_rows_cost(rows, jar, force, weight);
  if (rows.cones) {
    const real others = plain_rows_cost(before_cones(rows), jar, force, weight);
    return cones_cost(*rows.cones, others, jar, force, weight);
  }
#endif
  RowSum cost = {0};
  LANE_FOR(r, rows.n) {
#if SIMENGINE_GPU
    add_row(cost, r, law_of_row(m, rows, r, jar, force, weight));
#else
    const int dim = rows_together(m, rows, r);
    if (!dim) continue;
    add_row(cost, r, row_law(m, rows, r, dim, jar + r, force + r, weight ? weight + MAX_CONE_ROWS * r : (real*)0));
#endif
  }
  return lane_sum(cost);
}

// out = J x
DEVICE void times_rows(const Model& m, const Rows& rows, const real* x, real* out) {
#ifdef MATRIX_VECTORS
  if (rows.unit) {
    times_beside_units(rows, *rows.unit, m.nvp(), x, out);
    return;
  }
#endif
#if defined(BRANCH_ROWS) || (defined(MATRIX_ROWS) && !defined(UNIT_ISLAND))  // dofs of islands have other numbers
  LANE_FOR(r, rows.n) {
    const FewDofs few = few_dofs(m, rows.type[r], rows.id[r]);
    const real* row = rows.J + size_t(r) * m.nvp();
    if (few.low < 0) {
      out[r] = row_dot(rows.J, r, m.nvp(), x);
      continue;
    }
    const real first = fma_(row[few.low], x[few.low], R(0.0));
    out[r] = few.high < 0 ? first : fma_(row[few.high], x[few.high], first);
  }
  return;
#endif
#if DOF_RANGES
  rows_times_in_spans(rows.spans, rows.n, rows.J, m.nvp(), x, out);
  return;
#endif
  rows_times(rows.n, rows.J, m.nvp(), x, out);
}

DEVICE void row_residual(const Model& m, const Rows& rows, const real* a, real* out) {
  times_rows(m, rows, a, out);
  LANE_FOR(r, rows.n) out[r] -= rows.aref[r];
}

// x = J' f + y
DEVICE void add_row_forces(const Model& m, const Rows& rows, const real* force, const real* y, real* x) {
  const int stride = m.nvp();
#ifdef MATRIX_ROWS
  two_store(x, wide_add_forces(rows.J, rows.n, force, y ? two_load(y, m.nv()) : TwoDofs{{0, 0}}, m.nv()), m.nv());
  return;
#endif
#ifdef SOLVER_WARPS
  add_forces_by_warps(m, rows, force, y, x);
  return;
#endif
#ifdef MATRIX_VECTORS
  if (rows.unit) {
    add_beside_units(rows, *rows.unit, stride, force, y, x, m.nv());
    return;
  }
  add_rows_in_vectors(rows.n, rows.J, stride, force, y, x, m.nv());
  return;
#endif
  DOF_FOR(i, m.nv()) {
    real sum = y ? y[i] : R(0.0);
    OVERLAPPED for (int r = 0; r < rows.n; ++r) sum = fma_(rows.J[r * stride + i], force[r], sum);
    x[i] = sum;
  }
}

// Start from qacc_warmstart or qacc_smooth, whichever costs less; `other` and `other_jar` are scratch.
DEVICE void primal_start(const Model& m, const Rows& rows, const SymRows& M, const real* qfrc_smooth,
                         const real* qacc_smooth, const real* qacc_warmstart, const Point& p, real* other,
                         real* other_jar) {
  const int nv = m.nv();
  LANE_FOR(i, m.nvp()) {
    p.a[i] = i < nv ? qacc_smooth[i] : R(0.0);
    other[i] = i < nv ? qacc_warmstart[i] : R(0.0);
  }
  lane_sync();
  row_residual(m, rows, p.a, p.jar);
  bool warm = false;
  if (m.opt_warmstart()) {
    row_residual(m, rows, other, other_jar);
    sym_mul(M, other, p.Ma, nv);
    lane_sync();
    real inertial = 0;
    DOF_FOR(i, nv) inertial = R(0.5) * (p.Ma[i] - qfrc_smooth[i]) * (other[i] - p.a[i]) + inertial;
    const real cold = rows_cost(m, rows, p.jar, p.force, (real*)0);
    lane_sync();
    warm = lane_sum(inertial) + rows_cost(m, rows, other_jar, p.force, (real*)0) < cold;
  }
  lane_sync();
  if (warm) {
    DOF_FOR(i, nv) p.a[i] = other[i];
    LANE_FOR(r, rows.n) p.jar[r] = other_jar[r];
  } else {
    DOF_FOR(i, nv) p.Ma[i] = qfrc_smooth[i];
  }
  lane_sync();
}

// A derivative along a line below this is rounding, where the rows' terms have sizes that add up to `rows`.
DEVICE real line_noise(real linear, real quadratic, real rows) {
  return 4 * REAL_EPS * (abs_(linear) + quadratic + rows);
}

// Sums of line_law over rows.
#ifdef WARP_AS_TWO
struct LineSums {
  RowSum first, second, size;
};
#else
typedef LineLaw LineSums;
#endif

// Exact minimiser along a line: Newton's method on the derivative, which is increasing, safeguarded by a bracket.
// `linear` and `quadratic` are the derivatives of the inertial cost at the start of the line. It ends where the
// derivative is within `tolerance`, or is rounding. `lines` is scratch, MAX_CONE_ROWS words for each row; without cones
// it is not used.
DEVICE real primal_line_search(const Model& m, const Rows& rows, const real* jar, const real* jv, real linear,
                               real quadratic, real tolerance, real* lines) {
#ifdef PLAIN_ROWS
  const bool plain = are_plain(m) || rows.cones;
  const int cones = rows.cones ? rows.cones->vectors : 0;
  const Rows others = cones ? before_cones(rows) : rows;
  ConeLines cone_lines[MOST_CONE_VECTORS];
  if (cones) put_cone_lines(*rows.cones, jar, jv, cone_lines);
  if (!plain)
#endif
  {
    LANE_FOR(r, HAS_CONES ? rows.n : 0) put_line(m, rows, r, jar + r, jv + r, lines + MAX_CONE_ROWS * r);
  }
  lane_sync();
  real low = 0, high = -1, alpha = 1;
  ROLLED for (int iteration = 0; iteration < m.opt_ls_iterations(); ++iteration) {
    LineSums sum = {{0}, {0}, {0}};
#ifdef PLAIN_ROWS
    if (plain) sum = plain_line_law(others, jar, jv, alpha);
    if (cones) add_cone_lines(cone_lines, cones, alpha, sum);
    const int prepared = plain ? 0 : rows.n;
#else
    const int prepared = rows.n;
#endif
    LANE_FOR(r, prepared) {
      const LineLaw law =
          HAS_CONES ? line_law(lines + MAX_CONE_ROWS * r, alpha) : row_line_law(rows, r, jar, jv, alpha);
      add_row(sum.first, r, law.first);
      add_row(sum.second, r, law.second);
      add_row(sum.size, r, law.size);
    }
    RowSum sums[3] = {sum.first, sum.second, sum.size};
    lane_sums<3>(sums);
    if (!iteration) tolerance = max_(tolerance, line_noise(linear, quadratic, total(sums[2])));
    const real first = fma_(alpha, quadratic, linear) + total(sums[0]), second = quadratic + total(sums[1]);
    if (abs_(first) <= tolerance) break;
    if (first < 0) {
      low = alpha;
    } else {
      high = alpha;
    }
    real next = alpha - divide_(first, second);
    const bool outside = next <= low || (high >= 0 && next >= high);
    if (outside || !finite_(next)) next = high >= 0 ? R(0.5) * (low + high) : 2 * alpha;
    if (next == alpha) break;
    alpha = next;
  }
  return alpha;
}

// A step along a direction: its multiple of the direction, and its squared length relative to that of the acceleration.
struct Move {
  real alpha, length2;
};

// One step along `search` to the exact minimum, given Mv = M search and jv = J search; a full step if `full`. `lines`
// is scratch, as in primal_line_search.
DEVICE Move primal_move(const Model& m, const Rows& rows, const real* qfrc_smooth, const Point& p, const real* search,
                        const real* Mv, const real* jv, real smallest, real* lines, bool full = false) {
  const int nv = m.nv();
  real linear = 0, quadratic = 0, length2 = 0, size2 = 0;
  lane_sync();
  DOF_FOR(i, nv) {
    linear = fma_(search[i], p.Ma[i] - qfrc_smooth[i], linear);
    quadratic = fma_(search[i], Mv[i], quadratic);
    length2 = fma_(search[i], search[i], length2);
    size2 = fma_(p.a[i], p.a[i], size2);
  }
  real sums[4] = {linear, quadratic, length2, size2};
  lane_sums<4>(sums);
  linear = sums[0], quadratic = sums[1], length2 = sums[2], size2 = sums[3];
  const real flat = smallest * m.opt_ls_tolerance()[0] * sqrt_(length2);
  const real alpha = full ? R(1.0) : primal_line_search(m, rows, p.jar, jv, linear, quadratic, flat, lines);
  DOF_FOR(i, nv) {
    p.a[i] = fma_(alpha, search[i], p.a[i]);
    p.Ma[i] = fma_(alpha, Mv[i], p.Ma[i]);
  }
  LANE_FOR(r, rows.n) p.jar[r] = fma_(alpha, jv[r], p.jar[r]);
  lane_sync();
  return {alpha, divide_(alpha * alpha * length2, max_(size2, MJMINVAL))};
}

// Mv = M search and jv = J search.
DEVICE void primal_products(const Model& m, const Rows& rows, const SymRows& M, const real* search, real* Mv,
                            real* jv) {
  times_rows(m, rows, search, jv);
  sym_mul(M, search, Mv, m.nv());
}

// One step along `search`; computes Mv and jv for primal_move.
DEVICE Move primal_step(const Model& m, const Rows& rows, const SymRows& M, const real* qfrc_smooth, const Point& p,
                        const real* search, real* Mv, real* jv, real smallest, real* lines) {
  primal_products(m, rows, M, search, Mv, jv);
  return primal_move(m, rows, qfrc_smooth, p, search, Mv, jv, smallest, lines);
}

// A decrease of the cost along `search` below this is rounding. Dofs that stand still on it have no part in either:
// their trees may have far larger accelerations.
DEVICE real primal_noise(const Model& m, const Point& p, const real* qfrc_smooth, const real* search) {
  real inertial = 0, smooth = 0;
  DOF_FOR(i, m.nv()) {
    const real a = select(search[i] != 0, p.a[i], R(0.0));
    inertial = fma_(a, p.Ma[i], inertial);
    smooth = fma_(a, qfrc_smooth[i], smooth);
  }
  return 100 * REAL_EPS * REAL_EPS * (abs_(lane_sum(inertial)) + abs_(lane_sum(smooth)));
}

// For rows that only push: their residuals J a - aref.
DEVICE void unilateral_residual(const Model& m, int nefc, const real* J, const real* aref, const real* a, real* out) {
  rows_times(nefc, J, m.nvp(), a, out);
  LANE_FOR(r, nefc) out[r] -= aref[r];
}

// The same: twice the cost of a point, given M a and the residual of each row.
DEVICE real twice_unilateral_cost(int nv, int nefc, const real* Ma, const real* qfrc_smooth, const real* a,
                                  const real* a0, const real* D, const real* jar) {
  real x = 0;
  DOF_FOR(i, nv) x = fma_(Ma[i] - qfrc_smooth[i], a[i] - a0[i], x);
  LANE_FOR(r, nefc) x += select(jar[r] < 0, D[r] * jar[r] * jar[r], R(0.0));
  return lane_sum(x);
}
