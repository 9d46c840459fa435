// What every integrator does: check the acceleration, advance the coordinates, check the new state.
#pragma once

// Why an acceleration cannot be used, as a code of STATUS; zero if it can. Constraints may make a large smooth
// acceleration small, but not one that is not finite.
DEVICE int acceleration_status(const Model& m, const real* qacc_smooth, const real* qacc) {
  int bad = 0;
  DOF_FOR(v, m.nv()) {
    if (!bounded_(qacc[v])) bad |= 1;
    if (!bounded_(qacc_smooth[v])) bad |= finite_(qacc_smooth[v]) ? 2 : 5;
  }
  bad = lane_or(bad);
  return !(bad & 1) ? STATUS_HEALTHY : bad & 6 ? STATUS_ACCELERATION : STATUS_SOLVE;
}

// Advance qpos by velocity v over a time h, joint by joint.
DEVICE void integrate_pos(const Model& m, real* qpos, const real* v, real h) {
  LANE_FOR(j, m.njnt()) {
    real* q = qpos + m.jnt_qposadr()[j];
    const real* w = v + m.jnt_dofadr()[j];
    if (m.jnt_type()[j] == JNT_FREE) {
      for (int i = 0; i < 3; ++i) q[i] = fma_(h, w[i], q[i]);
      quat_integrate(q + 3, w + 3, h);
    } else if (m.jnt_type()[j] == JNT_BALL) {
      quat_integrate(q, w, h);
    } else {
      q[0] = fma_(h, w[0], q[0]);
    }
  }
  lane_sync();
}

DEVICE int state_bounded(const Model& m, const real* qpos, const real* qvel) {
  int bad = 0;
  LANE_FOR(i, m.nq()) bad |= !bounded_(qpos[i]);
  DOF_FOR(i, m.nv()) bad |= !bounded_(qvel[i]);
  return !lane_any(bad);
}

DEVICE void flag_world(int* world_status, int status) {
  if (lane() == 0 && world_status[0] == STATUS_HEALTHY) world_status[0] = status;
  lane_sync();
}

// Whether a world may be integrated, which needs a healthy world and a usable acceleration; if not, flag the world.
DEVICE bool may_advance(const Model& m, const real* qacc_smooth, const real* qacc, int* world_status) {
  if (world_status[0] != STATUS_HEALTHY) return false;
  const int status = acceleration_status(m, qacc_smooth, qacc);
  if (status != STATUS_HEALTHY) flag_world(world_status, status);
  return status == STATUS_HEALTHY;
}

// End of an Euler step of length h. On entry next_qvel holds the acceleration to be integrated, and next_qpos the
// coordinates. A world whose new state could not be used keeps its old state and is flagged.
DEVICE void semi_implicit(const Model& m, real h, const real* qacc, real* qpos, real* qvel, real* qacc_warmstart,
                          int* nstep, int* world_status, real* next_qvel, real* next_qpos) {
  const int nv = m.nv();
  DOF_FOR(v, nv) next_qvel[v] = fma_(h, next_qvel[v], qvel[v]);
  lane_sync();
  integrate_pos(m, next_qpos, next_qvel, h);
  if (!state_bounded(m, next_qpos, next_qvel)) {
    flag_world(world_status, STATUS_INTEGRATE);
    return;
  }
  DOF_FOR(v, nv) {
    qvel[v] = next_qvel[v];
    qacc_warmstart[v] = qacc[v];
  }
  LANE_FOR(i, m.nq()) qpos[i] = next_qpos[i];
  LANE_FOR(i, 1) nstep[0] += 1;
  lane_sync();
}
