// Flat features of two shapes that touch: the faces and edges at the touching vertices, with which one shape may lie on
// the other. Boxes and the caps of cylinders are scaled hulls like those of meshes (simengine/model/meshes.py). The
// touching line of a capsule, or of the side of a cylinder, is an edge.
#pragma once

#define CAP_SIDES 16
#define ON_LINE R(1e-3)  // sine of an angle between corners below which they are on a line
#if REAL_IS_FLOAT
#define UPRIGHT R(1e-4)  // sine of the angle to axis or cap below which a normal does not belong to side or cap
#define AS_FAR R(3e-7)   // relative to the scale: corners this close to the farthest one touch, too
#else
#define UPRIGHT R(1e-7)
#define AS_FAR R(1e-7)   // corners of a mesh's face are off its plane by more than rounding in double precision
#endif

struct Solid {
  const Shape* shape;
  const Model* model;
  real outward[3];  // the contact's normal, away from the shape
  real scale[3];   // scale of the corners in hull_vert
  int first;       // index of corner 0 in hull_vert
  int touch[3], touches;  // touching corners, and their number
  int faces;              // number of faces that may lie flat
  int face[2];            // these faces, where several corners touch
  bool line;       // the only edge is the line of a capsule or a cylinder
  bool astray;     // the position of that line is not known
  real end[2][3];  // ends of the line, in the frame of the difference
  real thick;      // by how much the line is too far out [m]
};

// Whether three corners are on a line. `between` receives the one that is between the others: 0, 1 or 2 for a, b or c.
DEVICE_CALL bool on_line(const Shape& shape, int a, int b, int c, int* between) {
  real from[3], ab[3], ac[3], across[3];
  flat_point(shape, a, from);
  flat_point(shape, b, ab);
  flat_point(shape, c, ac);
  for (int i = 0; i < 3; ++i) {
    ab[i] -= from[i];
    ac[i] -= from[i];
  }
  cross3(across, ab, ac);
  const real square = dot3(ab, ab), along = dot3(ab, ac);
  *between = along < 0 ? 0 : along > square ? 1 : 2;
  return dot3(across, across) <= ON_LINE * ON_LINE * square * dot3(ac, ac);
}

// Add a touching corner unless it is present already or too low. Of three corners on a line, which are an edge and not
// a face, the two at the ends stay.
DEVICE_CALL void add_touch(Solid& s, int corner, real below) {
  if (s.touches == 3 || below > 0) return;
  for (int k = 0; k < s.touches; ++k) {
    if (s.touch[k] == corner) return;
  }
  int between;
  if (s.touches == 2 && on_line(*s.shape, s.touch[0], s.touch[1], corner, &between)) {
    if (between < 2) s.touch[between] = corner;
    return;
  }
  s.touch[s.touches++] = corner;
}

// Touching corners of a box or a mesh: the farthest along the normal, and those of the simplex that are as far.
DEVICE_CALL void touching_corners(Solid& s, const Simplex& simplex, int body, const real* local, real slack) {
  real point[3];
  const int low = flat_vertex(*s.shape, local);
  flat_point(*s.shape, low, point);
  const real most = dot3(point, local) - slack;
  s.touches = 0;
  add_touch(s, low, R(0.0));
  ROLLED for (int k = 0; k < 4; ++k) {
    if (!simplex.used[k]) continue;
    const int corner = simplex_vertex(*s.shape, simplex, k, body);
    flat_point(*s.shape, corner, point);
    add_touch(s, corner, most - dot3(point, local));
  }
}

// If there are less than three touching corners: add the ends of edges whose kinks are active. The simplex may contain
// another edge of the shape, parallel to the one that touches, or two corners of a face only.
DEVICE_CALL void other_end(Solid& s, const Kinks& kinks, int body, const real* local, real slack) {
  real point[3], edge[3], dir[3];
  flat_point(*s.shape, s.touch[0], point);
  const real most = dot3(point, local) - slack;
  ROLLED for (int k = 0; k < 2 * kinks.number; ++k) {
    if (kinks.body[k >> 1] != body) continue;
    to_local(edge, s.shape->mat, kinks.edge[k >> 1]);
    for (int i = 0; i < 3; ++i) dir[i] = fma_(k & 1 ? -TOUCHING : TOUCHING, edge[i], local[i]);
    const int corner = flat_vertex(*s.shape, dir);
    flat_point(*s.shape, corner, point);
    add_touch(s, corner, most - dot3(point, local));
  }
}

// Touching line of a capsule or of a cylinder's side. A capsule's line is half the margin outside its surface, or
// nearer to the axis where the normal is not perpendicular to it. A cylinder's line is on its surface and begins with
// the end that touches. `outward` is the contact's normal, away from the shape.
DEVICE void line_of(Solid& s, const real* size, const real* outward, real margin) {
  const bool disc = s.shape->round[0] > 0;
  real axis[3], aside[3];
  mat_col(axis, s.shape->mat, 2);
  const real along = dot3(outward, axis);
  for (int i = 0; i < 3; ++i) aside[i] = fma_(-along, axis[i], outward[i]);
  const real sine = sqrt_(dot3(aside, aside));
  s.line = true;
  s.astray = disc && !(sine > UPRIGHT);
  s.thick = disc ? R(0.0) : R(0.5) * margin;
  const real reach = disc ? size[0] / (s.astray ? R(1.0) : sine) : size[0] + s.thick;
  for (int e = 0; e < 2; ++e) {
    for (int i = 0; i < 3; ++i) {
      const real half = (e == 0) == (disc && along > TOUCHING) ? size[1] : -size[1];
      s.end[e][i] = s.shape->pos[i] + fma_(half, axis[i], reach * aside[i]);
    }
  }
}

