// Broadphase and counting, for the pair types that COLLIDE handles: which candidate pairs touch, how many contacts and
// constraint rows each world has, and which pair types and solver size class it needs. The counts come first, because
// the arenas must be large enough before anything is written to them.
#pragma once

// Whether a model has height fields, and pairs that need a search. Kernels of others are built without the code for
// these, because it takes registers even where it never runs.
#ifndef HFIELDS
#define HFIELDS 1
#endif
#ifndef SEARCHES
#define SEARCHES 1
#endif

// Computes the contacts of a pair of the given type; returns their number.
typedef int (*CollideAny)(int, const Pair&, real, Contact*);

// Whether bounding spheres separate candidate pair c, or bounding boxes if its narrowphase is HEAVY.
template <bool HEAVY>
DEVICE bool apart(const Model& m, int c, const real* geom_xpos, const real* geom_xmat) {
  return spheres_apart(m, c, geom_xpos, geom_xmat) || (HEAVY && boxes_apart(m, c, geom_xpos, geom_xmat));
}

// Number of constraint rows of the contacts of candidate pair c.
DEVICE int rows_of(const Model& m, int c, const Contact* found, int number) {
  int rows = 0;
  for (int k = 0; k < number; ++k) rows += found[k].dist < m.cand_margin()[c] ? rows_of(m, c) : 0;
  return rows;
}

// Candidate pairs that may touch wait until each lane has one, because few pass, and their narrowphase takes long.
#define WAITING_WORDS 64

// List the lane's pair, of which c is -1 in lanes without one, unless the caller wants boxes to be tested, and they are
// apart.
template <typename Take>
DEVICE void list_near(const Model& m, int c, const real* geom_xpos, const real* geom_xmat, Take& take) {
  if (Take::TESTS_BOXES && c >= 0 && boxes_apart(m, c, geom_xpos, geom_xmat)) c = -1;
  take.list(c);
}

// For each candidate pair whose bounding spheres overlap, and whose bounding boxes do too if Take::TESTS_BOXES, call
// take.list(c) in one lane, in order; c is -1 in lanes without a pair. All lanes call it together. `waiting` has
// WAITING_WORDS integers; a group of more than 32 lanes has a place of its own in the block's shared memory.
// `bounds` may be null, or what share_bounds returns.
template <typename Take>
DEVICE void each_near(const Model& m, int ncand, const real* geom_xpos, const real* geom_xmat, int* waiting,
                      Take& take, const Vec4* bounds = nullptr) {
#ifdef SPANS
  if (m.ngeom() <= MOST_SPHERES) {
    if (ncand) each_near_of_spans(m, geom_xpos, geom_xmat, take);
    return;
  }
#endif
  if (LANES == 1) {
    ROLLED for (int c = 0; c < ncand; ++c) {
      if (!apart<Take::TESTS_BOXES>(m, c, geom_xpos, geom_xmat)) take.list(c);
    }
    return;
  }
#if SIMENGINE_GPU && LANES > 32
  __shared__ int of_block[2 * LANES];
  waiting = of_block;
#endif
  int own = -1, count = 0;          // the lane's pair, and the number of those that wait
  int next = 0, passed = 0;         // first candidate of the next rounds, and in which of the last the lane's passes
  unsigned rounds = 0;              // in which of the last some lane's passes, and is not waiting yet, by bits
  for (;;) {
    ROLLED while (count < LANES) {
      ROLLED for (; !rounds && next < ncand; next += ROUNDS_AT_ONCE * LANES) {  // few rounds have any
        passed = near_rounds(m, next, ncand, bounds, geom_xpos, geom_xmat);
        rounds = lane_or(passed);
      }
      if (!rounds) break;
      const int round = low_bit(rounds);
      const bool passes = passed >> round & 1;
      int total;
      const int place = count + lane_rank(passes, &total);
      if (passes) waiting[place] = next + (round - ROUNDS_AT_ONCE) * LANES + lane();
      count += total;
      rounds &= rounds - 1;
    }
    if (!count) break;
    lane_sync();
    own = lane() < count ? waiting[lane()] : -1;
    list_near(m, own, geom_xpos, geom_xmat, take);
    lane_sync();
    if (LANES + lane() < count) waiting[lane()] = waiting[LANES + lane()];
    lane_sync();
    count = count > LANES ? count - LANES : 0;
  }
}

DEVICE int size_class(int nefc) {
  int index = 0;
  while (index < NUM_CLASSES - 1 && nefc > ROW_BOUND(index)) ++index;
  return index;
}

// The lane's share of the rows of active equalities and of friction losses.
DEVICE int standing_rows(const Model& m, const int* eq_active) {
  int rows = lane() == 0 ? m.nfriction() : 0;
  LANE_FOR(e, m.neq()) rows += eq_active[e] ? m.eq_rows()[e] : 0;
  return rows;
}

