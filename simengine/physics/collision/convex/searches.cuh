// What the kernels that share a search leave for each other: collision_distance finds the distance of the cores of
// listed pairs, collision_depth the depth of those that overlap, and collision_touch the contacts. The state of a
// search says what is known of its cores. A simplex is stored where they are near each other, and where they overlap.
#pragma once

// Words of a simplex and its normal.
#define SIMPLEX_WORDS 32

#if !SIMENGINE_GPU
// Of a simplex at a face, the vertices are stored in the place of directions, which are its normal.
DEVICE void put_face(real* to, const Simplex& s) {
  for (int k = 0; k < 8; ++k) to[12 + k] = s.vertex[k >> 1][k & 1];
}

DEVICE void take_face(const real* from, Simplex& s) {
  for (int k = 0; k < 4; ++k) {
    s.used[k] = k < 3;
    for (int body = 0; body < 2; ++body) s.vertex[k][body] = int(from[12 + 2 * k + body]);
    for (int i = 0; i < 3; ++i) s.dir[k][i] = from[28 + i];
  }
}
#endif

DEVICE void put_simplex(real* to, const Simplex& s, const real* normal) {
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 3; ++i) {
      to[3 * k + i] = s.w[k][i];
      to[12 + 3 * k + i] = s.dir[k][i];
    }
    to[24 + k] = s.weight[k];
  }
  for (int i = 0; i < 3; ++i) to[28 + i] = normal[i];
  to[31] = s.face ? 1 + s.face : s.around;
#if !SIMENGINE_GPU
  if (s.face) put_face(to, s);
#endif
}

// EPA uses three points, even where a weight is zero or negative. Of a simplex at a side all four have a direction.
DEVICE void take_simplex(const real* from, bool deep, Simplex& s, real* normal) {
  s.around = from[31] == 1;
  s.face = from[31] > 1 ? int(from[31]) - 1 : 0;
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 3; ++i) {
      s.w[k][i] = from[3 * k + i];
      s.dir[k][i] = from[12 + 3 * k + i];
    }
    s.weight[k] = from[24 + k];
    s.used[k] = s.face || (deep ? k < 3 : s.weight[k] > 0);
    s.renew(k);
  }
  for (int i = 0; i < 3; ++i) normal[i] = from[28 + i];
#if !SIMENGINE_GPU
  if (s.face) take_face(from, s);
#endif
}

// The number of searches of a world that are kept.
DEVICE int kept_searches(const Model& m, int searches) {
  const int most = m.nkept() / MAX_CONVEX;
  return searches < most ? searches : most;
}
