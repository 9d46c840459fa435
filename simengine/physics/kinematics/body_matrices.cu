// Orientations of bodies of kinematics.cu, with the same operations.

DEVICE void body_matrices(const Model& m, const real* xquat, real* xmat) {
  LANE_FOR(b, m.nbody()) quat_to_mat(xmat + 9 * b, xquat + 4 * b);
  lane_sync();
}
