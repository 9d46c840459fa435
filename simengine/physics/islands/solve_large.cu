// Inexact Newton method on the primal problem (primal.cuh) of a large island. The directions come from conjugate
// gradients (large_hessian.cuh), which stop at a residual that follows from the latest decrease of the gradient and
// from the tolerance (S. Eisenstat and H. Walker, SIAM J. Sci. Comput. 17 (1996), choice 2). The optimum is that of the
// other solvers; only the number of iterations differs. On the host, the Hessian is factored instead, unless it is very
// large. On a GPU, it is factored if its blocks are small (large_factor.cuh).

#define LOOSEST R(0.1)
#define TIGHTEST R(0.001)
#define MOST_DIRECTIONS 500  // most iterations of conjugate gradients in one Newton iteration

// Start from qacc_warmstart or qacc_smooth, whichever costs less; `other` and `other_jar` are scratch.
DEVICE void large_start(const Model& m, const LargeIsland& s, const Rows& rows, const real* qfrc_smooth,
                        const real* qacc_smooth, const real* qacc_warmstart, const Point& p, real* other_jar) {
  real inertial = 0;
  bool warm = false;
  large_rows_times(s, qacc_smooth, p.jar);
  LANE_FOR(r, s.nrow) p.jar[r] -= rows.aref[r];
  if (m.opt_warmstart()) {
    large_rows_times(s, qacc_warmstart, other_jar);
    LANE_FOR(r, s.nrow) other_jar[r] -= rows.aref[r];
    large_inertia(m, s, qacc_warmstart, p.Ma);
    lane_sync();
    LANE_FOR(v, s.n) {
      inertial = fma_(R(0.5) * (p.Ma[v] - qfrc_smooth[v]), qacc_warmstart[v] - qacc_smooth[v], inertial);
    }
    const real cold = rows_cost(m, rows, p.jar, p.force, (real*)0);
    lane_sync();
    warm = lane_sum(inertial) + rows_cost(m, rows, other_jar, p.force, (real*)0) < cold;
  }
  lane_sync();
  LANE_FOR(v, s.n) {
    p.a[v] = warm ? qacc_warmstart[v] : qacc_smooth[v];
    if (!warm) p.Ma[v] = qfrc_smooth[v];
  }
  LANE_FOR(r, s.nrow) p.jar[r] = warm ? other_jar[r] : p.jar[r];
  lane_sync();
}

// search = inv(H) descent; conjugate gradients stop at the residual `enough`.
DEVICE void large_direction(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight,
                            const real* descent, real enough, real* search, real* work) {
#ifdef MATRIX_VECTORS
  if (s.sparse) {
    s.sparse->assemble(m, s, rows, weight);
    s.sparse->solve(s, descent, search);
    return;
  }
#endif
  large_hessian(m, s, rows, weight);
#ifdef MATRIX_VECTORS
  if (fits_vectors(s.n)) {
    solve_directly(s, descent, search);
    return;
  }
#endif
  conjugate_gradients(m, s, descent, enough, MOST_DIRECTIONS, search, work);
}

