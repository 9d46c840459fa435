// Signed distance of a segment and a solid cylinder, the cores of a capsule and of a cylinder, without a search.
//
// Everything is in the cylinder's frame. Let t be a position on the segment, from its centre [m], and s the sign of z:
//
//     rho = |(x, y)|   beside = max(rho - radius, 0)   beyond = max(|z| - height, 0)   f = |(beside, beyond)|
//
// Apart: f is the distance from the cylinder. f^2 is convex along the segment, and the half of its slope is
//
//     g = beside rho' + beyond s z'
//
// The planes of the caps and the infinite cylinder cut the segment into at most five parts. Beside the side and above a
// cap the nearest point is known in closed form. Beyond a rim g is concave up to the point nearest to the axis and
// convex behind it. Newton's method for g = 0 therefore does not overshoot if it starts at the outer end.
//
// Overlapping: the depth is the least value, over unit vectors n, of
//
//     h(n) = radius |(n_x, n_y)| + height |n_z| + length |n.u| - n.centre
//
// A ball inside a convex body does not touch it at an edge. Of the Minkowski difference it can touch what an end of the
// segment makes of a cap, what the segment or an end of it makes of the side, and what the segment makes of a rim. Each
// gives one direction.
#pragma once

#define RIM_STEPS 24           // most steps of Newton's method: about four, and more along a tangent of the rim
#define LEVEL (8 * REAL_EPS)   // sine of the angle below which the segment is parallel to a cap or to the axis

// A segment in the frame of a cylinder.
struct Stretch {
  real centre[3], way[3], length;  // centre [m], unit vector, half length [m]
  real radius, height;             // of the cylinder: radius, and half height [m]
  real square, across;             // x'^2 + y'^2, and x y' - y x' [m]
  real caps[2], tube[2], turn;     // where it meets the caps' planes and the infinite cylinder, and is nearest its axis
  bool climbs, leaves;             // whether it is not parallel to the caps, and not parallel to the axis
};

// Where a point of the segment lies.
struct Aside {
  real point[3], rho, beside, beyond;
};

// (1) the segment, and the positions where its parts meet, as far as it reaches
DEVICE Stretch stretch_of(const Difference& d) {
  real axis[3], offset[3];
  Stretch s;
  mat_col(axis, d.a.mat, 2);
  for (int i = 0; i < 3; ++i) offset[i] = d.a.pos[i] - d.b.pos[i];
  to_local(s.centre, d.b.mat, offset);
  to_local(s.way, d.b.mat, axis);
  const real *c = s.centre, *u = s.way, end = d.a.box[2], radius = d.b.round[0], height = d.b.box[2];
  s.length = end;
  s.radius = radius;
  s.height = height;
  s.square = fma_(u[0], u[0], u[1] * u[1]);
  s.across = c[0] * u[1] - c[1] * u[0];
  s.climbs = abs_(u[2]) > LEVEL;
  s.leaves = s.square > LEVEL * LEVEL;
  for (int k = 0; k < 2; ++k) {
    s.caps[k] = s.climbs ? clamp_(((k ? height : -height) - c[2]) / u[2], -end, end) : k ? end : -end;
  }
  const real b = fma_(c[0], u[0], c[1] * u[1]), rho = sqrt_(fma_(c[0], c[0], c[1] * c[1]));
  const real root = sqrt_(max_(s.square * radius * radius - s.across * s.across, R(0.0)));
  const real far = b > 0 ? b + root : b - root;  // the sum without cancellation
  s.tube[0] = s.leaves ? clamp_(-far / s.square, -end, end) : -end;
  s.tube[1] = s.leaves ? far != 0 ? clamp_((radius - rho) * (radius + rho) / far, -end, end) : s.tube[0] : end;
  s.turn = s.leaves ? clamp_(-b / s.square, -end, end) : R(0.0);
  return s;
}

DEVICE Aside aside_at(const Stretch& s, real t) {
  Aside a;
  for (int i = 0; i < 3; ++i) a.point[i] = fma_(t, s.way[i], s.centre[i]);
  a.rho = sqrt_(fma_(a.point[0], a.point[0], a.point[1] * a.point[1]));
  a.beside = max_(a.rho - s.radius, R(0.0));
  a.beyond = max_(abs_(a.point[2]) - s.height, R(0.0));
  return a;
}

DEVICE real distance_of(const Aside& a) { return sqrt_(fma_(a.beside, a.beside, a.beyond * a.beyond)); }

// rho', where the point is not on the axis.
DEVICE real rate_beside(const Stretch& s, const Aside& a) {
  return fma_(a.point[0], s.way[0], a.point[1] * s.way[1]) / a.rho;
}

DEVICE real half_slope(const Stretch& s, const Aside& a) {
  const real up = a.beyond * (a.point[2] > 0 ? s.way[2] : -s.way[2]);
  return a.beside > 0 ? fma_(a.beside, rate_beside(s, a), up) : up;
}

