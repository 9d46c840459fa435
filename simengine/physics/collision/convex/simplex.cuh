// The simplex of a search, the constants of the search for the distance of two cores (gjk.cuh), and who searches for
// the depth of those that overlap (epa.cuh).
#pragma once

#if REAL_IS_FLOAT
#define GJK_TOLERANCE R(1e-6)  // relative to the squared distance
#define GJK_TOLERANCE_ROUND R(1e-4)  // the same of a shape without edges, for which Newton's method finds the rest
#define TOUCH_TOLERANCE R(1e-5)  // relative to the scale: cores closer than this count as touching
#else
#define GJK_TOLERANCE R(1e-13)
#define GJK_TOLERANCE_ROUND R(1e-8)
#define TOUCH_TOLERANCE R(1e-9)
#endif
#define POINTS_OFF 16  // units in the last place of the scale by which support points may be off
#define GJK_ITERATIONS 64
#define EPA_VERTICES 48

// Whether a simplex has the vertices of its support points. On a GPU, kernels that search have it in registers, and do
// not ask for them.
#ifndef REMEMBERS_VERTICES
#define REMEMBERS_VERTICES !SIMENGINE_GPU
#endif

struct Simplex {
  real w[4][3], dir[4][3];  // support points, and the directions that they belong to
  real weight[4];
  bool used[4];
#if REMEMBERS_VERTICES
  mutable int vertex[4][2];  // vertices of the flat parts of both shapes, once somebody asked for them; else -1
#endif
  bool around;               // whether it is a tetrahedron around the origin, in which distance is 0
  int face;                  // 1 + the shape that has the face on which the other rests (resting.cuh); else 0

  // Note that support point k is a new one, and which vertices it has, if that is known.
  DEVICE_METHOD void renew(int k, const int* vertices) const {
#if REMEMBERS_VERTICES
    for (int body = 0; body < 2; ++body) vertex[k][body] = vertices[body];
#endif
  }
  DEVICE_METHOD void renew(int k) const {
#if REMEMBERS_VERTICES
    vertex[k][0] = vertex[k][1] = -1;
#endif
  }
};

// Whether four support points are in a plane, up to rounding, which then decides what their tetrahedron contains. Edges
// that are parallel in both shapes, or two edges of the same two vertices, give such points. `scale` is that of the
// difference, of which each coordinate is off by some units in the last place.
DEVICE_CALL bool in_a_plane(const real* a, const real* b, const real* c, const real* d, real scale) {
  real ab[3], ac[3], ad[3], across[3];
  for (int i = 0; i < 3; ++i) {
    ab[i] = b[i] - a[i];
    ac[i] = c[i] - a[i];
    ad[i] = d[i] - a[i];
  }
  cross3(across, ab, ac);
  const real volume = abs_(dot3(across, ad)), b2 = dot3(ab, ab), c2 = dot3(ac, ac), d2 = dot3(ad, ad);
  return !(volume > POINTS_OFF * REAL_EPS * scale * sqrt_(b2 * c2 + c2 * d2 + d2 * b2));
}

// The vertex of the flat part of shape `body` (0 or 1) that support point k has.
DEVICE_CALL int simplex_vertex(const Shape& s, const Simplex& simplex, int k, int body) {
#if REMEMBERS_VERTICES
  if (simplex.vertex[k][body] >= 0) return simplex.vertex[k][body];
#endif
  real local[3];
  to_local(local, s.mat, simplex.dir[k]);
  for (int i = 0; i < 3; ++i) local[i] *= body ? R(-1.0) : R(1.0);
  const int found = flat_vertex(s, local);
#if REMEMBERS_VERTICES
  simplex.vertex[k][body] = found;
#endif
  return found;
}

// The simplex of a lane, without its weights. All lanes call it together.
DEVICE Simplex simplex_of_lane(const Simplex& s, int from) {
  Simplex other;
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 3; ++i) {
      other.w[k][i] = lane_get(s.w[k][i], from);
      other.dir[k][i] = lane_get(s.dir[k][i], from);
    }
    other.renew(k);
  }
  other.around = lane_get(real(s.around), from) != 0;
  other.face = 0;
  return other;
}

// Who searches.
struct OneLane {
  static const int SIZE = 1;
  static DEVICE_METHOD int rank() { return 0; }
  static DEVICE_METHOD void sync() {}
  static DEVICE_METHOD real least(real x) { return x; }
  static DEVICE_METHOD int most(int x) { return x; }
  static DEVICE_METHOD real from(real x, int rank) { return x; }
};
struct AllLanes {
  static const int SIZE = LANES;
  static DEVICE_METHOD int rank() { return lane(); }
  static DEVICE_METHOD void sync() { lane_sync(); }
  static DEVICE_METHOD real least(real x) { return lane_least(x); }
  static DEVICE_METHOD int most(int x) { return lane_most(x); }
  static DEVICE_METHOD real from(real x, int rank) { return lane_get(x, rank); }
};

// The shape whose support points a lane of a team finds. A copy, which is in registers.
template <typename Team>
DEVICE Shape shape_of_lane(const Difference& d) {
  Shape own = d.a;
  if (Team::SIZE > 1 && (Team::rank() & 1)) own = d.b;
  return own;
}

// The support point of the difference along dir.
template <typename Team>
DEVICE void team_support(const Difference& d, const Shape& shape, const real* dir, real* out) {
  if (Team::SIZE < 2) {
    support(d, dir, out);
    return;
  }
  const bool second = Team::rank() & 1;
  real own[3], way[3];
  for (int i = 0; i < 3; ++i) way[i] = second ? -dir[i] : dir[i];
  support(shape, way, own);
  for (int i = 0; i < 3; ++i) out[i] = Team::from(own[i], 0) - Team::from(own[i], 1);
}

// Find the vertices of a simplex that somebody may ask for, several at once by the lanes of a team, or only those that
// are asked for.
template <typename Team>
DEVICE void find_vertices(const Difference& d, const Simplex& s) {
#if REMEMBERS_VERTICES
  if (Team::SIZE < 4) return;
  const int lanes = Team::SIZE < 8 ? Team::SIZE : 8;
  for (int first = 0; first < 8; first += lanes) {
    const int own = first + Team::rank() % lanes;
    const int found = s.used[own >> 1] ? simplex_vertex(own & 1 ? d.b : d.a, s, own >> 1, own & 1) : -1;
    for (int k = 0; k < lanes; ++k) s.vertex[(first + k) >> 1][(first + k) & 1] = int(Team::from(real(found), k));
  }
#endif
}

// The vertices of the hulls that support points have, which are asked for after a search; -1 where they are not known.
// A lane of several finds the support points of one shape only.
template <typename Team>
struct SupportVertices {
#if !SIMENGINE_GPU
  int of[EPA_VERTICES][2];
#endif
  // Those of support point v, which was found last.
  DEVICE_METHOD void note(int v, const Difference& d) {
#if !SIMENGINE_GPU
    of[v][0] = Team::SIZE > 1 ? -1 : d.a.hull.last;
    of[v][1] = Team::SIZE > 1 ? -1 : d.b.hull.last;
#endif
  }
  DEVICE_METHOD void copy(int from, int to) {
#if !SIMENGINE_GPU
    for (int body = 0; body < 2; ++body) of[to][body] = of[from][body];
#endif
  }
  DEVICE_METHOD void give(int v, const Simplex& s, int k) const {
#if SIMENGINE_GPU
    s.renew(k);
#else
    s.renew(k, of[v]);
#endif
  }
};
