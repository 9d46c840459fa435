// Integrate the activations: in one evaluation (rk_last is 0), or along the evaluations of a Runge-Kutta step (rk4.cu),
// the last of which is number rk_last.

DEVICE void activation(const Model& m, const real* act_dot, const real* actuator_length, const int* world_status,
                       real* act, real* rk_act, real* rk_dact, int rk_stage, int rk_last) {
  const bool healthy = world_status[0] == STATUS_HEALTHY, first = rk_stage == 0, last = rk_stage == rk_last;
  const real h = m.opt_timestep()[0], ahead = rk_stage < 2 ? R(0.5) * h : h;
  const real share = first || last ? R(1.0) / R(6.0) : R(1.0) / R(3.0), weight = rk_last == 0 ? R(1.0) : share;
  LANE_FOR(a, m.na()) {
    const int u = m.act_actuatorid()[a];
    // (1) the activation at the start of the step, and the weighted sum of the rates so far
    const real start = first ? act[a] : rk_act[a], rate = fma_(weight, act_dot[a], first ? R(0.0) : rk_dact[a]);
    rk_act[a] = start;
    rk_dact[a] = rate;
    // (2) a frozen world returns to the start of the step; the others go on to the next evaluation or to the end of the
    // step, where activations are clamped to their range, those of servos on spatial rotations are at most half a turn
    // from the length, and those of disabled actuators do not move
    real next = start;
    if (healthy && !last) next = fma_(ahead, act_dot[a], start);
    if (healthy && last && !m.actuator_disabled()[u]) {
      next = nearest_turn(m, u, next_activation(m, u, start, rate, h), actuator_length[u]);
    }
    act[a] = next;
  }
  lane_sync();
}
