// A geom on a height field. As in MuJoCo, the cells under the geom's bounding box are visited row by row, and the geom
// collides with the two prisms of each. A prism reaches from a triangle of the surface down to the base, and
// neighbouring prisms share two corners of the surface:
//
//     row + 1   0---2---4      strip of a row: prism k has the vertices k, k + 1, k + 2
//               | / | / |
//     row       1---3---5

// A geom and the part of a field under it, in the field's frame, relative to the geom's centre [m].
struct Patch {
  const real* data;            // heights of the whole field
  int ncol;                    // of the whole field
  int first[2], number[2];     // cells under the geom along x and y
  real corner[2], step[2];     // the field's first vertex, and the sides of a cell
  real ground, scale, base;    // height of data 0, height difference of data 1, and height of the base
  real low;                    // surfaces below this height are too far from the geom
  Difference d;                // a prism and the geom; the prism changes from call to call
  real geom_scale;
};

// Lower and upper end of the geom along a direction, from its centre.
DEVICE void ends_along(const Shape& s, const real* dir, real* low, real* high) {
  real point[3];
  const real opposite[3] = {-dir[0], -dir[1], -dir[2]};
  support(s, dir, point);
  *high = dot3(point, dir) + s.radius;
  support(s, opposite, point);
  *low = dot3(point, dir) - s.radius;
}

// The part of the field under the geom; returns false if there is none.
DEVICE_CALL bool patch_of(const Pair& p, real margin, Patch& f) {
  const Model& m = *p.model;
  const int field = m.geom_hfieldid()[p.geom1];
  const int count[2] = {m.hfield_ncol()[field], m.hfield_nrow()[field]};
  const real* size = m.hfield_size() + 4 * field;
  f.data = m.hfield_data() + m.hfield_adr()[field];
  f.ncol = count[0];
  f.d.b = shape_of(m, p.geom2, p.size2, p.pos2, p.mat2, p.pos2);
  f.geom_scale = extent(f.d.b);
  real offset[3], axis[3], low[3], high[3], centre[3];
  for (int i = 0; i < 3; ++i) offset[i] = p.pos2[i] - p.pos1[i];
  for (int i = 0; i < 3; ++i) {
    mat_col(axis, p.mat1, i);
    centre[i] = dot3(axis, offset);
    ends_along(f.d.b, axis, &low[i], &high[i]);
  }
  // (1) no contact if the bounding boxes are apart
  for (int i = 0; i < 3; ++i) {
    const real below = i < 2 ? size[i] : size[3];
    if (centre[i] + low[i] - margin > size[i] || centre[i] + high[i] + margin < -below) return false;
  }
  // (2) cells that the geom's box covers
  for (int i = 0; i < 2; ++i) {
    const int last = count[i] - 1;
    f.step[i] = 2 * size[i] / last;
    f.corner[i] = -size[i] - centre[i];
    const real begin = floor_((low[i] - margin - f.corner[i]) / f.step[i]);
    const real end = -floor_((f.corner[i] - high[i] - margin) / f.step[i]);
    f.first[i] = int(clamp_(begin, R(0.0), real(last)));
    f.number[i] = int(clamp_(end, R(0.0), real(last))) - f.first[i];
  }
  f.ground = -centre[2];
  f.scale = size[2];
  f.base = -size[3] - centre[2];
  f.low = low[2] - margin;
  return f.number[0] > 0 && f.number[1] > 0;
}

// Contact of the geom with a prism of the patch; returns false if there is none.
DEVICE_CALL bool prism_contact(const Pair& p, Patch& f, int prism, real margin, Contact* out) {
  const int strip = 2 * f.number[0], row = f.first[1] + prism / strip;
  real vert[18], centre[3] = {R(0.0), R(0.0), R(0.0)};
  bool reached = false;
  // (3) three corners of the base, then three of the surface
  for (int v = 0; v < 3; ++v) {
    const int number = prism % strip + v, c = f.first[0] + number / 2, r = row + 1 - (number & 1);
    real* lower = vert + 3 * v;
    real* upper = lower + 9;
    lower[0] = upper[0] = fma_(real(c), f.step[0], f.corner[0]);
    lower[1] = upper[1] = fma_(real(r), f.step[1], f.corner[1]);
    lower[2] = f.base;
    upper[2] = fma_(f.data[r * f.ncol + c], f.scale, f.ground);
    reached |= upper[2] >= f.low;
    for (int i = 0; i < 3; ++i) centre[i] += (lower[i] + upper[i]) * R(0.16666666666666667);
  }
  if (!reached) return false;
#if !SIMENGINE_GPU
  if (is_ball(f.d.b)) {
    const int found = ball_on_prism(vert + 9, f.base, f.d.b.radius, margin, p.mat1, p.pos2, out);
    if (found >= 0) return found;
  }
#endif
  real square = 0;
  for (int v = 0; v < 6; ++v) {
    for (int i = 0; i < 3; ++i) vert[3 * v + i] -= centre[i];
    square = max_(square, dot3(vert + 3 * v, vert + 3 * v));
  }
  // (4) collide the prism and the geom as two convex shapes
  Shape& a = f.d.a;
  a.mat = p.mat1;
  to_world(a.pos, p.mat1, centre);
  for (int i = 0; i < 3; ++i) a.box[i] = a.round[i] = 0;
  a.radius = 0;
  a.hull.vert = vert;
  a.hull.nvert = 6;
  a.hull.extent = sqrt_(square);
  a.hull.cube_side = 0;
#if HAS_PACKS
  a.hull.pack = 0;
#endif
  placed(a);
#if !SIMENGINE_GPU
  real top[3];
  face_upward(vert + 9, top);
  a.hull.top = top;
#endif
  f.d.scale = extent(a) + f.geom_scale;
#if !SIMENGINE_GPU
  f.d.model = nullptr;
#endif
  Simplex simplex;
  Kinks kinks;
  return convex_contact(f.d, p.pos2, margin, simplex, kinks, out);
}

