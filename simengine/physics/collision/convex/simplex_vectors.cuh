// GJK on the host: the same search as in gjk.cuh, with the four triangles of the simplex, and its six edges, as the
// entries of vectors. Each sees the operations of the functions for one of them in the same order.
#pragma once

#ifdef MATRIX_VECTORS
#define SIMPLEX_VECTORS

// Coordinates of four points.
struct FourPoints {
  Four x, y, z;
};

template <int A, int B, int C, int D>
DEVICE FourPoints picked(const FourPoints& p) {
  return {picked<A, B, C, D>(p.x), picked<A, B, C, D>(p.y), picked<A, B, C, D>(p.z)};
}
DEVICE FourPoints from_to(const FourPoints& a, const FourPoints& b) { return {b.x - a.x, b.y - a.y, b.z - a.z}; }
DEVICE Four dots(const FourPoints& a, const FourPoints& b) {
  return four_fma(a.z, b.z, four_fma(a.y, b.y, a.x * b.x));
}
DEVICE FourPoints crosses(const FourPoints& a, const FourPoints& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// The support points of a simplex, each with its weight.
struct Corners {
  real w[4][4], dir[4][4], weight[4];  // the fourth coordinates mean nothing
  int vertex[4][2];                    // of the hulls, -1 for shapes without one
};

DEVICE FourPoints points_of(const Corners& c) {
  const Four a = load_four(c.w[0]), b = load_four(c.w[1]), e = load_four(c.w[2]), f = load_four(c.w[3]);
#ifdef __clang__
  const Four low = __builtin_shufflevector(a, b, 0, 4, 1, 5), high = __builtin_shufflevector(e, f, 0, 4, 1, 5);
  const Four low2 = __builtin_shufflevector(a, b, 2, 6, 3, 7), high2 = __builtin_shufflevector(e, f, 2, 6, 3, 7);
  return {__builtin_shufflevector(low, high, 0, 1, 4, 5), __builtin_shufflevector(low, high, 2, 3, 6, 7),
          __builtin_shufflevector(low2, high2, 0, 1, 4, 5)};
#else
  const FourTruths first{0, 4, 1, 5}, last{2, 6, 3, 7}, halves{0, 1, 4, 5};
  const Four low = __builtin_shuffle(a, b, first), high = __builtin_shuffle(e, f, first);
  const Four low2 = __builtin_shuffle(a, b, last), high2 = __builtin_shuffle(e, f, last);
  return {__builtin_shuffle(low, high, halves), __builtin_shuffle(low, high, FourTruths{2, 3, 6, 7}),
          __builtin_shuffle(low2, high2, halves)};
#endif
}

// Whether the tetrahedron contains the origin: see holds_origin.
DEVICE bool hold_origin(const FourPoints& p) {
  const FourPoints b = picked<1, 2, 3, 0>(p), c = picked<2, 3, 0, 1>(p), apex = picked<3, 0, 1, 2>(p);
  const FourPoints n = crosses(from_to(p, b), from_to(p, c));
  const Four inside = dots(n, from_to(p, apex)), origin = -dots(n, p), none = Four{};
  const FourTruths holds = (inside * origin > none) | ((origin == none) & (inside != none));
  return four_bits(holds) == 15;
}

// Weights of points a for those points of four segments ab that are nearest to the origin, and their squared distances.
DEVICE Four segments(const FourPoints& a, const FourPoints& b, Four* square) {
  const FourPoints ab = from_to(a, b);
  const Four length = dots(ab, ab), none = Four{}, one = four(R(1.0));
  const Four along = -dots(a, ab) / length, most = chosen(along < one, along, one);
  const Four t = chosen(length > none, chosen(none > most, none, most), none);
  const FourPoints p = {four_fma(t, ab.x, a.x), four_fma(t, ab.y, a.y), four_fma(t, ab.z, a.z)};
  *square = dots(p, p);
  return t;
}

// For the first of the least of ten squared distances: where among the weights of triangles, of segments and of their
// other ends, and a zero, the weights of the four corners are.
static const unsigned char WEIGHT_PLACES[10][4] = {
    {28, 0, 4, 8},  {1, 28, 5, 9},  {2, 6, 28, 10},  {3, 7, 11, 28},  {20, 12, 28, 28},
    {21, 28, 13, 28}, {22, 28, 28, 14}, {28, 23, 15, 28}, {28, 24, 28, 16}, {28, 28, 25, 17},
};

// Weights of the simplex's point nearest to the origin; v receives the point: see nearest.
DEVICE void nearest_of(const FourPoints& p, Corners& s, real* v) {
  const Four none = Four{}, one = four(R(1.0)), most = four(REAL_MAX);
  real weight[32];
  // triangles, each without one corner
  const FourPoints a = picked<1, 0, 0, 0>(p), b = picked<2, 2, 1, 1>(p), c = picked<3, 3, 3, 2>(p);
  const FourPoints ab = from_to(a, b), ac = from_to(a, c), n = crosses(ab, ac);
  const Four nn = dots(n, n), thin = four(REAL_EPS * REAL_EPS) * dots(ab, ab) * dots(ac, ac);
  const Four w0 = dots(n, crosses(b, c)) / nn, w1 = dots(n, crosses(c, a)) / nn, w2 = one - w0 - w1;
  const Four height = dots(n, a);
  const FourTruths inside = (nn > thin) & ~(w0 < none) & ~(w1 < none) & ~(w2 < none);
  const Four of_triangle = chosen(inside, height * height / nn, most);
  // edges: from corner 0 to the others and from 1 to 2; from 1 to 3 and from 2 to 3
  Four of_edge, of_other;
  const Four t = segments(picked<0, 0, 0, 1>(p), picked<1, 2, 3, 2>(p), &of_edge);
  const Four u = segments(picked<1, 2, 2, 2>(p), picked<3, 3, 3, 3>(p), &of_other);
  // the first of the least
  const Four low = chosen(of_edge < of_triangle, of_edge, of_triangle), lower = chosen(of_other < low, of_other, low);
  const Four half = picked<2, 3, 0, 1>(lower), pair = chosen(half < lower, half, lower);
  const Four next = picked<1, 0, 3, 2>(pair), least = chosen(next < pair, next, pair);
  const unsigned places = four_bits(of_triangle == least) | four_bits(of_edge == least) << 4 |
                          four_bits(of_other == least) << 8 | 1u << 9;
  const unsigned char* at = WEIGHT_PLACES[__builtin_ctz(places)];
  const Four rest_t = one - t, rest_u = one - u;
  __builtin_memcpy(weight, &w0, sizeof(Four));
  __builtin_memcpy(weight + 4, &w1, sizeof(Four));
  __builtin_memcpy(weight + 8, &w2, sizeof(Four));
  __builtin_memcpy(weight + 12, &t, sizeof(Four));
  __builtin_memcpy(weight + 16, &u, sizeof(Four));
  __builtin_memcpy(weight + 20, &rest_t, sizeof(Four));
  __builtin_memcpy(weight + 24, &rest_u, sizeof(Four));
  weight[28] = 0;
  Four sum = none;
  for (int k = 0; k < 4; ++k) {
    s.weight[k] = weight[at[k]];
    sum = four_fma(four(s.weight[k]), load_four(s.w[k]), sum);
  }
  for (int i = 0; i < 3; ++i) v[i] = sum[i];
}

// Let corner k be the support point w along dir, which was found last.
DEVICE void put_corner(Corners& c, int k, const Difference& d, const real* w, const real* dir) {
  c.vertex[k][0] = d.a.hull.last;
  c.vertex[k][1] = d.b.hull.last;
  for (int i = 0; i < 3; ++i) {
    c.w[k][i] = w[i];
    c.dir[k][i] = dir[i];
  }
}

// A corner that is replaced, with the weights of all.
struct Replaced {
  Four w, dir, weights;
  int vertex[2];
};

DEVICE void put_back(Corners& c, int k, const Replaced& before) {
  __builtin_memcpy(c.w[k], &before.w, sizeof(Four));
  __builtin_memcpy(c.dir[k], &before.dir, sizeof(Four));
  __builtin_memcpy(c.weight, &before.weights, sizeof(Four));
  for (int body = 0; body < 2; ++body) c.vertex[k][body] = before.vertex[body];
}

// The simplex with the given corners.
DEVICE void end_corners(const Corners& c, Simplex& s) {
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 3; ++i) {
      s.w[k][i] = c.w[k][i];
      s.dir[k][i] = c.dir[k][i];
    }
    s.weight[k] = c.weight[k];
    s.used[k] = c.weight[k] > 0;
    s.renew(k, c.vertex[k]);
  }
}

