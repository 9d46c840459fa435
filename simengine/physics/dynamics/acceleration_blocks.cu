// Smooth forces and the acceleration they give, for block-diagonal inertia; see acceleration.cu.

DEVICE void acceleration_blocks(const Model& m, const real* qfrc_applied, const real* xfrc_applied, const real* xipos,
                                const real* subtree_com, const real* cdof, const real* qfrc_passive,
                                const real* qfrc_bias, const real* qfrc_actuator, const real* qLD_blocks,
                                real* qfrc_smooth, real* qacc_smooth, real* cfrc_applied) {
  sum_forces(m, qfrc_applied, xfrc_applied, xipos, subtree_com, cdof, qfrc_passive, qfrc_bias, qfrc_actuator,
             qfrc_smooth, qacc_smooth, cfrc_applied);
  blocks_solve(m, qacc_smooth, qLD_blocks);
}
