// The simplex of a search, and the constants of the search for the distance of two cores; see gjk.cuh.
#pragma once

#if REAL_IS_FLOAT
#define GJK_TOLERANCE R(1e-6)  // relative to the squared distance
#define TOUCH_TOLERANCE R(1e-5)  // relative to the scale: cores closer than this count as touching
#else
#define GJK_TOLERANCE R(1e-13)
#define TOUCH_TOLERANCE R(1e-9)
#endif
#define GJK_ITERATIONS 64

struct Simplex {
  real w[4][3], dir[4][3];  // support points, and the directions that they belong to
  real weight[4];
  bool used[4];
#if !SIMENGINE_GPU
  mutable int vertex[4][2];  // vertices of the flat parts of both shapes, once somebody asked for them; else -1
#endif

  // Note that support point k is a new one, and which vertices it has, if that is known.
  DEVICE_METHOD void renew(int k, const int* vertices) const {
#if !SIMENGINE_GPU
    for (int body = 0; body < 2; ++body) vertex[k][body] = vertices[body];
#endif
  }
  DEVICE_METHOD void renew(int k) const {
#if !SIMENGINE_GPU
    vertex[k][0] = vertex[k][1] = -1;
#endif
  }
};

// The vertex of the flat part of shape `body` (0 or 1) that support point k has.
DEVICE_CALL int simplex_vertex(const Shape& s, const Simplex& simplex, int k, int body) {
#if !SIMENGINE_GPU
  if (simplex.vertex[k][body] >= 0) return simplex.vertex[k][body];
#endif
  real local[3];
  to_local(local, s.mat, simplex.dir[k]);
  for (int i = 0; i < 3; ++i) local[i] *= body ? R(-1.0) : R(1.0);
  const int found = flat_vertex(s, local);
#if !SIMENGINE_GPU
  simplex.vertex[k][body] = found;
#endif
  return found;
}