DEVICE void solve_large(const Model& m, const int* nefc, const real* qfrc_smooth, const real* qacc_smooth,
                        const real* qacc_warmstart, const real* efc_J, const real* efc_D, const real* efc_aref,
                        const int* efc_type, const int* efc_id, const real* efc_frictionloss,
                        const int* contact_efc_address, const int* contact_cand, const real* qM_blocks,
                        const int* island_dof_block, const int* island_row_block, real* qacc, real* efc_force,
                        real* qfrc_constraint, int* solver_niter, real* efc_jar, real* efc_jv, real* efc_weight,
                        real* island_vectors, int* island_runs, int* island_links, real* island_hessian_blocks,
                        int* island_blocks, real* factor) {
  const int n = m.nv(), nrow = nefc[0];
  const Rows rows = {nrow, efc_type, efc_id, contact_efc_address, contact_cand,
                     efc_J, efc_D, efc_aref, efc_frictionloss};
  LargeIsland s = large_island(m, nefc, qM_blocks, efc_J, island_blocks, island_dof_block, island_row_block,
                               island_runs, island_links, island_hessian_blocks);
  real *Ma = island_vectors, *descent = Ma + n, *search = Ma + 2 * n, *Mv = Ma + 3 * n, *work = Ma + 4 * n;
  const Point p = {qacc, Ma, efc_jar, efc_force};
  const real smallest = max_(m.opt_tolerance()[0], REAL_EPS) * m.stat_meaninertia()[0] * n;
  // (1) the runs of rows
  find_runs(s);
#ifdef MATRIX_VECTORS
  s.sparse = sparse_hessian(m, s);
#endif
  LANE_FOR(i, MAX_CONE_ROWS * nrow) efc_weight[i] = 0;
  // (2) start from qacc_warmstart or qacc_smooth, whichever costs less
  large_start(m, s, rows, qfrc_smooth, qacc_smooth, qacc_warmstart, p, efc_jv);
  LANE_FOR(r, nrow) efc_jv[r] = 0;
  int iteration = 0;
  bool done = false, full = false;
  real before2 = 0, share = LOOSEST;
#ifdef MATRIX_VECTORS
  const bool exact = s.sparse || fits_vectors(n);  // directions by a factor
#elif defined(FACTOR_BY_LANES)
  const BlockFactor sparse = block_factor(m, s, factor);
  const bool exact = sparse.block != 0;
#else
  const bool exact = false;
#endif
  // (7) stop at the optimum, or after the most iterations
  while (!done && iteration < m.opt_iterations()) {
    lane_sync();
    // (3) constraint forces, and minus the gradient
    rows_cost(m, rows, efc_jar, efc_force, efc_weight);
    LANE_FOR(v, n) Mv[v] = qfrc_smooth[v] - Ma[v];
    lane_sync();
    large_forces(s, efc_J, efc_force, Mv, descent);
    const real norm2 = lanes_dot(descent, descent, n);
    if (norm2 < smallest * smallest) break;
    // (4) Newton direction
    if (iteration) share = clamp_(R(0.9) * divide_(norm2, before2), TIGHTEST, LOOSEST);
    before2 = norm2;
    lane_sync();
    const real enough = max_(share * sqrt_(norm2), R(0.5) * smallest);
#ifdef FACTOR_BY_LANES
    if (exact) {
      factor_assemble(m, s, rows, efc_weight, descent, sparse);
      factor_solve(s, sparse, search);
    } else
#endif
      large_direction(m, s, rows, efc_weight, descent, enough, search, work);
    const real decrement = lanes_dot(descent, search, n);
    const real noise = primal_noise(m, p, qfrc_smooth, search);
    // (5) exact line search, or a full step that ends at the optimum
    large_rows_times(s, search, efc_jv);
    large_inertia(m, s, search, Mv);
    const bool again = full;
    full = exact && is_full_step(m, rows, efc_jar, efc_jv);
    const real moved2 = primal_move(m, rows, qfrc_smooth, p, search, Mv, efc_jv, smallest, efc_weight, full).length2;
    ++iteration;
    // (6) is the point as near to the optimum as rounding allows? A full step leaves its own rounding errors, and a
    // second one those of the optimum. In double precision, it is always taken.
    done = full && (again || (REAL_IS_FLOAT && moved2 <= SHORT_STEP2));
    done |= decrement <= noise || moved2 <= REAL_EPS * REAL_EPS;
  }
  lane_sync();
  // (8) forces
  rows_cost(m, rows, efc_jar, efc_force, (real*)0);
  lane_sync();
  large_forces(s, efc_J, efc_force, (const real*)0, qfrc_constraint);
  LANE_FOR(i, 1) solver_niter[0] = iteration;
  lane_sync();
}