// Whether the cores are certainly farther apart than `most`, because a plane perpendicular to an axis of a shape lies
// between them: the axis along which the other's centre is farthest beyond the shape's own box. Boxes around both geoms
// are looked at before, but a curved surface is far inside the corners of its box.
DEVICE bool apart_along_axis(const Difference& d, const Shape& s, const Shape& other, real most) {
  if (!s.half || !other.half) return false;
  real between[3], local[3], dir[3], w[3];
  for (int i = 0; i < 3; ++i) between[i] = d.b.pos[i] - d.a.pos[i];
  to_local(local, s.mat, between);
  int axis = 0;
  real beyond = -REAL_MAX;
  for (int i = 0; i < 3; ++i) {
    const real by = abs_(local[i]) - s.half[i];
    axis = by > beyond ? i : axis;
    beyond = max_(by, beyond);
  }
  if (!(beyond > min_(other.half[0], min_(other.half[1], other.half[2])) + most)) return false;  // it is hopeless
  for (int i = 0; i < 3; ++i) dir[i] = local[axis] < 0 ? -s.mat[3 * i + axis] : s.mat[3 * i + axis];
  support(d, dir, w);
  return -dot3(w, dir) > most;
}

// See gjk. The simplex is left where cores are neither apart nor overlap.
DEVICE_CALL real gjk_in_vectors(const Difference& d, real most, Simplex& s, real* normal, bool* apart) {
  real v[3], dir[3], w[3];
  Corners corners = {};
  *apart = s.around = false;
  s.face = 0;
  if (begins_with_face(d)) {
    const UpperFace face = upper_face(d);
    *apart = -dot3(face.w[0], face.normal) > most;
    if (*apart) return 0;
    put_upper_corners(corners, face);
    nearest_of(points_of(corners), corners, v);
  } else {
    for (int i = 0; i < 3; ++i) dir[i] = d.b.pos[i] - d.a.pos[i];
    normalize3(dir);
    support(d, dir, w);
    *apart = -dot3(w, dir) > most;
    if (*apart) return 0;
    for (int k = 0; k < 4; ++k) {
      put_corner(corners, k, d, w, dir);
      corners.weight[k] = k == 0;
    }
    *apart = apart_along_axis(d, d.a, d.b, most) || apart_along_axis(d, d.b, d.a, most);
    if (*apart) return 0;
    for (int i = 0; i < 3; ++i) v[i] = w[i] + R(0.0);
  }
  real square = dot3(v, v);
  for (int iteration = 0; iteration < GJK_ITERATIONS; ++iteration) {
    const real distance = sqrt_(square);
    if (distance <= TOUCH_TOLERANCE * d.scale) return 0;
    // (1) the support point towards the origin
    for (int i = 0; i < 3; ++i) dir[i] = -v[i] / distance;
    support(d, dir, w);
    const real bound = -dot3(w, dir);  // no point of the difference is nearer to the origin than this
    if (bound > most) {
      *apart = true;
      return 0;
    }
    for (int i = 0; i < 3; ++i) normal[i] = dir[i];
    if (distance - bound <= GJK_TOLERANCE * distance) break;
    // (2) it replaces a point of weight zero
    int place = 0;
    real lightest = corners.weight[0];
    for (int k = 1; k < 4; ++k) {
      place = corners.weight[k] < lightest ? k : place;
      lightest = min_(corners.weight[k], lightest);
    }
    const Replaced before = {load_four(corners.w[place]), load_four(corners.dir[place]), load_four(corners.weight),
                           {corners.vertex[place][0], corners.vertex[place][1]}};
    put_corner(corners, place, d, w, dir);
    const FourPoints points = points_of(corners);
    // in thin tetrahedra rounding may put it inside although the cores are apart
    if (!(bound > TOUCH_TOLERANCE * d.scale) && hold_origin(points) &&
        !in_a_plane(corners.w[0], corners.w[1], corners.w[2], corners.w[3], d.scale)) {
      end_corners(corners, s);
      s.around = true;
      return 0;
    }
    nearest_of(points, corners, v);
    const real closer = dot3(v, v);
    if (!(closer < square)) {
      // rounding ends the search; without a plane between the cores they may overlap
      if (!(bound > 0)) return 0;
      put_back(corners, place, before);
      break;
    }
    square = closer;
  }
  end_corners(corners, s);
  return sqrt_(square);
}
#endif
