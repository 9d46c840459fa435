// Orientations of inertial frames of kinematics.cu, with the same operations.

DEVICE void inertial_matrices(const Model& m, const real* xquat, real* ximat) {
  LANE_FOR(b, m.nbody()) inertial_matrix(m, b, xquat, ximat + 9 * b);
  lane_sync();
}
