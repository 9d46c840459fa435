// From the direction that GJK or EPA found to the contact's exact normal and witness points.
//
// Let h(n) be the support function of the Minkowski difference of the cores, at unit vectors n. Minus its minimum is
// the signed distance of the cores. h is a sum of smooth terms and of terms |n.e| over the edges e of flat parts, which
// have a kink at n.e = 0. The support points around the direction show which kinks are active, and n is perpendicular
// to these edges. Newton's method finds n in the directions that are left free. With a basis T of these,
//
//     gradient T'w(n)     Hessian T' (sum of h'' of the ellipsoids) T - h I
//
// Two active kinks determine n (a face, or two edges). A new n is taken only if h does not grow.
#pragma once

#if REAL_IS_FLOAT
#define TOUCHING R(1e-5)  // relative to the scale: a vertex this close to the farthest one counts as touching too
#else
#define TOUCHING R(1e-6)
#endif

// Whether a unit vector in the frame of a cylinder is along its axis, up to rounding: then its cap lies flat. A vector
// beside it leads to a point of the rim.
DEVICE bool is_axial(const real* local) {
  const real most = 32 * REAL_EPS;
  return local[0] * local[0] + local[1] * local[1] < most * most;
}

// The best direction so far, h along it, and its kinks.
struct Best {
  real n[3], h;
  Kinks kinks;

  // Take a direction if it is at least as good; returns whether it is.
  DEVICE_METHOD bool take(const Difference& d, const real* trial, real slack, const Kinks& its) {
    const real other = reach(d, trial);
    if (!(other <= h + slack)) return false;
    h = other;
    for (int i = 0; i < 3; ++i) n[i] = trial[i];
    kinks = its;
    return true;
  }
  // Whether a direction cannot be better. On a GPU, a look at the simplex would be one more turn of the lanes.
  DEVICE_METHOD bool excludes(const Difference& d, const Simplex& s, const real* trial, real slack) const {
    return !SIMENGINE_GPU && reaches_above(d, s, trial, h - slack);
  }
};

// Whether the other shape's support point against a cap's normal lies over the cap.
DEVICE_APART bool over_cap(const Shape& s, const Shape& other, const real* axis, int body) {
  real against[3], point[3], local[3];
  for (int i = 0; i < 3; ++i) against[i] = body ? axis[i] : -axis[i];
  support(other, against, point);
  for (int i = 0; i < 3; ++i) point[i] -= s.pos[i];
  to_local(local, s.mat, point);
  return local[0] * local[0] + local[1] * local[1] <= s.round[0] * s.round[0];
}

// Replace n by the normal of a cylinder's cap, or of a side of a box, if that is near n and at least as good; the face
// then counts as two kinks. It is tried for a box, because neighbouring support points may show one of its kinks only,
// and those of cores that almost touch may show none. An ellipsoid touches a cap only with its farthest point.
DEVICE_APART void snap_to_face(const Difference& d, int body, real slack, Best& best) {
  const Shape &s = body ? d.b : d.a, &other = body ? d.a : d.b;
  const bool cap = s.round[0] > 0 && !(s.round[2] > 0);
  if (!cap && !(s.box[0] > 0)) return;
  real local[3], axis[3], edge[3];
  to_local(local, s.mat, best.n);
  int up = 2;
  for (int i = 0; i < 2; ++i) up = !cap && abs_(local[i]) > abs_(local[up]) ? i : up;
  if (abs_(local[up]) < R(0.998)) return;
  mat_col(axis, s.mat, up);
  for (int i = 0; i < 3; ++i) axis[i] = local[up] > 0 ? axis[i] : -axis[i];
  if (cap && other.round[2] > 0 && !over_cap(s, other, axis, body)) return;
  if (!best.take(d, axis, cap ? slack : -slack, no_kinks())) return;
  for (int i = 1; i < 3; ++i) {
    mat_col(edge, s.mat, (up + i) % 3);
    add_kink(best.kinks, edge, body);
  }
}

// Whether cores have a smooth part, without which GJK and EPA find the normal up to rounding.
DEVICE bool is_smooth(const Difference& d) { return d.a.round[0] > 0 || d.b.round[0] > 0; }

