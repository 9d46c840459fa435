// Acceleration of a world without constraint rows. It may have contacts within their gap, which make no row.

DEVICE void unconstrained(const Model& m, const int* ncon, const real* qacc_smooth, real* qacc, real* qfrc_constraint,
                          int* solver_niter, int* contact_efc_address) {
  LANE_FOR(k, ncon[0]) contact_efc_address[k] = -1;
  accelerate_smoothly(m, qacc_smooth, qacc, qfrc_constraint, solver_niter);
}
