// Newton's method for unilateral rows, which only push (MuJoCo documentation, "Computation", "Constraint solver",
// "Primal problem"):
//
//   minimise over a   1/2 (a - a0)' M (a - a0) + sum over rows of 1/2 D (J a - aref)^2 where J a < aref
//
//   a  qacc          a0  qacc_smooth      M  qM        J, D, aref  efc_J, efc_D, efc_aref
//
// The cost is piecewise quadratic, so a full step that does not change the set of active rows ends at the optimum, but
// for rounding.

struct LineDerivative {
  real first, second;
  real size;  // of the terms that this lane adds up to `first`
};

// Derivatives of the cost along the search direction, at step length alpha.
DEVICE LineDerivative line_derivative(int nefc, const real* D, const real* jar, const real* jv, real linear,
                                      real quadratic, real alpha) {
  LineDerivative d = {0, 0, 0};
#ifdef PLAIN_ROWS
  for (int first = 0; first < nefc; first += VECTOR_WIDTH) {  // rows that do not push add zeros
    const int number = nefc - first < VECTOR_WIDTH ? nefc - first : VECTOR_WIDTH;
    const Lanes from = load_words(jar + first, number), along = load_words(jv + first, number);
    const Lanes x = vector_fma(every(alpha), along, from), rate = load_words(D + first, number) * along;
    const Truths pushes = x < Lanes{};
    const Lanes at = where(pushes, x), dv = where(pushes, rate), way = where(pushes, along);
    const Lanes weight = size_of(dv), far = where(pushes, size_of(x) + size_of(from));
    for (int i = 0; i < number; ++i) {
      d.first = fma_(dv[i], at[i], d.first);
      d.second = fma_(dv[i], way[i], d.second);
      d.size = fma_(weight[i], far[i], d.size);
    }
  }
  nefc = 0;  // all rows are done
#endif
  LANE_FOR(r, nefc) {
    const real x = fma_(alpha, jv[r], jar[r]);
    if (x < 0) {
      const real dv = D[r] * jv[r];
      d.first = fma_(dv, x, d.first);
      d.second = fma_(dv, jv[r], d.second);
      d.size = fma_(abs_(dv), abs_(x) + abs_(jar[r]), d.size);
    }
  }
  real sums[2] = {d.first, d.second};
  lane_sums<2>(sums);
  d.first = fma_(alpha, quadratic, linear) + sums[0];
  d.second = quadratic + sums[1];
  return d;
}

// Does a full step leave the set of active rows unchanged?
DEVICE bool same_rows(int nefc, const real* jar, const real* jv) {
  int flips = 0;
  LANE_FOR(r, nefc) flips |= (jar[r] + jv[r] < 0) != (jar[r] < 0);
  return !lane_any(flips);
}

// Exact minimiser along a line: Newton's method on the derivative, which is increasing and piecewise linear,
// safeguarded by a bracket. It ends where the derivative is within `tolerance`, or is rounding.
DEVICE real line_search(const Model& m, int nefc, const real* D, const real* jar, const real* jv, real linear,
                        real quadratic, real tolerance) {
  real low = 0, high = -1, alpha = 1;
  ROLLED for (int iteration = 0; iteration < m.opt_ls_iterations(); ++iteration) {
    const LineDerivative d = line_derivative(nefc, D, jar, jv, linear, quadratic, alpha);
    if (!iteration) tolerance = max_(tolerance, line_noise(linear, quadratic, lane_sum(d.size)));
    if (abs_(d.first) <= tolerance) break;
    if (d.first < 0) {
      low = alpha;
    } else {
      high = alpha;
    }
    real next = alpha - divide_(d.first, d.second);
    const bool outside = next <= low || (high >= 0 && next >= high);
    if (outside || !finite_(next)) next = high >= 0 ? R(0.5) * (low + high) : 2 * alpha;
    if (next == alpha) break;
    alpha = next;
  }
  return alpha;
}

// (1) start from qacc_warmstart or qacc_smooth, whichever costs less; sets the point, M times it, and the residuals.
DEVICE void warm_start(const Model& m, int nefc, const SymRows& M, const real* qfrc_smooth, const real* qacc_smooth,
                       const real* qacc_warmstart, const real* efc_J, const real* efc_D, const real* efc_aref,
                       real* point, real* Ma, real* jar, real* other, real* other_jar) {
  const int nv = m.nv();
  LANE_FOR(i, m.nvp()) {
    point[i] = i < nv ? qacc_smooth[i] : R(0.0);
    other[i] = i < nv ? qacc_warmstart[i] : R(0.0);
  }
  lane_sync();
  unilateral_residual(m, nefc, efc_J, efc_aref, point, jar);
  if (m.opt_warmstart()) {
    unilateral_residual(m, nefc, efc_J, efc_aref, other, other_jar);
    sym_mul(M, other, Ma, nv);
    lane_sync();
    const real cold = twice_unilateral_cost(nv, nefc, qfrc_smooth, qfrc_smooth, point, point, efc_D, jar);
    const real warm = twice_unilateral_cost(nv, nefc, Ma, qfrc_smooth, other, point, efc_D, other_jar);
    if (warm < cold) {
      lane_sync();
      DOF_FOR(i, nv) point[i] = other[i];
      LANE_FOR(r, nefc) jar[r] = other_jar[r];
      lane_sync();
      return;
    }
  }
  lane_sync();
  DOF_FOR(i, nv) Ma[i] = qfrc_smooth[i];
  lane_sync();
}

