// The pairs of geoms that may touch, in the order in which MuJoCo lists their contacts: by bodies; for the same bodies,
// explicit pairs first, and then by geoms. See broadphase.cuh.

// Appends pairs to a list.
struct PutNear {
  int* entry;
  DEVICE_METHOD void operator()(int low, int high) {
    entry[0] = low;
    entry[1] = high;
    entry += 2;
  }
};

// The two geoms of an entry, which holds either two geoms or the number of an explicit pair, stored as a negative
// number.
DEVICE void geoms_of(const Model& m, const int* entry, int* g1, int* g2) {
  if (entry[0] < 0) {
    const int* own = m.explicit_pair() + 3 * (-1 - entry[0]);
    *g1 = own[0];
    *g2 = own[1];
  } else {
    order_by_type(m, entry[0], entry[1], g1, g2);
  }
}

// Sort key: lower or higher body of an entry. Geom ids increase with the body.
struct BodyKey {
  const Model& m;
  bool higher;
  DEVICE_METHOD int operator()(const int* entry) const {
    if (entry[0] >= 0) return m.geom_bodyid()[entry[higher]];
    const int* own = m.explicit_pair() + 3 * (-1 - entry[0]);
    const int b1 = m.geom_bodyid()[own[0]], b2 = m.geom_bodyid()[own[1]];
    return (b1 > b2) == higher ? b1 : b2;
  }
};

// Whether entry a comes before entry b, where both have the same bodies.
DEVICE bool comes_before(const Model& m, const int* a, const int* b) {
  if (a[0] < 0 || b[0] < 0) return a[0] < 0 && (b[0] >= 0 || a[0] > b[0]);
  int a1 = a[0], a2 = a[1], b1 = b[0], b2 = b[1];
  if (m.opt_midphase()) {
    order_by_type(m, a[0], a[1], &a1, &a2);
    order_by_type(m, b[0], b[1], &b1, &b2);
  }
  return a1 < b1 || (a1 == b1 && a2 < b2);
}

// (4) final index of entry i, among the entries of the same bodies, which are consecutive
DEVICE int place_of(const Model& m, const int* sorted, int n, int i) {
  const BodyKey low = {m, false}, high = {m, true};
  const int *own = sorted + 2 * i, body1 = low(own), body2 = high(own);
  int begin = i, place = 0;
  while (begin > 0 && low(own + 2 * (begin - 1 - i)) == body1 && high(own + 2 * (begin - 1 - i)) == body2) --begin;
  ROLLED for (int j = begin; j < n; ++j) {
    const int* other = sorted + 2 * j;
    if (j > i && (low(other) != body1 || high(other) != body2)) break;
    place += comes_before(m, other, own);
  }
  return begin + place;
}

// (1) all pairs of the world, in the order in which they are found; returns their number
DEVICE int put_pairs(const Model& m, const Grid& grid, const real* geom_xpos, const real* geom_xmat,
                     const int* grid_found, const int* grid_near, int* pair_entry) {
  const int small = grid.start[large_geoms(m)], end = grid.start[idle_geoms(m)];
  int pairs = 0, total;
  ROLLED for (int base = 0; base < small; base += LANES) {
    const int i = base + lane(), found = i < small ? grid_found[i] : 0;
    PutNear put = {pair_entry + 2 * (pairs + lane_scan(found, &total))};
    if (found > MAX_NEIGHBOURS) {
      each_near(m, grid, i, put);
    } else {
      ROLLED for (int k = 0; k < found; ++k) {
        const int g = grid.sorted[2 * i + 1], other = grid_near[MAX_NEIGHBOURS * i + k];
        put(g < other ? g : other, g < other ? other : g);
      }
    }
    pairs += total;
  }
  ROLLED for (int l = small; l < end; ++l) {
    ROLLED for (int base = 0; base < l; base += LANES) {
      const int i = base + lane();
      int low = 0, high = 0;
      const bool hit = i < l && near_large(m, grid, i, l, geom_xpos, geom_xmat, &low, &high);
      PutNear put = {pair_entry + 2 * (pairs + lane_scan(hit, &total))};
      if (hit) put(low, high);
      pairs += total;
    }
  }
  ROLLED for (int base = 0; base < m.nexplicit(); base += LANES) {
    const int e = base + lane();
    const int* own = m.explicit_pair() + 3 * e;
    const bool hit = e < m.nexplicit() && !spheres_apart(m, own[0], own[1], reach_of(m, own[0], own[1], e), geom_xpos,
                                                         geom_xmat);
    PutNear put = {pair_entry + 2 * (pairs + lane_scan(hit, &total))};
    if (hit) put(-1 - e, 0);
    pairs += total;
  }
  lane_sync();
  return pairs;
}

DEVICE void find_pairs(const Model& m, const real* geom_xpos, const real* geom_xmat, const int* world_status,
                       const int* grid_sorted, const int* grid_start, const real* grid_box, const int* grid_found,
                       const int* grid_near, int* npair, int* pair_entry, int* pair_sorted, int* pair_counter,
                       int* pair_geom, int* pair_number, int* pair_slot, int* slice_record, int world) {
  int pairs = 0, slots = 0, total;
  if (world_status[0] == STATUS_HEALTHY) {
    pairs = put_pairs(m, Grid{grid_sorted, grid_start, grid_box}, geom_xpos, geom_xmat, grid_found, grid_near,
                      pair_entry);
  }
  // (2) stable sort by the higher body, then by the lower one
  int bits = 1;
  while (m.nbody() >> bits) ++bits;
  int* sorted = radix_sort(pair_entry, pair_sorted, pair_counter, pairs, bits, BodyKey{m, true});
  int* other = sorted == pair_entry ? pair_sorted : pair_entry;
  sorted = radix_sort(sorted, other, pair_counter, pairs, bits, BodyKey{m, false});
  // (3) sort by geoms within the same bodies; the geom of the lower type becomes the first of its pair
  LANE_FOR(i, pairs) {
    const int place = place_of(m, sorted, pairs, i), first = sorted[2 * i];
    geoms_of(m, sorted + 2 * i, &pair_geom[2 * place], &pair_geom[2 * place + 1]);
    pair_number[place] = first < 0 ? -1 - first : -1;
  }
  lane_sync();
  // (5) address of each pair's slots
  ROLLED for (int base = 0; base < pairs; base += LANES) {
    const int p = base + lane();
    const int most = p < pairs ? kind_of(m, pair_geom[2 * p], pair_geom[2 * p + 1])[1] : 0;
    const int first = slots + lane_scan(most, &total);
    if (p < pairs) pair_slot[p] = first;
    slots += total;
  }
  LANE_FOR(s, (pairs + PAIRS_A_SLICE - 1) / PAIRS_A_SLICE) {
    const int begin = s * PAIRS_A_SLICE, left = pairs - begin;
    slice_record[4 * s] = world;
    slice_record[4 * s + 1] = begin;
    slice_record[4 * s + 2] = left < PAIRS_A_SLICE ? left : PAIRS_A_SLICE;
  }
  if (lane() == 0) npair[0] = pairs;
  lane_sync();
}
