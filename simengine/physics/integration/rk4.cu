// One evaluation of the classical fourth-order Runge-Kutta step: MuJoCo documentation, "Computation", "Numerical
// integration". Evaluation rk_stage 0..3 is at a fraction of the step ("reach"), reached along the derivative of the
// evaluation before it. The last one ends the step:
//
//   rk_stage   0     1     2     3
//   reach      0    1/2   1/2    1
//   weight    1/6   1/3   1/3   1/6
//
// The orientation of a free or ball joint is q exp(u). The method averages the rate of u, not the angular velocity, and
// so is of fourth order for quaternions too: H. Munthe-Kaas, BIT 38 (1998); A. Iserles et al., Lie-group methods, Acta
// Numerica 9 (2000), (2.44). A body may turn by more than half a turn within a step. Then u is that of the shortest
// rotation to the same orientation, as in MuJoCo: the rate is singular where |u| is a whole turn.

// u becomes the rotation vector of the same rotation by at most half a turn.
DEVICE void shorten_rotation(real* u) {
  const real pi = R(3.14159265358979323846), square = dot3(u, u);
  const truth longer = square > pi * pi;
  if (!any_world(longer)) return;
  const real angle = sqrt_(select(longer, square, real(1)));
  const real turns = floor_(fma_(R(0.5) / pi, angle, R(0.5)));
  const real scale = divide_(fma_(R(-2.0) * pi, turns, angle), angle);
  for (int i = 0; i < 3; ++i) u[i] = select(longer, scale * u[i], u[i]);
}

// Rate of u in q exp(u) under the local angular velocity w: w + u x w / 2 + c u x (u x w), c = (1 - a/2 cot a/2) / a^2.
DEVICE void rotation_rate(real* out, const real* u, const real* w) {
  real once[3], twice[3];
  const real square = dot3(u, u);
  real c = fma_(square, fma_(square, R(1.0) / R(30240.0), R(1.0) / R(720.0)), R(1.0) / R(12.0));
  // where the series' next term is below rounding, it is more accurate than the closed form, whose terms cancel
  const truth large = square >= (REAL_IS_FLOAT ? R(0.25) : R(1e-4));
  if (any_world(large)) {
    const real angle = sqrt_(square);
    real s, cosine;
    sincos_(R(0.5) * angle, &s, &cosine);
    c = select(large, divide_(R(1.0) - divide_(R(0.5) * angle * cosine, s), square), c);
  }
  cross3(once, u, w);
  cross3(twice, u, once);
  for (int i = 0; i < 3; ++i) out[i] = w[i] + R(0.5) * once[i] + c * twice[i];
}

// (1) rk_rate becomes the rate at this evaluation, which was reached along the old rate over a time `reached`.
DEVICE void displacement_rate(const Model& m, const real* qvel, real reached, real* rk_rate) {
  LANE_FOR(j, m.njnt()) {
    const int v = m.jnt_dofadr()[j];
    const bool free = m.jnt_type()[j] == JNT_FREE;
    if (free || m.jnt_type()[j] == JNT_BALL) {
      const int turning = free ? v + 3 : v;
      real turned[3];
      for (int i = 0; i < 3; ++i) turned[i] = reached * rk_rate[turning + i];
      if (free) {
        for (int i = 0; i < 3; ++i) rk_rate[v + i] = qvel[v + i];
      }
      shorten_rotation(turned);
      rotation_rate(rk_rate + turning, turned, qvel + turning);
    } else {
      rk_rate[v] = qvel[v];
    }
  }
  lane_sync();
}

