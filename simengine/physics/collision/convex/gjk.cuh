// Distance of two convex cores: Gilbert, Johnson and Keerthi, "A fast procedure for computing the distance between
// complex objects in three-dimensional space", 1988.
//
// The simplex always has four points, some of weight zero. Its point nearest to the origin is the best among those of
// its four triangles and six edges. This needs no case distinctions and works for degenerate simplices.
//
// On a GPU, an ellipsoid is searched without a ball: it is the sum of a ball that can roll inside it, touching every
// point of its surface, and of a smaller convex core. Cores that overlap by less than their balls leave cores that are
// apart, so that distance and normal tell the depth, and no search for a depth is needed.
#pragma once

// Weights of a triangle's corners for its plane's point nearest to the origin, and the squared distance of that point.
// Returns false if the triangle is too thin.
DEVICE_CALL bool triangle_weights(const real* a, const real* b, const real* c, real* weight, real* square) {
  real ab[3], ac[3], n[3], part[3];
  for (int i = 0; i < 3; ++i) {
    ab[i] = b[i] - a[i];
    ac[i] = c[i] - a[i];
  }
  cross3(n, ab, ac);
  const real nn = dot3(n, n);
  if (!(nn > REAL_EPS * REAL_EPS * dot3(ab, ab) * dot3(ac, ac))) return false;
  cross3(part, b, c);
  weight[0] = dot3(n, part) / nn;
  cross3(part, c, a);
  weight[1] = dot3(n, part) / nn;
  weight[2] = 1 - weight[0] - weight[1];
  const real height = dot3(n, a);
  *square = height * height / nn;
  return true;
}

// Weight of b for the point of segment ab nearest to the origin.
DEVICE real segment_weight(const real* a, const real* b) {
  real ab[3];
  for (int i = 0; i < 3; ++i) ab[i] = b[i] - a[i];
  const real length = dot3(ab, ab);
  return length > 0 ? clamp_(-dot3(a, ab) / length, R(0.0), R(1.0)) : R(0.0);
}

// Whether the tetrahedron contains the origin, which is then on the inner side of all four faces.
DEVICE_CALL bool holds_origin(const Simplex& s) {
  SHORT_LOOP for (int k = 0; k < 4; ++k) {
    const real *a = s.w[k], *b = s.w[(k + 1) & 3], *c = s.w[(k + 2) & 3], *apex = s.w[(k + 3) & 3];
    real ab[3], ac[3], n[3], up[3];
    for (int i = 0; i < 3; ++i) {
      ab[i] = b[i] - a[i];
      ac[i] = c[i] - a[i];
      up[i] = apex[i] - a[i];
    }
    cross3(n, ab, ac);
    const real inside = dot3(n, up), origin = -dot3(n, a);
    if (!(inside * origin > 0) && !(origin == 0 && inside != 0)) return false;
  }
  return true;
}

// Weights of the simplex's point nearest to the origin; v receives the point.
DEVICE_CALL void nearest(Simplex& s, real* v) {
  real least = REAL_MAX;
  SHORT_LOOP for (int k = 0; k < 4; ++k) {  // triangle without corner k
    real weight[3], square;
    const int i0 = k == 0, i1 = k <= 1 ? 2 : 1, i2 = k == 3 ? 2 : 3;
    if (!triangle_weights(s.w[i0], s.w[i1], s.w[i2], weight, &square) || square >= least) continue;
    if (weight[0] < 0 || weight[1] < 0 || weight[2] < 0) continue;
    least = square;
    s.weight[k] = 0;
    s.weight[i0] = weight[0];
    s.weight[i1] = weight[1];
    s.weight[i2] = weight[2];
  }
  SHORT_LOOP for (int a = 0; a < 3; ++a) {
    SHORT_LOOP for (int b = a + 1; b < 4; ++b) {
      const real t = segment_weight(s.w[a], s.w[b]);
      real p[3];
      for (int i = 0; i < 3; ++i) p[i] = fma_(t, s.w[b][i] - s.w[a][i], s.w[a][i]);
      const real square = dot3(p, p);
      if (square >= least) continue;
      least = square;
      for (int k = 0; k < 4; ++k) s.weight[k] = k == a ? 1 - t : k == b ? t : R(0.0);
    }
  }
  for (int k = 0; k < 4; ++k) s.used[k] = s.weight[k] > 0;
  for (int i = 0; i < 3; ++i) {
    v[i] = 0;
    for (int k = 0; k < 4; ++k) v[i] = fma_(s.weight[k], s.w[k][i], v[i]);
  }
}

