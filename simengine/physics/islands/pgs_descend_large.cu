// The iterations on the dual problem of a large island; see large_pgs.cuh.

DEVICE void pgs_descend_large(const Model& m, const int* nefc, const real* qacc_smooth, const real* efc_J,
                              const real* efc_D, const int* efc_type, const int* efc_id, const real* efc_frictionloss,
                              const int* contact_efc_address, const int* contact_cand, const real* efc_Y,
                              const real* efc_b, const real* efc_diagAR, const real* efc_weight,
                              const real* qM_blocks, const real* qLD_blocks, const int* island_dof_block,
                              const int* island_row_block, real* qacc, real* qfrc_constraint, int* solver_niter,
                              real* efc_before, real* island_vectors, real* efc_force, int* efc_order,
                              int* island_runs, int* island_links, int* island_blocks, real* draw) {
  const int n = nefc[0];
  const Rows rows = {n, efc_type, efc_id, contact_efc_address, contact_cand, efc_J, efc_D, 0, efc_frictionloss};
  const LargeIsland s = large_island(m, nefc, qM_blocks, efc_J, island_blocks, island_dof_block, island_row_block,
                               island_runs, island_links, 0);
  const LargeDual d = {{s, s.stride}, rows, efc_Y, efc_b, efc_diagAR, efc_weight, efc_before, efc_force,
                       island_vectors};
  real trace = 0;
  int opening = 0;
  LANE_FOR(r, n) {
    efc_before[r] = efc_force[r];
    opening += rows_together(m, rows, r) > 0;
  }
  LANE_FOR(v, s.n) {
    const int *words = s.blocks + BLOCK_WORDS * s.dof_block[v], i = v - words[BLOCK_DOF];
    trace += s.M[m.block_adr()[words[BLOCK_NUMBER]] + i * words[BLOCK_SIZE] + i];
  }
  opening = lane_sum_int(opening);
  lane_sync();
  // (1) sweeps over the rows
  const int number = descend(m, d, opening, efc_order, lane_sum(trace), reinterpret_cast<int*>(draw));
  // (2) acceleration due to the forces
  accelerate_large(m, s, efc_force, qLD_blocks, qacc_smooth, qacc, qfrc_constraint);
  LANE_FOR(i, 1) solver_niter[0] = number;
  lane_sync();
}
