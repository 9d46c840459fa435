// The point of a simplex that is nearest to the origin, and whether a tetrahedron holds the origin; see gjk.cuh.
//
// The simplex always has four points, some of weight zero. Its point nearest to the origin is the best among those of
// its four triangles and six edges. This needs no case distinctions and works for degenerate simplices.
//
// The lanes of a team share these: each has one of the triangles, and one of the edges. They find what a single lane
// finds, which looks at one after another, by the same operations.
#pragma once

#define SIMPLEX_SHARES 8  // so many lanes share a simplex

// Weights of a triangle's corners for its plane's point nearest to the origin, and the squared distance of that point.
// Returns false if the triangle is too thin.
DEVICE_CALL bool triangle_weights(const real* a, const real* b, const real* c, real* weight, real* square) {
  real ab[3], ac[3], n[3], part[3];
  for (int i = 0; i < 3; ++i) {
    ab[i] = b[i] - a[i];
    ac[i] = c[i] - a[i];
  }
  cross3(n, ab, ac);
  const real nn = dot3(n, n);
  if (!(nn > REAL_EPS * REAL_EPS * dot3(ab, ab) * dot3(ac, ac))) return false;
  cross3(part, b, c);
  weight[0] = dot3(n, part) / nn;
  cross3(part, c, a);
  weight[1] = dot3(n, part) / nn;
  weight[2] = 1 - weight[0] - weight[1];
  const real height = dot3(n, a);
  *square = height * height / nn;
  return true;
}

// Weight of b for the point of segment ab nearest to the origin.
DEVICE real segment_weight(const real* a, const real* b) {
  real ab[3];
  for (int i = 0; i < 3; ++i) ab[i] = b[i] - a[i];
  const real length = dot3(ab, ab);
  return length > 0 ? clamp_(-dot3(a, ab) / length, R(0.0), R(1.0)) : R(0.0);
}

// Whether the origin is on the side of a face on which the apex of a tetrahedron is.
DEVICE_CALL bool beside_apex(const real* a, const real* b, const real* c, const real* apex) {
  real ab[3], ac[3], n[3], up[3];
  for (int i = 0; i < 3; ++i) {
    ab[i] = b[i] - a[i];
    ac[i] = c[i] - a[i];
    up[i] = apex[i] - a[i];
  }
  cross3(n, ab, ac);
  const real inside = dot3(n, up), origin = -dot3(n, a);
  return inside * origin > 0 || (origin == 0 && inside != 0);
}

// The entry of three numbers of a corner, chosen without an index that is known at run time only: simplices are in
// registers.
DEVICE void chosen_corner(const Simplex& s, int corner, real* out) {
  for (int i = 0; i < 3; ++i) {
    const real low = corner == 0 ? s.w[0][i] : s.w[1][i], high = corner == 2 ? s.w[2][i] : s.w[3][i];
    out[i] = corner < 2 ? low : high;
  }
}

// The nearest point to the origin of one triangle or edge: its weights of all corners, its squared distance, and its
// place in the order in which a single lane looks.
struct NearestOfPart {
  real weight[4], square;
  int place;
};

// That of the triangle without a corner, if it is inside.
DEVICE NearestOfPart nearest_of_triangle(const Simplex& s, int without) {
  real a[3], b[3], c[3], weight[3], square;
  chosen_corner(s, without == 0 ? 1 : 0, a);
  chosen_corner(s, without <= 1 ? 2 : 1, b);
  chosen_corner(s, without == 3 ? 2 : 3, c);
  const bool found = triangle_weights(a, b, c, weight, &square) && !(weight[0] < 0 || weight[1] < 0 || weight[2] < 0);
  const real first = without == 0 ? weight[0] : weight[1], second = without <= 1 ? weight[1] : weight[2];
  return {{without == 0 ? R(0.0) : weight[0], without == 1 ? R(0.0) : first, without == 2 ? R(0.0) : second,
           without == 3 ? R(0.0) : weight[2]},
          found ? square : REAL_MAX,
          without};
}

