// Projected Gauss-Seidel for a whole world, one island after another; see pgs.cuh.

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
  // (1) sort the rows by island
  find_islands(m, rows, efc_island, efc_order, island_of);
#ifdef MOST_VECTOR_ROWS
  if (in_vectors(m, rows, efc_island, efc_order)) {
    solver_niter[0] = islands_in_vectors(m, d, qM, qLD, qacc_smooth, qacc_warmstart, efc_island, efc_order, island_of,
                                         efc_Y, efc_b, efc_diagAR, efc_weight, qfrc_constraint, qacc);
    accelerate(m, d, qLD, qacc_smooth, qacc, qfrc_constraint);
    return;
  }
#endif
  // (2) whitened Jacobian, and residual without forces; (3) warm start: the forces at the last acceleration, or zero if
  // that costs less
#ifdef PGS_ROWS
  whiten_rows(m, rows, qLD, qacc_smooth, qacc_warmstart, efc_Y, [&](int r, const RowSums& sums) {
    efc_b[r] = sums.residual;
    efc_before[r] = sums.other;
    efc_diagAR[r] = sums.regularised;
    ROLLED for (int i = 0; i < MAX_CONE_ROWS; ++i) efc_weight[MAX_CONE_ROWS * r + i] = sums.regularised;
  });
  force_at(m, d, efc_order, n);
  // both sums are the same by half a warp, if the lanes of a warp would have a term each
  real costs[2] = {0, 0};
  DOF_FOR(v, nv) costs[0] += R(0.5) * z[v] * z[v];
  LANE_FOR(r, n) costs[1] += force_cost(d, r);
  lane_sums<2>(costs);
  const bool none = costs[0] + costs[1] > 0;
#else
  whiten(m, rows, qLD, qacc_smooth, efc_Y, efc_b, efc_diagAR, efc_weight);
  real cost = warm_force(m, d, efc_order, n, qacc_warmstart);
  LANE_FOR(r, n) cost += force_cost(d, r);
  const bool none = lane_sum(cost) > 0;
#endif
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
    end = begin + rows_of_island(rows, efc_island, island);
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
