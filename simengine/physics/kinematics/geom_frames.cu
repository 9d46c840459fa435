// Frames of geoms of kinematics.cu, with the same operations.

DEVICE void geom_frames(const Model& m, const real* xpos, const real* xquat, real* geom_xpos, real* geom_xmat) {
  LANE_FOR(g, m.ngeom()) geom_frame(m, g, xpos, xquat, geom_xpos + 3 * g, geom_xmat + 9 * g);
  lane_sync();
}
