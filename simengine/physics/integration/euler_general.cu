// Semi-implicit Euler with linear or polynomial dampers taken implicitly; see euler.cu and springs.cuh.

DEVICE void euler_general(const Model& m, const real* qM, const real* qfrc_smooth, const real* qacc_smooth,
                      const real* qfrc_constraint, const real* qacc, real* qpos, real* qvel, real* qacc_warmstart,
                      int* nstep, int* world_status, real* matrix, real* next_qvel, real* next_qpos) {
  const real h = m.opt_timestep()[0];
  if (!may_advance(m, qacc_smooth, qacc, world_status)) return;
  // (1) acceleration with damping at the end of the step: (M + h B) a = all forces, where -B is the dampers' derivative
  LANE_FOR(i, m.nq()) next_qpos[i] = qpos[i];
  DOF_FOR(v, m.nv()) next_qvel[v] = m.opt_eulerdamp() ? qfrc_smooth[v] + qfrc_constraint[v] : qacc[v];
  lane_sync();
  if (m.opt_eulerdamp()) {
    ROLLED for (int b = 0; b < m.nblock(); ++b) {
      const Block block = block_of(m, b);
      LANE_FOR_TABLE(i, block.n, j, block.n, const int v = block.dof + i) {
        const int e = i * block.n + j;
        const real slope = i == j ? damper_slope(m.dof_damping()[v], m.dof_dampingpoly() + 2 * v, qvel[v]) : R(0.0);
        matrix[block.at + e] = fma_(h, slope, qM[block.at + e]);
      }
    }
    lane_sync();
    implicit_solve(m, next_qvel, matrix, true);
  }
  // (2) velocity, then position with the new velocity
  semi_implicit(m, h, qacc, qpos, qvel, qacc_warmstart, nstep, world_status, next_qvel, next_qpos);
}