// Write a world's counts, given the number of its contacts, and the lane's share of their rows and of the pair types
// that occur, with one bit per type.
DEVICE void store_counts(const Model& m, const real* qpos, const real* ten_length, bool healthy, int contacts, int rows,
                         int types, int* ncon, int* nefc, int* counts, int shard_size) {
  // (2) active limits
  LANE_FOR(l, healthy ? m.nlimit() : 0) {
    const Limit limit = limit_of(m, m.limit_id()[l], qpos, ten_length);
    rows += (limit.dist[0] < limit.margin) + (limit.dist[1] < limit.margin);
  }
  rows = lane_sum_int(rows);
  types = lane_or(types);
  // (3) the world's entry in each column of counts
  const int row_class = size_class(rows);
  LANE_FOR(column, NUM_COLUMNS) {
    int value = column == 0 ? contacts : rows;
    if (column >= COLUMN_TYPE) value = types >> (column - COLUMN_TYPE) & 1;
    if (column >= COLUMN_CLASS) value = healthy && column - COLUMN_CLASS == row_class;
    if (column == COLUMN_BOUNDED) value = healthy && row_class < NUM_CLASSES - 1;
    if (column == COLUMN_BAD) value = !healthy;
    counts[column * shard_size] = value;
  }
  LANE_FOR(i, 1) {
    ncon[0] = contacts;
    nefc[0] = rows;
  }
}

// Number of contacts of the worlds of a shard before world `place`, and of all its worlds; `counts` is their column.
DEVICE int contacts_before(const int* counts, int place, int number, int* all) {
  int before = 0, total = 0;
  LANE_FOR(k, number) {
    total += counts[k];
    before += k < place ? counts[k] : 0;
  }
  *all = lane_sum_int(total);
  return lane_sum_int(before);
}

// Where a world's near pairs go: candidates whose bounds overlap, in order, and the first contact of each.
struct NearPairs {
  const Model& m;
  int *cand, *adr;  // may be null
  int number;       // so far

  // Append the lanes' pairs, of which c is -1 in lanes without one; returns the place of the lane's.
  DEVICE_METHOD int append(int c, int first) {
    int total;
    const int place = number + lane_rank(c >= 0, &total);
    if (c >= 0 && cand) {
      put_near(m, cand, place, c);
      put_near(m, adr, place, first);
    }
    number += total;
    return place;
  }
  // Store where the contacts after the last pair begin, and the world's tally.
  DEVICE_METHOD void end(int contacts, int searches, int rows, int* pair_tally) const {
    if (!cand || lane() != 0) return;
    put_near(m, adr, number, contacts);
    pair_tally[0] = number;
    pair_tally[1] = searches;
    pair_tally[2] = rows;
  }
};

// What is known of a world's pairs: the numbers of its near pairs, and of searches among them; and the lane's share of
// the rows of the others.
struct Tally {
  int near, searches, rows;
};

// Counts the contacts of pairs, and keeps them if there is a place for them.
template <CollideAny COLLIDE, int MOST, bool HEAVY>
struct CountPairs {
  static const bool TESTS_BOXES = HEAVY;
  const Model& m;
  const real *geom_xpos, *geom_xmat;
  const ContactFields* keep;
  NearPairs near;
  int contacts, rows, types;  // the lane's share of the rows and types
  DEVICE_METHOD void list(int c) {
    Contact found[MOST];
    int number = 0, total;
    if (c >= 0) {
      number = COLLIDE(m.cand_type()[c], pair_of(m, c, geom_xpos, geom_xmat), detection_margin(m, c), found);
      rows += rows_of(m, c, found, number);
      if (number) types |= 1 << m.cand_type()[c];
    }
    const int first = contacts + lane_scan(number, &total);
    near.append(c, first);
    if (keep) keep->put(first, found, number, c);
    contacts += total;
  }
};

// HEAVY says whether there may be pairs of heavy types. `near_cand`, `near_adr` and `pair_tally` may be null. `keep`
// may be null; otherwise it receives the contacts. Models with pairs whose work the lanes share, or that need a search,
// are counted by collision_general.
template <CollideAny COLLIDE, int MOST, bool HEAVY>
DEVICE void count_contacts(const Model& m, const real* qpos, const real* geom_xpos, const real* geom_xmat,
                           const int* world_status, int* near_cand, int* near_adr, int* pair_tally, int* ncon,
                           int* nefc, int* counts, real* waiting, int shard_size, const ContactFields* keep = nullptr) {
  const bool healthy = world_status[0] == STATUS_HEALTHY;
  // (1) contacts of each candidate pair, and the index of the first
  CountPairs<COLLIDE, MOST, HEAVY> count = {m, geom_xpos, geom_xmat, keep, {m, near_cand, near_adr, 0}, 0, 0, 0};
  each_near(m, healthy ? m.ncand() : 0, geom_xpos, geom_xmat, reinterpret_cast<int*>(waiting), count);
  count.near.end(count.contacts, 0, 0, pair_tally);
  store_counts(m, qpos, 0, healthy, count.contacts, count.rows, count.types, ncon, nefc, counts, shard_size);
  lane_sync();
}
