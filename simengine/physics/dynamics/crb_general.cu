// Composite rigid bodies as in crb.cu, but with moments about a nearby point, which rounds less where a tree is large.

DEVICE void crb_general(const Model& m, const real* xipos, const real* ximat, const real* xanchor, const real* cinert,
                     const real* cdof, real* crb, real* qM) {
  const int nv = m.nv();
  // (1) composite inertias; that of the world body is zero
  LANE_FOR(e, 10 * m.nbody()) crb[e] = e < 10 ? R(0.0) : cinert[e];
  lane_sync();
  sum_subtrees(m, crb, 10);
  // dofs that lie on no common branch are not coupled
  LANE_FOR(e, nv * nv) qM[e] = 0;
  lane_sync();
  DOF_FOR(v, nv) {
    // (2) momentum of the subtree per unit velocity of the dof, about the centre of mass of the dof's body
    const real* point = xipos + 3 * m.dof_bodyid()[v];
    real angular[3], linear[3];
    subtree_momentum(m, v, xipos, ximat, xanchor, cdof, angular, linear);
    // (3) its projection on the dof itself and on its ancestors
    const real own = m.dof_armature()[v] + tendon_inertia(m, v, v);
    qM[v * nv + v] = along_dof(m, v, point, xanchor, cdof, angular, linear) + own;
    ROLLED for (int a = m.dof_parentid()[v]; a >= 0; a = m.dof_parentid()[a]) {
      const real x = along_dof(m, a, point, xanchor, cdof, angular, linear) + tendon_inertia(m, v, a);
      qM[v * nv + a] = x;
      qM[a * nv + v] = x;
    }
  }
  lane_sync();
}
