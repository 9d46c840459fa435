// From the direction that GJK or EPA found to the contact's exact normal and witness points.
//
// Let h(n) be the support function of the Minkowski difference of the cores, at unit vectors n. Minus its minimum is
// the signed distance of the cores. h is a sum of smooth terms and of terms |n.e| over the edges e of flat parts, which
// have a kink at n.e = 0. The support points around the direction show which kinks are active, and n is perpendicular
// to these edges. Newton's method finds n in the directions that are left free. With a basis T of these,
//
//     gradient T'w(n)     Hessian T' (sum of h'' of the ellipsoids) T - h I
//
// Two active kinks determine n (a face, or two edges). A new n is taken only if h does not grow.
#pragma once

#define POLISH_STEPS 8
#define SETTLED R(1e-3)  // size of a step of Newton's method; larger ones do not end at a minimum
#define REACH_ERROR (4 * REAL_EPS)  // relative to the scale: by how much rounding changes a reach
#if REAL_IS_FLOAT
#define TOUCHING R(1e-5)  // relative to the scale: a vertex this close to the farthest one counts as touching too
#else
#define TOUCHING R(1e-6)
#endif

struct Kinks {
  int number;
  real edge[2][3];  // unit vectors
  int body[2];      // the body that each edge belongs to: 0 or 1
};

DEVICE_APART void add_kink(Kinks& k, const real* edge, int body) {
  real e[3] = {edge[0], edge[1], edge[2]};
  const real length = normalize3(e);
  if (k.number == 2 || !(length > MJMINVAL)) return;
  if (k.number == 1) {
    const real along = dot3(e, k.edge[0]);
    if (1 - along * along < R(1e-4)) return;
  }
  for (int i = 0; i < 3; ++i) k.edge[k.number][i] = e[i];
  k.body[k.number++] = body;
}

// Edges e of a body for which n.e changes sign among the support directions that have weight.
DEVICE_APART void find_kinks(const Shape& s, const Simplex& simplex, int body, Kinks& kinks) {
  int first = -1;
  ROLLED for (int k = 0; k < 4; ++k) {
    if (!simplex.used[k]) continue;
    real edge[3];
    const int vertex = simplex_vertex(s, simplex, k, body);
    if (first < 0) first = vertex;
    if (vertex == first) continue;
    if (s.hull.nvert) {
      real from[3], to[3];
      flat_point(s, first, from);
      flat_point(s, vertex, to);
      for (int i = 0; i < 3; ++i) to[i] -= from[i];
      to_world(edge, s.mat, to);
      add_kink(kinks, edge, body);
      continue;
    }
    for (int i = 0; i < 3; ++i) {
      if (!((vertex ^ first) >> i & 1) || !(s.box[i] > 0)) continue;
      mat_col(edge, s.mat, i);
      add_kink(kinks, edge, body);
    }
  }
}

// u' h'' v of a body's ellipsoid part, for tangents u and v.
DEVICE_APART real curvature(const Shape& s, const real* n, const real* u, const real* v) {
  if (!has_round(s)) return 0;
  real nl[3], ul[3], vl[3], q[3];
  to_local(nl, s.mat, n);
  to_local(ul, s.mat, u);
  to_local(vl, s.mat, v);
  const real height = round_point(s, nl, q);
  if (!(height > MJMINVAL)) return 0;
  real sum = 0;
  for (int i = 0; i < 3; ++i) sum = fma_(s.round[i] * ul[i], s.round[i] * vl[i], sum);
  return (sum - dot3(q, ul) * dot3(q, vl)) / height;
}

// Whether the reach along `dir` is above a height, by more than rounding errors, because a support point of the simplex
// is. That costs less than the support point along `dir`. On a GPU it would be one more turn of the lanes.
DEVICE bool reaches_above(const Difference& d, const Simplex& s, const real* dir, real height) {
  if (SIMENGINE_GPU) return false;
  real most = -REAL_MAX;
  for (int k = 0; k < 4; ++k) most = max_(most, dot3(s.w[k], dir));
  return most > height + REACH_ERROR * d.scale;
}

