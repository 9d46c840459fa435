// Recursive Newton-Euler without joint accelerations: bias forces. Featherstone, chapter 5; MuJoCo's mj_rne.

DEVICE void rne(const Model& m, const real* qvel, const real* cinert, const real* cdof, const real* cvel,
                const real* cdof_dot, real* qfrc_bias, real* cacc, real* cfrc) {
  // (1) gravity as an acceleration of the world
  LANE_FOR(i, 6) {
    cacc[i] = i < 3 ? R(0.0) : -m.opt_gravity()[i - 3];
    cfrc[i] = 0;
  }
  lane_sync();
  // (2) accelerations and the forces they need, parents before children
  for (int level = 0; level < m.nlevel(); ++level) {
    const int begin = m.level_adr()[level], end = m.level_adr()[level + 1];
    LANE_FOR(k, end - begin) {
      const int b = m.level_body()[begin + k], parent = m.body_parentid()[b], dofadr = m.body_dofadr()[b];
      real acc[6], momentum[6], a[6], c[6];
      for (int i = 0; i < 6; ++i) acc[i] = cacc[6 * parent + i];
      for (int v = dofadr; v < dofadr + m.body_dofnum()[b]; ++v) {
        for (int i = 0; i < 6; ++i) acc[i] = fma_(cdof_dot[6 * v + i], qvel[v], acc[i]);
      }
      inert_mul(momentum, cinert + 10 * b, cvel + 6 * b);
      cross_force(c, cvel + 6 * b, momentum);
      inert_mul(a, cinert + 10 * b, acc);
      for (int i = 0; i < 6; ++i) {
        cacc[6 * b + i] = acc[i];
        cfrc[6 * b + i] = a[i] + c[i];
      }
    }
    lane_sync();
  }
  // (3) forces from the leaves to the roots
  for (int level = m.nlevel() - 1; level >= 0; --level) {
    const int begin = m.level_adr()[level], end = m.level_adr()[level + 1];
    LANE_FOR(e, 6 * (end - begin)) {
      const int b = m.level_body()[begin + e / 6], i = e % 6;
      real sum = cfrc[6 * b + i];
      for (int c = 0; c < m.body_childnum()[b]; ++c) sum += cfrc[6 * m.level_body()[m.body_childadr()[b] + c] + i];
      cfrc[6 * b + i] = sum;
    }
    lane_sync();
  }
  // (4) their share along each dof
  LANE_FOR(v, m.nv()) qfrc_bias[v] = dot6(cdof + 6 * v, cfrc + 6 * m.dof_bodyid()[v]);
  lane_sync();
}