DEVICE void solve_newton_unilateral(const Model& m, const int* nefc, const real* qM, const real* qfrc_smooth,
                                    const real* qacc_smooth, const real* qacc_warmstart, const real* efc_J,
                                    const real* efc_D, const real* efc_aref, real* qacc, real* efc_force,
                                    real* qfrc_constraint, int* solver_niter, real* efc_jar, real* efc_jv,
                                    real* point, real* Ma, real* descent, real* search, real* Mv, real* hessian) {
#ifdef TILE
  newton_in_tile(m, nefc, qM, qfrc_smooth, qacc_smooth, qacc_warmstart, efc_J, efc_D, efc_aref, qacc, efc_force,
                 qfrc_constraint, solver_niter, efc_jar, efc_jv, point, Ma, descent, search, Mv, hessian);
#else
  const int nv = m.nv(), n = nefc[0], stride = m.nvp();
  if (n == 0) {
    accelerate_smoothly(m, qacc_smooth, qacc, qfrc_constraint, solver_niter);
    return;
  }
  const real scale = reciprocal_(m.stat_meaninertia()[0] * (nv > 1 ? nv : 1));
  const real tolerance = max_(m.opt_tolerance()[0], REAL_EPS), smallest = divide_(tolerance, scale);
  SymRows M;
#if DOF_RANGES
  M.range = range_of_dof(m, n, efc_J, stride);
#endif
  sym_load(&M, qM, nv);
  sym_set_aside(&M);
#ifdef BRANCH_ROWS
  M.branches = branches_of(m, n, efc_J, stride, [](int) { return 1; }, [](int) { return FewDofs(); }, hessian);
#endif
  warm_start(m, n, M, qfrc_smooth, qacc_smooth, qacc_warmstart, efc_J, efc_D, efc_aref, point, Ma, efc_jar, search,
             efc_jv);
  LANE_FOR(i, stride) search[i] = 0;
  lane_sync();
  int iteration = 0;
  bool done = false, full = false;
  // (6) stop at the optimum, or after the most iterations
  while (!done && iteration < m.opt_iterations()) {
    // (2) minus the gradient, and (3) the Newton direction
    DOF_FOR(i, nv) Mv[i] = qfrc_smooth[i] - Ma[i];
    lane_sync();
    const real norm2 = solve_with_rows(m, search, M, (const real*)0, R(0.0), n, efc_J, stride, efc_D, efc_jar, Mv,
                                       descent, smallest * smallest, hessian, nv);
    if (norm2 < smallest * smallest) break;
    rows_times(n, efc_J, stride, search, efc_jv);
    sym_mul(M, search, Mv, nv);
    lane_sync();
    // (4) exact line search; a full step if it does not change the set of active rows
    real linear = 0, quadratic = 0, length2 = 0, size2 = 0;
    DOF_FOR(i, nv) {
      linear = fma_(search[i], Ma[i] - qfrc_smooth[i], linear);
      quadratic = fma_(search[i], Mv[i], quadratic);
      length2 = fma_(search[i], search[i], length2);
      size2 = fma_(point[i], point[i], size2);
    }
    real sums[4] = {length2, size2, linear, quadratic};
    lane_sums<4>(sums);
    length2 = sums[0], size2 = sums[1], linear = sums[2], quadratic = sums[3];
    real alpha = 1;
    const bool again = full;
    full = same_rows(n, efc_jar, efc_jv);
    if (!full) {
      const real flat = smallest * m.opt_ls_tolerance()[0] * sqrt_(length2);
      alpha = line_search(m, n, efc_D, efc_jar, efc_jv, linear, quadratic, flat);
    }
    DOF_FOR(i, nv) {
      point[i] = fma_(alpha, search[i], point[i]);
      Ma[i] = fma_(alpha, Mv[i], Ma[i]);
    }
    LANE_FOR(r, n) efc_jar[r] = fma_(alpha, efc_jv[r], efc_jar[r]);
    lane_sync();
    ++iteration;
    // (5) is the point as near to the optimum as rounding allows?
    done = full && (again || is_balanced(nv, n, efc_J, stride, Ma, qfrc_smooth,
                                         [&](int r) { return push_of_row(efc_D, efc_jar, r); }));
    done = done || alpha * alpha * length2 <= REAL_EPS * REAL_EPS * size2;
  }
  // (7) forces
  LANE_FOR(r, n) efc_force[r] = push_of_row(efc_D, efc_jar, r);
  lane_sync();
#ifdef MATRIX_ROWS
  two_store(qfrc_constraint, wide_add_forces(efc_J, n, efc_force, {{0, 0}}, nv), nv);
  two_store(qacc, two_load(point, nv), nv);
#else
#ifdef MATRIX_VECTORS
  add_rows_in_vectors(n, efc_J, stride, efc_force, (const real*)0, qfrc_constraint, nv);
  for (int i = 0; i < nv; ++i) qacc[i] = point[i];
#else
  DOF_FOR(i, nv) {
    real x = 0;
    OVERLAPPED for (int r = 0; r < n; ++r) x = fma_(efc_J[r * stride + i], efc_force[r], x);
    qfrc_constraint[i] = x;
    qacc[i] = point[i];
  }
#endif
#endif
  LANE_FOR(i, 1) solver_niter[0] = iteration;
  lane_sync();
#endif
}