// One step of Newton's method; returns its size, or zero if there is none. The directions perpendicular to n, and to
// the kink if there is one, are free. `before` becomes h(n) before the step.
DEVICE_APART real newton_step(const Difference& d, const Kinks& kinks, real* n, real* before) {
  real t[2][3], w[3];
  const int tangents = 2 - kinks.number;
  if (kinks.number == 1) {
    cross3(t[0], n, kinks.edge[0]);
  } else {
    const real x = abs_(n[0]), y = abs_(n[1]), z = abs_(n[2]);
    real axis[3] = {R(0.0), R(0.0), R(0.0)};
    axis[x <= y && x <= z ? 0 : y <= z ? 1 : 2] = 1;
    cross3(t[0], n, axis);
  }
  normalize3(t[0]);
  cross3(t[1], n, t[0]);
  support(d, n, w);
  const real h = *before = dot3(w, n);
  real g[2], H[3], step[2] = {R(0.0), R(0.0)};
  for (int i = 0; i < 2; ++i) g[i] = dot3(t[i], w);
  for (int i = 0; i < 3; ++i) {
    const real *u = t[i == 2], *v = t[i > 0];
    H[i] = curvature(d.a, n, u, v) + curvature(d.b, n, u, v) - (i == 1 ? R(0.0) : h);
  }
  // H holds the entries 00, 01 and 11 of the Hessian
  if (!(H[0] > 0)) return R(0.0);
  if (tangents == 1) {
    step[0] = -g[0] / H[0];
  } else {
    const real det = H[0] * H[2] - H[1] * H[1];
    if (!(det > R(1e-6) * H[0] * abs_(H[2]))) return R(0.0);
    step[0] = (H[1] * g[1] - H[2] * g[0]) / det;
    step[1] = (H[1] * g[0] - H[0] * g[1]) / det;
  }
  for (int k = 0; k < 2; ++k) step[k] = clamp_(step[k], R(-0.3), R(0.3));
  for (int i = 0; i < 3; ++i) n[i] = fma_(step[1], t[1][i], fma_(step[0], t[0][i], n[i]));
  normalize3(n);
  return abs_(step[0]) + abs_(step[1]);
}

// Replace n by `trial` if that is at least as good a direction; returns whether it is.
DEVICE_APART bool improve(const Difference& d, const real* trial, real slack, real* h, real* n) {
  const real other = reach(d, trial);
  if (!(other <= *h + slack)) return false;
  *h = other;
  for (int i = 0; i < 3; ++i) n[i] = trial[i];
  return true;
}

// Whether the other shape's support point against a cap's normal lies over the cap.
DEVICE_APART bool over_cap(const Shape& s, const Shape& other, const real* axis, int body) {
  real against[3], point[3], local[3];
  for (int i = 0; i < 3; ++i) against[i] = body ? axis[i] : -axis[i];
  support(other, against, point);
  for (int i = 0; i < 3; ++i) point[i] -= s.pos[i];
  to_local(local, s.mat, point);
  return local[0] * local[0] + local[1] * local[1] <= s.round[0] * s.round[0];
}

// Replace n by the normal of a cylinder's cap, or of a side of a box, if that is near n and at least as good; the face
// then counts as two kinks. It is tried for a box, because neighbouring support points may show one of its kinks only,
// and those of cores that almost touch may show none. An ellipsoid touches a cap only with its farthest point.
DEVICE_APART void snap_to_face(const Difference& d, int body, real slack, real* h, real* n, Kinks& kinks) {
  const Shape &s = body ? d.b : d.a, &other = body ? d.a : d.b;
  const bool cap = s.round[0] > 0 && !(s.round[2] > 0);
  if (!cap && !(s.box[0] > 0)) return;
  real local[3], axis[3], edge[3];
  to_local(local, s.mat, n);
  int up = 2;
  for (int i = 0; i < 2; ++i) up = !cap && abs_(local[i]) > abs_(local[up]) ? i : up;
  if (abs_(local[up]) < R(0.998)) return;
  mat_col(axis, s.mat, up);
  for (int i = 0; i < 3; ++i) axis[i] = local[up] > 0 ? axis[i] : -axis[i];
  if (cap && other.round[2] > 0 && !over_cap(s, other, axis, body)) return;
  if (!improve(d, axis, cap ? slack : -slack, h, n)) return;
  kinks.number = 0;
  for (int i = 1; i < 3; ++i) {
    mat_col(edge, s.mat, (up + i) % 3);
    add_kink(kinks, edge, body);
  }
}

