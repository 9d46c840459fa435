// A world without constraint rows accelerates as its smooth forces say; its contacts, if any, lie in their gap.

DEVICE void unconstrained(const Model& m, const int* ncon, const real* qacc_smooth, real* qacc, real* qfrc_constraint,
                          int* solver_niter, int* contact_efc_address) {
  DOF_FOR(v, m.nv()) {
    qacc[v] = qacc_smooth[v];
    qfrc_constraint[v] = 0;
  }
  LANE_FOR(k, ncon[0]) contact_efc_address[k] = -1;
  LANE_FOR(i, 1) solver_niter[0] = 0;
  lane_sync();
}
