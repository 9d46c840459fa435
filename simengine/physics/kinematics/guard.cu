// Flag a world whose state or input is not finite, or larger than MuJoCo allows, before anything is computed from it.

DEVICE void guard(const Model& m, const real* qpos, const real* qvel, const real* ctrl, const real* qfrc_applied,
                  const real* xfrc_applied, const real* mocap_pos, const real* mocap_quat, int* world_status) {
  int bad = 0;
  LANE_FOR(i, m.nq()) bad |= !bounded_(qpos[i]);
  DOF_FOR(i, m.nv()) bad |= !bounded_(qvel[i]) | !finite_(qfrc_applied[i]);
  LANE_FOR(i, m.nu()) bad |= !bounded_(ctrl[i]);
  LANE_FOR_LOADS(i, 6 * m.nbody()) bad |= !finite_(xfrc_applied[i]);
  LANE_FOR(i, 3 * m.nmocap()) bad |= !finite_(mocap_pos[i]);
  LANE_FOR(i, 4 * m.nmocap()) bad |= !finite_(mocap_quat[i]);
  bad = lane_any(bad);
  if (lane() == 0 && bad && world_status[0] == STATUS_HEALTHY) world_status[0] = STATUS_INPUT;
  lane_sync();
}
