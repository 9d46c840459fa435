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

// Whether the bounding spheres of two geoms are farther apart than `margin`: MuJoCo's mj_filterSphere.
DEVICE bool spheres_apart(const Model& m, int g1, int g2, real margin, const real* geom_xpos, const real* geom_xmat) {
  real offset[3];
  for (int i = 0; i < 3; ++i) offset[i] = geom_xpos[3 * g2 + i] - geom_xpos[3 * g1 + i];
  const real reach = margin + m.geom_rbound()[g1] + m.geom_rbound()[g2];
  if (m.geom_type()[g1] == GEOM_PLANE) {
    real normal[3];
    mat_col(normal, geom_xmat + 9 * g1, 2);
    return dot3(offset, normal) > reach;
  }
  return dot3(offset, offset) > reach * reach;
}

// Whether a face of either geom's bounding box separates the two geoms (Gottschalk, Lin and Manocha, OBBTree, 1996,
// without the cross products of edges). It is cheaper than the narrowphase of heavy pair types.
DEVICE bool boxes_apart(const Model& m, int g1, int g2, real margin, const real* geom_xpos, const real* geom_xmat) {
  const int geom[2] = {g1, g2};
  if (m.geom_type()[geom[0]] == GEOM_PLANE) return false;
  const real* box[2] = {m.geom_aabb() + 6 * geom[0], m.geom_aabb() + 6 * geom[1]};
  const real* mat[2] = {geom_xmat + 9 * geom[0], geom_xmat + 9 * geom[1]};
  real between[3];
  for (int i = 0; i < 3; ++i) {
    between[i] = geom_xpos[3 * geom[1] + i] + dot3(mat[1] + 3 * i, box[1]) -
                 (geom_xpos[3 * geom[0] + i] + dot3(mat[0] + 3 * i, box[0]));
  }
  for (int side = 0; side < 2; ++side) {
    for (int i = 0; i < 3; ++i) {
      real axis[3], other[3];
      mat_col(axis, mat[side], i);
      real reach = margin + box[side][3 + i];
      for (int k = 0; k < 3; ++k) {
        mat_col(other, mat[1 - side], k);
        reach = fma_(abs_(dot3(axis, other)), box[1 - side][3 + k], reach);
      }
      if (abs_(dot3(axis, between)) > reach) return true;
    }
  }
  return false;
}

// The same for candidate pair c.
DEVICE bool spheres_apart(const Model& m, int c, const real* geom_xpos, const real* geom_xmat) {
  return spheres_apart(m, m.cand_geom1()[c], m.cand_geom2()[c], detection_margin(m, c), geom_xpos, geom_xmat);
}
DEVICE bool boxes_apart(const Model& m, int c, const real* geom_xpos, const real* geom_xmat) {
  return boxes_apart(m, m.cand_geom1()[c], m.cand_geom2()[c], detection_margin(m, c), geom_xpos, geom_xmat);
}

// Worlds of up to so many geoms have their bounding spheres in the memory that lanes share, where a kernel has room for
// them; the number is also in kernel.py.
#define MOST_BOUNDS 256

#define ROUNDS_AT_ONCE 4  // rounds of candidates whose loads overlap

// The bounding sphere of each geom: its centre and radius, which is -1 for a plane. `words` has four words a geom.
// Returns null where there are too many geoms, or a single lane, which gains nothing.
DEVICE const Vec4* share_bounds(const Model& m, const real* geom_xpos, real* words) {
  if (LANES == 1 || m.ngeom() > MOST_BOUNDS) return 0;
  Vec4* bounds = reinterpret_cast<Vec4*>(words);
  LANE_FOR(g, m.ngeom()) {
    const real* at = geom_xpos + 3 * g;
    bounds[g] = {at[0], at[1], at[2], m.geom_type()[g] == GEOM_PLANE ? R(-1.0) : m.geom_rbound()[g]};
  }
  lane_sync();
  return bounds;
}

// The lane's candidates in ROUNDS_AT_ONCE rounds: in which of them bounding spheres are not apart, and which have a
// plane, by bits. The operations are those of spheres_apart.
struct Rounds {
  int near, planes;
};

// The rounds from candidate `first` on. WHOLE says that each lane has a candidate in each of them.
template <bool WHOLE>
DEVICE Rounds test_bounds(const Model& m, int first, int ncand, const Vec4* bounds) {
  int pair[ROUNDS_AT_ONCE], geoms[ROUNDS_AT_ONCE];
  real margin[ROUNDS_AT_ONCE];
  UNROLLED for (int k = 0; k < ROUNDS_AT_ONCE; ++k) {
    const int c = first + lane() + k * LANES;
    pair[k] = WHOLE || c < ncand ? c : ncand - 1;
    geoms[k] = m.cand_geoms()[pair[k]];
    margin[k] = 0;
  }
  if (m.opt_reach()) {
    UNROLLED for (int k = 0; k < ROUNDS_AT_ONCE; ++k) margin[k] = detection_margin(m, pair[k]);
  }
  Rounds found = {0, 0};
  UNROLLED for (int k = 0; k < ROUNDS_AT_ONCE; ++k) {
    const Vec4 a = bounds[geoms[k] & 0xffff], b = bounds[geoms[k] >> 16];
    const real offset[3] = {b.x - a.x, b.y - a.y, b.z - a.z}, reach = margin[k] + a.w + b.w;
    const bool there = WHOLE || first + lane() + k * LANES < ncand;
    found.near |= (there && !(dot3(offset, offset) > reach * reach)) << k;
    found.planes |= (there && a.w < 0) << k;
  }
  return found;
}

// In which of ROUNDS_AT_ONCE rounds of candidates from `first` on the lane's pair is near, by bits. Planes, which have
// no bounding sphere, are few: lanes look at them after all rounds, so that none of these branches.
DEVICE int near_rounds(const Model& m, int first, int ncand, const Vec4* bounds, const real* geom_xpos,
                       const real* geom_xmat) {
  int near = 0;
  if (!bounds) {
    UNROLLED for (int k = 0; k < ROUNDS_AT_ONCE; ++k) {
      const int c = first + k * LANES + lane();
      near |= (c < ncand && !spheres_apart(m, c, geom_xpos, geom_xmat)) << k;
    }
    return near;
  }
  const bool whole = first + ROUNDS_AT_ONCE * LANES <= ncand;
  const Rounds found = whole ? test_bounds<true>(m, first, ncand, bounds) : test_bounds<false>(m, first, ncand, bounds);
  near = found.near & ~found.planes;
  ROLLED for (int left = found.planes; left; left &= left - 1) {
    const int k = low_bit(left);
    near |= !spheres_apart(m, first + k * LANES + lane(), geom_xpos, geom_xmat) << k;
  }
  return near;
}

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
