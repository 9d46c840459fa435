// Prisms of a height field that a geom may touch. A geom is above most cells that its box covers, or beside them: a
// plane lies between it and the prism. That may be the plane of the prism's upper face, or one across an axis of the
// geom or across the way to it. Where rounding might decide, a prism is kept, so that the searches that follow find the
// same contacts. The host looks at many prisms at a time, and a lane of a GPU at one.
#pragma once

#if defined(MATRIX_VECTORS) && VECTOR_BYTES >= 32
#define PRISMS_IN_VECTORS
#elif SIMENGINE_GPU
typedef real Lanes;
typedef bool Truths;
DEVICE real every(real x) { return x; }
DEVICE real lanes_abs(real x) { return abs_(x); }
DEVICE real vector_sqrt(real x) { return sqrt_(x); }
#endif

#if defined(PRISMS_IN_VECTORS) || SIMENGINE_GPU
#define PLANE_SLACK (64 * REAL_EPS)  // relative to the terms of a height above a plane

// A geom around the origin of a field's frame: the box that holds it, and how far it reaches in other directions. Of a
// mesh that is as far as its box.
struct GeomBounds {
  real centre[3], axis[3][3], half[3];  // of the box: its centre, its axes, and its half sides [m]
  real flat[3], round[3], radius;       // as of Shape

  // The geom's support along -n, with n as its entries along x, y and z, and its length.
  DEVICE_METHOD Lanes reach(const Lanes* n, Lanes length) const {
    Lanes flat_part = -(n[0] * centre[0] + n[1] * centre[1] + n[2] * centre[2]), square = {};
    for (int i = 0; i < 3; ++i) {
      const Lanes along = n[0] * axis[i][0] + n[1] * axis[i][1] + n[2] * axis[i][2], curved = along * round[i];
      flat_part += lanes_abs(along) * flat[i];
      square += curved * curved;
    }
    return flat_part + vector_sqrt(square) + length * radius;
  }
};

DEVICE GeomBounds bounds_of(const Pair& p, const Shape& s) {
  const Model& m = *p.model;
  const real* box = m.geom_aabb() + 6 * p.geom2;
  GeomBounds g;
  real world[3], axis[3];
  to_world(world, p.mat2, box);
  to_local(g.centre, p.mat1, world);
  for (int i = 0; i < 3; ++i) {
    mat_col(axis, p.mat2, i);
    to_local(g.axis[i], p.mat1, axis);
    g.half[i] = box[3 + i];
    g.flat[i] = s.hull.nvert ? g.half[i] : s.box[i];
    g.round[i] = s.round[i];
  }
  g.radius = s.radius;
  return g;
}

// Successive prisms of a strip: the vertices of their upper faces. See hfield.cu.
struct Prisms {
  Lanes at[3][3];

  DEVICE_METHOD Lanes along(int v, const real* way) const {
    return at[v][0] * way[0] + at[v][1] * way[1] + at[v][2] * way[2];
  }
};

// Whether the geom is above the plane of the upper face by more than the margin.
DEVICE Truths above_faces(const GeomBounds& g, const Prisms& p, real margin) {
  Lanes ab[3], ac[3], n[3];
  for (int i = 0; i < 3; ++i) {
    ab[i] = p.at[1][i] - p.at[0][i];
    ac[i] = p.at[2][i] - p.at[0][i];
  }
  for (int i = 0; i < 3; ++i) n[i] = ab[(i + 1) % 3] * ac[(i + 2) % 3] - ab[(i + 2) % 3] * ac[(i + 1) % 3];
  const Truths down = n[2] < Lanes{};
  Lanes above = {}, terms = {}, square = {};  // the origin's height above the plane, and the size of its terms
  for (int i = 0; i < 3; ++i) {
    n[i] = down ? -n[i] : n[i];
    above -= n[i] * p.at[0][i];
    terms += lanes_abs(n[i] * p.at[0][i]);
    square += n[i] * n[i];
  }
  const Lanes length = vector_sqrt(square), reach = g.reach(n, length) + length * margin;
  return above > reach + PLANE_SLACK * (terms + reach);
}

// Whether a prism, which reaches from its upper face down to the height `base`, is on one side of the geom's box along
// an axis of that.
DEVICE Truths beside_box(const GeomBounds& g, const Prisms& p, real base, real margin) {
  Truths beside = {};
  for (int i = 0; i < 3; ++i) {
    const real centre = dot3(g.axis[i], g.centre), down = g.axis[i][2];
    Lanes low = every(REAL_MAX), high = every(-REAL_MAX), size = every(abs_(centre) + g.half[i] + margin);
    for (int v = 0; v < 3; ++v) {
      const Lanes upper = p.along(v, g.axis[i]) - centre, lower = upper + (base - p.at[v][2]) * down;
      const Lanes less = upper < lower ? upper : lower, more = upper < lower ? lower : upper;
      low = less < low ? less : low;
      high = more > high ? more : high;
      size += lanes_abs(less) + lanes_abs(more);
    }
    const Lanes reach = g.half[i] + margin + PLANE_SLACK * size;
    beside |= (low > reach) | (-high > reach);
  }
  return beside;
}

// Whether a plane lies between the geom and a prism, across the way from the nearest edge of the upper face to the
// middle of the geom.
DEVICE Truths beyond_edges(const GeomBounds& g, const Prisms& p, real base, real margin) {
  Lanes way[3] = {}, least = every(REAL_MAX), high = every(-REAL_MAX), terms = {};
  for (int k = 0; k < 3; ++k) {
    const Lanes *a = p.at[k], *b = p.at[k < 2 ? k + 1 : 0];
    Lanes edge[3], to[3], along = {}, length = {}, square = {};
    for (int i = 0; i < 3; ++i) {
      edge[i] = b[i] - a[i];
      to[i] = g.centre[i] - a[i];
      along += edge[i] * to[i];
      length += edge[i] * edge[i];
    }
    along /= length;
    along = along > Lanes{} ? along : Lanes{};
    along = along < every(1) ? along : every(1);
    for (int i = 0; i < 3; ++i) {
      to[i] -= along * edge[i];
      square += to[i] * to[i];
    }
    const Truths nearer = square < least;
    least = nearer ? square : least;
    for (int i = 0; i < 3; ++i) way[i] = nearer ? to[i] : way[i];
  }
  for (int v = 0; v < 3; ++v) {
    Lanes upper = {}, size = {};
    for (int i = 0; i < 3; ++i) {
      upper += way[i] * p.at[v][i];
      size += lanes_abs(way[i] * p.at[v][i]);
    }
    const Lanes down = way[2] * (base - p.at[v][2]), higher = down > Lanes{} ? upper + down : upper;
    high = higher > high ? higher : high;
    size += lanes_abs(down);
    terms = size > terms ? size : terms;
  }
  const Lanes length = vector_sqrt(least), reach = g.reach(way, length) + length * margin;
  return -high > reach + PLANE_SLACK * (terms + lanes_abs(reach));
}

// Whether a plane lies between the geom and a prism.
DEVICE Truths are_apart(const GeomBounds& g, const Prisms& p, real base, real margin) {
  return above_faces(g, p, margin) | beside_box(g, p, base, margin) | beyond_edges(g, p, base, margin);
}
#endif
