// Newton's method on the convex problem of MuJoCo documentation, "Computation", "Constraint solver":
//
//   minimise over a   1/2 (a - a0)' M (a - a0) + sum over rows of 1/2 D (J a - aref)^2 where J a < aref
//
//   a  qacc          a0  qacc_smooth      M  qM        J, D, aref  efc_J, efc_D, efc_aref
//
// The cost is piecewise quadratic, so a full step that leaves the set of active rows as it was ends at the optimum.

struct LineDerivative {
  real first, second;
  int flips;
};

// Derivatives of the cost along the search direction at step alpha; flips counts rows whose activity differs from alpha 0.
DEVICE LineDerivative line_derivative(int nefc, const real* D, const real* jar, const real* jv, real linear,
                                      real quadratic, real alpha) {
  real first = 0, second = 0;
  int flips = 0;
  LANE_FOR(r, nefc) {
    const real x = fma_(alpha, jv[r], jar[r]);
    flips += (x < 0) != (jar[r] < 0);
    if (x < 0) {
      const real dv = D[r] * jv[r];
      first = fma_(dv, x, first);
      second = fma_(dv, jv[r], second);
    }
  }
  LineDerivative d;
  d.first = fma_(alpha, quadratic, linear) + lane_sum(first);
  d.second = quadratic + lane_sum(second);
  d.flips = lane_sum_int(flips);
  return d;
}

// Exact minimiser along a line: Newton on the increasing piecewise linear derivative, kept inside a bracket.
DEVICE real line_search(const Model& m, int nefc, const real* D, const real* jar, const real* jv, real linear,
                        real quadratic, real slope0, real tolerance, int* flips) {
  real low = 0, high = -1, alpha = 1;
  for (int iteration = 0; iteration < m.opt_ls_iterations(); ++iteration) {
    const LineDerivative d = line_derivative(nefc, D, jar, jv, linear, quadratic, alpha);
    *flips = d.flips;
    if (abs_(d.first) <= max_(tolerance, 4 * REAL_EPS * abs_(slope0)) || (alpha == 1 && d.flips == 0)) break;
    if (d.first < 0) {
      low = alpha;
    } else {
      high = alpha;
    }
    real next = alpha - d.first / d.second;
    const bool outside = next <= low || (high >= 0 && next >= high);
    if (outside || !finite_(next)) next = high >= 0 ? R(0.5) * (low + high) : 2 * alpha;
    if (next == alpha) break;
    alpha = next;
  }
  return alpha;
}

// residual = J a - aref.
DEVICE void residual(const Model& m, int nefc, const real* J, const real* aref, const real* a, real* out) {
  const int stride = m.nvp(), nv = m.nv();
  LANE_FOR(r, nefc) {
    real x = aref ? -aref[r] : R(0.0);
    for (int v = 0; v < nv; ++v) x = fma_(J[r * stride + v], a[v], x);
    out[r] = x;
  }
}

DEVICE void mul_m(const real* M, const real* a, real* out, int nv) {
  LANE_FOR(i, nv) {
    real x = 0;
    for (int j = 0; j < nv; ++j) x = fma_(M[j * nv + i], a[j], x);
    out[i] = x;
  }
}

// Twice the cost, given Ma and the residual of a.
DEVICE real twice_cost(int nv, int nefc, const real* Ma, const real* qfrc_smooth, const real* a, const real* a0,
                       const real* D, const real* jar) {
  real x = 0;
  LANE_FOR(i, nv) x = fma_(Ma[i] - qfrc_smooth[i], a[i] - a0[i], x);
  LANE_FOR(r, nefc) x += jar[r] < 0 ? D[r] * jar[r] * jar[r] : R(0.0);
  return lane_sum(x);
}

// (1) start from the better of the last acceleration and the smooth one; leaves qacc, Ma and the residual there.
DEVICE void warm_start(const Model& m, int nefc, const real* qM, const real* qfrc_smooth, const real* qacc_smooth,
                       const real* qacc_warmstart, const real* efc_J, const real* efc_D, const real* efc_aref,
                       real* qacc, real* Ma, real* jar) {
  const int nv = m.nv();
  if (m.opt_warmstart()) {
    residual(m, nefc, efc_J, efc_aref, qacc_warmstart, jar);
    mul_m(qM, qacc_warmstart, Ma, nv);
    lane_sync();
    const real warm = twice_cost(nv, nefc, Ma, qfrc_smooth, qacc_warmstart, qacc_smooth, efc_D, jar);
    lane_sync();
    residual(m, nefc, efc_J, efc_aref, qacc_smooth, jar);
    lane_sync();
    const real cold = twice_cost(nv, nefc, qfrc_smooth, qfrc_smooth, qacc_smooth, qacc_smooth, efc_D, jar);
    if (warm < cold) {
      LANE_FOR(i, nv) qacc[i] = qacc_warmstart[i];
      lane_sync();
      residual(m, nefc, efc_J, efc_aref, qacc_warmstart, jar);
      lane_sync();
      return;
    }
  } else {
    residual(m, nefc, efc_J, efc_aref, qacc_smooth, jar);
  }
  LANE_FOR(i, nv) {
    qacc[i] = qacc_smooth[i];
    Ma[i] = qfrc_smooth[i];
  }
  lane_sync();
}