// The root of g between low and high, where the segment passes a rim.
DEVICE real nearest_to_rim(const Stretch& s, real low, real high) {
  const real turn = clamp_(s.turn, low, high), square = s.across * s.across;
  const real tolerance = 2 * REAL_EPS * (s.length + s.radius);
  const bool upper = half_slope(s, aside_at(s, turn)) < 0;
  low = upper ? turn : low;
  high = upper ? high : turn;
  real t = upper ? high : low;
  ROLLED for (int k = 0; k < RIM_STEPS; ++k) {
    const Aside a = aside_at(s, t);
    const real g = half_slope(s, a), rate = 1 - s.radius * square / (a.rho * a.rho * a.rho);
    if (!((upper ? g : -g) > 0) || !(rate > 0)) break;
    const real next = clamp_(t - g / rate, low, high), step = abs_(next - t);
    t = next;
    if (step <= tolerance) break;
  }
  return t;
}

// The nearest point of a segment that is apart. Of a line parallel to a cap or to the axis it is the middle.
DEVICE_CALL real nearest_position(const Stretch& s) {
  // (2) the part in which the slope changes its sign, or those where there is no slope
  real low = -s.length, high = s.length, first = REAL_MAX, last = -REAL_MAX;
  ROLLED for (int k = 0; k < 6; ++k) {
    const real cap = k == 2 ? s.caps[0] : s.caps[1], tube = k == 4 ? s.tube[0] : s.tube[1];
    const real t = k == 0 ? -s.length : k == 1 ? s.length : k < 4 ? cap : tube;
    const Aside a = aside_at(s, t);
    const real g = half_slope(s, a), level = LEVEL * distance_of(a);
    const bool falls = g < -level, rises = g > level, stays = !falls && !rises;
    low = falls ? max_(low, t) : low;
    high = rises ? min_(high, t) : high;
    first = stays ? min_(first, t) : first;
    last = stays ? max_(last, t) : last;
  }
  if (first <= last) return R(0.5) * (first + last);
  const real middle = R(0.5) * (low + high);
  if (!(low < high)) return middle;
  // (3) its nearest point: beyond a rim, beside the side, or above a cap
  const Aside a = aside_at(s, middle);
  if (a.beside > 0) return a.beyond > 0 ? nearest_to_rim(s, low, high) : clamp_(s.turn, low, high);
  return a.beyond > 0 ? (a.point[2] > 0) == (s.way[2] < 0) ? high : low : middle;
}

// The unit vector from the cylinder to a point of the segment. Between the ends of a segment that passes a rim it is
// perpendicular to both. Where they almost meet, this is more accurate than the difference of the nearest points.
DEVICE void away_from(const Stretch& s, const Aside& a, bool inner, real scale, real* away) {
  const real dist = distance_of(a), share = a.beside > 0 ? a.beside / (dist * a.rho) : R(0.0);
  const real up = a.point[2] > 0 ? R(1.0) : R(-1.0);
  away[0] = share * a.point[0];
  away[1] = share * a.point[1];
  away[2] = up * a.beyond / dist;
  if (inner && a.beside > 0 && a.beyond > 0) {
    const real rate = rate_beside(s, a), fall = -s.way[2] / a.rho;
    const real sine = sqrt_(fma_(rate, rate, s.way[2] * s.way[2]));
    const real side = up * rate > 0 ? R(1.0) : R(-1.0), along = dot3(away, s.way);
    const bool meet = dist < sine * sine * sine * scale;
    const real crossed[3] = {side * fall * a.point[0], side * fall * a.point[1], side * rate};
    for (int i = 0; i < 3; ++i) away[i] = meet ? crossed[i] : fma_(-along, s.way[i], away[i]);
  }
  normalize3(away);
}

// A direction in which the segment leaves the cylinder, how far, and its position that leaves last.
struct Exit {
  real way[3], depth, position;
  real cost;  // the depth, and how far the position is from the face that belongs to the direction
};

// Keep the cheaper of two exits. Where a position is off its face, h is smaller for another direction; by so little,
// where it is almost on it, that rounding errors would decide.
DEVICE void take_cheaper(const Stretch& s, real x, real y, real z, real position, real off, Exit& best) {
  const real n[3] = {x, y, z}, side = s.radius * sqrt_(fma_(x, x, y * y)), end = s.length * abs_(dot3(n, s.way));
  const real depth = fma_(s.height, abs_(z), side) + end - dot3(n, s.centre);
  if (!(depth + off < best.cost)) return;
  for (int i = 0; i < 3; ++i) best.way[i] = n[i];
  best.depth = depth;
  best.position = position;
  best.cost = depth + off;
}

