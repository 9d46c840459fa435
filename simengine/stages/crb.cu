// Composite rigid bodies: Featherstone, "Rigid Body Dynamics Algorithms", chapter 6; MuJoCo's mj_crb.

DEVICE void crb(const Model& m, const real* cinert, const real* cdof, real* crb, real* qM) {
  const int nv = m.nv();
  // (1) composite inertias, from the leaves to the roots; the world's is zero
  LANE_FOR(i, 10) crb[i] = 0;
  for (int level = m.nlevel() - 1; level >= 0; --level) {
    const int begin = m.level_adr()[level], end = m.level_adr()[level + 1];
    LANE_FOR(e, 10 * (end - begin)) {
      const int b = m.level_body()[begin + e / 10], i = e % 10;
      real sum = cinert[10 * b + i];
      for (int c = 0; c < m.body_childnum()[b]; ++c) sum += crb[10 * m.level_body()[m.body_childadr()[b] + c] + i];
      crb[10 * b + i] = sum;
    }
    lane_sync();
  }
  // (2) pairs of dofs without a common branch are not coupled
  LANE_FOR(e, nv * nv) qM[e] = 0;
  lane_sync();
  // (3) each dof with itself and its ancestors
  LANE_FOR(v, nv) {
    real force[6];
    inert_mul(force, crb + 10 * m.dof_bodyid()[v], cdof + 6 * v);
    qM[v * nv + v] = dot6(cdof + 6 * v, force) + m.dof_armature()[v];
    for (int a = m.dof_parentid()[v]; a >= 0; a = m.dof_parentid()[a]) {
      const real x = dot6(cdof + 6 * a, force);
      qM[v * nv + a] = x;
      qM[a * nv + v] = x;
    }
  }
  lane_sync();
}
