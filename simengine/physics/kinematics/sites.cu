// Frames of the sites, fixed in their bodies: the part of MuJoCo's mj_kinematics that concerns sites.

DEVICE void sites(const Model& m, const real* xpos, const real* xquat, real* site_xpos, real* site_xmat) {
  LANE_FOR(s, m.nsite()) {
    const int b = m.site_bodyid()[s];
    real quat[4], pos[3];
    // (1) positions
    site_position(m, s, xpos, xquat, pos);
    for (int i = 0; i < 3; ++i) site_xpos[3 * s + i] = pos[i];
    // (2) orientations
    quat_mul(quat, xquat + 4 * b, m.site_quat() + 4 * s);
    quat_to_mat(site_xmat + 9 * s, quat);
  }
  lane_sync();
}
