// A geom on a height field: its prisms are collided in MuJoCo's order. The patch of cells below a geom is (1) empty if
// the boxes are apart, (2) has the cells that the geom's box covers, with (3) the corners of each prism, and (4)
// collides prism and geom as convex shapes: patch.cuh.

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

// Near pairs of a world, from one on, of which those with height fields are counted.
struct CountedFields {
  const Model& m;
  const int* near_cand;
  int from, near;
  const real *geom_xpos, *geom_xmat;
  int *numbers, *rows;  // contacts of each pair; and the lane's share of the rows of those closer than the margin
  KeptPrisms* kept;
  DEVICE_METHOD int size() const { return near; }
  DEVICE_METHOD int cand(int i) const { return near_at(m, near_cand, i); }
  DEVICE_METHOD bool has_prisms(int i) const { return i >= from && m.cand_type()[cand(i)] == TYPE_HFIELD; }
  DEVICE_METHOD Pair pair(int i) const { return pair_of(m, cand(i), geom_xpos, geom_xmat); }
  DEVICE_METHOD real margin(int i) const { return detection_margin(m, cand(i)); }
  DEVICE_METHOD void take(int, int, const Contact& contact) const {
    if (KEEPS_PRISMS) kept->put(contact);
  }
  DEVICE_METHOD void end(int i, bool first, int number, const Contact* hit) const {
    if (hit && hit->dist < m.cand_margin()[cand(i)]) *rows += rows_of(m, cand(i));
    if (first && i >= 0) put_near(m, numbers, i, number);
  }
};

// Write the numbers of contacts of near pairs with height fields, other than 0; `rows` receives the lane's share of
// their constraint rows.
DEVICE void count_hfields(const Model& m, const int* near_cand, int near, const real* geom_xpos, const real* geom_xmat,
                          int* numbers, int* rows, real* kept_prism) {
  KeptPrisms kept = {kept_prism, m.nkeptprism(), 0};
  each_prism(CountedFields{m, near_cand, 0, near, geom_xpos, geom_xmat, numbers, rows, &kept});
}

// Store the kept contacts of near pairs with height fields, as long as all of a pair are kept. Returns the number of
// the pair after these.
DEVICE int store_kept(const Model& m, const int* near_cand, const int* near_adr, int near, const real* kept_prism,
                      const ContactFields& out) {
  int number = 0;
  for (int i = 0; i < near; ++i) {
    const int c = near_at(m, near_cand, i), first = near_at(m, near_adr, i);
    const int contacts = near_at(m, near_adr, i + 1) - first;
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
  DEVICE_METHOD int cand(int i) const { return near_at(m, near_cand, i); }
  DEVICE_METHOD bool touches(int i) const { return near_at(m, near_adr, i + 1) != near_at(m, near_adr, i); }
  DEVICE_METHOD bool has_prisms(int i) const {
    return i >= first && m.cand_type()[cand(i)] == TYPE_HFIELD && touches(i);
  }
  DEVICE_METHOD Pair pair(int i) const { return pair_of(m, cand(i), geom_xpos, geom_xmat); }
  DEVICE_METHOD real margin(int i) const { return detection_margin(m, cand(i)); }
  DEVICE_METHOD void take(int i, int place, const Contact& contact) const {
    out.put(near_at(m, near_adr, i) + place, &contact, 1, cand(i));
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
