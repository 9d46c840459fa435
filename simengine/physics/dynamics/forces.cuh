// The sum of all forces except constraint forces, and the result where there are no constraint forces.
#pragma once

// qfrc_smooth and qacc_smooth both receive the sum; cfrc_applied is scratch for one spatial force per body.
DEVICE void sum_forces(const Model& m, const real* qfrc_applied, const real* xfrc_applied, const real* xipos,
                       const real* subtree_com, const real* cdof, const real* qfrc_passive, const real* qfrc_bias,
                       const real* qfrc_actuator, real* qfrc_smooth, real* qacc_smooth, real* cfrc_applied) {
  // applied Cartesian forces as com-based force vectors
  truth pushed = xfrc_applied[0] != 0;
  LANE_FOR_LOADS(i, 6 * m.nbody()) pushed = pushed | (xfrc_applied[i] != 0);
  pushed = any_lane(pushed);
  const bool any = any_world(pushed);
  if (any) {
    LANE_FOR(b, m.nbody()) {
      force_at(cfrc_applied + 6 * b, xfrc_applied + 6 * b, xfrc_applied + 6 * b + 3, xipos + 3 * b,
               subtree_com + 3 * m.body_rootid()[b]);
    }
    lane_sync();
  }
  DOF_FOR(v, m.nv()) {
    real force = qfrc_passive[v] - qfrc_bias[v] + qfrc_applied[v] + qfrc_actuator[v];
    if (any) {
      const int b = m.dof_bodyid()[v], last = m.body_last()[b];
      real more = force;
      ROLLED for (int c = b; c <= last; ++c) more += dot6(cdof + 6 * v, cfrc_applied + 6 * c);
      force = select(pushed, more, force);
    }
    qfrc_smooth[v] = force;
    qacc_smooth[v] = force;
  }
  lane_sync();
}

// The solution without constraint rows: the acceleration is that of the smooth forces.
DEVICE void accelerate_smoothly(const Model& m, const real* qacc_smooth, real* qacc, real* qfrc_constraint,
                                int* solver_niter) {
  DOF_FOR(v, m.nv()) {
    qacc[v] = qacc_smooth[v];
    qfrc_constraint[v] = 0;
  }
  LANE_FOR(i, 1) solver_niter[0] = 0;
  lane_sync();
}
