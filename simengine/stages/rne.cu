// Recursive Newton-Euler without joint accelerations: bias forces. Featherstone, chapter 5; MuJoCo's mj_rne.

DEVICE void rne(const Model& m, const real* qvel, const real* cinert, const real* cdof, const real* cvel,
                const real* cdof_dot, real* qfrc_bias, real* cacc, real* cfrc) {
  // gravity is an acceleration of the world
  LANE_FOR(i, 6) {
    cacc[i] = i < 3 ? R(0.0) : -m.opt_gravity()[i - 3];
    cfrc[i] = 0;
  }
  lane_sync();
  // (1) accelerations at constant qvel, parents before children
  ROLLED for (int level = 0; level < m.nlevel(); ++level) {
    const int begin = m.level_adr()[level], end = m.level_adr()[level + 1];
    LANE_FOR(k, end - begin) {
      const int b = m.level_body()[begin + k], parent = m.body_parentid()[b], dofadr = m.body_dofadr()[b];
      real acc[6], momentum[6], a[6], c[6];
      for (int i = 0; i < 6; ++i) acc[i] = cacc[6 * parent + i];
      ROLLED for (int v = dofadr; v < dofadr + m.body_dofnum()[b]; ++v) {
        for (int i = 0; i < 6; ++i) acc[i] = fma_(cdof_dot[6 * v + i], qvel[v], acc[i]);
      }
      // (2) the force each needs: I a + v x I v
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
  // (3) forces on subtrees, which are ranges of bodies, and their share along each dof
  LANE_FOR(e, 6 * m.nbody()) {
    const int b = e / 6, i = e % 6, last = m.body_last()[b];
    real sum = 0;
    OVERLAPPED for (int c = b; c <= last; ++c) sum += cfrc[6 * c + i];
    cacc[e] = sum;  // the accelerations have done their work
  }
  lane_sync();
  DOF_FOR(v, m.nv()) qfrc_bias[v] = dot6(cdof + 6 * v, cacc + 6 * m.dof_bodyid()[v]);
  lane_sync();
}
