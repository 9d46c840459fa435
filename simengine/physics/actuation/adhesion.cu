// Transmission to the contacts of a body: MuJoCo documentation, "XML Reference", "actuator/adhesion". The force pulls
// along the normals of all contacts of the body's geoms and is shared equally among them, those in the gap included.

// Velocity at which contact k closes, per unit of the velocity of dof v.
DEVICE real closing_speed(const Model& m, int k, int v, const real* subtree_com, const real* cdof,
                          const real* contact_pos, const real* contact_frame, const int* contact_cand) {
  real speed = 0, column[3];
  for (int side = 0; side < 2; ++side) {
    const int b = m.geom_bodyid()[(side ? m.cand_geom2() : m.cand_geom1())[contact_cand[k]]];
    if (!moves(m, v, b)) continue;
    point_jacobian(m, v, b, contact_pos + 3 * k, subtree_com, cdof, column);
    speed += (side ? R(-1.0) : R(1.0)) * dot3(contact_frame + 9 * k, column);
  }
  return speed;
}

DEVICE void adhesion(const Model& m, const real* qvel, const real* subtree_com, const real* cdof, const int* ncon,
                     const real* contact_pos, const real* contact_frame, const int* contact_cand,
                     real* actuator_velocity, real* actuator_moment) {
  const int nv = m.nv();
  // (1) moment: mean over the contacts
  LANE_FOR(e, m.nu() * nv) {
    const int u = e / nv, v = e % nv, b = m.actuator_trnid()[2 * u];
    if (m.actuator_trntype()[u] != TRN_BODY) continue;
    real sum = 0;
    int number = 0;
    ROLLED for (int k = 0; k < ncon[0]; ++k) {
      const int c = contact_cand[k];
      if (m.geom_bodyid()[m.cand_geom1()[c]] != b && m.geom_bodyid()[m.cand_geom2()[c]] != b) continue;
      sum += closing_speed(m, k, v, subtree_com, cdof, contact_pos, contact_frame, contact_cand);
      ++number;
    }
    actuator_moment[e] = number ? divide_(sum, R(1.0) * number) : R(0.0);
  }
  lane_sync();
  // (2) velocity, which MuJoCo leaves at zero for an actuator that moves nothing
  LANE_FOR(u, m.nu()) {
    if (m.actuator_trntype()[u] != TRN_BODY) continue;
    real velocity = 0;
    ROLLED for (int v = 0; v < nv; ++v) velocity = fma_(actuator_moment[u * nv + v], qvel[v], velocity);
    actuator_velocity[u] = m.opt_actuation() ? velocity : R(0.0);
  }
  lane_sync();
}
