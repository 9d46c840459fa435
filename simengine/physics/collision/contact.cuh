// Contacts: the record that a narrowphase fills, its frame, and the loops that all pair types share.
#pragma once

struct Contact {
  real dist;
  real pos[3];
  real frame[9];
};

// Complete a frame whose first row is the normal, and whose second row is a preferred tangent or zero: MuJoCo's
// mju_makeFrame.
DEVICE void make_frame(real* frame) {
  real* y = frame + 3;
  if (sqrt_(dot3(y, y)) < R(0.5)) {
    const bool use_y = frame[1] < R(0.5) && frame[1] > R(-0.5);
    y[0] = 0;
    y[1] = use_y;
    y[2] = !use_y;
  }
  const real along = dot3(frame, y);
  for (int i = 0; i < 3; ++i) y[i] = fma_(-along, frame[i], y[i]);
  normalize3(y);
  cross3(frame + 6, frame, y);
}

// Contact of a plane with a point at the signed distance `dist` from it.
DEVICE void plane_contact(const real* normal, const real* point, real dist, Contact* out) {
  out->dist = dist;
  for (int i = 0; i < 3; ++i) {
    out->frame[i] = normal[i];
    out->frame[3 + i] = 0;
    out->pos[i] = fma_(R(-0.5) * dist, normal[i], point[i]);
  }
  make_frame(out->frame);
}

// `unit` is perpendicular to `axis` up to rounding errors; remove its component along the axis if that is more than
// normal rounding.
DEVICE void put_across(real* unit, const real* axis) {
  const real along = dot3(unit, axis);
  if (!(abs_(along) > 4 * REAL_EPS)) return;
  for (int i = 0; i < 3; ++i) unit[i] = fma_(-along, axis[i], unit[i]);
  normalize3(unit);
}

// Contact of two spheres, which may be those at the nearest points of two capsules. If the centres coincide, axis1 and
// axis2 decide the normal. inner1 and inner2 say that a centre is not at the end of its capsule's segment, so that the
// normal is perpendicular to the segment. Where the centres are close, the axis is more accurate than their difference,
// which has rounding errors. With two such axes, the difference only decides the sign of the normal.
DEVICE int sphere_contact(const real* pos1, real radius1, const real* pos2, real radius2, const real* axis1,
                          const real* axis2, bool inner1, bool inner2, real margin, Contact* out) {
  real normal[3];
  for (int i = 0; i < 3; ++i) normal[i] = pos2[i] - pos1[i];
  const real centres = normalize3(normal);
  const real dist = centres - (radius1 + radius2);
  if (dist > margin) return 0;
  // in planar mechanisms axes intersect exactly, and the rounding of their positions must not decide the normal
  real extent = 0;
  for (int i = 0; i < 3; ++i) extent = max_(extent, max_(abs_(pos1[i]), abs_(pos2[i])));
  extent += radius1 + radius2;
  const real least = 16 * REAL_EPS * extent;
  const bool coincide = centres < least;
  if (coincide || (inner1 && inner2)) {
    real across[3];
    cross3(across, axis1, axis2);
    // axes that are almost parallel leave the points on them inexact, and not the distance across both axes
    const real sine = normalize3(across), side = centres * dot3(across, normal) > -least ? R(1.0) : R(-1.0);
    if (coincide || centres < sine * extent) {
      for (int i = 0; i < 3; ++i) normal[i] = side * across[i];
    }
  } else if (inner1 || inner2) {
    put_across(normal, inner1 ? axis1 : axis2);
  }
  out->dist = dist;
  for (int i = 0; i < 3; ++i) {
    out->frame[i] = normal[i];
    out->frame[3 + i] = 0;
    out->pos[i] = fma_(normal[i], radius1 + R(0.5) * dist, pos1[i]);
  }
  make_frame(out->frame);
  return 1;
}

// The geometry of a pair of geoms that a narrowphase reads.
struct Pair {
  const real *pos1, *mat1, *size1, *pos2, *mat2, *size2;
  const Model* model;
  int geom1, geom2;
};

DEVICE Pair pair_of(const Model& m, int g1, int g2, const real* geom_xpos, const real* geom_xmat) {
  return {geom_xpos + 3 * g1, geom_xmat + 9 * g1, m.geom_size() + 3 * g1,
          geom_xpos + 3 * g2, geom_xmat + 9 * g2, m.geom_size() + 3 * g2,
          &m,                 g1,                 g2};
}

// The same for candidate pair c.
DEVICE Pair pair_of(const Model& m, int c, const real* geom_xpos, const real* geom_xmat) {
  return pair_of(m, m.cand_geom1()[c], m.cand_geom2()[c], geom_xpos, geom_xmat);
}

// Distance below which a pair is listed as a contact; forces begin at the margin itself.
DEVICE real detection_margin(const Model& m, int c) { return m.cand_margin()[c] + m.cand_gap()[c]; }

typedef int (*CollideFunction)(const Pair&, real, Contact*);

// The arrays that receive the contacts of a world.
struct ContactFields {
  real *dist, *pos, *frame;
  int* cand;

