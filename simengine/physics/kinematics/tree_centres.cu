// Centres of mass and motion axes of com_pos.cu, with the same operations, from frames without matrices.

DEVICE void tree_centres(const Model& m, const real* xpos, const real* xquat, const real* xanchor, const real* xaxis,
                         real* xipos, real* subtree_com, real* cdof) {
  LANE_FOR(b, m.nbody()) {
    real offset[3];
    quat_rotate(offset, xquat + 4 * b, m.body_ipos() + 3 * b);
    for (int i = 0; i < 3; ++i) xipos[3 * b + i] = xpos[3 * b + i] + offset[i];
  }
  lane_sync();
  subtree_centres(m, xipos, subtree_com);
  DOF_FOR(v, m.nv()) {
    motion_axis(m, v, subtree_com, xanchor, xaxis, cdof + 6 * v, [&](real* out, int b, int k) {
      real mat[9];
      quat_to_mat(mat, xquat + 4 * b);
      for (int i = 0; i < 3; ++i) out[i] = k == 0 ? mat[3 * i] : k == 1 ? mat[3 * i + 1] : mat[3 * i + 2];
    });
  }
  lane_sync();
}
