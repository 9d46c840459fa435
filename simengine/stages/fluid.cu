// Viscous resistance and quadratic drag on boxes that have the bodies' mass and inertia: MuJoCo documentation,
// "Computation", "Passive forces", "Inertia model".

// Force and torque of the fluid on body b at its centre of mass, in the world frame.
DEVICE void drag(const Model& m, int b, const real* xipos, const real* ximat, const real* com, const real* cvel,
                 real* force, real* torque) {
  const real pi = R(3.14159265358979323846);
  const real density = m.opt_density()[0], viscosity = m.opt_viscosity()[0];
  const real* box = m.body_box() + 3 * b;
  // (1) velocity of the centre of mass through the fluid, in the frame of the principal axes
  real arm[3], lever[3], relative[3], w[3], v[3], axis[3], f[3], t[3];
  for (int i = 0; i < 3; ++i) arm[i] = xipos[i] - com[i];
  cross3(lever, cvel, arm);
  for (int i = 0; i < 3; ++i) relative[i] = cvel[3 + i] + lever[i] - m.opt_wind()[i];
  for (int i = 0; i < 3; ++i) {
    mat_col(axis, ximat, i);
    w[i] = dot3(axis, cvel);
    v[i] = dot3(axis, relative);
  }
  // (2) Stokes' law for a sphere of the box's mean side, and drag on the box's faces
  const real diameter = (box[0] + box[1] + box[2]) / R(3.0);
  for (int i = 0; i < 3; ++i) {
    const real a = box[(i + 1) % 3], c = box[(i + 2) % 3];
    const real a2 = a * a, c2 = c * c;
    const real face = R(0.5) * density * a * c, stir = density * box[i] * (a2 * a2 + c2 * c2) / R(64.0);
    f[i] = -(R(3.0) * pi * diameter * viscosity + face * abs_(v[i])) * v[i];
    t[i] = -(pi * diameter * diameter * diameter * viscosity + stir * abs_(w[i])) * w[i];
  }
  for (int i = 0; i < 3; ++i) {
    force[i] = dot3(ximat + 3 * i, f);
    torque[i] = dot3(ximat + 3 * i, t);
  }
}

DEVICE void fluid(const Model& m, const real* xipos, const real* ximat, const real* subtree_com, const real* cdof,
                  const real* cvel, real* qfrc_fluid, real* qfrc_passive, real* cfrc_fluid) {
  LANE_FOR(b, m.nbody()) {
    const real* com = subtree_com + 3 * m.body_rootid()[b];
    real force[3], torque[3];
    drag(m, b, xipos + 3 * b, ximat + 9 * b, com, cvel + 6 * b, force, torque);
    force_at(cfrc_fluid + 6 * b, force, torque, xipos + 3 * b, com);
  }
  lane_sync();
  // (3) sums over the bodies that each dof carries
  DOF_FOR(v, m.nv()) {
    const int b = m.dof_bodyid()[v], last = m.body_last()[b];
    real sum = 0;
    ROLLED for (int c = b; c <= last; ++c) sum += dot6(cdof + 6 * v, cfrc_fluid + 6 * c);
    qfrc_fluid[v] = sum;
    qfrc_passive[v] += sum;
  }
  lane_sync();
}
