// Several contacts of flat features: MuJoCo documentation, "Computation", "Collision detection", "Multiple contacts".
// The documentation does not give the rules; the following were found by experiments with MuJoCo.
//
// Faces: among the faces at the touching corners of both shapes, take the pair whose normals are most opposite. If
// their cosine is above FACES, the faces lie flat on each other. The second face is projected along the normal of the
// first and clipped against it. The corners that are left within the margin of the first face become contacts, at most
// four of them, which span as large an area as the search finds. They have the normal of the second face.
//
// Edges: otherwise, take the first edge whose angle to a face that looks at it has a sine below EDGE. Edges of the
// first shape on faces of the second come first, and then edges of the second on faces of the first; the other way
// round if the second shape touches with fewer corners. The edge is clipped against the face as a polygon that runs to
// the other end and back, so that an end made by clipping occurs twice. Two corners within the margin, the farthest
// apart, become contacts with the face's normal. If the polygon begins and ends with the same end, rounding decides in
// MuJoCo which contact comes first.
#pragma once

#define FACES R(0.996)
#define EDGE R(0.0888)
#ifndef FACE_CORNERS
#define FACE_CORNERS 192  // most corners of both faces together; kernels of models that need more are built with more
#endif
#define THERE_AND_BACK 8  // most corners of a clipped edge: each end twice, and more through rounding
// factor by which an area must be larger, because equal areas are common; among many corners one step gains little
#if !REAL_IS_FLOAT
#define LARGER R(1.000000001)
#elif FACE_CORNERS > 192
#define LARGER R(1.0000004)
#else
#define LARGER R(1.00001)
#endif

#define CLEARLY_LARGER R(1.001)

#define ALONG_SIDE (8 * REAL_EPS)  // relative to the scale: a point this far beyond a side of a face lies along it
#if REAL_IS_FLOAT
#define SAME_CORNER R(1e-5)  // relative to the scale: corners closer than this are copies of each other
#else
#define SAME_CORNER R(1e-9)
#endif

// Features that lie flat on each other: two faces, or an edge and a face.
struct Lying {
  int first, second;
};

DEVICE_CALL bool faces_lying(const Solid& a, const Solid& b, Lying* out) {
  real most = FACES;
  bool found = false;
  ROLLED for (int k = first_face(a); k < last_face(a); ++k) {
    const int first = a.model->vert_face()[k];
    if (!face_counts(a, k)) continue;
    real n1[3], n2[3];
    face_normal_of(a, first, n1);
    ROLLED for (int l = first_face(b); l < last_face(b); ++l) {
      const int second = b.model->vert_face()[l];
      if (!face_counts(b, l)) continue;
      face_normal_of(b, second, n2);
      const real cosine = -dot3(n1, n2);
      if (!(cosine > most)) continue;
      most = cosine;
      *out = {first, second};
      found = true;
    }
  }
  return found;
}

DEVICE_CALL bool edge_lying(const Solid& edges, const Solid& faces, Lying* out) {
  ROLLED for (int e = 0; e < edges_of(edges); ++e) {
    real from[3], to[3], normal[3];
    edge_of(edges, e, from, to);
    for (int i = 0; i < 3; ++i) to[i] -= from[i];
    const real length = sqrt_(dot3(to, to));
    ROLLED for (int k = first_face(faces); k < last_face(faces); ++k) {
      const int face = faces.model->vert_face()[k];
      if (!face_counts(faces, k)) continue;
      face_normal_of(faces, face, normal);
      if (!(dot3(normal, faces.outward) > 0) || !(abs_(dot3(to, normal)) < EDGE * length)) continue;
      *out = {e, face};
      return true;
    }
  }
  return false;
}

// The plane of a face as a frame for heights above it and coordinates in it.
struct Plane {
  real origin[3], x[3], y[3], normal[3];
};

DEVICE Plane plane_of(const Solid& s, int face) {
  Plane p;
  face_normal_of(s, face, p.normal);
  corner_of(s, s.model->face_vert()[s.model->face_adr()[face + 1] - 1], p.origin);
  real frame[9];
  for (int i = 0; i < 3; ++i) {
    frame[i] = p.normal[i];
    frame[3 + i] = 0;
  }
  make_frame(frame);
  for (int i = 0; i < 3; ++i) {
    p.x[i] = frame[3 + i];
    p.y[i] = frame[6 + i];
  }
  return p;
}

