// Newton's method on the primal problem (primal.cuh) with rows of every type. The Hessian is M + J' W J, where W are
// the second derivatives of the rows' cost: a diagonal matrix, except for the blocks of elliptic cones.

// Column i of W J at row r.
DEVICE real weighted_entry(const Model& m, const Rows& rows, int r, const real* weight, int i) {
  const int stride = m.nvp();
  const real* w = weight + MAX_CONE_ROWS * r;
  if (!in_cone(rows.type[r])) return w[0] * rows.J[r * stride + i];
  const int contact = rows.id[r], first = rows.address[contact], dim = m.cand_rows()[rows.cand[contact]];
  real sum = 0;
  OVERLAPPED for (int k = 0; k < dim; ++k) sum = fma_(w[k], rows.J[(first + k) * stride + i], sum);
  return sum;
}

#ifdef MATRIX_VECTORS
// Vector q of row r of W J, whose row r of J is `row` there.
DEVICE Lanes weighted_part(const Model& m, const Rows& rows, int r, const real* weight, Lanes row,
                           const PaddedMatrix& H, int q) {
  const real* w = weight + MAX_CONE_ROWS * r;
  if (!in_cone(rows.type[r])) return every(w[0]) * row;
  const int first = rows.address[rows.id[r]], dim = m.cand_rows()[rows.cand[rows.id[r]]], stride = m.nvp();
  Lanes sum = {};
  for (int k = 0; k < dim; ++k) {
    sum = vector_fma(every(w[k]), H.part(rows.J + size_t(first + k) * stride, q), sum);
  }
  return sum;
}

// Add the weights of unit rows, of which r is the first, to the diagonal. Returns the row after them.
DEVICE int add_unit_weights(const Rows& rows, int r, const real* weight, PaddedMatrix& H) {
  for (; r < rows.unit->end; ++r) {
    const int i = H.at(rows.unit->column[r - rows.unit->begin]);
    H.words(i)[i] += weight[MAX_CONE_ROWS * r];
  }
  return r;
}

DEVICE bool starts_units(const Rows& rows, int r) {
  return rows.unit && r == rows.unit->begin && r < rows.unit->end;
}

// H += J' W J where a row of H is one vector.
template <int ROWS>
DEVICE_CALL void add_weighted_in_registers(const Model& m, const Rows& rows, const real* weight, PaddedMatrix& H) {
  RegisterProducts<ROWS> products(H);
  for (int r = 0; r < rows.n; ++r) {
    if (starts_units(rows, r)) {
      products.put();
      r = add_unit_weights(rows, r, weight, H);
      products.take();
      if (r == rows.n) break;
    }
    if (!has_weight(rows, r, weight)) continue;
    const real* J = rows.J + size_t(r) * ROWS;
    products.add(J, weighted_part(m, rows, r, weight, H.part(J, 0), H, 0));
  }
  products.put();
}

DEVICE void add_weighted_in_vectors(const Model& m, const Rows& rows, const real* weight, PaddedMatrix& H) {
  Products products(H);
  for (int r = 0; r < rows.n; ++r) {
    if (starts_units(rows, r)) {
      products.flush();
      r = add_unit_weights(rows, r, weight, H);
      if (r == rows.n) break;
    }
    if (!has_weight(rows, r, weight)) continue;
    Lanes *row = products.c[products.number], *scaled = products.v[products.number];
    for (int q = 0; q < H.vectors; ++q) {
      row[q] = H.part(rows.J + size_t(r) * m.nvp(), q);
      scaled[q] = weighted_part(m, rows, r, weight, row[q], H, q);
    }
    products.added();
  }
  products.flush();
}

DEVICE_CALL void solve_weighted_in_vectors(const Model& m, const Rows& rows, real* x, const real* M, const real* weight,
                                           const real* b) {
  const int n = m.nv();
  PaddedMatrix H(n, n > MOST_FORWARD, n > MOST_FILLED);
  Lanes right[MOST_VECTORS];
  H.load(M);
  for (int q = 0; q < H.vectors; ++q) right[q] = H.part(b, q);
  const auto add = [&](auto ROWS) { add_weighted_in_registers<ROWS.value>(m, rows, weight, H); };
  if (!in_registers(H, m.nvp(), add)) add_weighted_in_vectors(m, rows, weight, H);
  H.solve(x, right);
}
#endif

