// Convex shapes by their support functions.
//
// Every primitive is the Minkowski sum of a flat part (a box, or a segment as a special case), a smooth part (an
// ellipsoid, or a disc) and a ball. Sphere: ball. Capsule: segment + ball. Cylinder: segment + disc. Ellipsoid and box:
// themselves. The flat part of a mesh is the hull of its vertices. The sum without the ball is the core. GJK and EPA
// work on the core, and the radius is added to their result, which makes shallow contacts of rounded shapes exact.
#pragma once

struct Shape {
  const real* mat;                 // orientation, row-major
  real pos[3];                     // centre [m]
  real box[3], round[3], radius;   // half sides, half axes of the ellipsoid, radius of the ball [m]
  Hull hull;                       // vertices of a mesh, none for other shapes
#if !SIMENGINE_GPU
  const real* half;                // half sides of the box around it that has its orientation; null if not known
  int geom;                        // -1 if it is none
#endif
#ifdef MATRIX_VECTORS
  Four row[3], column[3], place;   // of the orientation, and the centre
#endif
};

// Note that orientation and centre of a shape, or the vertices of its hull, are new.
DEVICE void placed(Shape& s) {
#if !SIMENGINE_GPU
  s.hull.last = -1;
  s.half = nullptr;
  s.geom = -1;
#endif
#ifdef MATRIX_VECTORS
  s.row[0] = load_four(s.mat);
  s.row[1] = load_four(s.mat + 3);
  s.row[2] = load_last(s.mat + 6);
  for (int i = 0; i < 3; ++i) s.column[i] = Four{s.mat[i], s.mat[3 + i], s.mat[6 + i]};
  s.place = Four{s.pos[0], s.pos[1], s.pos[2]};
#endif
}

DEVICE Shape shape_of(const Model& m, int geom, const real* size, const real* pos, const real* mat,
                      const real* origin) {
  const int type = m.geom_type()[geom];
  const bool disc = type == GEOM_CYLINDER, along = disc || type == GEOM_CAPSULE;
  Shape s;
  s.mat = mat;
  for (int i = 0; i < 3; ++i) {
    s.pos[i] = pos[i] - origin[i];
    s.box[i] = type == GEOM_BOX ? size[i] : along && i == 2 ? size[1] : R(0.0);
    s.round[i] = type == GEOM_ELLIPSOID ? size[i] : disc && i < 2 ? size[0] : R(0.0);
  }
  s.radius = type == GEOM_SPHERE || type == GEOM_CAPSULE ? size[0] : R(0.0);
  s.hull = hull_of(m, geom);
  placed(s);
#if !SIMENGINE_GPU
  s.half = m.geom_aabb() + 6 * geom + 3;
  s.geom = geom;
#endif
  return s;
}

// The size of the core as a length [m], for tolerances.
DEVICE real extent(const Shape& s) {
  real most = max_(s.radius, s.hull.extent);
  for (int i = 0; i < 3; ++i) most = max_(most, max_(s.box[i], s.round[i]));
  return most;
}

DEVICE void to_local(real* out, const real* mat, const real* v) {
  for (int i = 0; i < 3; ++i) out[i] = fma_(mat[6 + i], v[2], fma_(mat[3 + i], v[1], mat[i] * v[0]));
}

DEVICE void to_world(real* out, const real* mat, const real* v) {
  for (int i = 0; i < 3; ++i) out[i] = dot3(mat + 3 * i, v);
}

// Vertex of the flat part (box or mesh) farthest along `local`: sign bits for a box, the number of a mesh vertex.
DEVICE int flat_vertex(const Shape& s, const real* local) {
  if (!s.hull.nvert) return (local[0] >= 0) | (local[1] >= 0) << 1 | (local[2] >= 0) << 2;
  return farthest_vertex(s.hull, local);
}

DEVICE void flat_point(const Shape& s, int vertex, real* local) {
  const Hull& h = s.hull;
  for (int i = 0; i < 3; ++i) local[i] = h.nvert ? h.vert[3 * vertex + i] : vertex >> i & 1 ? s.box[i] : -s.box[i];
}

