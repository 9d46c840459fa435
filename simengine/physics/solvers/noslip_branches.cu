// Friction without slip, for inertia with entries along branches (branch_rows.cuh); see noslip.cu.

#ifdef BRANCH_ROWS
// The factor of the inertia, qM = L' D L, in place of a Cholesky factor U = L' sqrt(D) with qM = U U'.
struct FactorOnBranches {
  BranchRows B;

  DEVICE_METHOD void solve(const Model&, real* x) const {
    solve_from_leaves(B, x);
    solve_to_leaves(B, x);
  }

  template <class Put>
  DEVICE_METHOD void whiten(const Model& m, const Rows& rows, const real* qacc, real* efc_Y, const Put& put) const {
    const int stride = m.nvp();
    LANE_FOR(r, rows.n) {
      const real* J = rows.J + size_t(r) * stride;
      real* Y = efc_Y + size_t(r) * stride;
      RowSums sums = without_entries(rows, r);
      OVERLAPPED for (int k = 0; k < stride; ++k) Y[k] = J[k];
      ROLLED for (int k = B.n - 1; k >= 0; --k) {
        const real y = Y[k];
        if (J[k] != 0) sums.add_entry(J[k], qacc[k], qacc[k]);
        if (y == 0) continue;
        const int at = B.start[k], above = B.depth(k);
        const unsigned char* dofs = B.branch(k);
        OVERLAPPED for (int t = 0; t < above; ++t) {
          real* entry = Y + dofs[t];
          *entry = fma_(-B.entry[at + t], y, *entry);
        }
        Y[k] = y * sqrt_(B.entry[at + above]);
        sums.add_whitened(Y[k]);
      }
      put(r, sums);
    }
    lane_sync();
  }

  DEVICE_METHOD void colour(const Model&, const real* z, real* out) const {
    lane_sync();
    LANE_FOR(v, B.n) out[v] = 0;
    lane_sync();
    ROLLED for (int k = 0; k < B.n; ++k) {
      const int at = B.start[k], above = B.depth(k);
      const unsigned char* dofs = B.branch(k);
      const real scaled = divide_(z[k], sqrt_(B.entry[at + above]));
      LANE_FOR(t, above + 1) {
        real* entry = out + dofs[t];
        *entry = t < above ? fma_(B.entry[at + t], scaled, *entry) : *entry + scaled;
      }
    }
    lane_sync();
  }
};
#endif

DEVICE void noslip_branches(const Model& m, const int* nefc, const real* qM, const real* qacc_smooth,
                            const real* efc_J, const real* efc_D, const real* efc_aref, const int* efc_type,
                            const int* efc_id, const real* efc_frictionloss, const int* contact_efc_address,
                            const int* contact_cand, real* efc_Y, real* efc_b, real* efc_diagAR, real* efc_weight,
                            int* efc_island, int* efc_order, real* qacc, real* efc_force, real* qfrc_constraint,
                            real* z, real* change, real* tree, real* branches) {
#ifdef BRANCH_ROWS
  const int n = nefc[0];
  if (n == 0) return;
  const Rows rows = {n, efc_type, efc_id, contact_efc_address, contact_cand, efc_J, efc_D, efc_aref, efc_frictionloss};
  const FactorOnBranches factor = {branches_of_trees(m, branches)};
  load_branches(factor.B, qM, (const real*)0, R(0.0));
  LANE_FOR(v, m.nv()) change[v] = 0;
  lane_sync();
  factor_branches(factor.B, change);
  improve_world(m, rows, qM, factor, qacc_smooth, efc_Y, efc_b, efc_diagAR, efc_weight, efc_island, efc_order, qacc,
                efc_force, qfrc_constraint, z, change, tree);
#endif
}
