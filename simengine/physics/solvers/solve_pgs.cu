// Projected Gauss-Seidel for a whole world, one island after another; see pgs.cuh.

DEVICE int lower(int a, int b) { return a < b ? a : b; }

// (1) sort the rows by island. As in MuJoCo, rows that share a kinematic tree, directly or through other rows, form an
// island and are solved separately from the rest. `tree` receives each tree's island.
DEVICE void find_islands(const Model& m, const Rows& rows, int* efc_island, int* efc_order, int* tree) {
  const int nv = m.nv(), n = rows.n, stride = m.nvp();
#ifdef MOST_VECTOR_ROWS
  if (one_island(m, rows, efc_island, efc_order, tree)) return;
#endif
  LANE_FOR(t, m.ntree()) tree[t] = t;
  int changed = 1;
  while (changed) {
    lane_sync();
    LANE_FOR(r, n) {
      const int dim = rows_together(m, rows, r);
      int lowest = m.ntree();
      ROLLED for (int e = 0; e < dim * stride; ++e) {
        if (rows.J[r * stride + e] != 0) lowest = lower(lowest, tree[m.dof_treeid()[e % stride]]);
        if (lowest == 0) break;
      }
      ROLLED for (int i = 0; i < dim; ++i) efc_island[r + i] = lowest;
    }
    lane_sync();
    if (m.ntree() == 1) break;
    changed = 0;
    LANE_FOR(t, m.ntree()) {
      int lowest = tree[t];
      ROLLED for (int v = 0; v < nv; ++v) {
        if (m.dof_treeid()[v] != t) continue;
        ROLLED for (int r = 0; r < n; ++r) {
          if (rows.J[r * stride + v] != 0) lowest = lower(lowest, efc_island[r]);
        }
      }
      changed |= lowest != tree[t];
      tree[t] = lowest;
    }
    changed = lane_any(changed);
  }
  lane_sync();
  LANE_FOR(r, n) {
    if (!rows_together(m, rows, r)) efc_island[r] = m.ntree() + 1;
  }
  lane_sync();
  int others = 0;
  LANE_FOR(r, n) others |= efc_island[r] != efc_island[0];
  if (!lane_any(others)) {
    LANE_FOR(r, n) efc_order[r] = r;
    lane_sync();
    return;
  }
  LANE_FOR(r, n) {
    int place = 0;
    const int own = efc_island[r];
    ROLLED for (int k = 0; k < n; ++k) place += efc_island[k] < own || (efc_island[k] == own && k < r);
    efc_order[place] = r;
  }
  lane_sync();
}

DEVICE void solve_pgs(const Model& m, const int* nefc, const real* qM, const real* qLD, const real* qacc_smooth,
                      const real* qacc_warmstart, const real* efc_J, const real* efc_D, const real* efc_aref,
                      const int* efc_type, const int* efc_id, const real* efc_frictionloss,
                      const int* contact_efc_address, const int* contact_cand, real* qacc, real* efc_force,
                      real* qfrc_constraint, int* solver_niter, real* efc_Y, real* efc_b, real* efc_diagAR,
                      real* efc_weight, real* efc_before, int* efc_island, int* efc_order, real* z, real* draw,
                      real* tree, real* pull) {
  const int nv = m.nv(), n = nefc[0];
  const Rows rows = {n, efc_type, efc_id, contact_efc_address, contact_cand, efc_J, efc_D, efc_aref, efc_frictionloss};
  if (n == 0) {
    accelerate_smoothly(m, qacc_smooth, qacc, qfrc_constraint, solver_niter);
    return;
  }
  const DenseDual d = {{nv, m.nvp()}, rows, efc_Y, efc_b, efc_diagAR, efc_weight, efc_before, efc_force, z};
  int* island_of = reinterpret_cast<int*>(tree);
  find_islands(m, rows, efc_island, efc_order, island_of);
#ifdef MOST_VECTOR_ROWS
  if (in_vectors(m, rows, efc_island)) {
    real trace = 0;
    for (int v = 0; v < nv; ++v) trace += island_of[m.dof_treeid()[v]] == efc_island[0] ? qM[v * nv + v] : R(0.0);
    const auto solve = n <= 16 ? pgs_in_vectors<16> : n <= 32 ? pgs_in_vectors<32> : pgs_in_vectors<64>;
    solver_niter[0] = solve(m, rows, qLD, qacc_smooth, qacc_warmstart, trace, efc_force, efc_Y, efc_b, efc_diagAR,
                            efc_weight, efc_before);
    accelerate(m, d, qLD, qacc_smooth, qacc, qfrc_constraint);
    return;
  }
#endif
  // (2) whitened Jacobian, and residual without forces; (3) warm start: the forces at the last acceleration, or zero if
  // that costs less
#ifdef PGS_ROWS
  whiten_in_registers(m, rows, qLD, qacc_smooth, qacc_warmstart, efc_Y, efc_b, efc_diagAR, efc_weight, efc_before);
  real cost = force_at(m, d, efc_order, n);
#else
  whiten(m, rows, qLD, qacc_smooth, efc_Y, efc_b, efc_diagAR, efc_weight);
  real cost = warm_force(m, d, efc_order, n, qacc_warmstart);
#endif
  LANE_FOR(r, n) cost += force_cost(d, r);
  const bool none = lane_sum(cost) > 0;
  lane_sync();
  LANE_FOR(r, n) {
    if (none) efc_force[r] = 0;
    efc_before[r] = efc_force[r];
  }
  lane_sync();
  // each iteration: (4) extrapolation, (5) a sweep, (6) momentum, (7) termination
  int most = 0;
  ROLLED for (int begin = 0, end; begin < n; begin = end) {
    const int island = efc_island[efc_order[begin]];
    if (island > m.ntree()) break;
    for (end = begin; end < n && efc_island[efc_order[end]] == island;) ++end;
    real trace = 0;
    DOF_FOR(v, nv) trace += island_of[m.dof_treeid()[v]] == island ? qM[v * nv + v] : R(0.0);
    int* list = efc_order + begin;
    trace = lane_sum(trace);
#ifdef PGS_ROWS
    const int number = descend_anyhow(m, d, end - begin, list, trace, reinterpret_cast<int*>(draw), pull);
#else
    const int number = descend(m, d, end - begin, list, trace, reinterpret_cast<int*>(draw));
#endif
    most = number > most ? number : most;
  }
  // (8) acceleration due to the forces
  accelerate(m, d, qLD, qacc_smooth, qacc, qfrc_constraint);
  LANE_FOR(i, 1) solver_niter[0] = most;
  lane_sync();
}
