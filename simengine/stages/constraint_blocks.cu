// Constraint rows over the dofs of the blocks they touch; see constraint.cu.

// Blocks of the rows of contacts of pair c, in the order of the geoms.
DEVICE void contact_blocks(const Model& m, int c, int* out) {
  const int first = m.body_block()[m.geom_bodyid()[m.cand_geom1()[c]]];
  const int second = m.body_block()[m.geom_bodyid()[m.cand_geom2()[c]]];
  out[0] = first >= 0 ? first : second;
  out[1] = first >= 0 && second != first ? second : -1;
}

DEVICE void constraint_blocks(const Model& m, const real* qpos, const real* qvel, const real* subtree_com,
                              const real* cdof, const int* ncon, const int* nefc, const real* contact_dist,
                              const real* contact_pos, const real* contact_frame, const int* contact_cand,
                              int* contact_efc_address, real* efc_pos, real* efc_margin, real* efc_D, real* efc_aref,
                              int* efc_id, real* efc_J_blocks, int* efc_block) {
  const int stride = m.nJ();
  if (nefc[0] == 0) {  // also where a frozen world has none counted
    LANE_FOR(k, ncon[0]) contact_efc_address[k] = -1;
    lane_sync();
    return;
  }
  const int limits = limit_rows(m, qpos, SparseRows{efc_J_blocks, efc_block}, efc_pos, efc_margin, efc_id);
  contact_addresses(m, limits, ncon[0], contact_dist, contact_cand, contact_efc_address, efc_pos, efc_margin, efc_id);
  lane_sync();
  LANE_FOR(e, ncon[0] * stride) {
    const int k = e / stride, j = e % stride, c = contact_cand[k], first = contact_efc_address[k];
    if (first < 0) continue;
    int blocks[2];
    real column[4];
    contact_blocks(m, c, blocks);
    contact_column(m, column_dof(m, row_blocks(m, blocks), j), k, subtree_com, cdof, contact_pos, contact_frame, c,
                   column);
    ROLLED for (int edge = 0; edge < rows_of(m, c); ++edge) {
      efc_J_blocks[size_t(first + edge) * stride + j] = column[edge];
      if (j < 2) efc_block[2 * (first + edge) + j] = blocks[j];
    }
  }
  lane_sync();
  LANE_FOR(r, nefc[0]) {
    const RowBlocks blocks = row_blocks(m, efc_block + 2 * r);
    real velocity = 0;
    ROLLED for (int j = 0; j < blocks.n1 + blocks.n2; ++j) {
      velocity = fma_(efc_J_blocks[size_t(r) * stride + j], qvel[column_dof(m, blocks, j)], velocity);
    }
    row_reference(m, r, velocity, contact_cand, efc_pos, efc_margin, efc_id, efc_D, efc_aref);
  }
  lane_sync();
}
