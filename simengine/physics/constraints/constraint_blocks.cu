// Constraint rows of every type, stored over the dofs of the blocks that they touch; see constraint_general.cu.

DEVICE void constraint_blocks(const Model& m, const real* qpos, const real* qvel, const int* eq_active,
                              const real* xpos, const real* xquat, const real* xmat, const real* subtree_com,
                              const real* cdof, const real* cvel, const real* cdof_dot, const real* ten_length,
                              const real* ten_J, const int* ncon, const int* nefc, const real* contact_dist,
                              const real* contact_pos, const real* contact_frame, const int* contact_cand,
                              int* contact_efc_address, real* efc_pos, real* efc_margin, real* efc_D, real* efc_aref,
                              int* efc_type, int* efc_id, real* efc_frictionloss, real* efc_J_blocks, int* efc_block,
                              real* contacts) {
  if (nefc[0] == 0) {  // no rows are counted for a frozen world
    LANE_FOR(k, ncon[0]) contact_efc_address[k] = -1;
    lane_sync();
    return;
  }
  every_row(m, qpos, qvel, eq_active, xpos, xquat, xmat, subtree_com, cdof, cvel, cdof_dot, ten_length, ten_J, ncon,
            nefc, contact_dist, contact_pos, contact_frame, contact_cand, contact_efc_address,
            SparseRows{efc_J_blocks, m.nJ(), efc_block}, efc_pos, efc_margin, efc_D, efc_aref, efc_type, efc_id,
            efc_frictionloss, contacts);
}
