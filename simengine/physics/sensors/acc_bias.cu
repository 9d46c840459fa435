// What the velocities and gravity add to the accelerations of bodies. A kernel of its own stage, because integrators
// have changed qvel by the time qacc is known.

DEVICE void acc_bias(const Model& m, const real* qvel, const real* cdof_dot, real* cacc_bias) {
  // (1) gravity is an acceleration of the world, upwards
  const real* gravity = m.opt_gravity();
  const real lift[3] = {-gravity[0], -gravity[1], -gravity[2]};
  sum_branches(m, cdof_dot, qvel, lift, cacc_bias);
}