// (2) minus the gradient; returns its squared norm.
DEVICE real descent(const Model& m, int nefc, const real* qfrc_smooth, const real* Ma, const real* efc_J,
                    const real* efc_D, const real* jar, real* out) {
  const int stride = m.nvp();
  real norm = 0;
  LANE_FOR(i, m.nv()) {
    real x = qfrc_smooth[i] - Ma[i];
    for (int r = 0; r < nefc; ++r) {
      if (jar[r] < 0) x = fma_(-(efc_D[r] * jar[r]), efc_J[r * stride + i], x);
    }
    out[i] = x;
    norm = fma_(x, x, norm);
  }
  norm = lane_sum(norm);
  lane_sync();
  return norm;
}

DEVICE real lane_dot(const real* a, const real* b, int n) {
  real x = 0;
  LANE_FOR(i, n) x = fma_(a[i], b[i], x);
  return lane_sum(x);
}

DEVICE void solve(const Model& m, const int* nefc, const real* qM, const real* qfrc_smooth, const real* qacc_smooth,
                  const real* qacc_warmstart, const real* efc_J, const real* efc_D, const real* efc_aref, real* qacc,
                  real* efc_force, real* qfrc_constraint, int* solver_niter, real* efc_jar, real* efc_jv, real* Ma,
                  real* gradient, real* search, real* Mv, real* hessian) {
  const int nv = m.nv(), n = nefc[0], stride = m.nvp();
  const real scale = R(1.0) / (m.stat_meaninertia()[0] * (nv > 1 ? nv : 1));
  const real tolerance = max_(m.opt_tolerance()[0], REAL_EPS);
  warm_start(m, n, qM, qfrc_smooth, qacc_smooth, qacc_warmstart, efc_J, efc_D, efc_aref, qacc, Ma, efc_jar);
  int iteration = 0;
  bool done = false;
  while (!done && iteration < m.opt_iterations()) {
    const real norm = sqrt_(descent(m, n, qfrc_smooth, Ma, efc_J, efc_D, efc_jar, gradient));
    if (scale * norm < tolerance) break;
    // (3) Newton direction
    solve_with_rows(m, search, qM, (const real*)0, R(0.0), n, efc_J, stride, efc_D, efc_jar, gradient, hessian, nv);
    residual(m, n, efc_J, (const real*)0, search, efc_jv);
    mul_m(qM, search, Mv, nv);
    lane_sync();
    // (4) exact step along it
    real linear = 0;
    LANE_FOR(i, nv) linear = fma_(search[i], Ma[i] - qfrc_smooth[i], linear);
    linear = lane_sum(linear);
    const real quadratic = lane_dot(search, Mv, nv), slope = -lane_dot(search, gradient, nv);
    const real length2 = lane_dot(search, search, nv), size2 = lane_dot(qacc, qacc, nv);
    const real line_tolerance = tolerance * m.opt_ls_tolerance()[0] * sqrt_(length2) / scale;
    int flips = 0;
    const real alpha = line_search(m, n, efc_D, efc_jar, efc_jv, linear, quadratic, slope, line_tolerance, &flips);
    LANE_FOR(i, nv) {
      qacc[i] = fma_(alpha, search[i], qacc[i]);
      Ma[i] = fma_(alpha, Mv[i], Ma[i]);
    }
    LANE_FOR(r, n) efc_jar[r] = fma_(alpha, efc_jv[r], efc_jar[r]);
    lane_sync();
    ++iteration;
    // (5) at the optimum, or as near as rounding allows
    done = (alpha == 1 && flips == 0) || alpha * alpha * length2 <= REAL_EPS * REAL_EPS * size2;
  }
  // (6) forces
  LANE_FOR(r, n) efc_force[r] = efc_jar[r] < 0 ? -(efc_D[r] * efc_jar[r]) : R(0.0);
  lane_sync();
  LANE_FOR(i, nv) {
    real x = 0;
    for (int r = 0; r < n; ++r) x = fma_(efc_J[r * stride + i], efc_force[r], x);
    qfrc_constraint[i] = x;
  }
  LANE_FOR(i, 1) solver_niter[0] = iteration;
  lane_sync();
}