// Try kinks that the support points do not show: those across which the steps with a choice of kinks lead to and fro,
// between two directions. They are tried with that choice, and alone.
template <typename Taker>
DEVICE_APART void try_crossed(const Difference& d, const Simplex& s, const Kinks& some, const real* one,
                              const real* other, real slack, Taker& taker) {
  ROLLED for (int alone = 0; alone < (some.number ? 2 : 1); ++alone) {
    Kinks more = alone ? no_kinks() : some;
    real trial[3], from[3];
    find_crossed(d.a, one, other, 0, more);
    find_crossed(d.b, one, other, 1, more);
    if (more.number == (alone ? 0 : some.number)) return;
    best_direction(d, s, more, other, slack, 1, trial, from);
    taker.take(d, trial, -slack, more);
  }
}

// Try a choice of kinks from `start`. If it gives a better direction, that is taken; if it is the first choice, it need
// only be as good.
template <typename Taker>
DEVICE_APART void try_kinks(const Difference& d, const Simplex& s, const Kinks& some, const real* start, real slack,
                            bool first, Taker& taker) {
  real trial[3], from[3];
  const bool astray = best_direction(d, s, some, start, slack, first ? 2 : 1, trial, from);
  if (!first && taker.excludes(d, s, trial, slack)) return;
  taker.take(d, trial, first ? slack : -slack, some);
  if (astray && is_smooth(d)) try_crossed(d, s, some, from, trial, slack, taker);
}

// Kinks that may be active, and the choices among them that are tried: all of them, or only some if that is better,
// because a kink that the support points show may only be near; and the second of two edges that are nearly parallel.
struct Choices {
  Kinks all, other;
  int number, subsets;

  DEVICE_METHOD Kinks choice(int k) const {
    if (k == subsets) return other;
    Kinks some = no_kinks();
    for (int i = 0; i < all.number; ++i) {
      if (subsets - 1 - k >> i & 1) add_kink(some, all.edge[i], all.body[i]);
    }
    return some;
  }
};

DEVICE Choices choices_of(const Difference& d, const Simplex& s) {
  Choices found;
  found.all = found.other = no_kinks();
  find_kinks(d.a, s, 0, found.all);
  find_kinks(d.b, s, 1, found.other);
  const bool alone = found.all.number == 1 && found.other.number == 1;
  for (int k = 0; k < found.other.number; ++k) add_kink(found.all, found.other.edge[k], 1);
  found.subsets = 1 << found.all.number;
  found.number = found.subsets + (alone && found.all.number == 1);
  return found;
}

#define MOST_CHOICES 4
#define MOST_TAKEN 3  // directions that a choice leads to, with kinks that its steps cross

// The directions that a lane of a team has tried. Which of them are taken is decided once all lanes have theirs.
struct Tried {
  Best found[MOST_TAKEN];
  real slack[MOST_TAKEN];
  int number;

  DEVICE_METHOD void take(const Difference& d, const real* trial, real allowed, const Kinks& its) {
    Best& own = found[number];
    own.h = reach(d, trial);
    for (int i = 0; i < 3; ++i) own.n[i] = trial[i];
    own.kinks = its;
    slack[number++] = allowed;
  }
  DEVICE_METHOD bool excludes(const Difference&, const Simplex&, const real*, real) const { return false; }
};

// What lane `from` of a team has.
template <typename Team>
DEVICE void take_from(const Best& own, int from, Best& best) {
  best.h = Team::from(own.h, from);
  best.kinks.number = int(Team::from(real(own.kinks.number), from));
  for (int i = 0; i < 3; ++i) best.n[i] = Team::from(own.n[i], from);
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < 3; ++i) best.kinks.edge[k][i] = Team::from(own.kinks.edge[k][i], from);
    best.kinks.body[k] = int(Team::from(real(own.kinks.body[k]), from));
    best.kinks.unseen[k] = Team::from(real(own.kinks.unseen[k]), from) != 0;
  }
}

