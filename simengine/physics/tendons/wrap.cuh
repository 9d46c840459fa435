// Tendons that wrap around spheres and cylinders: MuJoCo documentation, "XML Reference", "spatial/geom". The problem is
// reduced to a plane: the shortest path from one point to another around a circle, or through it. Around a cylinder the
// path is a helix, which rises evenly along the axis.
#pragma once

DEVICE real cross2(const real* a, const real* b) { return a[0] * b[1] - a[1] * b[0]; }
DEVICE real dot2(const real* a, const real* b) { return fma_(a[1], b[1], a[0] * b[0]); }

// Squared distance from the origin to the segment from d0 to d1. `inside` says whether the nearest point of the segment
// lies between its ends.
DEVICE real segment_distance2(const real* d0, const real* d1, bool* inside) {
  const real along[2] = {d1[0] - d0[0], d1[1] - d0[1]}, square = dot2(along, along);
  const real share = square < MJMINVAL ? R(0.0) : -divide_(dot2(along, d0), square);
  const real at = clamp_(share, R(0.0), R(1.0));
  const real nearest[2] = {fma_(at, along[0], d0[0]), fma_(at, along[1], d0[1])};
  *inside = share > 0 && share < 1;
  return dot2(nearest, nearest);
}

// Point where a tangent from d touches the circle. `square` is the squared distance of d from the centre, and turn is
// +1 for the tangent on the left as seen from the centre.
DEVICE void tangent_point(const real* d, real square, real r, real turn, real* out) {
  const real inverse = reciprocal_(square), ahead = r * r * inverse, aside = turn * r * sqrt_(square - r * r) * inverse;
  out[0] = ahead * d[0] - aside * d[1];
  out[1] = ahead * d[1] + aside * d[0];
}

// Path around the circle: returns its length on the circle, negative if the path is straight, and sets the points t0
// and t1 where it touches. The path takes the longer way round if its sidesite lies opposite to both ends.
DEVICE real wrap_around(const real* d0, const real* d1, const real* side, real r, real* t0, real* t1) {
  const real square0 = dot2(d0, d0), square1 = dot2(d1, d1), across = cross2(d0, d1);
  if (square0 < r * r || square1 < r * r) return -1;
  bool inside;
  const bool far = side && across * cross2(d0, side) < 0 && across * cross2(side, d1) < 0;
  if (!far && segment_distance2(d0, d1, &inside) > r * r) return -1;
  const real turn = (across > 0) == far ? R(-1.0) : R(1.0);
  tangent_point(d0, square0, r, turn, t0);
  tangent_point(d1, square1, r, -turn, t1);
  const real pi = R(3.14159265358979323846), between = atan2_(abs_(across), dot2(d0, d1));
  const real tangents = atan2_(sqrt_(square0 - r * r), r) + atan2_(sqrt_(square1 - r * r), r);
  return r * max_(R(0.0), (far ? 2 * pi - between : between) - tangents);
}

// Path through the circle: t becomes the point of the circle that makes the path shortest; returns a negative number if
// the path is straight. The angle of incidence phi solves asin(A sin phi) + asin(B sin phi) - 2 phi + G = 0, where A
// and B are r divided by the distances of the ends, and G is the angle between the ends. Newton's method starts from
// phi = pi/2 and has MuJoCo's termination.
DEVICE real wrap_through(const real* d0, const real* d1, real r, real* t) {
  const real length0 = sqrt_(dot2(d0, d0)), length1 = sqrt_(dot2(d1, d1)), across = cross2(d0, d1);
  if (length0 <= r || length1 <= r) return -1;
  bool inside;
  if (segment_distance2(d0, d1, &inside) <= r * r && inside) return -1;
  const real A = divide_(r, length0), B = divide_(r, length1), G = atan2_(abs_(across), dot2(d0, d1));
  real phi = R(0.5) * R(3.14159265358979323846), s = 1, c = 0;
  ROLLED for (int i = 0; i < 20; ++i) {
    const real value = asin_(A * s) + asin_(B * s) - 2 * phi + G;
    if (abs_(value) < R(1e-6)) break;
    const real slope = divide_(A * c, sqrt_(R(1.0) - A * A * s * s)) + divide_(B * c, sqrt_(R(1.0) - B * B * s * s));
    phi -= divide_(value, slope - R(2.0));
    sincos_(phi, &s, &c);
  }
  // rotate from the end that has the other end on its left
  const bool first = across > 0;
  const real *from = first ? d0 : d1, scale = divide_(r, first ? length0 : length1);
  sincos_(phi - asin_((first ? A : B) * s), &s, &c);
  t[0] = scale * (from[0] * c - from[1] * s);
  t[1] = scale * (from[0] * s + from[1] * c);
  return 0;
}

