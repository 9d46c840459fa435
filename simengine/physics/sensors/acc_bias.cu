// Accelerations of bodies due to velocities and gravity, without that due to qacc. It is a stage of its own, because
// the integrator has changed qvel by the time body_forces runs.

DEVICE void acc_bias(const Model& m, const real* qvel, const real* cdof_dot, real* cacc_bias) {
  // (1) gravity enters as an upward acceleration of the world body
  const real* gravity = m.opt_gravity();
  const real lift[3] = {-gravity[0], -gravity[1], -gravity[2]};
  sum_branches(m, cdof_dot, qvel, lift, cacc_bias);
}
