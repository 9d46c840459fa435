// The iterations on the dual problem of an island; see pgs.cuh.

DEVICE void pgs_descend(const Model& m, const int* nefc, const real* qM, const real* qLD, const real* qacc_smooth,
                        const real* efc_J, const real* efc_D, const int* efc_type, const int* efc_id,
                        const real* efc_frictionloss, const int* contact_efc_address, const int* contact_cand,
                        const real* efc_Y, const real* efc_b, const real* efc_diagAR, const real* efc_weight,
                        real* qacc, real* qfrc_constraint, int* solver_niter, real* efc_before, real* efc_force,
                        int* efc_order, real* z, real* draw) {
  const int n = nefc[0];
  const Rows rows = {n, efc_type, efc_id, contact_efc_address, contact_cand, efc_J, efc_D, 0, efc_frictionloss};
  const DenseDual d = {{m.nv(), m.nvp()}, rows, efc_Y, efc_b, efc_diagAR, efc_weight, efc_before, efc_force, z};
  real trace = 0;
  int opening = 0;
  LANE_FOR(r, n) {
    efc_before[r] = efc_force[r];
    opening += rows_together(m, rows, r) > 0;
  }
  DOF_FOR(v, m.nv()) trace += qM[v * m.nv() + v];
  opening = lane_sum_int(opening);
  lane_sync();
  // (1) sweeps over the rows
  const int number = descend(m, d, opening, efc_order, lane_sum(trace), reinterpret_cast<int*>(draw));
  // (2) acceleration due to the forces
  accelerate(m, d, qLD, qacc_smooth, qacc, qfrc_constraint);
  LANE_FOR(i, 1) solver_niter[0] = number;
  lane_sync();
}
