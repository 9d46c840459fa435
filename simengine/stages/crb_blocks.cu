// Composite rigid bodies, for block-diagonal inertia; see crb.cu.

DEVICE void crb_blocks(const Model& m, const real* cinert, const real* cdof, real* crb, real* qM_blocks) {
  LANE_FOR(e, 10 * m.nbody()) crb[e] = e < 10 ? R(0.0) : cinert[e];
  LANE_FOR(e, m.nM()) qM_blocks[e] = 0;
  lane_sync();
  sum_subtrees(m, crb, 10);
  LANE_FOR(v, m.nv()) {
    const Block block = block_of(m, m.dof_block()[v]);
    real *M = qM_blocks + block.at, force[6];
    const int i = v - block.dof;
    inert_mul(force, crb + 10 * m.dof_bodyid()[v], cdof + 6 * v);
    M[i * block.n + i] = dot6(cdof + 6 * v, force) + m.dof_armature()[v];
    ROLLED for (int a = m.dof_parentid()[v]; a >= 0; a = m.dof_parentid()[a]) {
      const real x = dot6(cdof + 6 * a, force);
      const int j = a - block.dof;
      M[i * block.n + j] = x;
      M[j * block.n + i] = x;
    }
  }
  lane_sync();
}
