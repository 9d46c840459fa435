// Depths in other directions than that in which the search for the least depth ended.
//
// A polytope that is full before the search converges leaves faces with a smaller distance than the depth that was
// found. Around the direction that was found, Newton's method finds the least depth. Elsewhere, such a face may hide a
// smaller one: smooth shapes that lie deep in each other have several ways out that are nearly as short. So the support
// function is minimised from the least faces in other directions, too. Lanes of a team try at once what a single lane
// tries one after another, and take the same.
#pragma once

#define WAYS_TRIED 6
#define WAYS_NEAR R(0.99)  // cosine between directions that are near each other
#define WAYS_STEPS 8
#define WAYS_PARTS 4  // of a step that are tried
#define WAYS_AROUND R(0.02)  // [rad] from a direction to those of the support points around it

// The face with the least distance, the first of several, whose normal is near none of the directions that were tried;
// EPA_FACES if that distance is not below `most`.
template <typename Team>
DEVICE int other_face(const Polytope& p, const real (*tried)[3], int number, real most) {
  int best = EPA_FACES;
  real own = most;
  ROLLED for (int f = Team::rank(); f < p.faces; f += Team::SIZE) {
    if (!(p.dist[f] < own)) continue;
    bool near = false;
    ROLLED for (int k = 0; k < number; ++k) near |= dot3(p.normal[f], tried[k]) > WAYS_NEAR;
    best = near ? best : f;
    own = near ? own : p.dist[f];
  }
  const real least = Team::least(own);
  return EPA_FACES - Team::most(own == least ? EPA_FACES - best : 0);
}

// Two unit vectors perpendicular to n and to each other.
DEVICE void tangents_of(const real* n, real (*t)[3]) {
  const real x = abs_(n[0]), y = abs_(n[1]), z = abs_(n[2]);
  real axis[3] = {R(0.0), R(0.0), R(0.0)};
  axis[x <= y && x <= z ? 0 : y <= z ? 1 : 2] = 1;
  cross3(t[0], n, axis);
  normalize3(t[0]);
  cross3(t[1], n, t[0]);
}

// The unit vector n + a t0 + b t1.
DEVICE void moved_by(const real* n, const real (*t)[3], real a, real b, real* out) {
  for (int i = 0; i < 3; ++i) out[i] = fma_(b, t[1][i], fma_(a, t[0][i], n[i]));
  normalize3(out);
}

// A step against a gradient g, with the eigenvalues of the Hessian taken as positive, and as at least `floor`. H holds
// its entries 00, 01 and 11.
DEVICE_APART void step_downhill(const real* H, const real* g, real floor, real* step) {
  const real half = R(0.5) * (H[0] - H[2]), mean = R(0.5) * (H[0] + H[2]);
  const real far = sqrt_(fma_(half, half, H[1] * H[1]));
  real c = half + far, s = H[1];
  if (half < 0) {
    c = H[1];
    s = far - half;
  }
  const real length = sqrt_(fma_(c, c, s * s));
  c = length > MJMINVAL ? c / length : R(1.0);
  s = length > MJMINVAL ? s / length : R(0.0);
  const real first = -(c * g[0] + s * g[1]) / max_(abs_(mean + far), floor);
  const real second = -(c * g[1] - s * g[0]) / max_(abs_(mean - far), floor);
  step[0] = c * first - s * second;
  step[1] = s * first + c * second;
}

