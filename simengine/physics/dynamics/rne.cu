// Recursive Newton-Euler without joint accelerations: bias forces. Featherstone, chapter 5; MuJoCo's mj_rne.

DEVICE void rne(const Model& m, const real* qvel, const real* cinert, const real* cdof, const real* cvel,
                const real* cdof_dot, real* qfrc_bias, real* cacc) {
  // (1) accelerations at constant qvel; gravity enters as an acceleration of the world body
  const auto gravity = m.opt_gravity();
  const real lift[3] = {-gravity[0], -gravity[1], -gravity[2]};
  sum_branches(m, cdof_dot, qvel, lift, cacc);
  // (2) force on each body, which takes the place of its acceleration: I a + v x I v; the world body needs none
  real* cfrc = cacc;
  LANE_FOR(b, m.nbody()) {
    real force[6];
    inertial_force(force, cinert + 10 * b, cvel + 6 * b, cacc + 6 * b);
    for (int i = 0; i < 6; ++i) cfrc[6 * b + i] = b ? force[i] : R(0.0);
  }
  lane_sync();
  // (3) sums over subtrees, projected on each dof's axis
  sum_subtrees(m, cfrc, 6);
  DOF_FOR(v, m.nv()) qfrc_bias[v] = dot6(cdof + 6 * v, cfrc + 6 * m.dof_bodyid()[v]);
  lane_sync();
}
