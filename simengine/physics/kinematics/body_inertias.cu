// Inertias of bodies of com_pos.cu, with the same operations, from frames without matrices.

DEVICE void body_inertias(const Model& m, const real* xquat, const real* xipos, const real* subtree_com, real* cinert) {
  LANE_FOR(b, m.nbody()) {
    real mat[9];
    inertial_matrix(m, b, xquat, mat);
    body_inertia(m, b, mat, xipos, subtree_com, cinert + 10 * b);
  }
  lane_sync();
}
