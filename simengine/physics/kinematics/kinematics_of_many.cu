// The same as kinematics.cu, with the same operations, for so many geoms that their frames would fill the memory that
// lanes share. They are made a piece at a time, so that neighbouring lanes write neighbouring words of memory. Frames
// of bodies are found as there: with a function for both, compilers would make other code for small models.

#define GEOMS_OF_A_PIECE 32

// The frame of geom g.
DEVICE void geom_frame(const Model& m, int g, const real* xpos, const real* xquat, real* pos, real* mat) {
  const int b = m.geom_bodyid()[g];
  real quat[4], offset[3];
  quat_rotate(offset, xquat + 4 * b, m.geom_pos() + 3 * g);
  for (int i = 0; i < 3; ++i) pos[i] = xpos[3 * b + i] + offset[i];
  quat_mul(quat, xquat + 4 * b, m.geom_quat() + 4 * g);
  quat_to_mat(mat, quat);
}

// The frames of all geoms.
DEVICE void frames_in_pieces(const Model& m, const real* xpos, const real* xquat, real* geom_xpos, real* geom_xmat,
                             real* piece) {
  real *pos = piece, *mat = piece + 3 * GEOMS_OF_A_PIECE;
  ROLLED for (int first = 0; first < m.ngeom(); first += GEOMS_OF_A_PIECE) {
    const int left = m.ngeom() - first, number = left < GEOMS_OF_A_PIECE ? left : GEOMS_OF_A_PIECE;
    LANE_FOR(k, number) geom_frame(m, first + k, xpos, xquat, pos + 3 * k, mat + 9 * k);
    lane_sync();
    copy_out(geom_xpos + 3 * size_t(first), pos, 3 * number);
    copy_out(geom_xmat + 9 * size_t(first), mat, 9 * number);
    lane_sync();
  }
}

DEVICE void kinematics_of_many(const Model& m, const real* qpos, const real* mocap_pos, const real* mocap_quat,
                               real* xpos, real* xquat, real* xmat, real* xipos, real* ximat, real* xanchor,
                               real* xaxis, real* geom_xpos, real* geom_xmat, real* piece) {
  LANE_FOR(i, 4) {
    if (i < 3) xpos[i] = 0;
    xquat[i] = i == 0;
  }
  lane_sync();
  body_frames(m, qpos, mocap_pos, mocap_quat, xpos, xquat, xanchor, xaxis);
  LANE_FOR(b, m.nbody()) {
    real quat[4], offset[3];
    quat_to_mat(xmat + 9 * b, xquat + 4 * b);
    quat_rotate(offset, xquat + 4 * b, m.body_ipos() + 3 * b);
    for (int i = 0; i < 3; ++i) xipos[3 * b + i] = xpos[3 * b + i] + offset[i];
    quat_mul(quat, xquat + 4 * b, m.body_iquat() + 4 * b);
    quat_to_mat(ximat + 9 * b, quat);
  }
  frames_in_pieces(m, xpos, xquat, geom_xpos, geom_xmat, piece);
  lane_sync();
}
