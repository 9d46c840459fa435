// Penetration of two convex cores: the expanding polytope algorithm (van den Bergen, "Proximity queries and penetration
// depth computation on 3D game objects", 2001).
//
// The polytope starts as a large tetrahedron of support points, which need not contain the origin. Faces have signed
// distances, and the face with the smallest one is expanded, so that the origin is inside once none is negative. Faces
// too thin to have a normal stay in the mesh but are never expanded. The faces removed by an expansion are a connected
// patch around the expanded face, even if rounding makes other faces visible. Each face knows its neighbours, so that
// an expansion looks only at the patch and its rim.
//
// A lane searches by itself, with the polytope in memory of its own, or all lanes of a group search together, with one
// in memory that they share: on a GPU, few pairs of a world overlap, and a single lane takes long. Both do the same
// operations in the same order, so that results have the same bits.
#pragma once

#define EPA_FACES 96
#define EPA_RIM 40  // most edges of a hole
#if REAL_IS_FLOAT
#define EPA_TOLERANCE R(1e-7)  // relative to the scale
#define EPA_TOLERANCE_FLAT R(1e-7)  // for cores without a smooth part, where nothing improves the normal later
#define EPA_VISIBLE R(3e-8)
#else
#define EPA_TOLERANCE R(1e-8)
#define EPA_TOLERANCE_FLAT R(1e-12)
#define EPA_VISIBLE R(1e-12)
#endif
// The gap between a depth and what bounds it from below at which a search among smooth shapes ends; Newton's method
// finds the rest. A narrower one would take two or three times the rounds, and most polytopes would be full before it.
#if REAL_IS_FLOAT
#define EPA_GAP R(1e-5)
#else
#define EPA_GAP EPA_TOLERANCE
#endif

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

// The shape whose support points a lane of a team finds. A copy, which is in registers.
template <typename Team>
DEVICE Shape shape_of_lane(const Difference& d) {
  Shape own = d.a;
  if (Team::SIZE > 1 && (Team::rank() & 1)) own = d.b;
  return own;
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

#if BEGINS_WITH_SIMPLEX
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
  for (int k = 0; k < 4; ++k) {
    for (int body = 0; body < 2; ++body) vertices.of[k][body] = Team::SIZE > 1 ? -1 : s.vertex[k][body];
  }
  if (Team::rank() == 0) put_tetrahedron(p, scale, s.w, s.dir, dot3(ad, across) > 0);
  Team::sync();
  bool thin = false;
  for (int f = 0; f < 4; ++f) thin |= p.dist[f] == REAL_MAX;
  Team::sync();
  return !thin;
}
#endif

// (1) a tetrahedron of support points.
template <typename Team>
DEVICE void first_polytope(const Difference& d, const Shape& shape, Polytope& p, SupportVertices<Team>& vertices) {
#if !SIMENGINE_GPU
  if (Team::SIZE == 1 && begins_with_face(d)) return polytope_under_face(d, p, vertices);
#endif
  real dir[4][3], w[4][3], ab[3], ac[3], ad[3];
  for (int i = 0; i < 3; ++i) dir[0][i] = d.b.pos[i] - d.a.pos[i];
  normalize3(dir[0]);
  supports<Team>(d, shape, dir[0], 0, vertices, w[0], w[1]);
  for (int i = 0; i < 3; ++i) {
    dir[1][i] = -dir[0][i];
    ab[i] = w[1][i] - w[0][i];
  }
  // the coordinate axis farthest from ab gives a direction perpendicular to it
  const real x = abs_(ab[0]), y = abs_(ab[1]), z = abs_(ab[2]);
  real axis[3] = {R(0.0), R(0.0), R(0.0)}, across[3];
  axis[x <= y && x <= z ? 0 : y <= z ? 1 : 2] = 1;
  cross3(dir[2], ab, axis);
  normalize3(dir[2]);
  farther_support<Team>(d, shape, w[0], 2, vertices, dir[2], w[2]);
  for (int i = 0; i < 3; ++i) ac[i] = w[2][i] - w[0][i];
  cross3(across, ab, ac);
  normalize3(across);
  for (int i = 0; i < 3; ++i) dir[3][i] = across[i];
  farther_support<Team>(d, shape, w[0], 3, vertices, dir[3], w[3]);
  for (int i = 0; i < 3; ++i) ad[i] = w[3][i] - w[0][i];
  // vertex 3 is on the side from which 0, 1, 2 run anticlockwise
  if (Team::rank() == 0) put_tetrahedron(p, d.scale, w, dir, dot3(ad, across) > 0);
}

