// Smooth forces and the acceleration they give, for inertia with entries along branches (branch_rows.cuh), whose factor
// is not kept; see acceleration.cu.

DEVICE void acceleration_branches(const Model& m, const real* qfrc_applied, const real* xfrc_applied,
                                  const real* xipos, const real* subtree_com, const real* cdof,
                                  const real* qfrc_passive, const real* qfrc_bias, const real* qfrc_actuator,
                                  const real* qM, real* qfrc_smooth, real* qacc_smooth, real* cfrc_applied,
                                  real* branches) {
  sum_forces(m, qfrc_applied, xfrc_applied, xipos, subtree_com, cdof, qfrc_passive, qfrc_bias, qfrc_actuator,
             qfrc_smooth, qacc_smooth, cfrc_applied);
#ifdef BRANCH_ROWS
  const BranchRows B = branches_of_trees(m, branches);
  load_branches(B, qM, (const real*)0, R(0.0));
  factor_branches(B, qacc_smooth);
  solve_to_leaves(B, qacc_smooth);
#endif
}
