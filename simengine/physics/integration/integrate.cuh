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

#ifdef TILE
// What follows does the same for the worlds of a tile, whose statuses and steps are arrays.

DEVICE truth are_healthy(const int* world_status) {
  return each_world([&](int k) { return REAL(world_status[k]); }) == R(1.0) * STATUS_HEALTHY;
}

DEVICE void flag_worlds(int* world_status, const truth& flagged, int status) {
  if (!any_world(flagged)) return;
  for (int k = 0; k < TILE; ++k) {
    if (flagged.of[k] && world_status[k] == STATUS_HEALTHY) world_status[k] = status;
  }
}

DEVICE void count_steps(int* nstep, const truth& stepped) {
  for (int k = 0; k < TILE; ++k) nstep[k] += stepped.of[k] != 0;
}

DEVICE truth are_bounded(const real* x, int n, truth bounded) {
  for (int i = 0; i < n; ++i) bounded = bounded & bounded_(x[i]);
  return bounded;
}

// Healthy worlds whose acceleration can be used; flags those whose acceleration cannot.
DEVICE truth acceleration_usable(const Model& m, const real* qacc_smooth, const real* qacc, int* world_status) {
  const truth healthy = are_healthy(world_status), smooth = are_bounded(qacc_smooth, m.nv(), healthy);
  truth usable = are_bounded(qacc, m.nv(), healthy);
  for (int v = 0; v < m.nv(); ++v) usable = usable & finite_(qacc_smooth[v]);
  flag_worlds(world_status, healthy & !usable & !smooth, STATUS_ACCELERATION);
  flag_worlds(world_status, healthy & !usable & smooth, STATUS_SOLVE);
  return usable;
}

// Larger inertias are factored from the last row on, as in padded_matrix.cuh.
#define MOST_FORWARD_IN_TILES 32

// x = (A + scale diag(d))^-1 b for such an inertia, as solve_with_rows_in_vectors without rows: each tree is eliminated
// from its leaves to its root, and the entries of two branches are zero and stay so.
DEVICE void solve_damped_trees(const Model& m, real* x, const real* A, const Part& d, real scale, const real* b,
                               real* H, int n) {
  const auto above = [&](int v) { return m.dof_parentid()[v]; };
  for (int i = 0; i < n; ++i) {
    for (int j = above(i); j >= 0; j = above(j)) H[i * n + j] = A[i * n + j] + R(0.0);
    H[i * n + i] = A[i * n + i] + R(0.0);
    H[i * n + i] += scale * d[i];
    x[i] = b[i] + R(0.0);
  }
  for (int k = n - 1; k >= 0; --k) {
    real* row = H + k * n;
    const real pivot = sqrt_(select(row[k] <= 0, REAL_MAX, row[k])), inverse = R(1.0) / pivot, solved = x[k] / pivot;
    for (int j = above(k); j >= 0; j = above(j)) {
      row[j] *= inverse;
      x[j] = fma_(row[j], -solved, x[j]);
    }
    for (int i = above(k); i >= 0; i = above(i)) {
      const real taken = -row[i];
      for (int j = i; j >= 0; j = above(j)) H[i * n + j] = fma_(taken, row[j], H[i * n + j]);
    }
    row[k] = pivot;
    x[k] = solved + R(0.0);
  }
  for (int k = 0; k < n; ++k) {
    x[k] = x[k] / H[k * n + k];
    const int last = m.body_last()[m.dof_bodyid()[k]];
    for (int i = k + 1; i < n && m.dof_bodyid()[i] <= last; ++i) x[i] = fma_(-x[k], H[i * n + k], x[i]);
  }
}

// x = (A + scale diag(d))^-1 b, as solve_with_rows without rows.
DEVICE void solve_damped(const Model& m, real* x, const real* A, const Part& d, real scale, const real* b, real* H,
                         int n) {
  if (n > MOST_FORWARD_IN_TILES) {
    solve_damped_trees(m, x, A, d, scale, b, H, n);
    return;
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) H[i * n + j] = A[i * n + j] + R(0.0);
    H[i * n + i] += scale * d[i];
    x[i] = b[i] + R(0.0);
  }
  mem_factor(H, n);
  mem_solve(x, H, n);
}

DEVICE void semi_implicit_in_tile(const Model& m, real h, const truth& usable, const real* qacc, real* qpos, real* qvel,
                                  real* qacc_warmstart, int* nstep, int* world_status, real* next_qvel,
                                  real* next_qpos) {
  const int nv = m.nv();
  for (int v = 0; v < nv; ++v) next_qvel[v] = fma_(h, next_qvel[v], qvel[v]);
  integrate_pos(m, next_qpos, next_qvel, h);
  const truth done = are_bounded(next_qvel, nv, are_bounded(next_qpos, m.nq(), usable));
  flag_worlds(world_status, usable & !done, STATUS_INTEGRATE);
  for (int v = 0; v < nv; ++v) {
    qvel[v] = select(done, next_qvel[v], qvel[v]);
    qacc_warmstart[v] = select(done, qacc[v], qacc_warmstart[v]);
  }
  for (int i = 0; i < m.nq(); ++i) qpos[i] = select(done, next_qpos[i], qpos[i]);
  count_steps(nstep, done);
}
#endif

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
