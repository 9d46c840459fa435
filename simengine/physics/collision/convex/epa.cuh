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
  const bool begun = s.around && polytope_of_simplex(s, d.scale, p, vertices);
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