// The best direction for a choice of active kinks, found from n. Beyond a kink that is not among the chosen ones, steps
// may lead to and fro for ever. If they do not settle, and there are `rounds` for it, they are made again, and one to a
// larger h is cut to a quarter.
DEVICE_APART void best_direction(const Difference& d, const Simplex& s, const Kinks& kinks, const real* n, real slack,
                                int rounds, real* trial) {
  if (kinks.number == 2) {
    cross3(trial, kinks.edge[0], kinks.edge[1]);
    const real side = dot3(trial, n);
    for (int i = 0; i < 3; ++i) trial[i] = side < 0 ? -trial[i] : trial[i];
    normalize3(trial);
    return;
  }
  const real along = kinks.number == 1 ? dot3(n, kinks.edge[0]) : R(0.0);
  for (int i = 0; i < 3; ++i) trial[i] = kinks.number == 1 ? fma_(-along, kinks.edge[0][i], n[i]) : n[i];
  normalize3(trial);
  // the Hessian of cores without a smooth part is -h I, with which those that overlap have no step to make
  if (!has_round(d.a) && !has_round(d.b) && reaches_above(d, s, trial, R(0.0))) return;
  const real start[3] = {trial[0], trial[1], trial[2]};
  ROLLED for (int cut = 0; cut < rounds; ++cut) {
    real from[3], least = REAL_MAX, moved = R(0.0);
    for (int i = 0; i < 3; ++i) from[i] = trial[i] = start[i];
    ROLLED for (int k = 0; k < POLISH_STEPS * (1 + cut); ++k) {
      real h, here[3] = {trial[0], trial[1], trial[2]};
      moved = newton_step(d, kinks, trial, &h);
      if (cut && h > least + slack) {
        for (int i = 0; i < 3; ++i) trial[i] = fma_(R(0.25), here[i] - from[i], from[i]);
        normalize3(trial);
        continue;
      }
      if (!(moved > 4 * REAL_EPS)) return;
      for (int i = 0; i < 3; ++i) from[i] = here[i];
      least = h;
    }
    if (moved < SETTLED) return;
  }
}

// Improve the normal n; returns h(n), which is minus the signed distance of the cores.
DEVICE_APART real polish(const Difference& d, const Simplex& s, real* n, Kinks& kinks) {
  const real slack = 8 * REAL_EPS * d.scale, start[3] = {n[0], n[1], n[2]};
  real h = reach(d, n), trial[3];
  // (1) kinks that may be active
  Kinks all;
  all.number = 0;
  find_kinks(d.a, s, 0, all);
  find_kinks(d.b, s, 1, all);
  kinks = all;
  // (2) all of them, or only some if that is better, because a kink that the support points show may only be near
  ROLLED for (int choice = (1 << all.number) - 1; choice >= 0; --choice) {
    Kinks some;
    some.number = 0;
    for (int k = 0; k < all.number; ++k) {
      if (choice >> k & 1) add_kink(some, all.edge[k], all.body[k]);
    }
    const bool first = some.number == all.number;
    best_direction(d, s, some, start, slack, first ? 2 : 1, trial);
    if (!first && reaches_above(d, s, trial, h - slack)) continue;
    if (improve(d, trial, first ? slack : -slack, &h, n)) kinks = some;
  }
  // (3) caps, and sides of boxes
  snap_to_face(d, 0, R(0.25) * slack, &h, n, kinks);
  snap_to_face(d, 1, R(0.25) * slack, &h, n, kinks);
  return h;
}

// Whether the contact is a line along the axis of a body: on the side of a cylinder.
DEVICE bool lies_along(const Shape& s, const Kinks& kinks, int body) {
  real axis[3];
  mat_col(axis, s.mat, 2);
  bool along = false;
  for (int k = 0; k < kinks.number; ++k) {
    along |= kinks.body[k] == body && abs_(dot3(kinks.edge[k], axis)) > R(0.5);
  }
  return along;
}

// Whether two support points of the flat part are the same point; a side of length zero has both signs there.
DEVICE bool same_point(const Shape& s, int vertex, int other) {
  if (s.hull.nvert) return vertex == other;
  bool same = true;
  for (int i = 0; i < 3; ++i) same &= !((vertex ^ other) >> i & 1) || !(s.box[i] > 0);
  return same;
}

