// Forces of a fluid on bodies: MuJoCo documentation, "Computation", "Fluid forces", "Inertia model" and "Ellipsoid
// model". A body with an ellipsoid geom has no box.

DEVICE void fluid_general(const Model& m, const real* xipos, const real* ximat, const real* geom_xpos,
                      const real* geom_xmat, const real* subtree_com, const real* cdof, const real* cvel,
                      real* qfrc_fluid, real* qfrc_passive, real* cfrc_fluid) {
  if (m.opt_density()[0] == 0 && m.opt_viscosity()[0] == 0) {
    DOF_FOR(v, m.nv()) qfrc_fluid[v] = 0;
    lane_sync();
    return;
  }
  // (1) boxes: Stokes drag, and drag on their faces
  // (2) ellipsoids: added mass, lift, Stokes drag and viscous drag
  LANE_FOR(b, m.nbody()) {
    const real* com = subtree_com + 3 * m.body_rootid()[b];
    real* wrench = cfrc_fluid + 6 * b;
    if (m.body_fluid()[b]) {
      for (int i = 0; i < 6; ++i) wrench[i] = 0;
      ellipsoid_wrench(m, b, geom_xpos, geom_xmat, com, cvel + 6 * b, wrench);
    } else {
      real force[3], torque[3];
      body_drag(m, b, xipos + 3 * b, ximat + 9 * b, com, cvel + 6 * b, force, torque);
      force_at(wrench, force, torque, xipos + 3 * b, com);
    }
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
