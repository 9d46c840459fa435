// Copy the islands' solutions back to the world. Blocks without rows have the acceleration of their smooth forces.

DEVICE void scatter(const Model& m, const int* nefc, const real* qacc_smooth, const int* efc_by_island,
                    const int* block_island, const int* block_island_dof, const int* nisland, const int* island_first,
                    const int* island_index, const real* island_qacc, const real* island_qfrc_constraint,
                    const real* island_efc_force, const int* island_solver_niter, real* qacc, real* qfrc_constraint,
                    real* efc_force, int* solver_niter) {
  LANE_FOR(v, m.nv()) {
    const int b = m.dof_block()[v], island = block_island[b];
    const int from = island < 0 ? 0 : island_first[3 * island] + block_island_dof[b] + v - m.block_dofadr()[b];
    qacc[v] = island < 0 ? qacc_smooth[v] : island_qacc[from];
    qfrc_constraint[v] = island < 0 ? R(0.0) : island_qfrc_constraint[from];
  }
  LANE_FOR(r, nefc[0]) efc_force[r] = island_efc_force[efc_by_island[r]];
  int most = 0;
  LANE_FOR(i, nisland[0]) {
    const int niter = island_solver_niter[island_index[i]];
    most = niter > most ? niter : most;
  }
  most = lane_most(most);
  LANE_FOR(i, 1) solver_niter[0] = most;
  lane_sync();
}
