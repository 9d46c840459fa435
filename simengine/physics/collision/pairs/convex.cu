// Two convex shapes of any type: GJK if their cores are apart, EPA if they overlap; see gjk.cuh and epa.cuh. A capsule
// and a cylinder need no search, and neither does a shape on a face of the other, which on a GPU is a side of a box or
// a cap; see segment_cylinder.cuh and resting.cuh.

#if REAL_IS_FLOAT
#define AT_MARGIN (4 * REAL_EPS)  // relative to the scale: a distance this close to the margin is at the margin
#else
#define AT_MARGIN R(1e-14)
#endif

// Contact midway between the surfaces, given the nearest points of the cores.
DEVICE void between_cores(const Difference& d, const real* origin, const real* normal, const real* p1, const real* p2,
                          real dist, Contact* out) {
  out->dist = dist;
  for (int i = 0; i < 3; ++i) {
    const real surface1 = fma_(d.a.radius, normal[i], p1[i]), surface2 = fma_(-d.b.radius, normal[i], p2[i]);
    out->pos[i] = origin[i] + R(0.5) * (surface1 + surface2);
    out->frame[i] = normal[i];
    out->frame[3 + i] = 0;
  }
  make_frame(out->frame);
}

// What is known of two cores.
#define CORES_APART 0  // they are farther apart than the margin
#define CORES_NEAR 1   // the normal, except of a capsule and a cylinder, which need no search
#define CORES_DEEP 2   // they overlap; EPA finds the normal
#define CORES_REST 3   // one lies on a side of the other, which needs no search; see round_cores.cuh

// (1) the normal towards the nearest point, if the cores are apart.
template <typename Team>
DEVICE int find_distance(const Difference& d, real margin, Simplex& simplex, real* normal) {
  if (is_segment_cylinder(d)) return CORES_NEAR;
  const real balls = rolling_balls(d);
  bool apart;
  const real distance = gjk<Team>(d, balls, margin + d.a.radius + d.b.radius + balls, simplex, normal, &apart);
  if (apart) return CORES_APART;
  add_balls(simplex, balls);
  return distance != 0 ? CORES_NEAR : CORES_DEEP;
}

// The same, or the normal of a face on which one of the cores rests.
template <typename Team>
DEVICE int begin_search(const Difference& d, real margin, Simplex& simplex, real* normal) {
  const real most = margin + d.a.radius + d.b.radius;
#if SIMENGINE_GPU
  real point[3], gap;
  const int on_side = rests_on_side(d, most, normal, point, &gap);
  if (on_side != REST_UNKNOWN) return on_side == REST_APART ? CORES_APART : CORES_REST;
#endif
  if (!is_segment_cylinder(d)) {
    const int found = rests(d, most, simplex, normal);
    if (found != REST_UNKNOWN) return found == REST_APART ? CORES_APART : CORES_NEAR;
  }
  return find_distance<Team>(d, margin, simplex, normal);
}

// Improve the normal that a search found, and find the kinks that belong to it. Returns the depth along it.
template <typename Team>
DEVICE real exact_normal(const Difference& d, const Simplex& simplex, real* normal, Kinks& kinks) {
#if !SIMENGINE_GPU
  if (ended_with_face(d, simplex, normal)) {
    find_kinks(d.a, simplex, 0, kinks);
    return reach(d, normal);
  }
#endif
#if SETTLES
  real h = polish<Team>(d, simplex, normal, kinks);
  if (is_smooth(d)) settle(d, &h, normal, kinks);
  return h;
#else
  return polish<Team>(d, simplex, normal, kinks);
#endif
}