// The radius of the ball that an ellipsoid is searched without: the least radius of curvature of its surface.
DEVICE real rolling_ball(const Shape& s) {
  if (!SIMENGINE_GPU || !(s.round[2] > 0)) return R(0.0);
  const real least = min_(s.round[0], min_(s.round[1], s.round[2]));
  return least * least / max_(s.round[0], max_(s.round[1], s.round[2]));
}
DEVICE real rolling_balls(const Difference& d) { return rolling_ball(d.a) + rolling_ball(d.b); }

// Support point along a unit vector of the difference without balls, whose radii add up to `balls`.
DEVICE void support_without(const Difference& d, real balls, const real* dir, real* out) {
  support(d, dir, out);
#if SIMENGINE_GPU
  for (int i = 0; i < 3; ++i) out[i] = fma_(-balls, dir[i], out[i]);
#endif
}

// Let a simplex of the difference without balls be one of the difference with them.
DEVICE void add_balls(Simplex& s, real balls) {
  if (!(balls > 0)) return;
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 3; ++i) s.w[k][i] = fma_(balls, s.dir[k][i], s.w[k][i]);
  }
}

// The simplex with which GJK begins. Returns false if it is certain that the distance is above `most`.
DEVICE bool first_simplex(const Difference& d, real balls, real most, Simplex& s) {
#if !SIMENGINE_GPU
  if (begins_with_face(d)) {
    const UpperFace face = upper_face(d);
    put_upper_corners(s, face);
    return !(-dot3(face.w[0], face.normal) > most);
  }
#endif
  real dir[3];
  for (int i = 0; i < 3; ++i) dir[i] = d.b.pos[i] - d.a.pos[i];
  normalize3(dir);
  support_without(d, balls, dir, s.w[0]);
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 3; ++i) {
      s.w[k][i] = s.w[0][i];
      s.dir[k][i] = dir[i];
    }
    s.renew(k);
  }
  return true;
}

// GJK, started from the direction between the centres, or from the upper face of a prism. Returns the distance of the
// cores without balls, or 0 if they touch or overlap. It also returns 0, and sets `*apart`, once it is certain that the
// distance is above `most`.
DEVICE_CALL real gjk(const Difference& d, real balls, real most, Simplex& s, real* normal, bool* apart) {
#ifdef SIMPLEX_VECTORS
  return gjk_in_vectors(d, most, s, normal, apart);
#endif
  real v[3], dir[3];
  s.around = false;
#if !SIMENGINE_GPU
  s.face = 0;
#endif
  *apart = !first_simplex(d, balls, most, s);
  if (*apart) return 0;
  nearest(s, v);
  real square = dot3(v, v);
  ROLLED for (int iteration = 0; iteration < GJK_ITERATIONS; ++iteration) {
    const real distance = sqrt_(square);
    if (distance <= TOUCH_TOLERANCE * d.scale) return 0;
    // (1) the support point towards the origin
    real w[3];
    for (int i = 0; i < 3; ++i) dir[i] = -v[i] / distance;
    support_without(d, balls, dir, w);
    const real bound = -dot3(w, dir);  // no point of the difference is nearer to the origin than this
    if (bound > most) {
      *apart = true;
      return 0;
    }
    for (int i = 0; i < 3; ++i) normal[i] = dir[i];
    if (distance - bound <= (balls > 0 ? GJK_TOLERANCE_ROUND : GJK_TOLERANCE) * distance) break;
    // (2) it replaces a point of weight zero
    Simplex next = s;
    int place = 0;
    real lightest = next.weight[0];
    for (int k = 1; k < 4; ++k) {
      place = next.weight[k] < lightest ? k : place;
      lightest = min_(next.weight[k], lightest);
    }
    for (int k = 0; k < 4; ++k) {  // without an index that is known at run time only, arrays can be in registers
      for (int i = 0; i < 3; ++i) {
        next.w[k][i] = k == place ? w[i] : next.w[k][i];
        next.dir[k][i] = k == place ? dir[i] : next.dir[k][i];
      }
      if (k == place) next.renew(k);
    }
    // in thin tetrahedra rounding may put it inside although the cores are apart
    if (!(bound > TOUCH_TOLERANCE * d.scale) && holds_origin(next) &&
        !in_a_plane(next.w[0], next.w[1], next.w[2], next.w[3], d.scale)) {
      s = next;
      s.around = true;
      return 0;
    }
    nearest(next, v);
    const real closer = dot3(v, v);
    if (!(closer < square)) {
      // rounding ends the search; without a plane between the cores they may overlap
      if (!(bound > 0)) return 0;
      break;
    }
    square = closer;
    s = next;
  }
  return sqrt_(square);
}
