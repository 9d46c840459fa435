// Semi-implicit Euler with joint damping taken implicitly: MuJoCo documentation, "Computation", "Numerical
// integration".

DEVICE void euler(const Model& m, const real* qM, const real* qfrc_smooth, const real* qacc_smooth,
                  const real* qfrc_constraint, const real* qacc, real* qpos, real* qvel, real* qacc_warmstart,
                  int* nstep, int* world_status, real* force, real* next_qvel, real* next_qpos, real* hessian) {
  const int nv = m.nv();
  const real h = m.opt_timestep()[0];
#ifdef TILE
  const truth usable = acceleration_usable(m, qacc_smooth, qacc, world_status);
#else
  if (!may_advance(m, qacc_smooth, qacc, world_status)) return;
#endif
  // (1) acceleration with damping at the end of the step: (M + h B) a = M qacc
  DOF_FOR(v, nv) {
    force[v] = qfrc_smooth[v] + qfrc_constraint[v];
    next_qvel[v] = qacc[v];
  }
  LANE_FOR(i, m.nq()) next_qpos[i] = qpos[i];
  lane_sync();
  if (m.opt_eulerdamp()) {
#ifdef TILE
    solve_damped(m, next_qvel, qM, m.dof_damping(), h, force, hessian, nv);
#else
    SymRows M;
#if DOF_RANGES
    M.range = range_of_tree(m);
#endif
    sym_load(&M, qM, nv);
#ifdef BRANCH_ROWS
    M.branches = branches_of_trees(m, hessian);
#endif
    solve_with_rows(m, next_qvel, M, m.dof_damping(), h, 0, qM, 0, qM, qM, force, (real*)0, R(0.0), hessian, nv);
#endif
  }
  // (2) velocity, then position with the new velocity
#ifdef TILE
  semi_implicit_in_tile(m, h, usable, qacc, qpos, qvel, qacc_warmstart, nstep, world_status, next_qvel, next_qpos);
#else
  semi_implicit(m, h, qacc, qpos, qvel, qacc_warmstart, nstep, world_status, next_qvel, next_qpos);
#endif
}
