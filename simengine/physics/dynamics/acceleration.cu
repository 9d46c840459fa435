// Sum of the smooth forces, and the acceleration they give without constraints: MuJoCo's mj_fwdAcceleration.

DEVICE void acceleration(const Model& m, const real* qfrc_applied, const real* xfrc_applied, const real* xipos,
                         const real* subtree_com, const real* cdof, const real* qfrc_passive, const real* qfrc_bias,
                         const real* qfrc_actuator, const real* qLD, real* qfrc_smooth, real* qacc_smooth,
                         real* cfrc_applied) {
  // (1) applied Cartesian forces as com-based force vectors, and (2) the sum of all forces except constraint forces
  sum_forces(m, qfrc_applied, xfrc_applied, xipos, subtree_com, cdof, qfrc_passive, qfrc_bias, qfrc_actuator,
             qfrc_smooth, qacc_smooth, cfrc_applied);
  // (3) qM qacc_smooth = qfrc_smooth
  chol_solve(qacc_smooth, qLD, m.nv());
}