// solve_weighted for M in memory. It takes structures by value, because the compiler does not put a structure in
// registers whose address is taken.
DEVICE_CALL void solve_weighted_by_loops(const Model m, const Rows rows, real* x, const real* M, const real* weight,
                                         const real* b, real* H) {
  const int n = m.nv(), stride = m.nvp();
#ifdef MATRIX_VECTORS
  if (fits_vectors(n)) {
    solve_weighted_in_vectors(m, rows, x, M, weight, b);
    return;
  }
#endif
#if SIMENGINE_GPU && LANES <= 32
  LANE_FOR_LOADS(e, n * n) H[e] = M[e];
  LANE_FOR(i, n) x[i] = b[i];
  lane_sync();
  add_rows(
      m.column, H, n, rows.n, rows.J, stride, [&](int r) { return has_weight(rows, r, weight); },
      [&](int r, int i, real) { return weighted_entry(m, rows, r, weight, i); }, [](int, int, real) {});
#else
  LANE_FOR(i, n) {
    for (int j = 0; j <= i; ++j) H[i * n + j] = M[j * n + i];
    ROLLED for (int r = 0; r < rows.n; ++r) {
      if (!has_weight(rows, r, weight)) continue;
      const real c = weighted_entry(m, rows, r, weight, i);
      if (c == 0) continue;
      for (int j = 0; j <= i; ++j) H[i * n + j] = fma_(c, rows.J[r * stride + j], H[i * n + j]);
    }
    x[i] = b[i];
  }
#endif
  lane_sync();
  mem_factor(H, n);
  mem_solve(x, H, n);
}

// x = (M + J' W J)^-1 b; H is n x n scratch for matrices in memory.
DEVICE void solve_weighted(const Model& m, const Rows& rows, real* x, const SymRows& M, const real* weight,
                           const real* b, real* H) {
#if ONE_ROW_A_LANE
  const int n = m.nv();
  if (REGISTERS_FIT(n)) {
    const int i = lane();
    real h[LANES];
#if DOF_RANGES
    range_take<LANES>(h, M.range, M.row);
    range_add_weighted(m, rows, M.range, weight, h);
    const real solved = range_solve(h, i < n ? b[i] : R(0.0), M.range, m.column);
#else
#pragma unroll
    for (int j = 0; j < LANES; ++j) h[j] = M.row[j];
    reg_add_weighted(m, rows, weight, h);
    reg_pad(h, n);
    const real solved = reg_solve(h, i < n ? b[i] : R(0.0), n, m.column);
#endif
    lane_sync();
    if (i < n) x[i] = solved;
    lane_sync();
    return;
  }
#endif
#ifdef SOLVER_WARPS
#if DOF_RANGES && !HAS_CONES
  if (4 * M.range.fours <= RANGE_WORDS) {
    solve_ranges_as_warps(m, rows, x, M, weight, b, H);
    return;
  }
#endif
  solve_by_warps(m, rows, x, M.memory, weight, b, H);
#else
  solve_weighted_by_loops(m, rows, x, M.memory, weight, b, H);
#endif
}

// Minus the gradient, b + J' f, and unless its squared norm is below `floor`, the Newton direction. Returns that norm.
DEVICE real newton_direction(const Model& m, const Rows& rows, real* search, const SymRows& M, const real* force,
                             const real* weight, const real* b, real* descent, real floor, real* H) {
#if defined(MATRIX_ROWS) || defined(BRANCH_ROWS)
  const auto term = [&](int r) {
    const int type = rows.type[r], dof = type == ROW_FRICTION_DOF ? rows.id[r] : -1;
    const bool mixes = in_cone(type) && mixes_rows(m, rows, r, weight);
#ifdef BRANCH_ROWS
    return RowTerm{force[r], own_weight(rows, r, weight), mixes, -1, few_dofs(m, type, rows.id[r])};
#endif
    return RowTerm{force[r], own_weight(rows, r, weight), mixes, dof};
  };
  const auto cone_entry = [&](int r, int i) { return weighted_entry(m, rows, r, weight, i); };
#endif
#if defined(MATRIX_ROWS)
  return wide_solve_rows(m.column, search, M.memory, (const real*)0, R(0.0), rows.n, rows.J, term, cone_entry, b,
                         descent, floor, H, m.nv());
#elif defined(BRANCH_ROWS)
  return solve_along_branches(M.branches, search, M.memory, (const real*)0, R(0.0), rows.n, rows.J, m.nvp(), term,
                              cone_entry, b, descent, floor);
#else
  add_row_forces(m, rows, force, b, descent);
  lane_sync();
  real norm2 = 0;
  DOF_FOR(i, m.nv()) norm2 = fma_(descent[i], descent[i], norm2);
  norm2 = lane_sum(norm2);
  if (!(norm2 < floor)) solve_weighted(m, rows, search, M, weight, descent, H);
  return norm2;
#endif
}

// A decrease of the cost below so many times primal_noise that no longer shrinks is rounding, too.
#define FAINT R(1e4)