// Prisms of several pairs, shared by the lanes: a geom lies on few prisms, so those of several geoms fill a round.
//
// `pairs` has
//     size()                      number of pairs
//     has_prisms(i)               whether pair i has a field and may have contacts; each lane asks for other pairs
//     pair(i), margin(i)          pair i, and the distance up to which it has contacts
//     take(i, place, contact)     receives the contacts of a pair, numbered in MuJoCo's order up to MuJoCo's limit
//     end(i, first, number, hit)  is called by all lanes after each round: the number of contacts of the lane's pair so
//                                 far, whether the lane is the first of this pair, and its contact if it found one that
//                                 was taken. i is -1 for lanes without a prism
template <typename Pairs>
struct PrismRounds {
  const Pairs& pairs;
  int filled, pair, prism;  // lanes that have a prism, and the lane's own
  int open, before;         // the pair whose prisms the last round did not finish, and its contacts so far

  // Collide the prisms of all lanes. `f` is the patch of pair `current`, the last one that has prisms in the round.
  DEVICE_METHOD void finish(int current, Patch& f) {
    const int already = pair == open ? before : 0;
    Contact contact;
    bool hit = false;
    if (pair >= 0 && already < MAX_HFIELD) {
      const Pair own = pairs.pair(pair);
      Patch other;
      if (pair != current) patch_of(own, pairs.margin(pair), other);
      hit = prism_contact(own, pair == current ? f : other, prism, pairs.margin(pair), &contact);
    }
    int total;
    bool first;
    const int place = already + lane_sum_of_key(pair, hit, &total, &first);
    const int number = already + total < MAX_HFIELD ? already + total : MAX_HFIELD;
    hit = hit && place < MAX_HFIELD;
    if (hit) pairs.take(pair, place, contact);  // (5) in their order
    pairs.end(pair, first, number, hit ? &contact : nullptr);
    before = lane_most(pair == current ? number : 0);
    open = current;
    pair = -1;
    filled = 0;
  }

#ifdef PRISMS_IN_VECTORS
  // Collide the prisms of pair i that may touch, in order.
  DEVICE_METHOD void add(int i, Patch& f) {
    const real margin = pairs.margin(i);
    each_near_prism(f, bounds_of(pairs.pair(i), f.d.b), margin, [&](int near) {
      pair = i;
      prism = near;
      finish(i, f);
      return before < MAX_HFIELD;
    });
  }
#else
  // Give the prisms of pair i to lanes, in order.
  DEVICE_METHOD void add(int i, Patch& f) {
    const int prisms = 2 * f.number[0] * f.number[1];
    ROLLED for (int next = 0; next < prisms;) {
      const int slot = lane() - filled, room = LANES - filled, given = prisms - next < room ? prisms - next : room;
      if (slot >= 0 && slot < given) {
        pair = i;
        prism = next + slot;
      }
      filled += given;
      next += given;
      if (filled == LANES) finish(i, f);
      if (i == open && before == MAX_HFIELD) return;
    }
  }
#endif
};

template <typename Pairs>
DEVICE void each_prism(const Pairs& pairs) {
  PrismRounds<Pairs> rounds = {pairs, 0, -1, 0, -1, 0};
  Patch f;
  int last = -1;
  ROLLED for (int base = 0; base < pairs.size(); base += LANES) {
    const int own = base + lane();
    // the lanes that have such a pair, the lowest first
    int left = own < pairs.size() && pairs.has_prisms(own) ? LANES - lane() : 0;
    ROLLED for (int most = lane_most(left); most; most = lane_most(left)) {
      const int i = base + LANES - most;
      if (lane() == LANES - most) left = 0;
      Patch here;
      if (!patch_of(pairs.pair(i), pairs.margin(i), here)) continue;
      f = here;
      last = i;
      rounds.add(i, f);
    }
  }
  if (rounds.filled) rounds.finish(last, f);
}

