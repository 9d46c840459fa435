// The polytope of the search for a depth (epa.cuh): its faces, the support points that a team of lanes finds for it,
// and the tetrahedra with which it may begin.
#pragma once

#define EPA_FACES 96
#define EPA_RIM 40  // most edges of a hole

struct Polytope {
  real w[EPA_VERTICES][3], dir[EPA_VERTICES][3];
  real normal[EPA_FACES][3], dist[EPA_FACES], doubt[EPA_FACES];
  real scale;
  int faces, edges;  // number of faces, removed ones among them; and of edges of the rim, -1 if there are too many
  unsigned char corner[EPA_FACES][3], alive[EPA_FACES], seen[EPA_FACES];
  unsigned char link[EPA_FACES][3];  // the face on the other side of the edge from each corner to the next
  unsigned char rim[EPA_RIM][3];     // start and end of each edge of the rim, and the face behind it
  unsigned char slot[EPA_RIM];       // the face that takes each edge
  unsigned char from[EPA_VERTICES];  // the new face whose edge of the rim starts at a vertex, or EPA_FACES
};
static_assert(sizeof(Polytope) <= POLYTOPE_WORDS * sizeof(real), "POLYTOPE_WORDS of simengine/model/pairs.py");

DEVICE_CALL void put_face(Polytope& p, int face, int a, int b, int c) {
  real ab[3], ac[3], n[3];
  for (int i = 0; i < 3; ++i) {
    ab[i] = p.w[b][i] - p.w[a][i];
    ac[i] = p.w[c][i] - p.w[a][i];
  }
  cross3(n, ab, ac);
  const real square = dot3(n, n);
  const bool thin = !(square > 64 * REAL_EPS * REAL_EPS * dot3(ab, ab) * dot3(ac, ac)) || !(square > R(1e-30));
  const real inverse = thin ? R(0.0) : R(1.0) / sqrt_(square);
  for (int i = 0; i < 3; ++i) p.normal[face][i] = n[i] * inverse;
  p.dist[face] = thin ? REAL_MAX : dot3(p.normal[face], p.w[a]);
  p.doubt[face] = thin ? R(1.0) : 1 + p.scale * sqrt_(max_(dot3(ab, ab), dot3(ac, ac))) * inverse;
  p.corner[face][0] = a;
  p.corner[face][1] = b;
  p.corner[face][2] = c;
  for (int k = 0; k < 3; ++k) p.link[face][k] = face;  // nothing, until it is linked
  p.alive[face] = 1;
}

// Support points v and v + 1 of the difference, along dir and along -dir. The lanes of a team share the work: each
// finds the support point of its shape in one direction.
template <typename Team>
DEVICE void supports(const Difference& d, const Shape& shape, const real* dir, int v, SupportVertices<Team>& vertices,
                     real* there, real* back) {
  const real opposite[3] = {-dir[0], -dir[1], -dir[2]};
  if (Team::SIZE < 4) {
    support(d, dir, there);
    vertices.note(v, d);
    support(d, opposite, back);
    vertices.note(v + 1, d);
    return;
  }
  const bool second = Team::rank() & 1, reversed = Team::rank() & 2;
  real own[3], way[3];
  for (int i = 0; i < 3; ++i) way[i] = second != reversed ? -dir[i] : dir[i];
  support(shape, way, own);
  for (int i = 0; i < 3; ++i) {
    there[i] = Team::from(own[i], 0) - Team::from(own[i], 1);
    back[i] = Team::from(own[i], 2) - Team::from(own[i], 3);
  }
}

// Support point v: of those along dir and along -dir, the one that is farther from the point `from` in that direction.
// dir becomes that direction.
template <typename Team>
DEVICE void farther_support(const Difference& d, const Shape& shape, const real* from, int v,
                            SupportVertices<Team>& vertices, real* dir, real* out) {
  real there[3], back[3];
  supports<Team>(d, shape, dir, v, vertices, there, back);
  const real opposite[3] = {-dir[0], -dir[1], -dir[2]};
  const real up = dot3(there, dir) - dot3(dir, from), down = dot3(back, opposite) + dot3(dir, from);
  for (int i = 0; i < 3; ++i) {
    out[i] = up >= down ? there[i] : back[i];
    dir[i] = up >= down ? dir[i] : opposite[i];
  }
  if (!(up >= down)) vertices.copy(v + 1, v);
}

// Let a polytope have four vertices: `above` says whether the last is on the side from which the others run
// anticlockwise.
DEVICE void put_tetrahedron(Polytope& p, real scale, const real (*w)[3], const real (*dir)[3], bool above) {
  p.scale = scale;
  for (int v = 0; v < 4; ++v) {
    for (int i = 0; i < 3; ++i) {
      p.w[v][i] = w[v][i];
      p.dir[v][i] = dir[v][i];
    }
  }
  const int b = above ? 2 : 1, c = above ? 1 : 2;
  put_face(p, 0, 0, b, c);
  put_face(p, 1, 0, 3, b);
  put_face(p, 2, b, 3, c);
  put_face(p, 3, c, 3, 0);
  p.faces = 4;
  const unsigned char links[4][3] = {{1, 2, 3}, {3, 2, 0}, {1, 3, 0}, {2, 1, 0}};
  for (int f = 0; f < 4; ++f) {
    for (int k = 0; k < 3; ++k) p.link[f][k] = links[f][k];
  }
}

#if !SIMENGINE_GPU
// The tetrahedron between the upper face of a prism and the lowest point of the difference along its normal.
template <typename Team>
DEVICE void polytope_under_face(const Difference& d, Polytope& p, SupportVertices<Team>& vertices) {
  const UpperFace face = upper_face(d);
  real dir[4][3], w[4][3], ab[3], ac[3], across[3];
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) {
      w[k][i] = face.w[k][i];
      dir[k][i] = face.normal[i];
    }
    dir[3][i] = -face.normal[i];
    ab[i] = w[1][i] - w[0][i];
    ac[i] = w[2][i] - w[0][i];
  }
  for (int k = 0; k < 3; ++k) {
    vertices.of[k][0] = 3 + k;
    vertices.of[k][1] = face.other;
  }
  support(d, dir[3], w[3]);
  vertices.note(3, d);
  cross3(across, ab, ac);
  put_tetrahedron(p, d.scale, w, dir, dot3(across, face.normal) < 0);
}
#endif

// The tetrahedron around the origin in which the search for a distance ended. Returns false if a face of it is thin.
template <typename Team>
DEVICE bool polytope_of_simplex(const Simplex& s, real scale, Polytope& p, SupportVertices<Team>& vertices) {
  real ab[3], ac[3], ad[3], across[3];
  for (int i = 0; i < 3; ++i) {
    ab[i] = s.w[1][i] - s.w[0][i];
    ac[i] = s.w[2][i] - s.w[0][i];
    ad[i] = s.w[3][i] - s.w[0][i];
  }
  cross3(across, ab, ac);
#if !SIMENGINE_GPU
  for (int k = 0; k < 4; ++k) {
    for (int body = 0; body < 2; ++body) vertices.of[k][body] = Team::SIZE > 1 ? -1 : s.vertex[k][body];
  }
#endif
  if (Team::rank() == 0) put_tetrahedron(p, scale, s.w, s.dir, dot3(ad, across) > 0);
  Team::sync();
  bool thin = false;
  for (int f = 0; f < 4; ++f) thin |= p.dist[f] == REAL_MAX;
  Team::sync();
  return !thin;
}