// First and last face around the first touching corner, as entries of vert_face.
DEVICE int first_face(const Solid& s) { return s.touches ? s.model->vert_adr()[s.first + s.touch[0]] : 0; }
DEVICE int last_face(const Solid& s) { return s.touches ? s.model->vert_adr()[s.first + s.touch[0] + 1] : 0; }

// Whether a face contains all touching corners.
DEVICE_CALL bool face_touches(const Solid& s, int face) {
  const int begin = s.model->face_adr()[face], end = s.model->face_adr()[face + 1];
  int held = 1;
  ROLLED for (int k = begin; k < end; ++k) {
    const int corner = s.model->face_vert()[k];
    held += (s.touches > 1 && corner == s.touch[1]) + (s.touches > 2 && corner == s.touch[2]);
  }
  return held >= s.touches;
}

// Find the faces that may lie flat: those that contain all touching corners. Three corners have one face in common, and
// two have two. Where faces of a hull overlap, which happens in MuJoCo's hulls, they have more, and the first ones
// count.
DEVICE_CALL void find_faces(Solid& s) {
  const int begin = first_face(s), end = last_face(s);
  s.faces = s.touches == 1 ? end - begin : 0;
  ROLLED for (int k = begin; s.touches > 1 && k < end && s.faces < 4 - s.touches; ++k) {
    const int face = s.model->vert_face()[k];
    if (face_touches(s, face)) s.face[s.faces++] = face;
  }
}

// Face number k of those that may lie flat.
DEVICE int face_of(const Solid& s, int k) {
  return s.touches == 1 ? s.model->vert_face()[first_face(s) + k] : s.face[k];
}

// The solid of a geom, which is shape `body` (0 or 1) of the difference; `outward` is the contact's normal, away from
// it.
DEVICE_CALL Solid solid_of(const Model& m, int geom, const Shape& shape, const real* size, const Simplex& simplex,
                           const Kinks& kinks, const real* outward, int body, real margin, real scale) {
  const int type = m.geom_type()[geom];
  Solid s;
  s.shape = &shape;
  s.model = &m;
  s.first = m.geom_solidadr()[geom];
  s.touches = 0;
  s.line = s.astray = false;
  s.thick = 0;
  for (int i = 0; i < 3; ++i) s.outward[i] = outward[i];
  for (int i = 0; i < 3; ++i) {
    s.scale[i] = shape.hull.nvert ? R(1.0) : type == GEOM_BOX ? size[i] : i < 2 ? size[0] : size[1];
  }
  if (type == GEOM_CAPSULE || type == GEOM_CYLINDER) line_of(s, size, outward, margin);
  real local[3];
  to_local(local, shape.mat, outward);
  if (type == GEOM_BOX || type == GEOM_MESH) {
    touching_corners(s, simplex, body, local, AS_FAR * scale);
    if (s.touches < 3) other_end(s, kinks, body, local, AS_FAR * scale);
  } else if (type == GEOM_CYLINDER && abs_(local[2]) > UPRIGHT && !lies_along(shape, kinks, body)) {
    s.touch[s.touches++] = local[2] > 0 ? 0 : CAP_SIDES;
  }
  find_faces(s);
  return s;
}

DEVICE void face_normal_of(const Solid& s, int face, real* normal) {
  to_world(normal, s.shape->mat, s.model->face_normal() + 3 * face);
}

DEVICE_CALL void corner_of(const Solid& s, int corner, real* out) {
  const real* vert = s.model->hull_vert() + 3 * (s.first + corner);
  real local[3];
  for (int i = 0; i < 3; ++i) local[i] = s.scale[i] * vert[i];
  to_world(out, s.shape->mat, local);
  for (int i = 0; i < 3; ++i) out[i] += s.shape->pos[i];
}

// Number of edges at the touching corners: all edges at a single corner, or the edge between two.
DEVICE int edges_of(const Solid& s) {
  return s.line || s.touches == 2 ? 1 : s.touches == 1 ? last_face(s) - first_face(s) : 0;
}

DEVICE_CALL void edge_of(const Solid& s, int edge, real* from, real* to) {
  if (s.line) {
    for (int i = 0; i < 3; ++i) {
      from[i] = s.end[0][i];
      to[i] = s.end[1][i];
    }
    return;
  }
  // of two touching corners, rounding decides which is the first, so the order is fixed by their numbers
  const bool turned = s.touches == 2 && s.touch[1] < s.touch[0];
  const int other = s.touches == 2 ? s.touch[1] : s.model->vert_edge()[first_face(s) + edge];
  corner_of(s, turned ? other : s.touch[0], from);
  corner_of(s, turned ? s.touch[0] : other, to);
}
