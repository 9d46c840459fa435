// Frames of so many geoms that they are made a piece at a time; see kinematics_of_many.cu.

DEVICE void geom_frames_of_many(const Model& m, const real* xpos, const real* xquat, real* geom_xpos, real* geom_xmat,
                                real* piece) {
  frames_in_pieces(m, xpos, xquat, geom_xpos, geom_xmat, piece);
}