  // Store the contacts of candidate pair c, from index `first` on.
  DEVICE_METHOD void put(int first, const Contact* found, int number, int c) const {
    for (int k = 0; k < number; ++k) {
      dist[first + k] = found[k].dist;
      for (int i = 0; i < 3; ++i) pos[3 * (first + k) + i] = found[k].pos[i];
      for (int i = 0; i < 9; ++i) frame[9 * (first + k) + i] = found[k].frame[i];
      cand[first + k] = c;
    }
  }
};

// Contacts from counting, so that the narrowphase need not search again: distance, position and normal of the first
// contacts of a world's pairs with a search. Their tangents follow from their normals.
#define KEPT_REALS 7

#define FOUND_ROWS 256  // what is found of a pair: its number of contacts, and this times the number of their rows

// Whether the contacts of the search with this number are kept.
DEVICE bool is_kept(const Model& m, int search) { return (search + 1) * MAX_CONVEX <= m.nkept(); }

DEVICE void put_kept(real* kept, int search, const Contact* found, int number) {
  ROLLED for (int k = 0; k < number; ++k) {
    real* to = kept + KEPT_REALS * (search * MAX_CONVEX + k);
    to[0] = found[k].dist;
    for (int i = 0; i < 3; ++i) {
      to[1 + i] = found[k].pos[i];
      to[4 + i] = found[k].frame[i];
    }
  }
}

DEVICE void take_kept(const real* kept, int search, Contact* out, int number) {
  ROLLED for (int k = 0; k < number; ++k) {
    const real* from = kept + KEPT_REALS * (search * MAX_CONVEX + k);
    out[k].dist = from[0];
    for (int i = 0; i < 3; ++i) {
      out[k].pos[i] = from[1 + i];
      out[k].frame[i] = from[4 + i];
      out[k].frame[3 + i] = 0;
    }
    make_frame(out[k].frame);
  }
}

// Entry i of a list of near pairs, near_cand or near_adr. It has 16 bits if all pairs and contacts that the model can
// have are told by as many; then two entries share a word.
DEVICE bool near_in_halves(const Model& m) { return m.nnear() < m.ncand(); }
DEVICE int near_at(const Model& m, const int* list, int i) {
  return near_in_halves(m) ? reinterpret_cast<const unsigned short*>(list)[i] : list[i];
}
DEVICE void put_near(const Model& m, int* list, int i, int value) {
  if (near_in_halves(m)) {
    reinterpret_cast<unsigned short*>(list)[i] = static_cast<unsigned short>(value);
  } else {
    list[i] = value;
  }
}

// Store the contacts of pair c that were kept, from index `first` on. On a GPU all words are under way at once.
DEVICE void store_kept(const real* kept, int search, const ContactFields& out, int first, int number, int c) {
#if SIMENGINE_GPU
  real words[MAX_CONVEX][KEPT_REALS];
  UNROLLED for (int k = 0; k < MAX_CONVEX; ++k) {
    const real* from = kept + KEPT_REALS * (search * MAX_CONVEX + k);
    UNROLLED for (int i = 0; i < KEPT_REALS; ++i) words[k][i] = k < number ? from[i] : R(0.0);
  }
  UNROLLED for (int k = 0; k < MAX_CONVEX; ++k) {
    if (k >= number) break;
    Contact found;
    take_kept(words[k], 0, &found, 1);
    out.put(first + k, &found, 1, c);
  }
#else
  Contact found[MAX_CONVEX];
  take_kept(kept, search, found, number);
  out.put(first, found, number, c);
#endif
}

// Write the contacts of every touching pair of one type, at most MOST per pair, at the addresses from counting.
template <CollideFunction COLLIDE, int MOST>
DEVICE void fill_contacts(const Model& m, int type, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                          const int* near_adr, const int* pair_tally, real* contact_dist, real* contact_pos,
                          real* contact_frame, int* contact_cand) {
  const ContactFields out = {contact_dist, contact_pos, contact_frame, contact_cand};
  LANE_FOR(i, pair_tally[0]) {
    const int c = near_at(m, near_cand, i), first = near_at(m, near_adr, i);
    const int number = near_at(m, near_adr, i + 1) - first;
    if (m.cand_type()[c] != type || number == 0) continue;
    Contact found[MOST];
    COLLIDE(pair_of(m, c, geom_xpos, geom_xmat), detection_margin(m, c), found);
    out.put(first, found, number, c);
  }
  lane_sync();
}

// The same for a type whose contacts come one by one: Type::each(pair, margin, put) calls put(k, contact) for the k-th.
// They are stored at once, since a GPU would have an array of them in memory.
template <class Type>
DEVICE void fill_one_by_one(const Model& m, int type, const real* geom_xpos, const real* geom_xmat,
                            const int* near_cand, const int* near_adr, const int* pair_tally,
                            const ContactFields& out) {
  LANE_FOR(i, pair_tally[0]) {
    const int c = near_at(m, near_cand, i), first = near_at(m, near_adr, i);
    if (m.cand_type()[c] != type || near_at(m, near_adr, i + 1) == first) continue;
    Type::each(pair_of(m, c, geom_xpos, geom_xmat), detection_margin(m, c),
               [&](int k, const Contact& found) { out.put(first + k, &found, 1, c); });
  }
  lane_sync();
}

// Number of constraint rows per contact of candidate pair c.
DEVICE int rows_of(const Model& m, int c) { return m.cand_rows()[c]; }
