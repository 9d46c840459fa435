// Semi-implicit Euler with joint damping taken implicitly, whose matrix is factored already; see euler.cu.

DEVICE void euler_factored(const Model& m, const real* damped_branches, const real* qfrc_smooth,
                           const real* qacc_smooth, const real* qfrc_constraint, const real* qacc, real* qpos,
                           real* qvel, real* qacc_warmstart, int* nstep, int* world_status, real* next_qvel,
                           real* next_qpos) {
  const real h = m.opt_timestep()[0];
  if (!may_advance(m, qacc_smooth, qacc, world_status)) return;
  // (1) acceleration with damping at the end of the step: (M + h B) a = M qacc
  DOF_FOR(v, m.nv()) next_qvel[v] = qfrc_smooth[v] + qfrc_constraint[v];
  LANE_FOR(i, m.nq()) next_qpos[i] = qpos[i];
  lane_sync();
#ifdef BRANCH_ROWS
  const BranchRows B = place_branches(const_cast<real*>(damped_branches), m.nv(), m.nbranch());
  solve_from_leaves(B, next_qvel);
  solve_to_leaves(B, next_qvel);
#endif
  // (2) velocity, then position with the new velocity
  semi_implicit(m, h, qacc, qpos, qvel, qacc_warmstart, nstep, world_status, next_qvel, next_qpos);
}