// The contact along the normal that a search found, and the kinks that belong to it. Returns false if the distance is
// beyond the margin. A capsule and a cylinder have no simplex and no kinks, and their features need none.
template <typename Team>
DEVICE_CALL bool end_search(const Difference& d, const real* origin, real margin, const Simplex& simplex, real* normal,
                            Kinks& kinks, Contact* out) {
  real p1[3], p2[3];
  const real radii = d.a.radius + d.b.radius;
  kinks = no_kinks();
  if (is_segment_cylinder(d)) {
    const real cores = segment_cylinder(d, normal, p1);
    if (cores - radii > margin) return false;
    for (int i = 0; i < 3; ++i) p2[i] = fma_(cores, normal[i], p1[i]);
    between_cores(d, origin, normal, p1, p2, cores - radii, out);
    return true;
  }
#if SIMENGINE_GPU
  real cores;
  if (round_contact(d, margin + radii, normal, p1, p2, &cores)) {
    if (cores - radii > margin) return false;
    between_cores(d, origin, normal, p1, p2, cores - radii, out);
    return true;
  }
#endif
  if (simplex.face) {
    if (simplex.weight[0] - radii > margin) return false;
    resting_points(simplex, normal, p1, p2);
    between_cores(d, origin, normal, p1, p2, simplex.weight[0] - radii, out);
    return true;
  }
  // (2) the exact normal
  const real h = exact_normal<Team>(d, simplex, normal, kinks);
  const real dist = -h - radii;
  if (dist > margin) return false;
  witnesses(d, simplex, normal, h, kinks, p1, p2);
  // (3) contact midway between the surfaces
  between_cores(d, origin, normal, p1, p2, dist, out);
  return true;
}

// The contact at the nearest points, or at the least penetration, as one lane finds it.
DEVICE_CALL bool convex_contact(const Difference& d, const real* origin, real margin, Simplex& simplex, Kinks& kinks,
                                Contact* out) {
  real normal[3];
  const int cores = begin_search<OneLane>(d, margin, simplex, normal);
  if (cores == CORES_APART) return false;
  if (cores == CORES_DEEP) {
    Polytope polytope;
    epa<OneLane>(d, polytope, simplex, normal);
  }
  return end_search<OneLane>(d, origin, margin, simplex, normal, kinks, out);
}

// Whether a geom type has no flat feature.
DEVICE bool is_round(int type) { return type == GEOM_SPHERE || type == GEOM_ELLIPSOID; }

// The number of contacts of a pair, of which `out` has one; it receives all of them.
DEVICE_CALL int with_features(const Pair& p, const Difference& d, real margin, const Simplex& simplex,
                              const Kinks& kinks, Contact* out) {
  const Model& m = *p.model;
  // as in MuJoCo, what is at the margin is no contact; rounding of the distance must not make it one
  if (!(out->dist < margin - AT_MARGIN * d.scale)) return 0;
  // (4) more contacts of flat features
  if (!m.opt_multiccd() || is_round(m.geom_type()[p.geom1]) || is_round(m.geom_type()[p.geom2])) return 1;
  const real *normal = out->frame, inward[3] = {-normal[0], -normal[1], -normal[2]};
  const Solid a = solid_of(m, p.geom1, d.a, p.size1, simplex, kinks, normal, 0, margin, d.scale);
  const Solid b = solid_of(m, p.geom2, d.b, p.size2, simplex, kinks, inward, 1, margin, d.scale);
  Contact found[MAX_CONVEX];
  const int number = lying_contacts(a, b, p.pos1, margin, d.scale, found);
  for (int k = 0; k < number; ++k) out[k] = found[k];
  return number ? number : 1;
}

DEVICE_CALL int collide_convex(const Pair& p, real margin, Contact* out) {
  const Difference d = difference_of(p);
  Simplex simplex;
  Kinks kinks;
  if (!convex_contact(d, p.pos1, margin, simplex, kinks, out)) return 0;
  return with_features(p, d, margin, simplex, kinks, out);
}

DEVICE void convex(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                   const int* near_adr, const int* pair_tally, const int* search_near, const real* kept_contact,
                   real* contact_dist, real* contact_pos, real* contact_frame, int* contact_cand) {
  const ContactFields out = {contact_dist, contact_pos, contact_frame, contact_cand};
  LANE_FOR(k, pair_tally[1]) {
    const int i = search_near[k], c = near_at(m, near_cand, i);
    const int first = near_at(m, near_adr, i), number = near_at(m, near_adr, i + 1) - first;
    if (!number) continue;
    if (is_kept(m, k)) {
      store_kept(kept_contact, k, out, first, number, c);
      continue;
    }
    Contact found[MAX_CONVEX];
    collide_convex(pair_of(m, c, geom_xpos, geom_xmat), detection_margin(m, c), found);
    out.put(first, found, number, c);
  }
  lane_sync();
}
