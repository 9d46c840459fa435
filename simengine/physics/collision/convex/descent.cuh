// Steps from a direction to one with a smaller depth, along which chosen kinks stay active; see polish.cuh.
#pragma once

#define POLISH_STEPS 8
#define LEAST_BEND R(0.05)  // least curvature of a step downhill, relative to the depth
#define SETTLED R(1e-3)  // size of a step of Newton's method; larger ones do not end at a minimum
#define RETURNED R(0.06)  // by what part of a step the next one misses where it began
#define REACH_ERROR (4 * REAL_EPS)  // relative to the scale: by how much rounding changes a reach

struct Kinks {
  int number;
  real edge[2][3];  // unit vectors
  int body[2];      // the body that each edge belongs to: 0 or 1
  bool unseen[2];   // whether the support points of a body do not show a kink of it
};

DEVICE Kinks no_kinks() {
  Kinks kinks;
  kinks.number = 0;
  kinks.unseen[0] = kinks.unseen[1] = false;
  return kinks;
}

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

// Add the edges of a body between two vertices of its flat part.
DEVICE_APART void add_edges(const Shape& s, int first, int vertex, int body, Kinks& kinks) {
  real edge[3];
  if (vertex == first) return;
  if (s.hull.nvert) {
    real from[3], to[3];
    flat_point(s, first, from);
    flat_point(s, vertex, to);
    for (int i = 0; i < 3; ++i) to[i] -= from[i];
    to_world(edge, s.mat, to);
    add_kink(kinks, edge, body);
    return;
  }
  for (int i = 0; i < 3; ++i) {
    if (!((vertex ^ first) >> i & 1) || !(s.box[i] > 0)) continue;
    mat_col(edge, s.mat, i);
    add_kink(kinks, edge, body);
  }
}

// Edges e of a body for which n.e changes sign among the support directions that have weight.
DEVICE_APART void find_kinks(const Shape& s, const Simplex& simplex, int body, Kinks& kinks) {
  int first = -1;
  ROLLED for (int k = 0; k < 4; ++k) {
    if (!simplex.used[k]) continue;
    const int vertex = simplex_vertex(s, simplex, k, body);
    if (first < 0) first = vertex;
    add_edges(s, first, vertex, body, kinks);
  }
}

// Add the edges of a body across which support points change from one direction to another.
DEVICE_APART void find_crossed(const Shape& s, const real* from, const real* to, int body, Kinks& kinks) {
  real local[2][3];
  to_local(local[0], s.mat, from);
  to_local(local[1], s.mat, to);
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < 3; ++i) local[k][i] *= body ? R(-1.0) : R(1.0);
  }
  const int before = kinks.number;
  add_edges(s, flat_vertex(s, local[0]), flat_vertex(s, local[1]), body, kinks);
  kinks.unseen[body] |= kinks.number > before;
}

// Entries 00, 01 and 11 of the Hessian of h for tangents t, given h(n). Only ellipsoids and discs bend it, and what the
// entries of one share is found once.
DEVICE void hessian_along(const Difference& d, const real* n, const real (*t)[3], real h, real* H) {
  for (int i = 0; i < 3; ++i) H[i] = 0;
  UNROLLED for (int body = 0; body < 2; ++body) {
    const Shape& s = body ? d.b : d.a;
    if (!(s.round[0] > 0)) continue;
    real nl[3], q[3], scaled[2][3], along[2], local[3];
    to_local(nl, s.mat, n);
    const real height = round_point(s, nl, q);
    if (!(height > MJMINVAL)) continue;
    for (int k = 0; k < 2; ++k) {
      to_local(local, s.mat, t[k]);
      for (int i = 0; i < 3; ++i) scaled[k][i] = s.round[i] * local[i];
      along[k] = dot3(q, local);
    }
    for (int i = 0; i < 3; ++i) {
      const int u = i == 2, v = i > 0;
      real sum = 0;
      for (int k = 0; k < 3; ++k) sum = fma_(scaled[u][k], scaled[v][k], sum);
      H[i] += (sum - along[u] * along[v]) / height;
    }
  }
  for (int i = 0; i < 3; i += 2) H[i] -= h;
}

// Whether the reach along `dir` is above a height, by more than rounding errors, because a support point of the simplex
// is. That costs less than the support point along `dir`.
DEVICE bool reaches_above(const Difference& d, const Simplex& s, const real* dir, real height) {
  real most = -REAL_MAX;
  for (int k = 0; k < 4; ++k) most = max_(most, dot3(s.w[k], dir));
  return most > height + REACH_ERROR * d.scale;
}

