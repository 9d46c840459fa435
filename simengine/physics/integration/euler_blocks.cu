// Semi-implicit Euler with joint damping taken implicitly, for block-diagonal inertia; see euler.cu.

DEVICE void euler_blocks(const Model& m, const real* qM_blocks, const real* qfrc_smooth, const real* qacc_smooth,
                         const real* qfrc_constraint, const real* qacc, real* damped_blocks, real* qpos, real* qvel,
                         real* qacc_warmstart, int* nstep, int* world_status, real* next_qvel, real* next_qpos) {
  const real h = m.opt_timestep()[0];
#ifdef TILE
  const truth usable = acceleration_usable(m, qacc_smooth, qacc, world_status);
#else
  if (!may_advance(m, qacc_smooth, qacc, world_status)) return;
#endif
  LANE_FOR(i, m.nq()) next_qpos[i] = qpos[i];
  LANE_FOR(v, m.nv()) next_qvel[v] = m.opt_eulerdamp() ? qfrc_smooth[v] + qfrc_constraint[v] : qacc[v];
  lane_sync();
  if (m.opt_eulerdamp()) {
    const auto damped = [&](int v, real x) { return x + h * m.dof_damping()[v]; };
    blocks_solve(m, next_qvel, damped_blocks, qM_blocks, damped);
  }
#ifdef TILE
  semi_implicit_in_tile(m, h, usable, qacc, qpos, qvel, qacc_warmstart, nstep, world_status, next_qvel, next_qpos);
#else
  semi_implicit(m, h, qacc, qpos, qvel, qacc_warmstart, nstep, world_status, next_qvel, next_qpos);
#endif
}
