// What the kernels that share a search leave for each other: collision_distance finds the distance of the cores of
// listed pairs, collision_depth the depth of those that overlap, and collision_touch the contacts. The state of a
// search says what is known of its cores. A simplex is stored where they are near each other, and where they overlap.
#pragma once

// Words of a simplex and its normal.
#define SIMPLEX_WORDS 32

DEVICE void put_simplex(real* to, const Simplex& s, const real* normal) {
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 3; ++i) {
      to[3 * k + i] = s.w[k][i];
      to[12 + 3 * k + i] = s.dir[k][i];
    }
    to[24 + k] = s.weight[k];
  }
  for (int i = 0; i < 3; ++i) to[28 + i] = normal[i];
#if !SIMENGINE_GPU
  to[31] = s.around;
#endif
}

// EPA uses three points, even where a weight is zero or negative.
DEVICE void take_simplex(const real* from, bool deep, Simplex& s, real* normal) {
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 3; ++i) {
      s.w[k][i] = from[3 * k + i];
      s.dir[k][i] = from[12 + 3 * k + i];
    }
    s.weight[k] = from[24 + k];
    s.used[k] = deep ? k < 3 : s.weight[k] > 0;
    s.renew(k);
  }
  for (int i = 0; i < 3; ++i) normal[i] = from[28 + i];
#if !SIMENGINE_GPU
  s.around = from[31] != 0;
#endif
}

// The number of searches of a world that are kept.
DEVICE int kept_searches(const Model& m, int searches) {
  const int most = m.nkept() / MAX_CONVEX;
  return searches < most ? searches : most;
}