// One step of Newton's method; returns its size, or zero if there is none. The directions perpendicular to n, and to
// the kink if there is one, are free. `bent` says whether to step downhill along a kink, too, where the depth is not
// convex. `before` becomes h(n) before the step.
DEVICE real newton_step(const Difference& d, const Kinks& kinks, bool bent, real* n, real* before) {
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
  support_here(d, n, w);
  const real h = *before = dot3(w, n);
  real g[2], H[3], step[2] = {R(0.0), R(0.0)};
  for (int i = 0; i < 2; ++i) g[i] = dot3(t[i], w);
  hessian_along(d, n, t, h, H);
  if (tangents == 1) {
    const real floor = LEAST_BEND * abs_(h);
    const bool downhill = bent && !(H[0] > 0) && H[0] + h > floor;
    if (!(H[0] > 0) && !downhill) return R(0.0);
    step[0] = -g[0] / (downhill ? max_(-H[0], floor) : H[0]);
  } else {
    const real det = H[0] * H[2] - H[1] * H[1];
    if (!(H[0] > 0) || !(det > R(1e-6) * H[0] * abs_(H[2]))) return R(0.0);
    step[0] = (H[1] * g[1] - H[2] * g[0]) / det;
    step[1] = (H[1] * g[0] - H[0] * g[1]) / det;
  }
  for (int k = 0; k < 2; ++k) step[k] = clamp_(step[k], R(-0.3), R(0.3));
  for (int i = 0; i < 3; ++i) n[i] = fma_(step[1], t[1][i], fma_(step[0], t[0][i], n[i]));
  normalize3(n);
  return abs_(step[0]) + abs_(step[1]);
}

#if SIMENGINE_GPU
// A copy of a difference, with its orientations in `turns`. Both are in registers if all that works on them is inline.
DEVICE Difference in_registers(const Difference& of, real (*turns)[9]) {
  Difference d = of;
  for (int i = 0; i < 9; ++i) {
    turns[0][i] = of.a.mat[i];
    turns[1][i] = of.b.mat[i];
  }
  d.a.mat = turns[0];
  d.b.mat = turns[1];
  return d;
}
#endif

// Whether steps from `before` to `here` and on to `after` lead to and fro. Further ones would do so, too.
DEVICE bool to_and_fro(const real* before, const real* here, const real* after) {
  real missed = 0, step = 0;
  for (int i = 0; i < 3; ++i) {
    missed = fma_(after[i] - before[i], after[i] - before[i], missed);
    step = fma_(after[i] - here[i], after[i] - here[i], step);
  }
  return missed < RETURNED * RETURNED * step;
}

// The best direction for a choice of active kinks, found from n. Beyond a kink that is not among the chosen ones, steps
// may lead to and fro for ever. On a GPU, where lanes wait for the longest of them, they end then, at that end of the
// two to which all of them would have led. If they do not settle, and there are `rounds` for it, they are made again,
// and one to a larger h is cut to a quarter. Returns whether they lead to and fro at last, between `trial` and the
// direction `from`.
DEVICE_APART bool best_direction(const Difference& of, const Simplex& s, const Kinks& kinks, const real* n, real slack,
                                int rounds, real* trial, real* from) {
  if (kinks.number == 2) {
    cross3(trial, kinks.edge[0], kinks.edge[1]);
    const real side = dot3(trial, n);
    for (int i = 0; i < 3; ++i) trial[i] = side < 0 ? -trial[i] : trial[i];
    normalize3(trial);
    return false;
  }
  const real along = kinks.number == 1 ? dot3(n, kinks.edge[0]) : R(0.0);
  for (int i = 0; i < 3; ++i) trial[i] = kinks.number == 1 ? fma_(-along, kinks.edge[0][i], n[i]) : n[i];
  normalize3(trial);
  // the Hessian of cores without a smooth part is -h I, with which those that overlap have no step to make
  if (!(of.a.round[0] > 0) && !(of.b.round[0] > 0) && reaches_above(of, s, trial, R(0.0))) return false;
#if SIMENGINE_GPU
  real turns[2][9];
  const Difference d = in_registers(of, turns);
#else
  const Difference& d = of;
#endif
  const real start[3] = {trial[0], trial[1], trial[2]};
  ROLLED for (int cut = 0; cut < rounds; ++cut) {
    real least = REAL_MAX, moved = R(0.0);
    for (int i = 0; i < 3; ++i) from[i] = trial[i] = start[i];
    const int steps = POLISH_STEPS * (1 + cut);
    ROLLED for (int k = 0; k < steps; ++k) {
      real h, here[3] = {trial[0], trial[1], trial[2]};
      moved = newton_step(d, kinks, rounds > 1, trial, &h);
      if (cut && h > least + slack) {
        if (k + 1 == steps) {
          for (int i = 0; i < 3; ++i) {
            trial[i] = from[i];
            from[i] = here[i];
          }
          return true;
        }
        for (int i = 0; i < 3; ++i) trial[i] = fma_(R(0.25), here[i] - from[i], from[i]);
        normalize3(trial);
        continue;
      }
      if (!(moved > 4 * REAL_EPS)) return false;
      const bool ends = SIMENGINE_GPU && !cut && k && moved >= SETTLED && to_and_fro(from, here, trial);
      const bool other = ends && k % 2 == 0;
      for (int i = 0; i < 3; ++i) {
        from[i] = other ? trial[i] : here[i];
        trial[i] = other ? here[i] : trial[i];
      }
      if (ends) break;
      least = h;
    }
    if (moved < SETTLED) return false;
  }
  return true;
}