// That of an edge: 0-1, 0-2, 0-3, 1-2, 1-3 or 2-3.
DEVICE NearestOfPart nearest_of_edge(const Simplex& s, int edge) {
  const int first = edge < 3 ? 0 : edge < 5 ? 1 : 2, second = edge < 3 ? edge + 1 : edge < 5 ? edge - 1 : 3;
  real a[3], b[3], p[3];
  chosen_corner(s, first, a);
  chosen_corner(s, second, b);
  const real t = segment_weight(a, b);
  for (int i = 0; i < 3; ++i) p[i] = fma_(t, b[i] - a[i], a[i]);
  NearestOfPart found = {{R(0.0), R(0.0), R(0.0), R(0.0)}, dot3(p, p), 4 + edge};
  for (int k = 0; k < 4; ++k) found.weight[k] = k == first ? 1 - t : k == second ? t : R(0.0);
  return found;
}

// `nearest` for a team.
template <typename Team>
DEVICE void nearest_together(Simplex& s, real* v) {
  const int last = 4 + 6;
  NearestOfPart own = nearest_of_triangle(s, Team::rank() & 3);
  const NearestOfPart edge = nearest_of_edge(s, Team::rank() % 6);
  if (edge.square < own.square) own = edge;
  const real least = Team::least(own.square);
  const int place = last - Team::most(own.square == least ? last - own.place : 0);
  const int from = place < 4 ? place : place - 4;
  if (place < last) {
    for (int k = 0; k < 4; ++k) s.weight[k] = Team::from(own.weight[k], from);
  }
  for (int k = 0; k < 4; ++k) s.used[k] = s.weight[k] > 0;
  for (int i = 0; i < 3; ++i) {
    v[i] = 0;
    for (int k = 0; k < 4; ++k) v[i] = fma_(s.weight[k], s.w[k][i], v[i]);
  }
}

// `holds_origin` for a team.
template <typename Team>
DEVICE bool together_hold_origin(const Simplex& s) {
  const int k = Team::rank() & 3;
  real a[3], b[3], c[3], apex[3];
  chosen_corner(s, k, a);
  chosen_corner(s, (k + 1) & 3, b);
  chosen_corner(s, (k + 2) & 3, c);
  chosen_corner(s, (k + 3) & 3, apex);
  return !Team::most(!beside_apex(a, b, c, apex));
}

// Whether the tetrahedron contains the origin, which is then on the inner side of all four faces.
template <typename Team>
DEVICE_CALL bool holds_origin(const Simplex& s) {
  if (Team::SIZE >= SIMPLEX_SHARES) return together_hold_origin<Team>(s);
  SHORT_LOOP for (int k = 0; k < 4; ++k) {
    if (!beside_apex(s.w[k], s.w[(k + 1) & 3], s.w[(k + 2) & 3], s.w[(k + 3) & 3])) return false;
  }
  return true;
}

// Weights of the simplex's point nearest to the origin; v receives the point.
template <typename Team>
DEVICE_CALL void nearest(Simplex& s, real* v) {
  if (Team::SIZE >= SIMPLEX_SHARES) return nearest_together<Team>(s, v);
  real least = REAL_MAX;
  SHORT_LOOP for (int k = 0; k < 4; ++k) {  // triangle without corner k
    real weight[3], square;
    const int i0 = k == 0, i1 = k <= 1 ? 2 : 1, i2 = k == 3 ? 2 : 3;
    if (!triangle_weights(s.w[i0], s.w[i1], s.w[i2], weight, &square) || square >= least) continue;
    if (weight[0] < 0 || weight[1] < 0 || weight[2] < 0) continue;
    least = square;
    s.weight[k] = 0;
    s.weight[i0] = weight[0];
    s.weight[i1] = weight[1];
    s.weight[i2] = weight[2];
  }
  SHORT_LOOP for (int a = 0; a < 3; ++a) {
    SHORT_LOOP for (int b = a + 1; b < 4; ++b) {
      const real t = segment_weight(s.w[a], s.w[b]);
      real p[3];
      for (int i = 0; i < 3; ++i) p[i] = fma_(t, s.w[b][i] - s.w[a][i], s.w[a][i]);
      const real square = dot3(p, p);
      if (square >= least) continue;
      least = square;
      for (int k = 0; k < 4; ++k) s.weight[k] = k == a ? 1 - t : k == b ? t : R(0.0);
    }
  }
  for (int k = 0; k < 4; ++k) s.used[k] = s.weight[k] > 0;
  for (int i = 0; i < 3; ++i) {
    v[i] = 0;
    for (int k = 0; k < 4; ++k) v[i] = fma_(s.weight[k], s.w[k][i], v[i]);
  }
}
