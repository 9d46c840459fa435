// Gravity compensation: MuJoCo documentation, "Computation", "Passive forces"; "XML Reference", "body", "gravcomp" and
// "joint", "actuatorgravcomp".

DEVICE void gravcomp(const Model& m, const real* xipos, const real* subtree_com, const real* cdof, real* qfrc_gravcomp,
                     real* qfrc_passive, real* qfrc_actuator, real* cfrc_up) {
  if (m.ngravcomp() == 0) {
    DOF_FOR(v, m.nv()) qfrc_gravcomp[v] = 0;
    lane_sync();
    return;
  }
  // (1) a force against each body's weight, at its centre of mass
  LANE_FOR(b, m.nbody()) {
    const real lifted = m.body_gravcomp()[b] * m.body_mass()[b], none[3] = {0, 0, 0};
    real force[3];
    for (int i = 0; i < 3; ++i) force[i] = -lifted * m.opt_gravity()[i];
    force_at(cfrc_up + 6 * b, force, none, xipos + 3 * b, subtree_com + 3 * m.body_rootid()[b]);
  }
  lane_sync();
  DOF_FOR(v, m.nv()) {
    // (2) sums over the bodies that each dof carries
    const int b = m.dof_bodyid()[v], last = m.body_last()[b], j = m.dof_jntid()[v], to = m.jnt_gravcomp()[j];
    real sum = 0;
    ROLLED for (int c = b; c <= last; ++c) sum += dot6(cdof + 6 * v, cfrc_up + 6 * c);
    qfrc_gravcomp[v] = sum;
    // (3) add to the passive force, or to the actuator force within the joint's range
    if (to == GRAVCOMP_PASSIVE) qfrc_passive[v] += sum;
    if (to == GRAVCOMP_ACTUATOR) qfrc_actuator[v] += sum;
    if (to == GRAVCOMP_LIMITED) {
      const real* range = m.jnt_actfrcrange() + 2 * j;
      qfrc_actuator[v] = clamp_(qfrc_actuator[v] + sum, range[0], range[1]);
    }
  }
  lane_sync();
}
