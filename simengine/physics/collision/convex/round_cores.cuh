// Contacts of ellipsoids that take little on a GPU: on a side of a box, and with an ellipsoid or a ball.
//
// A side of a box: let p be the ellipsoid's point farthest against the side's normal, and q the point of the side that
// is nearest to p. If p is outside, p and q are nearest to each other. If p is at a depth h inside, the ball that can
// roll in the ellipsoid (gjk.cuh) and touches its surface at p is as deep around q, as long as h is at most its radius.
// So no direction has a smaller depth than h.
#pragma once

#if SIMENGINE_GPU
#define ROUND_STEPS 6
#if REAL_IS_FLOAT
#define ROUND_STILL R(2e-5)  // size of a step of Newton's method after which the next one is below rounding
#else
#define ROUND_STILL R(1e-8)
#endif

// Whether the first core, an ellipsoid, touches a side of the second, a box. Then `normal` is the side's, against its
// outward direction, `point` the ellipsoid's, and `gap` the distance, negative if they overlap.
DEVICE int rests_on_side(const Difference& d, real most, real* normal, real* point, real* gap) {
  if (!(d.a.round[2] > 0) || !(d.b.box[0] > 0)) return REST_UNKNOWN;
  real offset[3], at[3], side[3], half = d.b.box[2], farthest;
  for (int i = 0; i < 3; ++i) offset[i] = d.a.pos[i] - d.b.pos[i];
  to_local(at, d.b.mat, offset);
  int axis = 2;
  farthest = abs_(at[2]) - half;
  for (int i = 0; i < 2; ++i) {
    const bool farther = abs_(at[i]) - d.b.box[i] > farthest;
    axis = farther ? i : axis;
    half = farther ? d.b.box[i] : half;
    farthest = farther ? abs_(at[i]) - d.b.box[i] : farthest;
  }
  for (int i = 0; i < 3; ++i) side[i] = i != axis ? R(0.0) : at[i] >= 0 ? R(-1.0) : R(1.0);
  to_world(normal, d.b.mat, side);
  support(d.a, normal, point);
  for (int i = 0; i < 3; ++i) offset[i] = point[i] - d.b.pos[i];
  to_local(at, d.b.mat, offset);
  *gap = -dot3(side, at) - half;
  if (*gap > most) return REST_APART;
  bool over = *gap >= -rolling_ball(d.a);
  for (int i = 0; i < 3; ++i) over &= i == axis || abs_(at[i]) <= d.b.box[i];
  return over ? REST_FOUND : REST_UNKNOWN;
}

// An ellipsoid about its centre, with axes as rows, each as long as the half axis. All zero for a point.
struct RoundCore {
  real axis[3][3];
};

DEVICE RoundCore round_core(const Shape& s) {
  RoundCore core;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) core.axis[i][k] = s.round[i] * s.mat[3 * k + i];
  }
  return core;
}

// Add to `w` the core's point farthest along n, and to `H` the second derivatives of its height along tangents t, of
// which H has the entries 00, 01 and 11.
DEVICE void add_core(const RoundCore& core, const real* n, const real (*t)[3], real* w, real* H) {
  real at[3], along[2][3], q[3] = {R(0.0), R(0.0), R(0.0)}, square = 0, slope[2];
  for (int i = 0; i < 3; ++i) {
    at[i] = dot3(core.axis[i], n);
    along[0][i] = dot3(core.axis[i], t[0]);
    along[1][i] = dot3(core.axis[i], t[1]);
    square = fma_(at[i], at[i], square);
  }
  const real height = sqrt_(square);
  if (!(height > MJMINVAL)) return;
  const real inverse = R(1.0) / height;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) q[k] = fma_(core.axis[i][k], at[i] * inverse, q[k]);
  }
  for (int k = 0; k < 2; ++k) slope[k] = dot3(q, t[k]);
  for (int k = 0; k < 3; ++k) w[k] += q[k];
  for (int k = 0; k < 3; ++k) {
    const int u = k == 2, v = k > 0;
    H[k] += (dot3(along[u], along[v]) - slope[u] * slope[v]) * inverse;
  }
}

// Let a normal be that of the least depth beside it, by Newton's method, if both cores are ellipsoids or points.
// Returns false where its steps are long, or would lead to a larger depth; then polish.cuh finds more.
DEVICE bool descend_between_rounds(const Difference& d, real* normal, real* h) {
  const RoundCore a = round_core(d.a), b = round_core(d.b);
  real n[3] = {normal[0], normal[1], normal[2]}, first = 0, moved = REAL_MAX;
  ROLLED for (int step = 0; step < ROUND_STEPS && moved > ROUND_STILL; ++step) {
    real t[2][3], w[3], H[3] = {R(0.0), R(0.0), R(0.0)};
    tangents_of(n, t);
    for (int i = 0; i < 3; ++i) w[i] = d.a.pos[i] - d.b.pos[i];
    add_core(a, n, t, w, H);
    add_core(b, n, t, w, H);
    const real depth = dot3(w, n), g0 = dot3(w, t[0]), g1 = dot3(w, t[1]);
    first = step ? first : depth;
    H[0] -= depth;
    H[2] -= depth;
    const real det = H[0] * H[2] - H[1] * H[1];
    if (!(H[0] > 0) || !(det > R(1e-6) * H[0] * abs_(H[2]))) return false;
    const real x = (H[1] * g1 - H[2] * g0) / det, y = (H[1] * g0 - H[0] * g1) / det;
    moved = abs_(x) + abs_(y);
    if (!(moved < R(0.3))) return false;
    moved_by(n, t, x, y, n);
  }
  *h = reach(d, n);
  if (moved > ROUND_STILL || !(*h <= first + 8 * REAL_EPS * d.scale)) return false;
  for (int i = 0; i < 3; ++i) normal[i] = n[i];
  return true;
}

// The contact on a side of a box, or with another round core: nearest points, and the distance between them. The normal
// is what a search has found; that of a side is found anew.
DEVICE bool round_contact(const Difference& d, real most, real* normal, real* p1, real* p2, real* cores) {
  real against[3], h;
  if (rests_on_side(d, most, against, p1, cores) == REST_FOUND) {
    for (int i = 0; i < 3; ++i) {
      normal[i] = against[i];
      p2[i] = fma_(*cores, normal[i], p1[i]);
    }
    return true;
  }
  if (!(d.a.round[2] > 0 || d.b.round[2] > 0) || !is_strict(d.a) || !is_strict(d.b)) return false;
  if (!descend_between_rounds(d, normal, &h)) return false;
  const real back[3] = {-normal[0], -normal[1], -normal[2]};
  support(d.b, back, p2);
  for (int i = 0; i < 3; ++i) p1[i] = fma_(h, normal[i], p2[i]);
  *cores = -h;
  return true;
}
#endif