// A point by its coordinates in a plane and its height above it.
struct Spot {
  real x, y, height;
};

DEVICE Spot above(const Plane& p, const real* point) {
  real offset[3];
  for (int i = 0; i < 3; ++i) offset[i] = point[i] - p.origin[i];
  return {dot3(p.x, offset), dot3(p.y, offset), dot3(p.normal, offset)};
}

// Side k of a face as a half plane, positive outside; MuJoCo's order around a face is clockwise. What is beyond it by
// at most `slack` lies along the side up to rounding, and is inside.
struct HalfPlane {
  real nx, ny, dist, slack;
};

DEVICE HalfPlane side_of(const Solid& s, int face, int k, const Plane& p, real slack) {
  const int begin = s.model->face_adr()[face], sides = s.model->face_adr()[face + 1] - begin;
  const int *around = s.model->face_vert() + begin, here = sides - 1 - k;
  real point[3];
  corner_of(s, around[here], point);
  const Spot from = above(p, point);
  corner_of(s, around[here ? here - 1 : sides - 1], point);
  const Spot to = above(p, point);
  const real nx = from.y - to.y, ny = to.x - from.x;
  return {nx, ny, fma_(nx, from.x, ny * from.y), slack * (abs_(nx) + abs_(ny))};
}

DEVICE real beyond(const HalfPlane& h, const Spot& c) { return fma_(h.nx, c.x, fma_(h.ny, c.y, -h.dist)); }

// (1) clip a polygon in place (Sutherland and Hodgman, Reentrant polygon clipping, 1974). Each edge adds the point
// where it crosses the half plane, and its end if that is inside. A corner is read before its results are written.
// `room` is the capacity in corners; returns the number of corners left.
DEVICE_CALL int clip(Spot* polygon, int number, const HalfPlane& h, int room) {
  if (number == 0) return 0;
  const Spot start = polygon[0];
  Spot from = start;
  real d1 = beyond(h, from);
  int kept = 0;
  ROLLED for (int i = 0; i < number; ++i) {
    const Spot to = i + 1 < number ? polygon[i + 1] : start;
    const real d2 = beyond(h, to);
    if ((d1 <= h.slack) != (d2 <= h.slack) && kept < room && kept < i + 2) {
      const real share = clamp_(d1 / (d1 - d2), R(0.0), R(1.0));
      polygon[kept++] = {fma_(share, to.x - from.x, from.x), fma_(share, to.y - from.y, from.y),
                         fma_(share, to.height - from.height, from.height)};
    }
    if (d2 <= h.slack && kept < room && kept < i + 2) polygon[kept++] = to;
    from = to;
    d1 = d2;
  }
  return kept;
}

DEVICE bool is_copy(const Spot& c, const Spot& other, real same) {
  return max_(abs_(c.x - other.x), abs_(c.y - other.y)) <= same;
}

// Drop corners that are copies of the one before, as long as there are more than four. Returns the number left.
DEVICE_CALL int without_copies(Spot* polygon, int number, real same) {
  if (number <= 4) return number;
  int kept = 1, copies = number - 4;
  ROLLED for (int k = 1; k < number; ++k) {
    const Spot c = polygon[k];
    bool copy = is_copy(c, polygon[kept - 1], same);
    if (k + 1 == number) copy |= is_copy(c, polygon[0], same);
    if (copy && copies > 0) --copies;
    else polygon[kept++] = c;
  }
  return kept;
}

DEVICE real area(const Spot* p, int number, const int* quad) {
  const Spot &a = p[quad[0] % number], &b = p[quad[1] % number], &c = p[quad[2] % number], &d = p[quad[3] % number];
  return abs_((c.x - a.x) * (d.y - b.y) - (c.y - a.y) * (d.x - b.x));
}

// The search for four corners: those of now, and their area. A free search takes steps that keep the area; another one
// only says whether it met such steps.
struct Search {
  int quad[4];
  real most;
  bool free, met;
};

