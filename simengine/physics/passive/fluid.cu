// Viscous resistance and quadratic drag on boxes that have the bodies' mass and inertia: MuJoCo documentation,
// "Computation", "Fluid forces", "Inertia model".

DEVICE void fluid(const Model& m, const real* xipos, const real* ximat, const real* subtree_com, const real* cdof,
                  const real* cvel, real* qfrc_fluid, real* qfrc_passive, real* cfrc_fluid) {
  // (1) velocities of the centres of mass through the fluid, in the frames of the principal axes
  // (2) Stokes drag on spheres whose diameter is the boxes' mean side, and drag on the boxes' faces
  LANE_FOR(b, m.nbody()) {
    const real* com = subtree_com + 3 * m.body_rootid()[b];
    real force[3], torque[3];
    body_drag(m, b, xipos + 3 * b, ximat + 9 * b, com, cvel + 6 * b, force, torque);
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
