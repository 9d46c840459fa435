// Frames of bodies and joints of kinematics.cu, with the same operations.

DEVICE void body_poses(const Model& m, const real* qpos, const real* mocap_pos, const real* mocap_quat, real* xpos,
                       real* xquat, real* xanchor, real* xaxis) {
  LANE_FOR(i, 4) {
    if (i < 3) xpos[i] = 0;
    xquat[i] = i == 0;
  }
  lane_sync();
  body_frames(m, qpos, mocap_pos, mocap_quat, xpos, xquat, xanchor, xaxis);
}
