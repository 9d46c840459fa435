// The last step to a normal in single precision. polish.cuh compares depths, and within their rounding a kink
// may seem active that is not, or the other way round: then the normal is off by the root of that rounding. Slopes of
// the depth have all digits. At a minimum the depth falls in no direction.
#pragma once

#define SETTLES REAL_IS_FLOAT
#if SETTLES
#define SETTLE_STEPS 12
#define SETTLE_STILL R(2e-5)  // size of a step that leaves a normal as it is
#define SETTLE_ASIDE R(1e-4)  // [rad] from a normal to the flat parts' support points beside it
#define SETTLE_SLOPE (8 * REAL_EPS)  // relative to the scale: slopes above minus this do not fall

// Slope of a core's reach at the unit vector n along a tangent u, both in its frame.
DEVICE real slope_of(const Shape& s, const real* n, const real* u) {
  real there[3], flat[3], curved[3];
  for (int i = 0; i < 3; ++i) there[i] = fma_(SETTLE_ASIDE, u[i], n[i]);
  const bool cap = s.round[0] > 0 && !(s.round[2] > 0) && is_axial(n);  // the rim is beside the normal, too
  flat_point(s, flat_vertex(s, there), flat);
  round_point(s, cap ? there : n, curved);
  return dot3(flat, u) + dot3(curved, u);
}

// Slope of the depth at n along a tangent u, and along -u.
DEVICE_APART void slopes(const Difference& d, const real* n, const real* u, real* there, real* back) {
  real normal[3], way[3];
  *there = 0;
  for (int i = 0; i < 3; ++i) *there += (d.a.pos[i] - d.b.pos[i]) * u[i];
  *back = -*there;
  for (int body = 0; body < 2; ++body) {
    const Shape& s = body ? d.b : d.a;
    to_local(normal, s.mat, n);
    to_local(way, s.mat, u);
    for (int i = 0; i < 3; ++i) {
      normal[i] = body ? -normal[i] : normal[i];
      way[i] = body ? -way[i] : way[i];
    }
    *there += slope_of(s, normal, way);
    for (int i = 0; i < 3; ++i) way[i] = -way[i];
    *back += slope_of(s, normal, way);
  }
}

// A tangent that leads away from an active kink and along the other one, if there are two. For a cap, which counts as
// two kinks, it leads where the depth would fall most if there were no rim.
DEVICE_APART void away_from(const Difference& d, const real* n, const Kinks& kinks, int kink, bool cap, real* u) {
  if (cap) {
    support(d, n, u);
    const real along = dot3(u, n);
    for (int i = 0; i < 3; ++i) u[i] = fma_(along, n[i], -u[i]);
  } else if (kinks.number == 2) {
    cross3(u, n, kinks.edge[1 - kink]);
  } else {
    for (int i = 0; i < 3; ++i) u[i] = kinks.edge[0][i];
  }
  normalize3(u);
}

// Whether two kinks are those of a cylinder's cap.
DEVICE bool is_cap(const Difference& d, const real* n, const Kinks& kinks) {
  if (kinks.number < 2 || kinks.body[0] != kinks.body[1]) return false;
  const Shape& s = kinks.body[0] ? d.b : d.a;
  real local[3];
  to_local(local, s.mat, n);
  return s.round[0] > 0 && !(s.round[2] > 0) && is_axial(local);
}

// Leave a kink if the depth falls beside it: n moves a little, and the kink is not active any more. Returns whether.
DEVICE_APART bool leave_kink(const Difference& d, real* n, Kinks& kinks) {
  const bool cap = is_cap(d, n, kinks);
  for (int kink = 0; kink < (cap ? 1 : kinks.number); ++kink) {
    real u[3], there, back;
    away_from(d, n, kinks, kink, cap, u);
    slopes(d, n, u, &there, &back);
    const bool forth = there < back;
    if (!(min_(there, back) < -SETTLE_SLOPE * d.scale)) continue;
    for (int i = 0; i < 3; ++i) n[i] = fma_(forth ? SETTLE_ASIDE : -SETTLE_ASIDE, u[i], n[i]);
    normalize3(n);
    Kinks left = no_kinks();
    for (int k = 0; k < kinks.number; ++k) {
      if (k != kink && !cap) add_kink(left, kinks.edge[k], kinks.body[k]);
    }
    for (int body = 0; body < 2; ++body) left.unseen[body] = kinks.unseen[body];
    kinks = left;
    return true;
  }
  return false;
}

// Take one step of Newton's method, up to the first kinks that it crosses. Returns its size.
DEVICE_APART real step_to_kink(const Difference& d, real* n, Kinks& kinks) {
  real from[3] = {n[0], n[1], n[2]}, h;
  const real moved = newton_step(d, kinks, true, n, &h);
  if (!(moved > SETTLE_STILL)) return moved;
  const int before = kinks.number;
  find_crossed(d.a, from, n, 0, kinks);
  find_crossed(d.b, from, n, 1, kinks);
  if (kinks.number == before) return moved;
  if (kinks.number == 2) {
    cross3(n, kinks.edge[0], kinks.edge[1]);
    const real side = dot3(n, from);
    for (int i = 0; i < 3; ++i) n[i] = side < 0 ? -n[i] : n[i];
  } else {
    const real along = dot3(n, kinks.edge[0]);
    for (int i = 0; i < 3; ++i) n[i] = fma_(-along, kinks.edge[0][i], n[i]);
  }
  normalize3(n);
  return moved;
}

// Replace a normal n, along which the depth is h, and its kinks by those of a minimum beside it, if n is none.
DEVICE_APART void settle(const Difference& d, real* h, real* n, Kinks& kinks) {
  real trial[3] = {n[0], n[1], n[2]};
  Kinks own = kinks;
  ROLLED for (int step = 0; step < SETTLE_STEPS; ++step) {
    real before[3] = {trial[0], trial[1], trial[2]};
    if (own.number < 2) {
      const Kinks active = own;
      if (step_to_kink(d, trial, own) > SETTLE_STILL) continue;
      own = active;
      for (int i = 0; i < 3 && !step; ++i) trial[i] = before[i];
    }
    if (leave_kink(d, trial, own)) continue;
    if (step) {
      Best best = {{n[0], n[1], n[2]}, *h, kinks};
      best.take(d, trial, 8 * REAL_EPS * d.scale, own);
      for (int i = 0; i < 3; ++i) n[i] = best.n[i];
      *h = best.h;
      kinks = best.kinks;
    }
    return;
  }
}
#endif
