// Accelerations of bodies and the forces that their parents exert on them: the cacc and cfrc_int of MuJoCo's
// mj_rnePostConstraint. Featherstone, chapter 5.

DEVICE void body_forces(const Model& m, const real* cinert, const real* cdof, const real* cvel, const real* cacc_bias,
                        const real* qacc, const real* cfrc_ext, real* cacc, real* cfrc_int) {
  // (1) accelerations due to qacc, summed along the branches
  const real still[3] = {0, 0, 0};
  sum_branches(m, cdof, qacc, still, cacc);
  LANE_FOR(e, 6 * m.nbody()) cacc[e] += cacc_bias[e];
  lane_sync();
  // (2) the force that each body needs, I a + v x I v, minus the external forces
  LANE_FOR(b, m.nbody()) {
    real force[6];
    inertial_force(force, cinert + 10 * b, cvel + 6 * b, cacc + 6 * b);
    for (int i = 0; i < 6; ++i) cfrc_int[6 * b + i] = b ? force[i] - cfrc_ext[6 * b + i] : R(0.0);
  }
  lane_sync();
  // (3) the joint of a body transmits the sum over its subtree; the world body's entry is the sum of its children's
  sum_subtrees(m, cfrc_int, 6);
  LANE_FOR(i, 6) {
    ROLLED for (int r = 0; r < m.nroot(); ++r) cfrc_int[i] += cfrc_int[6 * m.root_body()[r] + i];
  }
  lane_sync();
}