// Point of the ellipsoid farthest along `local`: E^2 l / |E l|, zero where |E l| vanishes; returns |E l|.
DEVICE real round_point(const Shape& s, const real* local, real* out) {
  real scaled[3];
  for (int i = 0; i < 3; ++i) scaled[i] = s.round[i] * local[i];
  const real height = sqrt_(dot3(scaled, scaled));
  const real inverse = height > MJMINVAL ? R(1.0) / height : R(0.0);
  for (int i = 0; i < 3; ++i) out[i] = s.round[i] * scaled[i] * inverse;
  return height;
}

// Whether the core has a smooth part. On a GPU, lanes with and without one would take turns, so all compute it.
DEVICE bool has_round(const Shape& s) { return SIMENGINE_GPU || s.round[0] > 0; }

// Point of the core farthest along `dir`, in the frame of the shape.
DEVICE void local_support(const Shape& s, const real* dir, real* out) {
  if (s.hull.nvert) {
    farthest_point(s.hull, dir, out);
  } else {
    for (int i = 0; i < 3; ++i) out[i] = dir[i] >= 0 ? s.box[i] : -s.box[i];
  }
  if (!has_round(s)) return;
  real curved[3];
  round_point(s, dir, curved);
  for (int i = 0; i < 3; ++i) out[i] += curved[i];
}

#ifdef MATRIX_VECTORS
DEVICE_CALL Four support(const Shape& s, const real* dir) {
  real local[4], point[3];
  const Four turned = combined(s.row, dir[0], dir[1], dir[2]);
  __builtin_memcpy(local, &turned, sizeof(turned));
  local_support(s, local, point);
  return combined(s.column, point[0], point[1], point[2]) + s.place;
}
#endif

// Point of the core farthest along `dir` (world frame), inline, so that the shape may be in registers.
DEVICE void support_here(const Shape& s, const real* dir, real* out) {
#ifdef MATRIX_VECTORS
  const Four point = support(s, dir);
  for (int i = 0; i < 3; ++i) out[i] = point[i];
#else
  real local[3], point[3];
  to_local(local, s.mat, dir);
  local_support(s, local, point);
  to_world(out, s.mat, point);
  for (int i = 0; i < 3; ++i) out[i] += s.pos[i];
#endif
}

DEVICE_CALL void support(const Shape& s, const real* dir, real* out) { support_here(s, dir, out); }

// The Minkowski difference A - B of two cores. The distance of the cores is its distance from the origin.
struct Difference {
  Shape a, b;
  real scale;    // the size of both cores as a length [m], for tolerances
  bool several;  // whether all contacts are looked for
#if !SIMENGINE_GPU
  const Model* model;  // null for shapes that are no geoms
#endif
};

DEVICE Difference difference_of(const Pair& p) {
  Difference d = {shape_of(*p.model, p.geom1, p.size1, p.pos1, p.mat1, p.pos1),
                  shape_of(*p.model, p.geom2, p.size2, p.pos2, p.mat2, p.pos1), R(0.0), p.model->opt_multiccd() != 0};
  d.scale = extent(d.a) + extent(d.b);
#if !SIMENGINE_GPU
  d.model = p.model;
#endif
  return d;
}

DEVICE void support_here(const Difference& d, const real* dir, real* out) {
  real opposite[3] = {-dir[0], -dir[1], -dir[2]};
#ifdef MATRIX_VECTORS
  const Four one = support(d.a, dir), between = one - support(d.b, opposite);
  for (int i = 0; i < 3; ++i) out[i] = between[i];
#else
  real other[3];
  support_here(d.a, dir, out);
  support_here(d.b, opposite, other);
  for (int i = 0; i < 3; ++i) out[i] -= other[i];
#endif
}

DEVICE_CALL void support(const Difference& d, const real* dir, real* out) {
#ifdef MATRIX_VECTORS
  support_here(d, dir, out);
#else
  real opposite[3] = {-dir[0], -dir[1], -dir[2]}, other[3];
  support(d.a, dir, out);
  support(d.b, opposite, other);
  for (int i = 0; i < 3; ++i) out[i] -= other[i];
#endif
}

// Support function of the difference along a unit vector: the penetration depth along it.
DEVICE_CALL real reach(const Difference& d, const real* dir) {
  real point[3];
  support(d, dir, point);
  return dot3(point, dir);
}
