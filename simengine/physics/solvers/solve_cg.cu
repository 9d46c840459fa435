// Non-linear conjugate gradients on the primal problem (primal.cuh) with rows of every type, preconditioned by inv(M).
// The direction is that of W. Hager and H. Zhang, SIAM J. Optim. 16 (2005), (1.6), with the gradient g, P = inv(M) and
// the previous search direction d:
//
//   beta = (y' P g - 2 (y' P y) (d' g) / (d' y)) / (d' y)        y = g - previous g

DEVICE void solve_cg(const Model& m, const int* nefc, const real* qM, const real* qfrc_smooth,
                     const real* qacc_smooth, const real* qacc_warmstart, const real* efc_J, const real* efc_D,
                     const real* efc_aref, const int* efc_type, const int* efc_id, const real* efc_frictionloss,
                     const int* contact_efc_address, const int* contact_cand, const real* qLD, real* qacc,
                     real* efc_force, real* qfrc_constraint, int* solver_niter, real* efc_jar, real* efc_jv,
                     real* efc_weight, real* point, real* Ma, real* gradient, real* scaled, real* change,
                     real* search, real* Mv) {
  const int nv = m.nv();
  Rows rows = {nefc[0], efc_type, efc_id, contact_efc_address, contact_cand,
                     efc_J, efc_D, efc_aref, efc_frictionloss};
  if (rows.n == 0) {
    accelerate_smoothly(m, qacc_smooth, qacc, qfrc_constraint, solver_niter);
    return;
  }
#ifdef PLAIN_ROWS
  ThreeRowCones cones;
  if (!are_plain(m) && find_cones(m, rows, cones)) rows.cones = &cones;
#endif
#ifdef MATRIX_VECTORS
  const VectorInverse inverse(qLD, nv);
#endif
  const Point p = {point, Ma, efc_jar, efc_force};
  const real scale = reciprocal_(m.stat_meaninertia()[0] * (nv > 1 ? nv : 1));
  const real smallest = divide_(max_(m.opt_tolerance()[0], REAL_EPS), scale);
  SymRows M;
  sym_load(&M, qM, nv);
  LANE_FOR(i, MAX_CONE_ROWS * rows.n) efc_weight[i] = 0;
  // (1) start from qacc_warmstart or qacc_smooth, whichever costs less
  primal_start(m, rows, M, qfrc_smooth, qacc_smooth, qacc_warmstart, p, search, efc_jv);
  LANE_FOR(i, m.nvp()) search[i] = 0;
  LANE_FOR(r, rows.n) efc_jv[r] = 0;
  DOF_FOR(i, nv) gradient[i] = 0;
  int iteration = 0;
  bool done = false;
  // (6) stop at the optimum, or after the most iterations
  while (!done) {
    lane_sync();
    // (2) forces, gradient, and its change
    rows_cost(m, rows, efc_jar, efc_force, (real*)0);
    lane_sync();
    add_row_forces(m, rows, efc_force, qfrc_smooth, Mv);
    real norm2 = 0;
    DOF_FOR(i, nv) {
      const real before = gradient[i];
      gradient[i] = Ma[i] - Mv[i];
      change[i] = gradient[i] - before;
      Mv[i] = scaled[i];
      scaled[i] = gradient[i];
      norm2 = fma_(gradient[i], gradient[i], norm2);
    }
    if (lane_sum(norm2) < smallest * smallest || iteration == m.opt_iterations()) break;
    lane_sync();
#ifdef MATRIX_VECTORS
    if (inverse.n) inverse.solve(scaled);
    else chol_solve(scaled, qLD, nv);
#else
    chol_solve(scaled, qLD, nv);
#endif
    // (3) direction: steepest descent at first, and wherever the conjugate direction is not one of descent
    real yPg = 0, yPy = 0, dg = 0, dy = 0, gPg = 0;
    DOF_FOR(i, nv) {
      yPg = fma_(change[i], scaled[i], yPg);
      yPy = fma_(change[i], scaled[i] - Mv[i], yPy);
      dg = fma_(search[i], gradient[i], dg);
      dy = fma_(search[i], change[i], dy);
      gPg = fma_(gradient[i], scaled[i], gPg);
    }
    yPg = lane_sum(yPg);
    yPy = lane_sum(yPy);
    dg = lane_sum(dg);
    dy = lane_sum(dy);
    gPg = lane_sum(gPg);
    real beta = 0;
    if (iteration && dy > 0) beta = max_(R(0.0), divide_(yPg - 2 * yPy * divide_(dg, dy), dy));
    if (beta * dg >= gPg) beta = 0;
    DOF_FOR(i, nv) search[i] = fma_(beta, search[i], -scaled[i]);
    lane_sync();
    const real noise = primal_noise(m, p, qfrc_smooth, search);
    // (4) exact line search
    const Move move = primal_step(m, rows, M, qfrc_smooth, p, search, Mv, efc_jv, smallest, efc_weight);
    ++iteration;
    // (5) is the point as near to the optimum as rounding allows, or has the cost decreased as little as MuJoCo's
    // solvers end at? Along a line it falls by half its slope times the step, as a parabola does.
    const real decrease = R(0.5) * move.alpha * (gPg - beta * dg);
    done = gPg <= noise || move.length2 <= REAL_EPS * REAL_EPS || scale * decrease < m.opt_tolerance()[0];
  }
  lane_sync();
  // (7) forces
  rows_cost(m, rows, efc_jar, efc_force, (real*)0);
  lane_sync();
  add_row_forces(m, rows, efc_force, (const real*)0, qfrc_constraint);
  DOF_FOR(i, nv) qacc[i] = point[i];
  LANE_FOR(i, 1) solver_niter[0] = iteration;
  lane_sync();
}
