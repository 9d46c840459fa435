// A shape on a face of the other, found without a search on the host. A face is a side of a box, a cylinder's cap, or a
// face of a mesh's hull, and its shape the owner. A GPU has sides and caps only (resting_on_sides.cuh). Let p be the
// point of the other shape farthest against the face's normal n.
//
//     apart: if p is over the face, p and the point of the face under it are nearest to each other
//     overlapping: if p is nearest to the face's plane among all planes of the owner, at a depth h, a ball of radius h
//         around p is inside the owner. No direction then has a smaller depth than h, which n has
//
// Most contacts of flat shapes are such ones. A search decides elsewhere, and where p need not be the only point that
// touches, but one contact stands for all.
#pragma once

#if !SIMENGINE_GPU
#define MOST_FACES 40      // of a hull that are looked at
#define FACES_TRIED 2      // of an owner
#define FACE_UNEVEN 16     // units in the last place of the scale by which corners of a face may be off its plane

DEVICE int faces_of(const Model& m, const Shape& s) {
  return s.hull.nvert && s.geom >= 0 ? m.geom_facenum()[s.geom] : 0;
}
DEVICE bool has_faces(const Model& m, const Shape& s) {
  const int faces = faces_of(m, s);
  return is_box(s) || has_caps(s) || (faces > 0 && faces <= MOST_FACES);
}

// Distance of the plane of a hull's face from the centre.
DEVICE real plane_of_face(const Model& m, const Shape& s, int face) {
  return dot3(m.face_normal() + 3 * face, s.hull.vert + 3 * m.face_vert()[m.face_adr()[face]]);
}

// The same among the faces of a hull.
DEVICE Face face_at(const Model& m, const Shape& s, const real* at) {
  const int first = m.geom_faceadr()[s.geom], faces = faces_of(m, s);
  Face f = {-1};
  real most = -REAL_MAX;
  for (int k = 0; k < faces; ++k) {
    const real* normal = m.face_normal() + 3 * (first + k);
    const real dist = plane_of_face(m, s, first + k), beyond = dot3(normal, at) - dist;
    f.number = beyond > most ? k : f.number;
    f.dist = beyond > most ? dist : f.dist;
    most = max_(beyond, most);
  }
  const int *adr = m.face_adr() + first + f.number, sides = adr[1] - adr[0];
  for (int k = 0; k < 3; ++k) {
    f.normal[k] = m.face_normal()[3 * (first + f.number) + k];
    f.corner[k] = m.face_vert()[adr[0] + k * sides / 3];  // far from each other: another face may have neighbours, too
  }
  return f;
}

// Whether the corners of a hull's face are in its plane. MuJoCo makes one face of several that are almost in a plane.
DEVICE bool is_even(const Model& m, const Shape& s, const Face& f, real scale) {
  const int* adr = m.face_adr() + m.geom_faceadr()[s.geom] + f.number;
  bool even = true;
  for (int k = adr[0]; k < adr[1]; ++k) {
    const real off = dot3(f.normal, s.hull.vert + 3 * m.face_vert()[k]) - f.dist;
    even &= abs_(off) <= FACE_UNEVEN * REAL_EPS * scale;
  }
  return even;
}

// Whether the foot of a point on the plane of a hull's face is between the sides of the face. Planes of its neighbours
// do not tell: theirs may be uneven.
DEVICE bool is_between_sides(const Model& m, const Shape& s, const Face& f, const real* at) {
  const int *adr = m.face_adr() + m.geom_faceadr()[s.geom] + f.number, *corner = m.face_vert();
  bool left = false, right = false;
  const real* from = s.hull.vert + 3 * corner[adr[1] - 1];
  for (int k = adr[0]; k < adr[1]; ++k) {
    const real* to = s.hull.vert + 3 * corner[k];
    real side[3], offset[3], across[3];
    for (int i = 0; i < 3; ++i) {
      side[i] = to[i] - from[i];
      offset[i] = at[i] - from[i];
    }
    cross3(across, side, offset);
    const real beside = dot3(across, f.normal);
    left |= beside > 0;
    right |= beside < 0;
    from = to;
  }
  return !(left && right);
}

// Whether a point beyond the plane of a face is over the face.
DEVICE bool is_over(const Model& m, const Shape& s, const Face& f, const real* at) {
  return s.hull.nvert ? is_between_sides(m, s, f, at) : is_over_side(s, f, at);
}

