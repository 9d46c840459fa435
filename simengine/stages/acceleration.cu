// Smooth forces and the acceleration they give without constraints: MuJoCo's mj_fwdAcceleration.

DEVICE void acceleration(const Model& m, const real* qfrc_applied, const real* xfrc_applied, const real* xipos,
                         const real* subtree_com, const real* cdof, const real* qfrc_passive, const real* qfrc_bias,
                         const real* qfrc_actuator, const real* qLD, real* qfrc_smooth, real* qacc_smooth,
                         real* cfrc_applied) {
  // (1) applied Cartesian forces as com-based force vectors, summed over subtrees from the leaves
  int any = 0;
  LANE_FOR(i, 6 * m.nbody()) any |= xfrc_applied[i] != 0;
  any = lane_any(any);
  if (any) {
    for (int level = m.nlevel() - 1; level >= 0; --level) {
      const int begin = m.level_adr()[level], end = m.level_adr()[level + 1];
      LANE_FOR(k, end - begin) {
        const int b = m.level_body()[begin + k];
        real* sum = cfrc_applied + 6 * b;
        force_at(sum, xfrc_applied + 6 * b, xfrc_applied + 6 * b + 3, xipos + 3 * b,
                 subtree_com + 3 * m.body_rootid()[b]);
        for (int c = 0; c < m.body_childnum()[b]; ++c) {
          const int child = m.level_body()[m.body_childadr()[b] + c];
          for (int i = 0; i < 6; ++i) sum[i] += cfrc_applied[6 * child + i];
        }
      }
      lane_sync();
    }
  }
  // (2) all forces but the constraints'
  LANE_FOR(v, m.nv()) {
    real force = qfrc_passive[v] - qfrc_bias[v] + qfrc_applied[v] + qfrc_actuator[v];
    if (any) force += dot6(cdof + 6 * v, cfrc_applied + 6 * m.dof_bodyid()[v]);
    qfrc_smooth[v] = force;
    qacc_smooth[v] = force;
  }
  lane_sync();
  // (3) qM qacc_smooth = qfrc_smooth
  chol_solve(qacc_smooth, qLD, m.nv());
}