// Advance one corner by one if that makes the area larger.
DEVICE_CALL bool move_on(const Spot* p, int number, int corner, Search& s) {
  const int end = corner == 3 ? s.quad[0] + number : s.quad[corner + 1];
  ++s.quad[corner];
  const real next = area(p, number, s.quad);
  bool moves = next > s.most * LARGER;
  if (!moves && next * LARGER >= s.most && s.quad[corner] < end) {
    s.met = true;
    moves = s.free;
  }
  if (!moves) --s.quad[corner];
  else s.most = max_(s.most, next);
  return moves;
}

// Where the third corner coincides with the second, advance it, and the fourth if that is reached, if that makes the
// area larger.
DEVICE_CALL bool part(const Spot* p, int number, Search& s) {
  if (!s.free || s.quad[1] != s.quad[2]) return false;
  const int third = s.quad[2] + 1, trial[4] = {s.quad[0], s.quad[1], third, s.quad[3] + (s.quad[3] == third)};
  const real next = area(p, number, trial);
  if (!(next > s.most * LARGER)) return false;
  s.most = next;
  for (int k = 2; k < 4; ++k) s.quad[k] = trial[k];
  return true;
}

// Write four corners that span a large area to `best` if they span more than `least`. The first corner goes once round
// the polygon, and the others advance while the area grows: the third and the second after each step of the fourth.
// Where the first one has reached the second, a triangle may be the largest so far. In a free search the second corner
// then goes on to the third, which is the same triangle, and from where all can part.
DEVICE_CALL void search(const Spot* p, int number, real least, Search& s, int* best) {
  for (int k = 0; k < 4; ++k) s.quad[k] = k;
  s.most = area(p, number, s.quad);
  ROLLED for (; s.quad[0] < number; ++s.quad[0]) {
    ROLLED while (move_on(p, number, 3, s) || part(p, number, s)) {
      ROLLED while (move_on(p, number, 2, s)) {
      }
      ROLLED while (move_on(p, number, 1, s)) {
      }
      if (s.free && s.quad[0] == s.quad[1] && s.quad[2] == s.quad[1] + 1) ++s.quad[1];
      for (int k = 0; k < 4 && s.most > least; ++k) best[k] = s.quad[k] % number;
    }
    // a corner that the first one has reached advances past it
    if (s.quad[1] > s.quad[0]) continue;
    ++s.quad[1];
    if (s.quad[2] == s.quad[1]) {
      ++s.quad[2];
      if (s.quad[3] == s.quad[2]) ++s.quad[3];
    }
  }
}

// (2) four corners that span a large area of a polygon of more than four. MuJoCo's search may end with two corners that
// coincide, and rounding decides whether it takes a step that keeps the area. Where either happened, a free search that
// finds more counts.
DEVICE_CALL void span(const Spot* p, int number, int* best) {
  Search s;
  s.free = s.met = false;
  for (int k = 0; k < 4; ++k) best[k] = k;
  search(p, number, R(0.0), s, best);
  const bool copies = best[0] == best[1] || best[1] == best[2] || best[2] == best[3] || best[3] == best[0];
  if (!s.met && !copies) return;
  s.free = true;
  search(p, number, copies ? s.most : s.most * CLEARLY_LARGER, s, best);
}

DEVICE void put_contact(const real* point, real dist, const real* normal, real sign, const real* origin, Contact* out) {
  out->dist = dist;
  for (int i = 0; i < 3; ++i) {
    out->pos[i] = origin[i] + point[i];
    out->frame[i] = sign * normal[i];
    out->frame[3 + i] = 0;
  }
  make_frame(out->frame);
}