// Try all choices, each by another lane of a team, and take what a single lane takes, which tries them in order.
template <typename Team>
DEVICE void try_together(const Difference& d, const Simplex& s, const Choices& choices, const real* start, real slack,
                         Best& best) {
  const int own = Team::rank() % MOST_CHOICES;
  Tried tried;
  tried.number = 0;
  if (own < choices.number) {
    const Kinks some = choices.choice(own);
    try_kinks(d, s, some, start, slack, some.number == choices.all.number && own < choices.subsets, tried);
  }
  int taken = -1;
  real h = best.h;
  ROLLED for (int k = 0; k < MOST_CHOICES * MOST_TAKEN; ++k) {
    const int from = k / MOST_TAKEN, place = k % MOST_TAKEN;
    const bool there = place < tried.number;
    const real other = Team::from(there ? tried.found[place].h : REAL_MAX, from);
    const real allowed = Team::from(there ? tried.slack[place] : R(0.0), from);
    const bool better = other <= h + allowed && other < REAL_MAX;
    taken = better ? k : taken;
    h = better ? other : h;
  }
  if (taken >= 0) take_from<Team>(tried.found[taken % MOST_TAKEN], taken / MOST_TAKEN, best);
}

// Improve the normal n; returns h(n), which is minus the signed distance of the cores. Lanes of a team have the same
// arguments, and receive the same result.
template <typename Team>
DEVICE_APART real polish(const Difference& d, const Simplex& s, real* n, Kinks& kinks) {
  const real slack = 8 * REAL_EPS * d.scale, start[3] = {n[0], n[1], n[2]};
  // (1) kinks that may be active
  find_vertices<Team>(d, s);
  const Choices choices = choices_of(d, s);
  Best best = {{n[0], n[1], n[2]}, reach(d, n), choices.all};
  // (2) choices among them
  if (Team::SIZE < MOST_CHOICES) {
    ROLLED for (int k = 0; k < choices.number; ++k) {
      const Kinks some = choices.choice(k);
      try_kinks(d, s, some, start, slack, some.number == choices.all.number && k < choices.subsets, best);
    }
  } else {
    try_together<Team>(d, s, choices, start, slack, best);
  }
  // (3) caps, and sides of boxes
  snap_to_face(d, 0, R(0.25) * slack, best);
  snap_to_face(d, 1, R(0.25) * slack, best);
  for (int i = 0; i < 3; ++i) n[i] = best.n[i];
  kinks = best.kinks;
  return best.h;
}

// Whether the contact is a line along the axis of a body: on the side of a cylinder.
DEVICE bool lies_along(const Shape& s, const Kinks& kinks, int body) {
  real axis[3];
  mat_col(axis, s.mat, 2);
  bool along = false;
  for (int k = 0; k < kinks.number; ++k) {
    along |= kinks.body[k] == body && abs_(dot3(kinks.edge[k], axis)) > R(0.5);
  }
  return along;
}

// Whether two support points of the flat part are the same point; a side of length zero has both signs there.
DEVICE bool same_point(const Shape& s, int vertex, int other) {
  if (s.hull.nvert) return vertex == other;
  bool same = true;
  for (int i = 0; i < 3; ++i) same &= !((vertex ^ other) >> i & 1) || !(s.box[i] > 0);
  return same;
}

// A point of the core near the contact: the weighted mean of the support points of the flat part, plus the support
// point of the smooth part at n. Returns whether the point is unique, which needs a single support point of the flat
// part and a smooth part without a cap. A support point that does not touch is replaced by one that does, because the
// simplex may contain another edge, parallel to the one that touches.
DEVICE_APART bool witness(const Shape& s, const Simplex& simplex, int body, const real* n, real slack, real* point) {
  const real sign = body ? R(-1.0) : R(1.0);
  real local[3], along[3], curved[3], flat[3], sum[3] = {R(0.0), R(0.0), R(0.0)};
  int first = -1;
  bool certain = true;
  const bool disc = s.round[0] > 0 && !(s.round[2] > 0);
  to_local(along, s.mat, n);
  for (int i = 0; i < 3; ++i) along[i] *= sign;
  const int low = flat_vertex(s, along);
  flat_point(s, low, flat);
  const real most = dot3(flat, along) - slack;
  ROLLED for (int k = 0; k < 4; ++k) {
    if (!simplex.used[k]) continue;
    int vertex = simplex_vertex(s, simplex, k, body);
    flat_point(s, vertex, flat);
    const bool touches = !(dot3(flat, along) < most);
    if (!touches) flat_point(s, low, flat);
    if (!touches && disc) vertex = low;
    if (first < 0) first = vertex;
    certain &= same_point(s, vertex, first);
    if (disc) {
      to_local(local, s.mat, simplex.dir[k]);
      for (int i = 0; i < 3; ++i) local[i] *= sign;
      round_point(s, local, curved);
    }
    for (int i = 0; i < 3; ++i) sum[i] = fma_(simplex.weight[k], disc ? flat[i] + curved[i] : flat[i], sum[i]);
  }
  const bool cap = disc && is_axial(along);
  if (!cap) {
    round_point(s, along, curved);
    for (int i = 0; i < 3; ++i) sum[i] = disc && i < 2 ? curved[i] : sum[i] + curved[i];
  }
  to_world(point, s.mat, sum);
  for (int i = 0; i < 3; ++i) point[i] += s.pos[i];
  return certain && !(disc && 1 - abs_(along[2]) < R(1e-4));
}

