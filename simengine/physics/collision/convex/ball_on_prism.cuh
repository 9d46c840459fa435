// The point of a prism of a height field that is nearest to the centre of a ball, without a search. It is on the upper
// face, on a side wall beside the centre, or on a vertical edge beside it: the nearest of these points. A centre inside
// the prism is left to a search.
#pragma once

#define NEAR_CENTRE R(1e-3)  // relative to the radius: points nearer to a ball's centre leave the normal inexact

DEVICE bool is_ball(const Shape& s) {
  return s.radius > 0 && !(s.box[2] > 0) && !(s.round[0] > 0) && !s.hull.nvert;
}

// A point near the origin, and the square of its distance.
struct NearPoint {
  real at[3], square;

  DEVICE_METHOD void take(real x, real y, real z) {
    const real other = fma_(z, z, fma_(y, y, x * x));
    if (!(other < square)) return;
    square = other;
    at[0] = x;
    at[1] = y;
    at[2] = z;
  }
};

// The same on a triangle.
DEVICE void take_triangle(const real* corner, NearPoint& best) {
  real weight[3], square, point[3] = {R(0.0), R(0.0), R(0.0)};
  const bool thick = triangle_weights(corner, corner + 3, corner + 6, weight, &square);
  if (thick && weight[0] >= 0 && weight[1] >= 0 && weight[2] >= 0) {
    for (int k = 0; k < 3; ++k) {
      for (int i = 0; i < 3; ++i) point[i] = fma_(weight[k], corner[3 * k + i], point[i]);
    }
    best.take(point[0], point[1], point[2]);
    return;
  }
  for (int k = 0; k < 3; ++k) {
    const real *a = corner + 3 * k, *b = corner + 3 * (k < 2 ? k + 1 : 0);
    const real t = segment_weight(a, b);
    for (int i = 0; i < 3; ++i) point[i] = fma_(t, b[i] - a[i], a[i]);
    best.take(point[0], point[1], point[2]);
  }
}

// The point of a prism nearest to the origin, given the corners of its upper face and the height of its base. Returns
// false if the origin is inside, or below the base.
DEVICE bool nearest_of_prism(const real* corner, real base, NearPoint& best) {
  if (!(base <= 0)) return false;
  real normal[3];
  face_upward(corner, normal);
  bool inside = dot3(normal, corner) >= 0;
  best.square = REAL_MAX;
  take_triangle(corner, best);
  for (int k = 0; k < 3; ++k) {
    const int next = k < 2 ? k + 1 : 0;
    const real *a = corner + 3 * k, *b = corner + 3 * next, *apex = corner + 3 * (3 - k - next);
    const real ex = b[0] - a[0], ey = b[1] - a[1], length2 = fma_(ex, ex, ey * ey);
    const real own = fma_(ey, apex[0] - a[0], -ex * (apex[1] - a[1])), beyond = fma_(-ey, a[0], ex * a[1]);
    const bool outside = own < 0 ? beyond > 0 : beyond < 0;
    inside &= !outside;
    if (a[2] >= 0) best.take(a[0], a[1], R(0.0));
    const real t = -fma_(a[0], ex, a[1] * ey) / length2;
    if (!outside || !(t >= 0) || !(t <= 1) || !(fma_(t, b[2] - a[2], a[2]) >= 0)) continue;
    const real aside = beyond / length2;  // a point of the wall along its normal has no difference of large numbers
    best.take(ey * -aside, ex * aside, R(0.0));
  }
  return !inside;
}

// The contact of a prism and a ball around the origin: 1 if there is one, 0 if there is none, -1 where a search
// decides. `mat` turns from the field's frame, and `place` is the ball's centre in the world.
DEVICE int ball_on_prism(const real* corner, real base, real radius, real margin, const real* mat, const real* place,
                         Contact* out) {
  NearPoint point;
  if (!nearest_of_prism(corner, base, point)) return -1;
  const real distance = sqrt_(point.square), reach = radius + margin;
  if (distance > reach) return 0;
  if (!(distance > NEAR_CENTRE * radius)) return -1;
  real nearest[3];
  to_world(nearest, mat, point.at);
  out->dist = distance - radius;
  for (int i = 0; i < 3; ++i) {
    out->frame[i] = -nearest[i] / distance;
    out->frame[3 + i] = 0;
    out->pos[i] = place[i] + R(0.5) * (nearest[i] - radius * out->frame[i]);
  }
  make_frame(out->frame);
  return 1;
}