// One step of Newton's method downhill: the Hessian's eigenvalues are taken as positive, and the step is halved until
// the support function falls. Returns false if it does not. Each lane of a team tries another part of the step.
template <typename Team>
DEVICE bool step_down(const Difference& d, real* n, real* h) {
  real t[2][3], w[3], H[3], step[2], trial[3];
  tangents_of(n, t);
  support_here(d, n, w);
  *h = dot3(w, n);
  hessian_along(d, n, t, *h, H);
  const real g[2] = {dot3(t[0], w), dot3(t[1], w)};
  step_downhill(H, g, LEAST_BEND * abs_(*h), step);
  real a = clamp_(step[0], R(-0.5), R(0.5)), b = clamp_(step[1], R(-0.5), R(0.5));
  const int lanes = Team::SIZE < WAYS_PARTS ? 1 : WAYS_PARTS, own = Team::rank() % lanes;
  ROLLED for (int k = 0; k < own; ++k) {
    a *= R(0.5);
    b *= R(0.5);
  }
  ROLLED for (int k = own; k < WAYS_PARTS; k += lanes) {
    moved_by(n, t, a, b, trial);
    support_here(d, trial, w);
    const real other = dot3(w, trial);
    const int best = Team::most(other < *h ? WAYS_PARTS - k : 0), from = (WAYS_PARTS - best) % lanes;
    if (best) {
      for (int i = 0; i < 3; ++i) n[i] = Team::from(trial[i], from);
      *h = Team::from(other, from);
      return true;
    }
    a *= R(0.5);
    b *= R(0.5);
  }
  return false;
}

// Steps downhill from n, until none leads further.
template <typename Team>
DEVICE_APART void descend(const Difference& of, real* n) {
#if SIMENGINE_GPU
  real turns[2][9];
  const Difference d = in_registers(of, turns);
#else
  const Difference& d = of;
#endif
  real h;
  ROLLED for (int step = 0; step < WAYS_STEPS && step_down<Team>(d, n, &h); ++step) {
  }
}

// Three support points around a direction, each by another lane of a team.
template <typename Team>
DEVICE void simplex_around(const Difference& d, const real* n, Simplex& s) {
  const real way[3][2] = {{R(1.0), R(0.0)}, {R(-0.5), R(0.866)}, {R(-0.5), R(-0.866)}};
  const int lanes = Team::SIZE < 3 ? 1 : 3;
  real t[2][3], dir[3], w[3];
  tangents_of(n, t);
  s.around = false;
  s.face = 0;
  for (int k = 0; k < 4; ++k) {
    const int which = k < 3 ? k : 2;
    if (k < 3 && k % lanes == 0) {
      const real* on = way[k + Team::rank() % lanes];
      moved_by(n, t, WAYS_AROUND * on[0], WAYS_AROUND * on[1], dir);
      support(d, dir, w);
    }
    for (int i = 0; i < 3; ++i) {
      s.dir[k][i] = Team::from(dir[i], which % lanes);
      s.w[k][i] = Team::from(w[i], which % lanes);
    }
    s.used[k] = k < 3;
    s.weight[k] = k < 3 ? R(1.0) / 3 : R(0.0);
    s.renew(k);
  }
}

// The way that was found, along which the depth is `depth`, as the search ended in a full polytope; or another one, if
// that leads to a smaller depth.
template <typename Team>
DEVICE_APART Way best_way(const Difference d, const Polytope& p, real depth, const Way found) {
  const real close = EPA_TOLERANCE * d.scale;
  real tried[2 * WAYS_TRIED + 2][3], n[3], least = depth;
  int number = 1;
  Way best = found;
  for (int i = 0; i < 3; ++i) tried[0][i] = n[i] = found.normal[i];
  ROLLED for (int k = 0; k < WAYS_TRIED; ++k) {
    const int face = other_face<Team>(p, tried, number, least - close);
    if (face == EPA_FACES) break;
    Kinks kinks;
    if (k == 0) {
      least = polish<Team>(d, best.simplex, n, kinks);
      for (int i = 0; i < 3; ++i) tried[number][i] = n[i];
      ++number;
    }
    Way other;
    for (int i = 0; i < 3; ++i) tried[number][i] = other.normal[i] = p.normal[face][i];
    descend<Team>(d, other.normal);
    simplex_around<Team>(d, other.normal, other.simplex);
    for (int i = 0; i < 3; ++i) n[i] = other.normal[i];
    const real h = polish<Team>(d, other.simplex, n, kinks);
    for (int i = 0; i < 3; ++i) tried[number + 1][i] = n[i];
    number += 2;
    if (!(h < least - close)) continue;
    least = h;
    best = other;
  }
  return best;
}
