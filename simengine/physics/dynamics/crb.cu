// Composite rigid bodies: Featherstone, "Rigid Body Dynamics Algorithms", chapter 6; MuJoCo's mj_crb.

DEVICE void crb(const Model& m, const real* cinert, const real* cdof, real* crb, real* qM) {
  const int nv = m.nv();
  // (1) composite inertias; that of the world body is zero
  LANE_FOR(e, 10 * m.nbody()) crb[e] = e < 10 ? R(0.0) : cinert[e];
  lane_sync();
  sum_subtrees(m, crb, 10);
  // dofs that lie on no common branch are not coupled
  LANE_FOR(e, nv * nv) qM[e] = 0;
  lane_sync();
  DOF_FOR(v, nv) {
    // (2) momentum of the subtree per unit velocity of the dof
    real force[6];
    inert_mul(force, crb + 10 * m.dof_bodyid()[v], cdof + 6 * v);
    // (3) its projection on the dof itself and on its ancestors
    qM[v * nv + v] = dot6(cdof + 6 * v, force) + m.dof_armature()[v];
    ROLLED for (int a = m.dof_parentid()[v]; a >= 0; a = m.dof_parentid()[a]) {
      const real x = dot6(cdof + 6 * a, force);
      qM[v * nv + a] = x;
      qM[a * nv + v] = x;
    }
  }
  lane_sync();
}