// Whether a core is strictly convex, with a unique support point in every direction: a point or an ellipsoid.
DEVICE bool is_strict(const Shape& s) {
  bool flat = s.hull.nvert > 0;
  for (int i = 0; i < 3; ++i) flat |= s.box[i] > 0 || (s.round[i] > 0) != (s.round[0] > 0);
  return !flat;
}

// Witness points of both cores, with p1 - p2 = h n. The points move along the edges of the active kinks until no
// difference perpendicular to n is left.
DEVICE void witnesses(const Difference& d, const Simplex& s, const real* n, real h, const Kinks& kinks, real* p1,
                      real* p2) {
  const real slack = TOUCHING * d.scale;
  const bool certain1 = witness(d.a, s, 0, n, slack, p1) && !kinks.unseen[0];
  const bool certain2 = witness(d.b, s, 1, n, slack, p2) && !kinks.unseen[1];
  const bool strict1 = is_strict(d.a) || (certain1 && !certain2), strict2 = is_strict(d.b) || (certain2 && !certain1);
  if (strict1 || strict2) {  // its support point is unique and determines the other's
    for (int i = 0; i < 3; ++i) {
      if (strict2) p1[i] = fma_(h, n[i], p2[i]);
      else p2[i] = fma_(-h, n[i], p1[i]);
    }
    return;
  }
  if (!kinks.number) return;
  real rest[3], share[2] = {R(0.0), R(0.0)};
  for (int i = 0; i < 3; ++i) rest[i] = p1[i] - p2[i];
  const real along = dot3(rest, n);
  for (int i = 0; i < 3; ++i) rest[i] = fma_(-along, n[i], rest[i]);
  const real r0 = dot3(rest, kinks.edge[0]), r1 = kinks.number == 2 ? dot3(rest, kinks.edge[1]) : R(0.0);
  const real c = kinks.number == 2 ? dot3(kinks.edge[0], kinks.edge[1]) : R(0.0), det = 1 - c * c;
  share[0] = (r0 - c * r1) / det;
  share[1] = (r1 - c * r0) / det;
  // a far crossing of almost parallel edges of both cores is not well defined: then each point moves by half, unless
  // crossing.cuh finds both edges to hold it
  const real most = fma_(R(4.0), sqrt_(dot3(rest, rest)), R(0.01) * d.scale);
  if (!(abs_(share[0]) + abs_(share[1]) > most && edges_cross(d, n, kinks, share, p1, p2)))
  if (kinks.number == 2 && kinks.body[0] != kinks.body[1] && abs_(share[0]) + abs_(share[1]) > most) {
    for (int i = 0; i < 3; ++i) {
      p1[i] = fma_(R(-0.5), rest[i], p1[i]);
      p2[i] = fma_(R(0.5), rest[i], p2[i]);
    }
    return;
  }
  for (int k = 0; k < kinks.number; ++k) {
    for (int i = 0; i < 3; ++i) {
      if (kinks.body[k] == 0) p1[i] = fma_(-share[k], kinks.edge[k][i], p1[i]);
      else p2[i] = fma_(share[k], kinks.edge[k][i], p2[i]);
    }
  }
}