// In double precision: do forces balance at a point? `force` receives those of the rows.
DEVICE bool has_balance(const Model& m, const Rows& rows, const real* jar, real* force, const real* Ma,
                        const real* qfrc_smooth) {
#if REAL_IS_FLOAT
  return true;
#else
  lane_sync();
  rows_cost(m, rows, jar, force, (real*)0);
  lane_sync();
  return is_balanced(m.nv(), rows.n, rows.J, m.nvp(), Ma, qfrc_smooth, [&](int r) { return force[r]; });
#endif
}

DEVICE void solve_newton_general(const Model& m, const int* nefc, const real* qM, const real* qfrc_smooth,
                         const real* qacc_smooth, const real* qacc_warmstart, const real* efc_J, const real* efc_D,
                         const real* efc_aref, const int* efc_type, const int* efc_id, const real* efc_frictionloss,
                         const int* contact_efc_address, const int* contact_cand, real* qacc, real* efc_force,
                         real* qfrc_constraint, int* solver_niter, real* efc_jar, real* efc_jv, real* efc_weight,
                         real* point, real* Ma, real* descent, real* search, real* Mv, real* hessian) {
  const int nv = m.nv();
  Rows rows = {nefc[0], efc_type, efc_id, contact_efc_address, contact_cand,
               efc_J, efc_D, efc_aref, efc_frictionloss};
  if (rows.n == 0) {
    accelerate_smoothly(m, qacc_smooth, qacc, qfrc_constraint, solver_niter);
    return;
  }
#ifdef MATRIX_VECTORS
  UnitRows unit;
  if (fits_vectors(nv)) {
    unit = unit_rows(rows, nv, m.nvp());
    rows.unit = &unit;
  }
#endif
#ifdef PLAIN_ROWS
  ThreeRowCones cones;
  if (!are_plain(m) && find_cones(m, rows, cones)) rows.cones = &cones;
#endif
  const Point p = {point, Ma, efc_jar, efc_force};
  const real scale = reciprocal_(m.stat_meaninertia()[0] * (nv > 1 ? nv : 1));
  const real smallest = divide_(max_(m.opt_tolerance()[0], REAL_EPS), scale);
  SymRows M;
#if DOF_RANGES
  M.range = range_of_dof(m, rows.n, efc_J, m.nvp());
  rows.spans = M.range.spans;
#endif
  sym_load(&M, qM, nv);
  sym_set_aside(&M);
#ifdef BRANCH_ROWS
  M.branches = branches_of(m, rows.n, efc_J, m.nvp(), [&](int r) { return rows_together(m, rows, r); },
                           [&](int r) { return few_dofs(m, rows.type[r], rows.id[r]); }, hessian);
#endif
  LANE_FOR(i, MAX_CONE_ROWS * rows.n) efc_weight[i] = 0;
  // (1) start from qacc_warmstart or qacc_smooth, whichever costs less
  primal_start(m, rows, M, qfrc_smooth, qacc_smooth, qacc_warmstart, p, search, efc_jv);
  LANE_FOR(i, m.nvp()) search[i] = 0;
  LANE_FOR(r, rows.n) efc_jv[r] = 0;
  int iteration = 0;
  bool done = false, full = false;
  real before = REAL_MAX;
  // (6) stop at the optimum, or after the most iterations
  while (!done && iteration < m.opt_iterations()) {
    lane_sync();
    // (2) constraint forces, and minus the gradient
    rows_cost(m, rows, efc_jar, efc_force, efc_weight);
    DOF_FOR(i, nv) Mv[i] = qfrc_smooth[i] - Ma[i];
    lane_sync();
    // (3) Newton direction
    const real norm2 =
        newton_direction(m, rows, search, M, efc_force, efc_weight, Mv, descent, smallest * smallest, hessian);
    if (norm2 < smallest * smallest) break;
    real decrement = 0;
    DOF_FOR(i, nv) decrement = fma_(descent[i], search[i], decrement);
    decrement = lane_sum(decrement);
    const real noise = primal_noise(m, p, qfrc_smooth, search);
    // (4) exact line search
    primal_products(m, rows, M, search, Mv, efc_jv);
    const bool again = full;
    full = is_full_step(m, rows, efc_jar, efc_jv);
    const real moved2 = primal_move(m, rows, qfrc_smooth, p, search, Mv, efc_jv, smallest, efc_weight, full).length2;
    ++iteration;
    // (5) is the point as near to the optimum as rounding allows? A full step leaves its own rounding errors, and a
    // second one those of the optimum.
    done = full && (again || (moved2 <= SHORT_STEP2 && has_balance(m, rows, efc_jar, efc_force, Ma, qfrc_smooth)));
    done |= decrement <= noise || moved2 <= REAL_EPS * REAL_EPS;
    done |= decrement <= FAINT * noise && decrement > R(0.9) * before;
    before = decrement;
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