// Contacts with height fields that counting keeps for the narrowphase, in the order of pairs. Several lanes find them
// out of order, and keep none.
#define KEEPS_PRISMS (!SIMENGINE_GPU && LANES == 1)

struct KeptPrisms {
  real* fields;      // as those of searches; see contact.cuh
  int room, number;  // contacts that have a place, and those so far

  DEVICE_METHOD void put(const Contact& contact) {
    if (number < room) put_kept(fields + KEPT_REALS * number, 0, &contact, 1);
    ++number;
  }
};

// Near pairs of a world, of which those with height fields are counted.
struct CountedFields {
  const Model& m;
  const int* near_cand;
  int near;
  const real *geom_xpos, *geom_xmat;
  int *numbers, *rows;  // contacts of each pair; and the lane's share of the rows of those closer than the margin
  KeptPrisms* kept;
  DEVICE_METHOD int size() const { return near; }
  DEVICE_METHOD bool has_prisms(int i) const { return m.cand_type()[near_cand[i]] == TYPE_HFIELD; }
  DEVICE_METHOD Pair pair(int i) const { return pair_of(m, near_cand[i], geom_xpos, geom_xmat); }
  DEVICE_METHOD real margin(int i) const { return detection_margin(m, near_cand[i]); }
  DEVICE_METHOD void take(int, int, const Contact& contact) const {
    if (KEEPS_PRISMS) kept->put(contact);
  }
  DEVICE_METHOD void end(int i, bool first, int number, const Contact* hit) const {
    if (hit && hit->dist < m.cand_margin()[near_cand[i]]) *rows += rows_of(m, near_cand[i]);
    if (first && i >= 0) numbers[i] = number;
  }
};

// Write the numbers of contacts of near pairs with height fields, other than 0; `rows` receives the lane's share of
// their constraint rows.
DEVICE void count_hfields(const Model& m, const int* near_cand, int near, const real* geom_xpos, const real* geom_xmat,
                          int* numbers, int* rows, real* kept_prism) {
  KeptPrisms kept = {kept_prism, m.nkeptprism(), 0};
  each_prism(CountedFields{m, near_cand, near, geom_xpos, geom_xmat, numbers, rows, &kept});
}

// Store the kept contacts of near pairs with height fields, as long as all of a pair are kept. Returns the number of
// the pair after these.
DEVICE int store_kept(const Model& m, const int* near_cand, const int* near_adr, int near, const real* kept_prism,
                      const ContactFields& out) {
  int number = 0;
  for (int i = 0; i < near; ++i) {
    const int c = near_cand[i], first = near_adr[i], contacts = near_adr[i + 1] - first;
    if (m.cand_type()[c] != TYPE_HFIELD) continue;
    if (number + contacts > m.nkeptprism()) return i;
    for (int k = 0; k < contacts; ++k) {
      Contact contact;
      take_kept(kept_prism + KEPT_REALS * (number + k), 0, &contact, 1);
      out.put(first + k, &contact, 1, c);
    }
    number += contacts;
  }
  return near;
}

// The same pairs, from one on, whose contacts are stored at the addresses from counting.
struct StoredFields {
  const Model& m;
  const int *near_cand, *near_adr;
  int first, near;
  const real *geom_xpos, *geom_xmat;
  ContactFields out;
  DEVICE_METHOD int size() const { return near; }
  DEVICE_METHOD bool has_prisms(int i) const {
    return i >= first && m.cand_type()[near_cand[i]] == TYPE_HFIELD && near_adr[i + 1] != near_adr[i];
  }
  DEVICE_METHOD Pair pair(int i) const { return pair_of(m, near_cand[i], geom_xpos, geom_xmat); }
  DEVICE_METHOD real margin(int i) const { return detection_margin(m, near_cand[i]); }
  DEVICE_METHOD void take(int i, int place, const Contact& contact) const {
    out.put(near_adr[i] + place, &contact, 1, near_cand[i]);
  }
  DEVICE_METHOD void end(int, bool, int, const Contact*) const {}
};

DEVICE void hfield(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* near_cand,
                   const int* near_adr, const int* pair_tally, const real* kept_prism, real* contact_dist,
                   real* contact_pos, real* contact_frame, int* contact_cand) {
  const ContactFields out = {contact_dist, contact_pos, contact_frame, contact_cand};
  const int near = pair_tally[0];
  const int first = KEEPS_PRISMS ? store_kept(m, near_cand, near_adr, near, kept_prism, out) : 0;
  if (first < near) each_prism(StoredFields{m, near_cand, near_adr, first, near, geom_xpos, geom_xmat, out});
  lane_sync();
}