// The face with the least distance, the first of several; `least` receives the distance.
template <typename Team>
DEVICE int least_face(const Polytope& p, real* least) {
  const int faces = p.faces;
  int best = 0;
  real own = REAL_MAX;
  OVERLAPPED for (int f = Team::rank(); f < faces; f += Team::SIZE) {
    const real dist = p.dist[f];
    best = dist < own ? f : best;
    own = dist < own ? dist : own;
  }
  *least = Team::least(own);
  return EPA_FACES - Team::most(own == *least ? EPA_FACES - best : 0);
}

DEVICE int next_corner(int k) { return k == 2 ? 0 : k + 1; }

// Let `other` be the neighbour of a face across the face's edge from a to b.
DEVICE void link_edge(Polytope& p, int face, int a, int b, int other) {
  for (int k = 0; k < 3; ++k) {
    if (p.corner[face][k] == a && p.corner[face][next_corner(k)] == b) p.link[face][k] = other;
  }
}

// Whether vertex v is above a face by more than rounding errors, which are larger for the normal of a thin face.
DEVICE bool sees(const Polytope& p, int face, int v, real slack) {
  return dot3(p.normal[face], p.w[v]) - p.dist[face] > slack * p.doubt[face];
}

// Remove the faces around `face` that are visible from vertex v, and find the rim of the hole. The slots of removed
// faces are the first that new faces take.
template <typename Team>
DEVICE void open_hole(Polytope& p, int v, int face, real slack) {
  unsigned char* hole = p.slot;
  int edges = 0, holes = 1;
  hole[0] = face;
  p.alive[face] = 2;
  p.edges = -1;
  ROLLED for (int next = 0; next < holes; ++next) {
    // what is read of the three neighbours is under way at once; one that was removed meanwhile is told by its number
    const int own = hole[next];
    int around[3], corner[3], alive[3], seen[3];
    UNROLLED for (int k = 0; k < 3; ++k) {
      around[k] = p.link[own][k];
      corner[k] = p.corner[own][k];
    }
    UNROLLED for (int k = 0; k < 3; ++k) {
      alive[k] = p.alive[around[k]];
      seen[k] = Team::SIZE > 1 ? p.seen[around[k]] : 0;
    }
    UNROLLED for (int k = 0; k < 3; ++k) {
      const int f = around[k];
      bool removed = false;
      UNROLLED for (int j = 0; j < k; ++j) removed |= around[j] == f && alive[j] == 2;
      if (alive[k] != 1 || removed) continue;
      if (edges == EPA_RIM || holes == EPA_RIM) return;
      if (Team::SIZE > 1 ? seen[k] : sees(p, f, v, slack)) {
        p.alive[f] = alive[k] = 2;
        hole[holes++] = f;
      } else {
        const int end = corner[next_corner(k)];
        p.rim[edges][0] = corner[k];
        p.rim[edges][1] = end;
        p.rim[edges++][2] = f;
        p.from[end] = EPA_FACES;
      }
    }
  }
  const int faces = p.faces, more = edges > holes ? edges - holes : 0;
  if (faces + more > EPA_FACES) return;
  ROLLED for (int h = 0; h < holes; ++h) {
    const int f = hole[h];
    p.alive[f] = 0;
    p.dist[f] = REAL_MAX;
    int at = h;
    ROLLED for (; at > 0 && hole[at - 1] > f; --at) hole[at] = hole[at - 1];
    hole[at] = f;
  }
  ROLLED for (int e = 0; e < more; ++e) p.slot[holes + e] = faces + e;
  p.faces = faces + more;
  p.edges = edges;
}

// (2) remove the faces around `face` that are visible from vertex v, and connect the rim of the hole to v. Returns
// false if the capacity is too small.
template <typename Team>
DEVICE bool expand(Polytope& p, int v, int face, real slack) {
  if (Team::SIZE > 1) {
    ROLLED for (int f = Team::rank(); f < p.faces; f += Team::SIZE) p.seen[f] = sees(p, f, v, slack);
    Team::sync();
  }
  if (Team::rank() == 0) open_hole<Team>(p, v, face, slack);
  Team::sync();
  const int edges = p.edges;
  ROLLED for (int e = Team::rank(); e < edges; e += Team::SIZE) {
    const int f = p.slot[e], a = p.rim[e][0], b = p.rim[e][1], behind = p.rim[e][2];
    put_face(p, f, a, b, v);
    p.link[f][0] = behind;
    link_edge(p, behind, b, a, f);
    p.from[a] = f;
  }
  Team::sync();
  ROLLED for (int e = Team::rank(); e < edges; e += Team::SIZE) {
    // the faces of two edges of the rim, the second of which starts where the first ends, have an edge to v in common
    const int one = p.from[p.rim[e][0]], two = p.from[p.rim[e][1]];
    if (two == EPA_FACES) continue;  // rounding has left the rim open
    p.link[one][1] = two;
    p.link[two][2] = one;
  }
  Team::sync();
  return edges >= 0;
}

