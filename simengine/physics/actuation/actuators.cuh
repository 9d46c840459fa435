// Actuators: activation dynamics, gains and biases. MuJoCo documentation, "Computation", "Actuation model"; for the
// curves of a muscle: "Modeling", "Muscles". L is a muscle's length in units of its optimal length, and V its velocity
// in units of its largest shortening velocity.
#pragma once

#define ACTUATOR_PRM 9  // parameters of a gain or bias; a muscle's third one is its peak force

// Control of actuator u within its range.
DEVICE real actuator_control(const Model& m, int u, const real* ctrl) {
  const real* range = m.actuator_ctrlrange() + 2 * u;
  return m.actuator_ctrllimited()[u] ? clamp_(ctrl[u], range[0], range[1]) : ctrl[u];
}

// ----------------------------------------------------------------------------------------------- activation dynamics

// Smooth step from 0 to 1 with two continuous derivatives.
DEVICE real smooth_step(real x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  return x * x * x * (x * (R(6.0) * x - R(15.0)) + R(10.0));
}

// Rate of a muscle's activation, which rises faster than it falls. `prm` holds the two time constants and the width of
// the transition from one to the other.
DEVICE real muscle_rate(const real* prm, real ctrl, real act) {
  const real level = R(0.5) + R(1.5) * clamp_(act, R(0.0), R(1.0)), rise = clamp_(ctrl, R(0.0), R(1.0)) - act;
  const real up = prm[0] * level, down = divide_(prm[1], level), width = prm[2];
  const real share = width < MJMINVAL ? (rise > 0 ? R(1.0) : R(0.0)) : smooth_step(divide_(rise, width) + R(0.5));
  return divide_(rise, max_(MJMINVAL, down + (up - down) * share));
}

// For a position servo on a spatial rotation: of the values that are full turns away from `value`, the one that is
// nearest to `to`. For other actuators: the value.
DEVICE real nearest_turn(const Model& m, int u, real value, real to) {
  const real period = m.actuator_period()[u];
  return period > 0 ? fma_(period, floor_(divide_(to - value, period) + R(0.5)), value) : value;
}

DEVICE real activation_rate(const Model& m, int u, real ctrl, real act) {
  const real* prm = m.actuator_dynprm() + 3 * u;
  switch (m.actuator_dyntype()[u]) {
    case DYN_INTEGRATOR: return ctrl;
    case DYN_MUSCLE: return muscle_rate(prm, ctrl, act);
    default: return divide_(nearest_turn(m, u, ctrl, act) - act, max_(MJMINVAL, prm[0]));  // filter and filterexact
  }
}

// Activation of actuator u after a time h at rate act_dot, clamped to its range.
DEVICE real next_activation(const Model& m, int u, real act, real act_dot, real h) {
  real step = h;
  if (m.actuator_dyntype()[u] == DYN_FILTEREXACT) {
    const real time = max_(MJMINVAL, m.actuator_dynprm()[3 * u]);
    step = -time * expm1_(-divide_(h, time));
  }
  const real next = fma_(step, act_dot, act), *range = m.actuator_actrange() + 2 * u;
  return m.actuator_actlimited()[u] ? clamp_(next, range[0], range[1]) : next;
}

// --------------------------------------------------------------------------------------------------- gains and biases

struct Muscle {
  real unit, length, speed;  // optimal length [m], L, and velocity at which the muscle gives no force
};

DEVICE Muscle muscle_of(const Model& m, int u, const real* prm, real length) {
  const real* range = m.actuator_lengthrange() + 2 * u;
  const real unit = divide_(range[1] - range[0], max_(MJMINVAL, prm[1] - prm[0]));
  return {unit, prm[0] + divide_(length - range[0], max_(MJMINVAL, unit)), max_(MJMINVAL, unit * prm[6])};
}

// Force-length curve: a bump of four parabolas between lmin and lmax, with its maximum at L = 1.
DEVICE real muscle_bump(real L, real lmin, real lmax) {
  if (L < lmin || L > lmax) return 0;
  const real side = L <= 1 ? lmin : lmax, middle = R(0.5) * (R(1.0) + side);
  const real half = max_(MJMINVAL, abs_(middle - side)), outer = divide_(abs_(L - side), half);
  const real inner = divide_(abs_(R(1.0) - L), half);
  return abs_(L - side) <= abs_(middle - side) ? R(0.5) * outer * outer : R(1.0) - R(0.5) * inner * inner;
}

// Force-velocity curve and its derivative: parabolas from V = -1 through (0, 1) to a plateau of fvmax.
DEVICE real muscle_by_velocity(real V, real fvmax, real* slope) {
  const real rise = fvmax - R(1.0);
  if (V <= -1 || V > rise) {
    *slope = 0;
    return V <= -1 ? R(0.0) : fvmax;
  }
  if (V <= 0) {
    *slope = R(2.0) * (V + R(1.0));
    return (V + R(1.0)) * (V + R(1.0));
  }
  const real left = divide_(rise - V, max_(MJMINVAL, rise));
  *slope = R(2.0) * left;
  return fvmax - left * (rise - V);
}

// Passive force of a stretched muscle: a parabola that continues as a line.
DEVICE real muscle_passive(real L, real lmax, real fpmax) {
  if (L <= 1) return 0;
  const real width = R(0.5) * (lmax - R(1.0)), x = divide_(L - R(1.0), max_(MJMINVAL, width));
  return fpmax * (x <= 1 ? R(0.5) * x * x : x - R(0.5));
}

struct ActuatorForce {
  real force, slope;  // force before clamping, and its derivative with respect to the actuator's velocity
};

// Force of actuator u for an input (its control or activation): gain * input + bias.
DEVICE ActuatorForce force_of(const Model& m, int u, real input, real modulo_turns, real velocity) {
  const real length = nearest_turn(m, u, modulo_turns, input);
  const real *gain = m.actuator_gainprm() + ACTUATOR_PRM * u, *bias = m.actuator_biasprm() + ACTUATOR_PRM * u;
  const int gaintype = m.actuator_gaintype()[u], biastype = m.actuator_biastype()[u];
  ActuatorForce out = {0, 0};
  if (gaintype == GAIN_FIXED) {
    out.force = gain[0] * input;
  } else if (gaintype == GAIN_AFFINE) {
    out.force = (gain[0] + gain[1] * length + gain[2] * velocity) * input;
    out.slope = gain[2] * input;
  } else {
    const Muscle at = muscle_of(m, u, gain, length);
    real slope;
    const real by_velocity = muscle_by_velocity(divide_(velocity, at.speed), gain[8], &slope);
    const real pull = -gain[2] * muscle_bump(at.length, gain[4], gain[5]) * input;
    out.force = pull * by_velocity;
    out.slope = divide_(pull * slope, at.speed);
  }
  if (biastype == BIAS_AFFINE) {
    out.force += bias[0] + bias[1] * length + bias[2] * velocity;
    out.slope += bias[2];
  } else if (biastype == BIAS_MUSCLE) {
    out.force -= bias[2] * muscle_passive(muscle_of(m, u, bias, length).length, bias[5], bias[7]);
  }
  return out;
}

// What the gain of actuator u multiplies: the control, or the activation, at the end of the step if `actearly` is set.
DEVICE real actuator_input(const Model& m, int u, const real* ctrl, const real* act, const real* act_dot) {
  const int a = m.actuator_actadr()[u];
  if (a < 0) return actuator_control(m, u, ctrl);
  if (!m.actuator_actearly()[u]) return act[a];
  return next_activation(m, u, act[a], act_dot[a], m.opt_timestep()[0]);
}
