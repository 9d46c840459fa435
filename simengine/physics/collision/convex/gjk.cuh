// Distance of two convex cores: Gilbert, Johnson and Keerthi, "A fast procedure for computing the distance between
// complex objects in three-dimensional space", 1988.
//
// On a GPU, an ellipsoid is searched without a ball: it is the sum of a ball that can roll inside it, touching every
// point of its surface, and of a smaller convex core. Cores that overlap by less than their balls leave cores that are
// apart, so that distance and normal tell the depth, and no search for a depth is needed.
#pragma once

// The radius of the ball that an ellipsoid is searched without: the least radius of curvature of its surface.
DEVICE real rolling_ball(const Shape& s) {
  if (!SIMENGINE_GPU || !(s.round[2] > 0)) return R(0.0);
  const real least = min_(s.round[0], min_(s.round[1], s.round[2]));
  return least * least / max_(s.round[0], max_(s.round[1], s.round[2]));
}
DEVICE real rolling_balls(const Difference& d) { return rolling_ball(d.a) + rolling_ball(d.b); }

// Support point along a unit vector of the difference without balls, whose radii add up to `balls`. Each lane of a team
// finds that of its own shape.
template <typename Team>
DEVICE void support_without(const Difference& d, const Shape& shape, real balls, const real* dir, real* out) {
  team_support<Team>(d, shape, dir, out);
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
template <typename Team>
DEVICE bool first_simplex(const Difference& d, const Shape& shape, real balls, real most, Simplex& s) {
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
  support_without<Team>(d, shape, balls, dir, s.w[0]);
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
// distance is above `most`. The lanes of a team have the same difference, and receive the same result.
template <typename Team>
DEVICE_CALL real gjk(const Difference& d, real balls, real most, Simplex& s, real* normal, bool* apart) {
#ifdef SIMPLEX_VECTORS
  return gjk_in_vectors(d, most, s, normal, apart);
#endif
  const Shape shape = shape_of_lane<Team>(d);
  real v[3], dir[3];
  s.around = false;
  s.face = 0;
  *apart = !first_simplex<Team>(d, shape, balls, most, s);
  if (*apart) return 0;
  nearest<Team>(s, v);
  real square = dot3(v, v);
  ROLLED for (int iteration = 0; iteration < GJK_ITERATIONS; ++iteration) {
    const real distance = sqrt_(square);
    if (distance <= TOUCH_TOLERANCE * d.scale) return 0;
    // (1) the support point towards the origin
    real w[3];
    for (int i = 0; i < 3; ++i) dir[i] = -v[i] / distance;
    support_without<Team>(d, shape, balls, dir, w);
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
    if (!(bound > TOUCH_TOLERANCE * d.scale) && holds_origin<Team>(next) &&
        !in_a_plane(next.w[0], next.w[1], next.w[2], next.w[3], d.scale)) {
      s = next;
      s.around = true;
      return 0;
    }
    nearest<Team>(next, v);
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