// (3) contacts of two faces.
DEVICE_CALL int face_contacts(const Solid& a, const Solid& b, const Lying& lying, const real* origin, real margin,
                              real scale, Contact* out) {
  const Plane plane = plane_of(a, lying.first), other = plane_of(b, lying.second);
  const int* adr = a.model->face_adr();
  const int begin = adr[lying.second], sides = adr[lying.second + 1] - begin;
  Spot polygon[FACE_CORNERS];
  int number = 0;
  ROLLED for (int k = sides - 1; k >= 0; --k) {
    real point[3];
    corner_of(b, b.model->face_vert()[begin + k], point);
    polygon[number++] = above(plane, point);
  }
  ROLLED for (int k = 0; k < adr[lying.first + 1] - adr[lying.first]; ++k) {
    number = clip(polygon, number, side_of(a, lying.first, k, plane, ALONG_SIDE * scale), FACE_CORNERS);
  }
  int near = 0;
  ROLLED for (int k = 0; k < number; ++k) {
    if (polygon[k].height <= margin) polygon[near++] = polygon[k];
  }
  near = without_copies(polygon, near, SAME_CORNER * scale);
  int chosen[4] = {0, 1, 2, 3};
  if (near > 4) span(polygon, near, chosen);
  const real cosine = -dot3(plane.normal, other.normal);
  for (int k = 0; k < 4 && k < near; ++k) {
    // midway between the two faces, along the normal of the second
    const Spot& c = polygon[chosen[k]];
    const real dist = c.height * cosine;
    real point[3];
    for (int i = 0; i < 3; ++i) {
      point[i] = plane.origin[i] + fma_(R(-0.5) * dist, other.normal[i], fma_(c.x, plane.x[i], c.y * plane.y[i]));
    }
    put_contact(point, dist, other.normal, R(-1.0), origin, out + k);
  }
  return near < 4 ? near : 4;
}

// (4) contacts of an edge on a face; `sign` is +1 or -1 and turns the face's normal into the contact's.
DEVICE_CALL int edge_contacts(const Solid& edges, const Solid& faces, const Lying& lying, real sign,
                              const real* origin, real margin, real scale, Contact* out) {
  if (edges.astray) return 0;
  const int face = lying.second, *adr = faces.model->face_adr();
  const Plane plane = plane_of(faces, face);
  real end[2][3];
  edge_of(edges, lying.first, end[0], end[1]);
  const Spot from = above(plane, end[0]), to = above(plane, end[1]);
  // the part of the edge over the face, as parameters in [0, 1]: a polygon of two corners
  Spot part[THERE_AND_BACK] = {{R(0.0), R(0.0), from.height}, {R(1.0), R(0.0), to.height}};
  int corners = 2, near = 0;
  ROLLED for (int k = 0; k < adr[face + 1] - adr[face]; ++k) {
    const HalfPlane h = side_of(faces, face, k, plane, ALONG_SIDE * scale);
    const real d1 = beyond(h, from), d2 = beyond(h, to);
    if (d1 > h.slack && d2 > h.slack) return 0;
    corners = clip(part, corners, {d2 - d1, R(0.0), -d1, h.slack}, THERE_AND_BACK);
  }
  ROLLED for (int k = 0; k < corners; ++k) {
    if (part[k].height + edges.thick <= margin) part[near++] = part[k];
  }
  // an end made by clipping occurs twice, so take the first corner and the one farthest from it
  int last = near > 1 ? 1 : 0;
  ROLLED for (int k = 2; k < near; ++k) {
    if (abs_(part[k].x - part[0].x) > abs_(part[last].x - part[0].x)) last = k;
  }
  ROLLED for (int e = 0; e < 2 && e < near; ++e) {
    const Spot& c = part[e ? last : 0];
    const real dist = c.height + edges.thick;
    real point[3];
    for (int i = 0; i < 3; ++i) {
      point[i] = fma_(c.x, end[1][i] - end[0][i], end[0][i]) + (edges.thick - R(0.5) * dist) * plane.normal[i];
    }
    put_contact(point, dist, plane.normal, sign, origin, out + e);
  }
  return near < 2 ? near : 2;
}

// Contacts of two shapes that lie flat on each other; returns their number, at most four, or 0 if the shapes do not.
// `scale` is the size of both shapes [m].
DEVICE_CALL int lying_contacts(const Solid& a, const Solid& b, const real* origin, real margin, real scale,
                               Contact* out) {
  Lying lying;
  if (faces_lying(a, b, &lying)) return face_contacts(a, b, lying, origin, margin, scale, out);
  const bool second_first = !a.line && a.touches > b.touches;
  for (int k = 0; k < 2; ++k) {
    const bool second = second_first == (k == 0);
    const Solid &edges = second ? b : a, &faces = second ? a : b;
    if (!edge_lying(edges, faces, &lying)) continue;
    return edge_contacts(edges, faces, lying, second ? R(1.0) : R(-1.0), origin, margin, scale, out);
  }
  return 0;
}
