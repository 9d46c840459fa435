// Newton's method for unilateral rows, as in solve_newton_unilateral.cu, for the worlds of a tile on the host. A world
// has rows of zeros where it has fewer than others, and stands still once it is done. Its bits are those of the world
// alone.
#pragma once

#ifdef TILE
DEVICE real line_search_in_tile(const Model& m, int nefc, const real* D, const real* jar, const real* jv,
                                const real& linear, const real& quadratic, const real& flat, truth searching) {
  real low = 0, high = -1, alpha = 1, tolerance = flat;
  for (int iteration = 0; iteration < m.opt_ls_iterations() && any_world(searching); ++iteration) {
    real first = 0, second = 0, size = 0;
    for (int r = 0; r < nefc; ++r) {
      const real x = fma_(alpha, jv[r], jar[r]), dv = D[r] * jv[r];
      first = select(x < 0, fma_(dv, x, first), first);
      second = select(x < 0, fma_(dv, jv[r], second), second);
      if (!iteration) size = select(x < 0, fma_(abs_(dv), abs_(x) + abs_(jar[r]), size), size);
    }
    if (!iteration) tolerance = max_(tolerance, line_noise(linear, quadratic, size));
    first = fma_(alpha, quadratic, linear) + first;
    second = quadratic + second;
    searching = searching & !(abs_(first) <= tolerance);
    low = select(searching & (first < 0), alpha, low);
    high = select(searching & !(first < 0), alpha, high);
    real next = alpha - divide_(first, second);
    const truth outside = (next <= low) | ((high >= 0) & (next >= high)) | !finite_(next);
    next = select(outside, select(high >= 0, R(0.5) * (low + high), 2 * alpha), next);
    searching = searching & !(next == alpha);
    alpha = select(searching, next, alpha);
  }
  return alpha;
}

// Rows whose weights are kept at a time.
#define ROWS_AT_ONCE 64

// The gradient's part of solve_with_rows; `weight` receives D of the rows that push.
DEVICE real descent_in_tile(int nefc, const real* J, int stride, const real* D, const real* jar, const real* b,
                            real* gradient, real* weight, int nv) {
  real push[ROWS_AT_ONCE], norm = 0;
  for (int i = 0; i < nv; ++i) gradient[i] = b[i] + R(0.0);
  for (int first = 0; first < nefc; first += ROWS_AT_ONCE) {
    const int end = first + ROWS_AT_ONCE < nefc ? first + ROWS_AT_ONCE : nefc;
    for (int r = first; r < end; ++r) {
      push[r - first] = select(jar[r] < 0, jar[r], R(0.0));
      weight[r] = select(jar[r] < 0, D[r], R(0.0));
    }
    for (int i = 0; i < nv; ++i) {
      real right = gradient[i];
      for (int r = first; r < end; ++r) right = fma_(-push[r - first], weight[r] * J[r * stride + i], right);
      gradient[i] = right;
    }
  }
  for (int i = 0; i < nv; ++i) norm = fma_(gradient[i], gradient[i], norm);
  return norm;
}

DEVICE void hessian_in_tile(const real* M, int nefc, const real* J, int stride, const real* weight, real* H, int nv) {
  real scaled[ROWS_AT_ONCE];
  for (int i = 0; i < nv; ++i) {
    for (int j = 0; j <= i; ++j) H[i * nv + j] = M[i * nv + j] + R(0.0);
    for (int first = 0; first < nefc; first += ROWS_AT_ONCE) {
      const int end = first + ROWS_AT_ONCE < nefc ? first + ROWS_AT_ONCE : nefc;
      for (int r = first; r < end; ++r) scaled[r - first] = weight[r] * J[r * stride + i];
      for (int j = 0; j <= i; ++j) {
        real sum = H[i * nv + j];
        for (int r = first; r < end; ++r) sum = fma_(scaled[r - first], J[r * stride + j], sum);
        H[i * nv + j] = sum;
      }
    }
  }
}