#ifdef TILE
// The same for the worlds of a tile.
DEVICE void rk4_in_tile(const Model& m, const real* qacc_smooth, real* qacc, real* qpos, real* qvel,
                        real* qacc_warmstart, int* nstep, int* world_status, real* rk_qpos, real* rk_qvel,
                        real* rk_rate, real* rk_dqpos, real* rk_dqvel, int rk_stage, real weight, real reach,
                        real ahead) {
  const int nq = m.nq(), nv = m.nv();
  const real h = m.opt_timestep()[0];
  const truth healthy = are_healthy(world_status);
  // a frozen world goes back to the state that it has
  const truth saved = healthy & (R(1.0) * rk_stage > real(0));
  for (int i = 0; i < nq; ++i) rk_qpos[i] = select(saved, rk_qpos[i], qpos[i]);
  for (int v = 0; v < nv; ++v) {
    rk_qvel[v] = select(saved, rk_qvel[v], qvel[v]);
    if (rk_stage == 0) rk_rate[v] = rk_dqpos[v] = rk_dqvel[v] = 0;
  }
  const truth usable = acceleration_usable(m, qacc_smooth, qacc, world_status);
  displacement_rate(m, qvel, reach * h, rk_rate);
  for (int v = 0; v < nv; ++v) {
    rk_dqpos[v] = fma_(weight, rk_rate[v], rk_dqpos[v]);
    rk_dqvel[v] = fma_(weight, qacc[v], rk_dqvel[v]);
  }
  for (int i = 0; i < nq; ++i) qpos[i] = rk_qpos[i];
  const bool warm = rk_stage == 3 || m.opt_solver() != SOLVER_PGS;
  integrate_pos(m, qpos, rk_stage < 3 ? rk_rate : rk_dqpos, rk_stage < 3 ? ahead * h : h);
  for (int v = 0; v < nv; ++v) {
    const real slope = rk_stage < 3 ? ahead * qacc[v] : rk_dqvel[v];
    qvel[v] = fma_(h, slope, rk_qvel[v]);
    if (warm) qacc_warmstart[v] = select(usable, qacc[v], qacc_warmstart[v]);
    if (rk_stage == 3) qacc[v] = select(healthy, rk_dqvel[v], qacc[v]);
  }
  const truth done = are_bounded(qvel, nv, are_bounded(qpos, nq, usable));
  flag_worlds(world_status, usable & !done, STATUS_INTEGRATE);
  for (int i = 0; i < nq; ++i) qpos[i] = select(done, qpos[i], rk_qpos[i]);
  for (int v = 0; v < nv; ++v) qvel[v] = select(done, qvel[v], rk_qvel[v]);
  if (rk_stage == 3) count_steps(nstep, done);
}
#endif

DEVICE void rk4(const Model& m, const real* qacc_smooth, real* qacc, real* qpos, real* qvel, real* qacc_warmstart,
                int* nstep, int* world_status, real* rk_qpos, real* rk_qvel, real* rk_rate, real* rk_dqpos,
                real* rk_dqvel, int rk_stage) {
  const real h = m.opt_timestep()[0];
  const real weight = rk_stage == 0 || rk_stage == 3 ? R(1.0) / R(6.0) : R(1.0) / R(3.0);
  const real reach = rk_stage == 0 ? R(0.0) : rk_stage == 3 ? R(1.0) : R(0.5);
  const real ahead = rk_stage == 2 ? R(1.0) : R(0.5);
#ifdef TILE
  rk4_in_tile(m, qacc_smooth, qacc, qpos, qvel, qacc_warmstart, nstep, world_status, rk_qpos, rk_qvel, rk_rate,
              rk_dqpos, rk_dqvel, rk_stage, weight, reach, ahead);
#else
  if (world_status[0] != STATUS_HEALTHY) return;
  // save the state at the start of the step
  if (rk_stage == 0) {
    LANE_FOR(i, m.nq()) rk_qpos[i] = qpos[i];
    DOF_FOR(v, m.nv()) {
      rk_qvel[v] = qvel[v];
      rk_rate[v] = 0;
      rk_dqpos[v] = 0;
      rk_dqvel[v] = 0;
    }
    lane_sync();
  }
  int status = acceleration_status(m, qacc_smooth, qacc);
  displacement_rate(m, qvel, reach * h, rk_rate);
  // weighted sum of the derivatives
  DOF_FOR(v, m.nv()) {
    rk_dqpos[v] = fma_(weight, rk_rate[v], rk_dqpos[v]);
    rk_dqvel[v] = fma_(weight, qacc[v], rk_dqvel[v]);
  }
  LANE_FOR(i, m.nq()) qpos[i] = rk_qpos[i];
  lane_sync();
  // Newton and CG converge sooner from the latest evaluation. PGS seldom converges, so its results depend on the start:
  // as in MuJoCo, it starts from the last step's acceleration.
  const bool warm = status == STATUS_HEALTHY && (rk_stage == 3 || m.opt_solver() != SOLVER_PGS);
  // (2) advance to the next evaluation, or to the end of the step
  integrate_pos(m, qpos, rk_stage < 3 ? rk_rate : rk_dqpos, rk_stage < 3 ? ahead * h : h);
  DOF_FOR(v, m.nv()) {
    const real slope = rk_stage < 3 ? ahead * qacc[v] : rk_dqvel[v];
    qvel[v] = fma_(h, slope, rk_qvel[v]);
    if (warm) qacc_warmstart[v] = qacc[v];
    if (rk_stage == 3) qacc[v] = rk_dqvel[v];
  }
  lane_sync();
  if (status == STATUS_HEALTHY && !state_bounded(m, qpos, qvel)) status = STATUS_INTEGRATE;
  if (status != STATUS_HEALTHY) {
    // a world that fails returns to the start of its step
    LANE_FOR(i, m.nq()) qpos[i] = rk_qpos[i];
    DOF_FOR(v, m.nv()) qvel[v] = rk_qvel[v];
    flag_world(world_status, status);
  } else if (rk_stage == 3) {
    LANE_FOR(i, 1) nstep[0] += 1;
  }
  lane_sync();
#endif
}