// The plane's point nearest to the origin may lie outside the given triangle. Then replace `corner` by the triangle
// that contains it best, among the faces with this normal whose distance is at most `most`.
template <typename Team>
DEVICE void face_around(const Polytope& p, real most, const real* normal, int* corner) {
  real weight[3], square;
  if (!triangle_weights(p.w[corner[0]], p.w[corner[1]], p.w[corner[2]], weight, &square)) return;
  const real first = min_(weight[0], min_(weight[1], weight[2]));
  if (first >= 0) return;
  real own = first;
  int chosen = 0;
  ROLLED for (int f = Team::rank(); f < p.faces; f += Team::SIZE) {
    if (!p.alive[f] || p.dist[f] > most || dot3(p.normal[f], normal) < R(0.9999)) continue;
    const unsigned char* c = p.corner[f];
    if (!triangle_weights(p.w[c[0]], p.w[c[1]], p.w[c[2]], weight, &square)) continue;
    const real least = min_(weight[0], min_(weight[1], weight[2]));
    if (least <= own) continue;
    own = least;
    chosen = f;
  }
  const real best = -Team::least(-own);
  if (!(best > first)) return;
  const int face = EPA_FACES - Team::most(own == best ? EPA_FACES - chosen : 0);
  for (int i = 0; i < 3; ++i) corner[i] = p.corner[face][i];
}

// A direction, and three support points around it.
struct Way {
  Simplex simplex;
  real normal[3];
};

template <typename Team>
DEVICE_APART Way best_way(const Difference d, const Polytope& p, real depth, const Way found);

// The direction of least penetration; the simplex receives the three support points around it, with their weights. All
// lanes of the team have the same difference, and receive the same result.
template <typename Team>
DEVICE_CALL void epa(const Difference& d, Polytope& p, Simplex& s, real* normal) {
  const Shape shape = shape_of_lane<Team>(d);
  SupportVertices<Team> vertices;
  bool begun = false;
#if BEGINS_WITH_SIMPLEX
  begun = s.around && !begins_with_face(d) && polytope_of_simplex(s, d.scale, p, vertices);
#endif
  if (!begun) first_polytope<Team>(d, shape, p, vertices);
  Team::sync();
  int corner[3] = {0, 1, 2};
  for (int i = 0; i < 3; ++i) normal[i] = p.dir[0][i];  // the result if every face is thin
  real depth = REAL_MAX;  // the smallest depth so far, along the normal of the face with these corners
  const bool flat = !(d.a.round[0] > 0) && !(d.b.round[0] > 0);
  const real close = d.scale * (flat ? EPA_TOLERANCE_FLAT : EPA_GAP);
  bool reached = false;
  ROLLED for (int v = 4; v < EPA_VERTICES; ++v) {
    real least, w[3], dir[3];
    const int face = least_face<Team>(p, &least);
    if (!(least < REAL_MAX)) break;
    for (int i = 0; i < 3; ++i) dir[i] = p.normal[face][i];
    team_support<Team>(d, shape, dir, w);
    vertices.note(v, d);
    const real h = dot3(w, dir);
    // an earlier normal may be as good by chance, but its corners may not be
    reached = h - least <= close;
    if (h < depth || reached) {
      depth = h;
      for (int i = 0; i < 3; ++i) {
        corner[i] = p.corner[face][i];
        normal[i] = dir[i];
      }
    }
    if (reached) break;
    if (Team::rank() == 0) {
      for (int i = 0; i < 3; ++i) {
        p.w[v][i] = w[i];
        p.dir[v][i] = dir[i];
      }
    }
    Team::sync();
    if (!expand<Team>(p, v, face, EPA_VISIBLE * d.scale)) break;
  }
  // (3) weights of the face's corners for its plane's point nearest to the origin; if the plane has several triangles,
  // those of the triangle around that point
  face_around<Team>(p, depth + EPA_TOLERANCE * d.scale, normal, corner);
  for (int k = 0; k < 4; ++k) {
    const int c = corner[k < 3 ? k : 2];
    for (int i = 0; i < 3; ++i) {
      s.w[k][i] = p.w[c][i];
      s.dir[k][i] = p.dir[c][i];
    }
    s.used[k] = k < 3;
    s.weight[k] = 0;
    vertices.give(c, s, k);
  }
  real square;
  triangle_weights(s.w[0], s.w[1], s.w[2], s.weight, &square);
  if (!reached && !flat) {
    const Way best = best_way<Team>(d, p, depth, {s, {normal[0], normal[1], normal[2]}});
    s = best.simplex;
    for (int i = 0; i < 3; ++i) normal[i] = best.normal[i];
  }
  Team::sync();
}