DEVICE void newton_in_tile(const Model& m, const int* nefc, const real* qM, const real* qfrc_smooth,
                           const real* qacc_smooth, const real* qacc_warmstart, const real* efc_J, const real* efc_D,
                           const real* efc_aref, real* qacc, real* efc_force, real* qfrc_constraint, int* solver_niter,
                           real* efc_jar, real* efc_jv, real* point, real* Ma, real* descent, real* search, real* Mv,
                           real* hessian) {
  const int nv = m.nv(), stride = m.nvp();
  const SymRows M = {qM};
  int n = 0;
  for (int k = 0; k < TILE; ++k) n = nefc[k] > n ? nefc[k] : n;
  const real scale = reciprocal_(m.stat_meaninertia()[0] * (nv > 1 ? nv : 1));
  const real tolerance = max_(m.opt_tolerance()[0], REAL_EPS), smallest = divide_(tolerance, scale);
  // (1) start from qacc_warmstart or qacc_smooth, whichever costs less
  for (int i = 0; i < stride; ++i) {
    point[i] = i < nv ? qacc_smooth[i] : real(0);
    search[i] = i < nv ? qacc_warmstart[i] : real(0);
  }
  unilateral_residual(m, n, efc_J, efc_aref, point, efc_jar);
  for (int i = 0; i < nv; ++i) Mv[i] = qfrc_smooth[i];
  if (m.opt_warmstart()) {
    unilateral_residual(m, n, efc_J, efc_aref, search, efc_jv);
    sym_mul(M, search, Ma, nv);
    const real cold = twice_unilateral_cost(nv, n, qfrc_smooth, qfrc_smooth, point, point, efc_D, efc_jar);
    const truth warm = twice_unilateral_cost(nv, n, Ma, qfrc_smooth, search, point, efc_D, efc_jv) < cold;
    for (int i = 0; i < nv; ++i) {
      point[i] = select(warm, search[i], point[i]);
      Mv[i] = select(warm, Ma[i], Mv[i]);
    }
    for (int r = 0; r < n; ++r) efc_jar[r] = select(warm, efc_jv[r], efc_jar[r]);
  }
  for (int i = 0; i < nv; ++i) Ma[i] = Mv[i];
  for (int i = 0; i < stride; ++i) search[i] = 0;
  truth running = !(real(0) < 0), full = !running;
  real iterations = 0;
  // (6) stop at the optimum, or after the most iterations
  for (int iteration = 0; iteration < m.opt_iterations(); ++iteration) {
    // (2) minus the gradient, and (3) the Newton direction; efc_force is scratch until the end
    for (int i = 0; i < nv; ++i) Mv[i] = qfrc_smooth[i] - Ma[i];
    const real norm2 = descent_in_tile(n, efc_J, stride, efc_D, efc_jar, Mv, descent, efc_force, nv);
    running = running & !(norm2 < smallest * smallest);
    if (!any_world(running)) break;
    hessian_in_tile(qM, n, efc_J, stride, efc_force, hessian, nv);
    mem_factor(hessian, nv);
    for (int i = 0; i < nv; ++i) search[i] = descent[i];
    mem_solve(search, hessian, nv);
    for (int r = 0; r < n; ++r) efc_jv[r] = select(running, row_dot(efc_J, r, stride, search), efc_jv[r]);
    sym_mul(M, search, Mv, nv);
    // (4) exact line search; a full step if it does not change the set of active rows
    real linear = 0, quadratic = 0, length2 = 0, size2 = 0;
    for (int i = 0; i < nv; ++i) {
      linear = fma_(search[i], Ma[i] - qfrc_smooth[i], linear);
      quadratic = fma_(search[i], Mv[i], quadratic);
      length2 = fma_(search[i], search[i], length2);
      size2 = fma_(point[i], point[i], size2);
    }
    truth again = full, same = running;
    for (int r = 0; r < n; ++r) {
      const truth now = efc_jar[r] < 0, then = efc_jar[r] + efc_jv[r] < 0;
      same = same & !((now & !then) | (then & !now));
    }
    const real flat = smallest * m.opt_ls_tolerance()[0] * sqrt_(length2);
    const real alpha = line_search_in_tile(m, n, efc_D, efc_jar, efc_jv, linear, quadratic, flat, running & !same);
    for (int i = 0; i < nv; ++i) {
      point[i] = select(running, fma_(alpha, search[i], point[i]), point[i]);
      Ma[i] = select(running, fma_(alpha, Mv[i], Ma[i]), Ma[i]);
    }
    for (int r = 0; r < n; ++r) efc_jar[r] = select(running, fma_(alpha, efc_jv[r], efc_jar[r]), efc_jar[r]);
    iterations = select(running, iterations + 1, iterations);
    // (5) is the point as near to the optimum as rounding allows?
    full = same;
    if (!REAL_IS_FLOAT && any_world(same & !again)) {
      again = again | is_balanced(nv, n, efc_J, stride, Ma, qfrc_smooth,
                                  [&](int r) { return push_of_row(efc_D, efc_jar, r); });
    }
    if (REAL_IS_FLOAT) again = same;
    running = running & !((same & again) | (alpha * alpha * length2 <= REAL_EPS * REAL_EPS * size2));
  }
  // (7) forces
  for (int r = 0; r < n; ++r) efc_force[r] = push_of_row(efc_D, efc_jar, r);
  for (int i = 0; i < nv; ++i) {
    real x = 0;
    for (int r = 0; r < n; ++r) x = fma_(efc_J[r * stride + i], efc_force[r], x);
    qfrc_constraint[i] = x;
    qacc[i] = point[i];
  }
  for (int k = 0; k < TILE; ++k) solver_niter[k] = iterations.of[k];
}
#endif