// A point of the core near the contact: the weighted mean of the support points of the flat part, plus the support
// point of the smooth part at n. Returns whether the point is unique, which needs a single support point of the flat
// part and a smooth part without a cap. A support point that does not touch is replaced by one that does, because the
// simplex may contain another edge, parallel to the one that touches.
DEVICE_APART bool witness(const Shape& s, const Simplex& simplex, int body, const real* n, real slack, real* point) {
  const real sign = body ? R(-1.0) : R(1.0);
  real local[3], along[3], curved[3], flat[3], sum[3] = {R(0.0), R(0.0), R(0.0)};
  int first = -1;
  bool certain = true;
  const bool disc = s.round[0] > 0 && !(s.round[2] > 0);
  to_local(along, s.mat, n);
  for (int i = 0; i < 3; ++i) along[i] *= sign;
  const int low = flat_vertex(s, along);
  flat_point(s, low, flat);
  const real most = dot3(flat, along) - slack;
  ROLLED for (int k = 0; k < 4; ++k) {
    if (!simplex.used[k]) continue;
    const int vertex = simplex_vertex(s, simplex, k, body);
    if (first < 0) first = vertex;
    certain &= same_point(s, vertex, first);
    flat_point(s, vertex, flat);
    if (!disc && dot3(flat, along) < most) flat_point(s, low, flat);
    if (disc) {
      to_local(local, s.mat, simplex.dir[k]);
      for (int i = 0; i < 3; ++i) local[i] *= sign;
      round_point(s, local, curved);
    }
    for (int i = 0; i < 3; ++i) sum[i] = fma_(simplex.weight[k], disc ? flat[i] + curved[i] : flat[i], sum[i]);
  }
  const bool cap = disc && 1 - abs_(along[2]) < R(1e-7);
  if (!cap) {
    round_point(s, along, curved);
    for (int i = 0; i < 3; ++i) sum[i] = disc && i < 2 ? curved[i] : sum[i] + curved[i];
  }
  to_world(point, s.mat, sum);
  for (int i = 0; i < 3; ++i) point[i] += s.pos[i];
  return certain && !(disc && 1 - abs_(along[2]) < R(1e-4));
}

// Whether a core is strictly convex, with a unique support point in every direction: a point or an ellipsoid.
DEVICE bool is_strict(const Shape& s) {
  bool flat = s.hull.nvert > 0;
  for (int i = 0; i < 3; ++i) flat |= s.box[i] > 0 || (s.round[i] > 0) != (s.round[0] > 0);
  return !flat;
}

// Witness points of both cores, with p1 - p2 = h n. The points move along the edges of the active kinks until no
// difference perpendicular to n is left.
DEVICE void witnesses(const Difference& d, const Simplex& s, const real* n, real h, const Kinks& kinks, real* p1,
                      real* p2) {
  const real slack = TOUCHING * d.scale;
  const bool certain1 = witness(d.a, s, 0, n, slack, p1), certain2 = witness(d.b, s, 1, n, slack, p2);
  const bool strict1 = is_strict(d.a) || (certain1 && !certain2), strict2 = is_strict(d.b) || (certain2 && !certain1);
  if (strict1 || strict2) {  // its support point is unique and determines the other's
    for (int i = 0; i < 3; ++i) {
      if (strict2) p1[i] = fma_(h, n[i], p2[i]);
      else p2[i] = fma_(-h, n[i], p1[i]);
    }
    return;
  }
  if (!kinks.number) return;
  real rest[3], share[2] = {R(0.0), R(0.0)};
  for (int i = 0; i < 3; ++i) rest[i] = p1[i] - p2[i];
  const real along = dot3(rest, n);
  for (int i = 0; i < 3; ++i) rest[i] = fma_(-along, n[i], rest[i]);
  const real r0 = dot3(rest, kinks.edge[0]), r1 = kinks.number == 2 ? dot3(rest, kinks.edge[1]) : R(0.0);
  const real c = kinks.number == 2 ? dot3(kinks.edge[0], kinks.edge[1]) : R(0.0), det = 1 - c * c;
  share[0] = (r0 - c * r1) / det;
  share[1] = (r1 - c * r0) / det;
  // the crossing of almost parallel edges of both cores is not well defined: then each point moves by half
  const real most = fma_(R(4.0), sqrt_(dot3(rest, rest)), R(0.01) * d.scale);
  if (kinks.number == 2 && kinks.body[0] != kinks.body[1] && abs_(share[0]) + abs_(share[1]) > most) {
    for (int i = 0; i < 3; ++i) {
      p1[i] = fma_(R(-0.5), rest[i], p1[i]);
      p2[i] = fma_(R(0.5), rest[i], p2[i]);
    }
    return;
  }
  for (int k = 0; k < kinks.number; ++k) {
    for (int i = 0; i < 3; ++i) {
      if (kinks.body[k] == 0) p1[i] = fma_(-share[k], kinks.edge[k][i], p1[i]);
      else p2[i] = fma_(share[k], kinks.edge[k][i], p2[i]);
    }
  }
}
