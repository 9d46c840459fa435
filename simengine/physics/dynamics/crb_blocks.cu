// Composite rigid bodies, for block-diagonal inertia; see crb_general.cu.

DEVICE void crb_blocks(const Model& m, const real* xipos, const real* ximat, const real* xanchor, const real* cinert,
                       const real* cdof, real* crb, real* qM_blocks) {
  LANE_FOR(e, 10 * m.nbody()) crb[e] = e < 10 ? R(0.0) : cinert[e];
  LANE_FOR(e, m.nM()) qM_blocks[e] = 0;
  lane_sync();
  sum_subtrees(m, crb, 10);
  LANE_FOR(v, m.nv()) {
    const Block block = block_of(m, m.dof_block()[v]);
    real *M = qM_blocks + block.at, angular[3], linear[3];
    const int i = v - block.dof;
    const real* point = xipos + 3 * m.dof_bodyid()[v];
    subtree_momentum(m, v, xipos, ximat, xanchor, cdof, angular, linear);
    const real own = m.dof_armature()[v] + tendon_inertia(m, v, v);
    M[i * block.n + i] = along_dof(m, v, point, xanchor, cdof, angular, linear) + own;
    ROLLED for (int a = m.dof_parentid()[v]; a >= 0; a = m.dof_parentid()[a]) {
      const real x = along_dof(m, a, point, xanchor, cdof, angular, linear) + tendon_inertia(m, v, a);
      const int j = a - block.dof;
      M[i * block.n + j] = x;
      M[j * block.n + i] = x;
    }
  }
  lane_sync();
}
