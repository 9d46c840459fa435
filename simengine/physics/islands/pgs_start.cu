// The dual problem of an island, and its warm start; see pgs.cuh.

DEVICE void pgs_start(const Model& m, const int* nefc, const real* qLD, const real* qacc_smooth,
                      const real* qacc_warmstart, const real* efc_J, const real* efc_aref, const real* efc_D,
                      const int* efc_type, const int* efc_id, const real* efc_frictionloss,
                      const int* contact_efc_address, const int* contact_cand, real* efc_force, real* efc_Y,
                      real* efc_b, real* efc_diagAR, real* efc_weight, real* efc_before, int* efc_order,
                      real* z) {
  const int n = nefc[0];
  const Rows rows = {n, efc_type, efc_id, contact_efc_address, contact_cand, efc_J, efc_D, efc_aref, efc_frictionloss};
  const DenseDual d = {{m.nv(), m.nvp()}, rows, efc_Y, efc_b, efc_diagAR, efc_weight, efc_before, efc_force, z};
  in_order(m, rows, efc_order);
  // (1) whitened Jacobian, and residual without forces
  whiten(m, rows, qLD, qacc_smooth, efc_Y, efc_b, efc_diagAR, efc_weight);
  // (2) forces at the last acceleration, and the cost of each row's force; the first row's includes the common term
  const real together = lane_sum(warm_force(m, d, efc_order, n, qacc_warmstart));
  LANE_FOR(r, n) efc_before[r] = force_cost(d, r) + (r == 0 ? together : R(0.0));
  lane_sync();
}
