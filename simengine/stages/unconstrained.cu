// A world without constraint rows accelerates as its smooth forces say.

DEVICE void unconstrained(const Model& m, const real* qacc_smooth, real* qacc, real* qfrc_constraint,
                          int* solver_niter) {
  LANE_FOR(v, m.nv()) {
    qacc[v] = qacc_smooth[v];
    qfrc_constraint[v] = 0;
  }
  LANE_FOR(i, 1) solver_niter[0] = 0;
  lane_sync();
}
