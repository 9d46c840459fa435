// A straight edge of a shape across an edge of the upper face of a prism, found without a search on a GPU: a wheel on
// two prisms of a height field, of which one has the wheel's lowest point. The edge is that of a box, or one along the
// axis of a cylinder or capsule.
//
// Let n be perpendicular to both edges, and let neither shape reach farther along n than its edge. Where the edges
// cross, seen along n, their points a and s are a gap apart:
//
//     apart: the plane of n lies between the shapes, so that a and s are nearest to each other
//     overlapping: n has the least depth h if the difference of the shapes holds a ball of radius h around the origin.
//         Its points along both edges reach some way in all directions across n, and the prism's base under the
//         crossing reaches back along n. Both together hold the ball if they reach far enough
//
// A search decides elsewhere.
#pragma once

#if SIMENGINE_GPU
#define LEAST_CROSSING R(0.1)  // sine of the angle between edges that cross well enough

// A convex shape other than a mesh, in the frame of a prism.
struct EdgedShape {
  real centre[3], axis[3][3], box[3], round[3], along[3], half;

  // Prepare the shape, of whose edges those along the axis are looked at that is most nearly perpendicular to `up`.
  DEVICE_METHOD EdgedShape(const Difference& d, const real* up) {
    real offset[3], least = REAL_MAX;
    for (int i = 0; i < 3; ++i) offset[i] = d.b.pos[i] - d.a.pos[i];
    to_local(centre, d.a.mat, offset);
    half = along[0] = along[1] = along[2] = 0;
    UNROLLED for (int k = 0; k < 3; ++k) {
      mat_col(offset, d.b.mat, k);
      to_local(axis[k], d.a.mat, offset);
      box[k] = d.b.box[k];
      round[k] = d.b.round[k];
      const real upward = abs_(dot3(axis[k], up));
      const bool better = box[k] > 0 && upward < least;
      least = better ? upward : least;
      half = better ? box[k] : half;
      for (int i = 0; i < 3; ++i) along[i] = better ? axis[k][i] : along[i];
    }
  }

  // The middle of the edge that is farthest against n, which is perpendicular to it.
  DEVICE_METHOD void lowest_edge(const real* n, real* middle) const {
    real height[3], square = 0;
    UNROLLED for (int k = 0; k < 3; ++k) {
      height[k] = dot3(axis[k], n);
      square = fma_(round[k] * height[k], round[k] * height[k], square);
    }
    const real inverse = square > 0 ? R(1.0) / sqrt_(square) : R(0.0);
    for (int i = 0; i < 3; ++i) middle[i] = centre[i];
    UNROLLED for (int k = 0; k < 3; ++k) {
      const bool own = dot3(axis[k], along) > R(0.5);
      const real flat = own ? R(0.0) : height[k] >= 0 ? box[k] : -box[k];
      const real down = flat + round[k] * round[k] * height[k] * inverse;
      for (int i = 0; i < 3; ++i) middle[i] = fma_(-down, axis[k][i], middle[i]);
    }
  }
};

// Whether the difference of the shapes holds a ball whose radius is the depth along n, at a crossing of the edges that
// is `height` above the prism's base. `across` is how far both edges reach from there in all directions across n.
DEVICE bool holds_depth(const real* n, real depth, real across, real height) {
  const real back = height * n[2], aside = height * sqrt_(max_(1 - n[2] * n[2], R(0.0)));
  return back > 2 * depth && across * (back - 2 * depth) >= depth * fma_(R(2.0), aside, back);
}

// Whether an edge of the second shape lies across an edge of the upper face of a prism, which is the first; `top` is
// the face's normal in the prism's frame. The results are those of rests_above.
DEVICE int lies_across(const Difference& d, const real* top, real most, real* point, real* gap, real* normal) {
  if (d.b.hull.nvert) return REST_UNKNOWN;
  const EdgedShape shape(d, top);
  if (!(shape.half > 0)) return REST_UNKNOWN;
  const real *vert = d.a.hull.vert, *upper = vert + 9, *u = shape.along;
  ROLLED for (int k = 0; k < 3; ++k) {
    const int next = k < 2 ? k + 1 : 0;
    const real *from = upper + 3 * k, *to = upper + 3 * next, *apex = upper + 3 * (3 - k - next);
    real edge[3], n[3], middle[3], inside = 0;
    for (int i = 0; i < 3; ++i) edge[i] = to[i] - from[i];
    const real length = normalize3(edge);
    cross3(n, edge, u);
    const real sine = normalize3(n), side = dot3(n, top) < 0 ? R(-1.0) : R(1.0);
    for (int i = 0; i < 3; ++i) {
      n[i] *= side;
      inside = fma_(n[i], apex[i] - from[i], inside);
    }
    // no vertex of the prism may be farther along n than the edge
    if (!(sine > LEAST_CROSSING) || n[2] < 0 || inside > 0) continue;
    shape.lowest_edge(n, middle);
    for (int i = 0; i < 3; ++i) middle[i] -= from[i];
    *gap = dot3(middle, n);
    if (*gap > most) return REST_APART;
    const real cosine = dot3(edge, u), by_edge = dot3(middle, edge), by_axis = dot3(middle, u);
    const real inverse = R(1.0) / (sine * sine);
    const real at = (by_edge - cosine * by_axis) * inverse, by = (cosine * by_edge - by_axis) * inverse;
    const real left = min_(at, length - at), more = shape.half - abs_(by);
    if (!(left > 0 && more > 0)) continue;
    real crossing[3];
    for (int i = 0; i < 3; ++i) crossing[i] = fma_(at, edge[i], from[i]);
    const real across = sine * min_(more, left / (sine + abs_(cosine)));
    if (*gap < 0 && !holds_depth(n, -*gap, across, crossing[2] - vert[2])) continue;
    for (int i = 0; i < 3; ++i) crossing[i] = fma_(*gap, n[i], crossing[i]);
    to_world(normal, d.a.mat, n);
    to_world(point, d.a.mat, crossing);
    for (int i = 0; i < 3; ++i) point[i] += d.a.pos[i];
    return REST_FOUND;
  }
  return REST_UNKNOWN;
}
#endif