// (6) over a rim, perpendicular to the segment: n = x p + y q, where p is perpendicular to the axis too. Seen along the
// segment, the rim is an ellipse. The slope of h towards q is convex in x for x + y = 1, so Newton's method from x = 0
// does not overshoot its first root. If there is none, the way through a cap or the side is shorter.
DEVICE void exit_over_rim(const Stretch& s, Exit& best) {
  const real sine = sqrt_(s.square), *c = s.centre, *u = s.way;
  const real p[2] = {-u[1] / sine, u[0] / sine}, q[3] = {-u[2] * p[1], u[2] * p[0], sine};
  const real cp = -s.across / sine, cq = dot3(c, q), far = abs_(cq) - s.height * sine;
  const real thin = s.radius * max_(abs_(u[2]), REAL_EPS), thick = s.radius, bulge = thick * thick * s.square;
  real x = 0;
  ROLLED for (int k = 0; k < RIM_STEPS; ++k) {
    const real y = 1 - x, width = fma_(thick * x, thick * x, thin * y * (thin * y)), inverse = R(1.0) / sqrt_(width);
    const real value = y * abs_(cp) - x * far - bulge * x * y * inverse;
    const real bend = x * y * (thick * thick * x - thin * thin * y) / width;
    const real fall = abs_(cp) + far + bulge * inverse * (y - x - bend);
    if (!(value > 0)) break;
    const real next = x + value / fall, step = next - x;
    if (!(fall > 0) || !(next < 1)) return;
    x = next;
    if (!(step > REAL_EPS * x)) break;
  }
  const real inverse = R(1.0) / sqrt_(fma_(x, x, (1 - x) * (1 - x)));
  const real np = (cp > 0 ? x : -x) * inverse, nq = (cq > 0 ? 1 - x : x - 1) * inverse;
  const real n[3] = {fma_(np, p[0], nq * q[0]), fma_(np, p[1], nq * q[1]), nq * q[2]};
  const real rho = sqrt_(fma_(n[0], n[0], n[1] * n[1])), stretch = rho > MJMINVAL ? s.radius / rho : R(0.0);
  const real rim[3] = {stretch * n[0], stretch * n[1], n[2] > 0 ? s.height : -s.height};
  const real position = dot3(rim, u) - dot3(c, u), held = clamp_(position, -s.length, s.length);
  take_cheaper(s, n[0], n[1], n[2], held, abs_(position - held), best);
}

// The shortest way out for a segment that overlaps the cylinder. Of a line parallel to a cap or to the axis the middle
// counts.
DEVICE_CALL Exit shortest_exit(const Stretch& s) {
  const real *u = s.way, up = s.centre[2] > 0 ? R(1.0) : R(-1.0);
  Exit best;
  best.cost = REAL_MAX;
  // (4) through the nearer cap
  const real last = up * u[2] > 0 ? -s.length : s.length;
  const real low = s.climbs ? last : R(0.5) * (s.tube[0] + s.tube[1]);
  take_cheaper(s, R(0.0), R(0.0), up, low, aside_at(s, low).beside, best);
  // (5) through the side, where the segment is nearest to the axis
  const real near = s.leaves ? s.turn : R(0.5) * (s.caps[0] + s.caps[1]);
  const Aside a = aside_at(s, near);
  const bool inner = s.leaves && abs_(near) < s.length, on_axis = !(a.rho > MJMINVAL);
  const real x = inner ? s.across > 0 ? u[1] : -u[1] : on_axis ? R(1.0) : a.point[0];
  const real y = inner ? s.across > 0 ? -u[0] : u[0] : on_axis ? R(0.0) : a.point[1];
  const real inverse = R(1.0) / sqrt_(fma_(x, x, y * y));
  take_cheaper(s, x * inverse, y * inverse, R(0.0), near, a.beyond, best);
  if (s.leaves && s.climbs) exit_over_rim(s, best);
  return best;
}

// Whether a difference is that of a capsule and a cylinder.
DEVICE bool is_segment_cylinder(const Difference& d) {
  const bool segment = !d.a.hull.nvert && !(d.a.box[0] > 0) && !(d.a.round[0] > 0) && d.a.box[2] > 0;
  return segment && !d.b.hull.nvert && d.b.round[0] > 0 && !(d.b.round[2] > 0);
}

// Signed distance of their cores. `normal` receives the direction from the segment to the cylinder, and `point` the
// nearest or deepest point of the segment, in the frame of the difference.
DEVICE_CALL real segment_cylinder(const Difference& d, real* normal, real* point) {
  const Stretch s = stretch_of(d);
  real t = nearest_position(s), away[3], axis[3];
  const Aside a = aside_at(s, t);
  real dist = distance_of(a);
  if (dist > TOUCH_TOLERANCE * d.scale) {
    away_from(s, a, abs_(t) < s.length, d.scale, away);
  } else {
    const Exit out = shortest_exit(s);
    dist = -out.depth;
    t = out.position;
    for (int i = 0; i < 3; ++i) away[i] = out.way[i];
  }
  to_world(normal, d.b.mat, away);
  mat_col(axis, d.a.mat, 2);
  for (int i = 0; i < 3; ++i) {
    normal[i] = -normal[i];
    point[i] = fma_(t, axis[i], d.a.pos[i]);
  }
  return dist;
}
