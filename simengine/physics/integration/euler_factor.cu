// The factor of the inertia with joint damping taken implicitly, for entries along branches (branch_rows.cuh). It needs
// nothing of the solver, beside which it can be made; euler_factored.cu solves with it.

DEVICE void euler_factor(const Model& m, const real* qM, real* damped_branches, real* right, real* branches) {
#ifdef BRANCH_ROWS
  LANE_FOR(i, m.nbranchword()) branches[i] = 0;  // words that nothing is in
  DOF_FOR(v, m.nv()) right[v] = 0;
  lane_sync();
  const BranchRows B = branches_of_trees(m, branches);
  load_branches(B, qM, m.dof_damping(), m.opt_timestep()[0]);
  factor_branches(B, right);
  copy_out(damped_branches, branches, m.nbranchword());
#endif
}
