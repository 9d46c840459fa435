// Intersection of rays with geoms: the distance along a ray to the nearest surface. Rays p + x v are given in the
// geom's frame, unless the comment says otherwise.
#pragma once

#define NO_HIT R(-1.0)

// The smaller of two distances, where a negative one is a miss.
DEVICE real nearer(real x, real y) { return x < 0 || (y >= 0 && y < x) ? y : x; }

struct Roots {
  real x[2];  // in ascending order; both NO_HIT if there are none
};

// Roots of a x^2 + 2 b x + c.
DEVICE Roots ray_roots(real a, real b, real c) {
  const real square = b * b - a * c;
  if (square < MJMINVAL || a < MJMINVAL) return {{NO_HIT, NO_HIT}};
  const real root = sqrt_(square);
  // one root without cancellation, and the other from the product of both
  const real q = b > 0 ? -b - root : -b + root, first = divide_(q, a), second = divide_(c, q);
  return first < second ? Roots{{first, second}} : Roots{{second, first}};
}

// x if the point p + x v is within the half lengths along axes i and j, else NO_HIT.
DEVICE real ray_face(real x, const real* p, const real* v, int i, int j, real half_i, real half_j) {
  const bool inside = abs_(fma_(x, v[i], p[i])) <= half_i && abs_(fma_(x, v[j], p[j])) <= half_j;
  return x >= 0 && inside ? x : NO_HIT;
}

// A plane, from the front only; infinite along an axis whose size is zero.
DEVICE real ray_plane(const real* p, const real* v, const real* size) {
  if (v[2] > -MJMINVAL) return NO_HIT;
  const real x = -divide_(p[2], v[2]);
  return ray_face(x, p, v, 0, 1, size[0] > 0 ? size[0] : REAL_MAX, size[1] > 0 ? size[1] : REAL_MAX);
}

DEVICE real ray_sphere(const real* p, const real* v, real radius) {
  const Roots found = ray_roots(dot3(v, v), dot3(v, p), dot3(p, p) - radius * radius);
  return found.x[0] >= 0 ? found.x[0] : found.x[1] >= 0 ? found.x[1] : NO_HIT;
}

// The wall of a cylinder along z, between the heights -half and half.
DEVICE real ray_wall(const real* p, const real* v, real radius, real half) {
  const Roots found = ray_roots(v[0] * v[0] + v[1] * v[1], v[0] * p[0] + v[1] * p[1],
                                p[0] * p[0] + p[1] * p[1] - radius * radius);
  real best = NO_HIT;
  for (int k = 0; k < 2; ++k) {
    const real x = found.x[k];
    if (x >= 0 && abs_(fma_(x, v[2], p[2])) <= half) best = nearer(best, x);
  }
  return best;
}

// A capsule: its wall, and the caps beyond the ends of its axis.
DEVICE real ray_capsule(const real* p, const real* v, const real* size) {
  real best = ray_wall(p, v, size[0], size[1]);
  for (int end = -1; end <= 1; end += 2) {
    const real q[3] = {p[0], p[1], p[2] - end * size[1]};
    const Roots found = ray_roots(dot3(v, v), dot3(v, q), dot3(q, q) - size[0] * size[0]);
    for (int k = 0; k < 2; ++k) {
      const real x = found.x[k];
      if (x >= 0 && end * fma_(x, v[2], q[2]) >= 0) best = nearer(best, x);
    }
  }
  return best;
}

// A cylinder: its wall and its flat ends.
DEVICE real ray_cylinder(const real* p, const real* v, const real* size) {
  real best = ray_wall(p, v, size[0], size[1]);
  if (abs_(v[2]) > MJMINVAL) {
    for (int end = -1; end <= 1; end += 2) {
      const real x = divide_(end * size[1] - p[2], v[2]);
      const real a = fma_(x, v[0], p[0]), b = fma_(x, v[1], p[1]);
      if (x >= 0 && a * a + b * b <= size[0] * size[0]) best = nearer(best, x);
    }
  }
  return best;
}

// An ellipsoid, which is a sphere in scaled coordinates.
DEVICE real ray_ellipsoid(const real* p, const real* v, const real* size) {
  real q[3], w[3];
  for (int i = 0; i < 3; ++i) {
    q[i] = divide_(p[i], size[i]);
    w[i] = divide_(v[i], size[i]);
  }
  return ray_sphere(q, w, R(1.0));
}

// A box: its six faces.
DEVICE real ray_box(const real* p, const real* v, const real* size) {
  real best = NO_HIT;
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    if (abs_(v[i]) <= MJMINVAL) continue;
    for (int side = -1; side <= 1; side += 2) {
      const real x = divide_(side * size[i] - p[i], v[i]);
      best = nearer(best, ray_face(x, p, v, j, k, size[j], size[k]));
    }
  }
  return best;
}

// Transform a ray from the world frame to that of a geom at pos with orientation mat (row-major).
DEVICE void into_geom(const real* pos, const real* mat, const real* point, const real* direction, real* p, real* v) {
  real away[3], axis[3];
  for (int k = 0; k < 3; ++k) away[k] = point[k] - pos[k];
  for (int k = 0; k < 3; ++k) {
    mat_col(axis, mat, k);
    p[k] = dot3(axis, away);
    v[k] = dot3(axis, direction);
  }
}

// Distance from a point along a direction, both in the world frame, to a geom at pos with orientation mat (row-major).
// The unit is the length of the direction; negative if the ray misses the geom.
DEVICE real ray_geom(int type, const real* pos, const real* mat, const real* size, const real* point,
                     const real* direction) {
  real p[3], v[3];
  into_geom(pos, mat, point, direction, p, v);
  switch (type) {
    case GEOM_PLANE: return ray_plane(p, v, size);
    case GEOM_SPHERE: return ray_sphere(p, v, size[0]);
    case GEOM_CAPSULE: return ray_capsule(p, v, size);
    case GEOM_ELLIPSOID: return ray_ellipsoid(p, v, size);
    case GEOM_CYLINDER: return ray_cylinder(p, v, size);
    case GEOM_BOX: return ray_box(p, v, size);
  }
  return NO_HIT;
}

// Whether a point is inside a geom of one of these types; the inside of a plane is below it.
DEVICE bool inside_geom(int type, const real* pos, const real* mat, const real* size, const real* point) {
  real away[3], axis[3], p[3];
  for (int k = 0; k < 3; ++k) away[k] = point[k] - pos[k];
  for (int k = 0; k < 3; ++k) {
    mat_col(axis, mat, k);
    p[k] = dot3(axis, away);
  }
  const real across = p[0] * p[0] + p[1] * p[1], radius = size[0] * size[0];
  switch (type) {
    case GEOM_SPHERE: return across + p[2] * p[2] < radius;
    case GEOM_CAPSULE: {
      const real beyond = max_(abs_(p[2]) - size[1], R(0.0));
      return across + beyond * beyond < radius;
    }
    case GEOM_ELLIPSOID: {
      real sum = 0;
      for (int k = 0; k < 3; ++k) sum += divide_(p[k] * p[k], size[k] * size[k]);
      return sum < 1;
    }
    case GEOM_CYLINDER: return abs_(p[2]) < size[1] && across < radius;
    case GEOM_BOX: return abs_(p[0]) < size[0] && abs_(p[1]) < size[1] && abs_(p[2]) < size[2];
  }
  return false;
}
