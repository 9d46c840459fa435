// A shape on the upper face of a prism of a height field, found without a search; see resting.cuh for why.
#pragma once

// What is known of two cores before a search.
#define REST_UNKNOWN 0
#define REST_APART 1  // they are farther apart than allowed
#define REST_FOUND 2  // the contact is at a face

// The unit normal of a prism's upper face, given its corners.
DEVICE void face_upward(const real* corner, real* normal) {
  real ab[3], ac[3];
  for (int i = 0; i < 3; ++i) {
    ab[i] = corner[3 + i] - corner[i];
    ac[i] = corner[6 + i] - corner[i];
  }
  cross3(normal, ab, ac);
  for (int i = 0; i < 2; ++i) normal[i] = normal[2] < 0 ? -normal[i] : normal[i];
  normal[2] = abs_(normal[2]);
  normalize3(normal);
}

// Whether a point under or over the upper face of a prism is at least `depth` away from its sides and its base.
DEVICE bool is_within(const Hull& prism, const real* at, real depth) {
  const real* upper = prism.vert + 9;
  for (int k = 0; k < 3; ++k) {
    const int next = k < 2 ? k + 1 : 0;
    const real *from = upper + 3 * k, *to = upper + 3 * next, *apex = upper + 3 * (3 - k - next);
    const real across[2] = {from[1] - to[1], to[0] - from[0]};
    const real inward = across[0] * (apex[0] - from[0]) + across[1] * (apex[1] - from[1]);
    const real inside = across[0] * (at[0] - from[0]) + across[1] * (at[1] - from[1]);
    if (!((inward < 0 ? -inside : inside) >= depth * (abs_(across[0]) + abs_(across[1])))) return false;
  }
  return at[2] - prism.vert[2] >= depth;
}

// Whether the second shape rests on the upper face of a prism, which is the first; `top` is the face's normal in the
// prism's frame. Then `point` receives the shape's point, and `gap` the distance of that from the face.
DEVICE int rests_above(const Difference& d, const real* top, real most, real* point, real* gap, real* normal) {
  const Hull& prism = d.a.hull;
  real offset[3], at[3], under[3];
  to_world(normal, d.a.mat, top);
  const real inward[3] = {-normal[0], -normal[1], -normal[2]};
  support(d.b, inward, point);
  for (int i = 0; i < 3; ++i) offset[i] = point[i] - d.a.pos[i];
  to_local(at, d.a.mat, offset);
  for (int i = 0; i < 3; ++i) offset[i] = at[i] - prism.vert[9 + i];
  *gap = dot3(top, offset);
  if (*gap > most) return REST_APART;
  // the ball that can roll in an ellipsoid is as deep around the foot of its point (round_cores.cuh); then the prism
  // need hold that foot only
  const real depth = -*gap <= rolling_ball(d.b) ? R(0.0) : -*gap;
  for (int i = 0; i < 3; ++i) under[i] = depth > 0 ? at[i] : fma_(-*gap, top[i], at[i]);
  return is_within(prism, under, depth) ? REST_FOUND : REST_UNKNOWN;
}