// Whether a ball around a point in a hull, up to the plane of a face, is inside the hull. What an uneven face is made
// of is above its lowest corner.
DEVICE bool holds_ball(const Model& m, const Shape& s, const Face& f, const real* at, real gap) {
  const int first = m.geom_faceadr()[s.geom], faces = faces_of(m, s);
  for (int k = 0; k < faces; ++k) {
    if (k == f.number) continue;
    const real *normal = m.face_normal() + 3 * (first + k), height = dot3(normal, at);
    const int* adr = m.face_adr() + first + k;
    for (int c = adr[0]; c < adr[1]; ++c) {
      if (height - dot3(normal, s.hull.vert + 3 * m.face_vert()[c]) > gap) return false;
    }
  }
  return true;
}

// Two vertices of the flat part of a shape that may touch: the one farthest along `way`, and the next at the other end
// of an edge. A third one would not tell the face that touches: in hulls, corners of a side may be on a line.
DEVICE void low_vertices(const Model& m, const Shape& s, const real* way, int* low) {
  real local[3], point[3], most = -REAL_MAX;
  to_local(local, s.mat, way);
  low[0] = low[1] = flat_vertex(s, local);
  if (!is_box(s) && !(s.hull.nvert && s.geom >= 0)) return;
  const int at = s.hull.nvert ? m.geom_solidadr()[s.geom] + low[0] : 0;
  const int begin = s.hull.nvert ? m.vert_adr()[at] : 0, end = s.hull.nvert ? m.vert_adr()[at + 1] : 3;
  for (int e = begin; e < end; ++e) {
    const int vertex = s.hull.nvert ? m.vert_edge()[e] : low[0] ^ 1 << e;
    flat_point(s, vertex, point);
    const real height = dot3(point, local);
    low[1] = height > most ? vertex : low[1];
    most = max_(height, most);
  }
}

// Look for the face of shape `body` on which the other one rests. The simplex receives three corners of it and the
// other's vertices, the other's point, and in place of its weight the distance of that from the face.
DEVICE int rests_on(const Difference& d, int body, real most, Simplex& s, real* normal) {
  const Model& m = *d.model;
  const Shape &own = body ? d.b : d.a, &other = body ? d.a : d.b;
  if (!has_faces(m, own)) return REST_UNKNOWN;
  real offset[3], at[3], outward[3], point[3];
  for (int i = 0; i < 3; ++i) offset[i] = other.pos[i] - own.pos[i];
  to_local(at, own.mat, offset);
  Face face = own.hull.nvert ? face_at(m, own, at) : side_at(own, at);
  for (int k = 0; k < FACES_TRIED && face.number >= 0; ++k) {
    to_world(outward, own.mat, face.normal);
    const real inward[3] = {-outward[0], -outward[1], -outward[2]};
    support(other, inward, point);
    for (int i = 0; i < 3; ++i) offset[i] = point[i] - own.pos[i];
    to_local(at, own.mat, offset);
    const real gap = dot3(face.normal, at) - face.dist;
    if (own.hull.nvert && !is_even(m, own, face, d.scale)) return REST_UNKNOWN;
    if (gap > most) return REST_APART;
    const Face next = own.hull.nvert ? face_at(m, own, at) : side_at(own, at);
    if (next.number != face.number) {
      face = next;
      continue;
    }
    if (gap >= 0 ? !is_over(m, own, face, at) : own.hull.nvert && !holds_ball(m, own, face, at, gap)) {
      return REST_UNKNOWN;
    }
    int low[2];
    low_vertices(m, other, inward, low);
    for (int c = 0; c < 4; ++c) {
      for (int i = 0; i < 3; ++i) {
        s.w[c][i] = point[i];
        s.dir[c][i] = body ? inward[i] : outward[i];
      }
      s.used[c] = c < 3;
      s.weight[c] = gap;
      s.vertex[c][body] = face.corner[c % 3];
      s.vertex[c][1 - body] = low[c % 2];
    }
    for (int i = 0; i < 3; ++i) normal[i] = s.dir[0][i];
    s.face = 1 + body;
    return REST_FOUND;
  }
  return REST_UNKNOWN;
}

// The same on the upper face of a prism, which is the first shape. The simplex has no vertices.
DEVICE int rests_on_prism(const Difference& d, real most, Simplex& s, real* normal) {
  const int found = rests_above(d, d.a.hull.top, most, s.w[0], &s.weight[0], normal);
  s.face = found == REST_FOUND;
  return found;
}

// Look for a face of either shape on which the other one rests.
DEVICE int rests(const Difference& d, real most, Simplex& s, real* normal) {
  s.face = 0;
  s.around = false;
  if (begins_with_face(d)) return rests_on_prism(d, most, s, normal);
  int found = REST_UNKNOWN;
  if (!d.model) return found;
  if (may_rest(d, d.b)) found = rests_on(d, 0, most, s, normal);
  if (found == REST_UNKNOWN && may_rest(d, d.a)) found = rests_on(d, 1, most, s, normal);
  return found;
}
#endif