// Axes of the plane of wrapping. For a sphere it contains the points x0 and x1, both relative to the centre; for a
// cylinder it is normal to the axis.
DEVICE void wrap_axes(bool cylinder, const real* mat, const real* x0, const real* x1, real* axis0, real* axis1) {
  if (cylinder) {
    mat_col(axis0, mat, 0);
    mat_col(axis1, mat, 1);
    return;
  }
  real normal[3], other[3] = {0, 0, 0};
  for (int i = 0; i < 3; ++i) axis0[i] = x0[i];
  normalize3(axis0);
  cross3(normal, x0, x1);
  if (sqrt_(dot3(normal, normal)) < MJMINVAL) {
    const int least = abs_(axis0[0]) < R(0.6) ? 0 : 1;
    for (int i = 0; i < 3; ++i) other[i] = R(1.0) * (i == least);
    cross3(normal, x0, other);
  }
  normalize3(normal);
  cross3(axis1, normal, axis0);
}

// Path from point x0 to x1 past geom g, on the side of site `side` if that is not -1. Returns its length on the geom,
// which is negative if the path is straight, and sets the points where it meets the geom and leaves it.
DEVICE real wrap_geom(const Model& m, int g, int side, const real* x0, const real* x1, const real* xpos,
                      const real* xquat, const real* geom_xpos, const real* geom_xmat, real* point0, real* point1) {
  const bool cylinder = m.geom_type()[g] == GEOM_CYLINDER;
  const real *centre = geom_xpos + 3 * g, *mat = geom_xmat + 9 * g, r = m.geom_size()[3 * g];
  real p0[3], p1[3], s[3], axis0[3], axis1[3], d0[2], d1[2], flank[2], t0[2], t1[2];
  if (side >= 0) site_position(m, side, xpos, xquat, s);
  for (int i = 0; i < 3; ++i) {
    p0[i] = x0[i] - centre[i];
    p1[i] = x1[i] - centre[i];
    s[i] = side >= 0 ? s[i] - centre[i] : R(0.0);
  }
  wrap_axes(cylinder, mat, p0, p1, axis0, axis1);
  d0[0] = dot3(p0, axis0);
  d0[1] = dot3(p0, axis1);
  d1[0] = dot3(p1, axis0);
  d1[1] = dot3(p1, axis1);
  flank[0] = dot3(s, axis0);
  flank[1] = dot3(s, axis1);
  real arc;
  if (side >= 0 && dot3(s, s) < r * r) {
    arc = wrap_through(d0, d1, r, t0);
    t1[0] = t0[0];
    t1[1] = t0[1];
  } else {
    arc = wrap_around(d0, d1, side >= 0 ? flank : (const real*)0, r, t0, t1);
  }
  if (arc < 0) return arc;
  for (int i = 0; i < 3; ++i) {
    point0[i] = fma_(t0[0], axis0[i], fma_(t0[1], axis1[i], centre[i]));
    point1[i] = fma_(t1[0], axis0[i], fma_(t1[1], axis1[i], centre[i]));
  }
  if (!cylinder) return arc;
  real up[3];
  mat_col(up, mat, 2);
  const real in[2] = {t0[0] - d0[0], t0[1] - d0[1]}, out[2] = {d1[0] - t1[0], d1[1] - t1[1]};
  const real before = sqrt_(dot2(in, in)), total = before + arc + sqrt_(dot2(out, out));
  const real start = dot3(p0, up), slope = divide_(dot3(p1, up) - start, total), climb = slope * arc;
  const real height = fma_(slope, before, start);
  for (int i = 0; i < 3; ++i) {
    point0[i] = fma_(height, up[i], point0[i]);
    point1[i] = fma_(height + climb, up[i], point1[i]);
  }
  return sqrt_(fma_(climb, climb, arc * arc));
}
