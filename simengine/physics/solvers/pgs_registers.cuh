// Projected Gauss-Seidel for an island without elliptic cones, by a warp: the iterations of pgs.cuh, with the rows in
// registers. Here A + R is formed. With its diagonal d, the force at which row j is optimal while the others stay fixed
// is
//
//   best_j = -(b_j + sum over i != j of A_ij f_i) / d_j
//
// and a change of f_r adds pull_rj = -A_rj / d_j times the change to all best_j at once. So a row costs one exchange
// between lanes, and not a product that the lanes sum up.
//
// Lane l has rows l, l + 32 and so on of the island. During a sweep it keeps gap_j, which is best_j minus the force
// before the sweep. The order of the rows is known before the sweep, so all that a row needs is loaded ahead of the
// chain from gap to gap: one shuffle, two comparisons and one multiply-add.
#pragma once

#ifdef PGS_ROWS
#define PGS_SLOTS ((PGS_ROWS + LANES - 1) / LANES)

struct alignas(16) Int4 {
  int x, y, z, w;
};

struct alignas(2 * sizeof(real)) Vec2 {
  real x, y;
};

// min_ and max_ in one instruction each, which the GPU has for these functions and not for comparisons.
#if SIMENGINE_GPU && defined(__CUDACC__)
DEVICE real at_most(real x, real most) { return fmin(x, most); }
DEVICE real at_least(real x, real least) { return fmax(x, least); }
#else
DEVICE real at_most(real x, real most) { return min_(x, most); }
DEVICE real at_least(real x, real least) { return max_(least, x); }
#endif

// Shared memory of an island whose lanes have SLOTS rows each. Arrays by row hold what lanes know of their own rows: in
// registers this would leave too few for the sweep. Entries from n on are those of rows that never move. Arrays by
// position hold what the row at a position of the sweep needs.
template <int SLOTS>
struct PullMemory {
  static constexpr int ROOM = SLOTS * LANES;
  real *low, *high, *free, *diagonal;  // by row: bounds, best without other forces, diagonal of A + R
  real *force, *before, *seen;         // by row: force before the sweep and before the last one, gap at the visit
  real *least, *most, *found;          // by position: bounds of the change, gap at the visit
  int *order, *latest;                 // by position: the row; by place: see `next_order`
  unsigned* magic;                     // by number drawn: 2^32 / (place + 1), for remainders without a division
  PcgStep* steps;                      // of random numbers: from a lane's number to its next, and to the next sweep
  real* pull;                          // [row][lane][slot]

  DEVICE_METHOD explicit PullMemory(real* words) {
    low = words, high = low + ROOM, free = high + ROOM, diagonal = free + ROOM;
    force = diagonal + ROOM, before = force + ROOM, seen = before + ROOM;
    least = seen + ROOM, most = least + ROOM, found = most + ROOM;
    order = reinterpret_cast<int*>(found + ROOM), latest = reinterpret_cast<int*>(found + 2 * ROOM);
    magic = reinterpret_cast<unsigned*>(found + 3 * ROOM), steps = reinterpret_cast<PcgStep*>(found + 4 * ROOM);
    pull = found + 4 * ROOM + 8;
  }

  // The pull of row r on the lane's rows.
  DEVICE_METHOD void load(int r, real* out) const {
    const real* own = pull + (r * LANES + lane()) * SLOTS;
    if (SLOTS == 2) {
      const Vec2 both = *reinterpret_cast<const Vec2*>(own);
      out[0] = both.x, out[SLOTS - 1] = both.y;
    } else {
#pragma unroll
      for (int s = 0; s < SLOTS; ++s) out[s] = own[s];
    }
  }
};

// The pull of each row of an island on the others, 0 on itself, for lanes with so many rows each. A lane takes up to 32
// columns of its own row at a time. The code is shared, since that of each number of rows would take long to compile.
DEVICE_CALL void form_pull(const real* Y, int stride, const real* diagonal, int n, const int* list, int slots,
                           real* pull) {
  ROLLED for (int s = 0; s < slots; ++s) {
    const int own = lane() + s * LANES, own_row = own < n ? list[own] : 0;
    const real scale = own < n ? -reciprocal_(diagonal[own_row]) : R(0.0);
    ROLLED for (int first = 0; first < stride; first += LANES) {
      real h[LANES];
      load_row<LANES>(Y + size_t(own_row) * stride + first, own < n ? stride - first : 0, h);
      const bool last = first + LANES >= stride;
#pragma unroll 2
      for (int r = 0; r < n; ++r) {
        const real* other = Y + size_t(list[r]) * stride + first;
        real* out = pull + (r * LANES + lane()) * slots + s;
        real sum[4] = {first ? *out : R(0.0), 0, 0, 0};
#pragma unroll
        for (int j = 0; j < LANES; j += 4) {
          if (first + j < stride) {
            const Vec4 four = broadcast4(other + j);
            sum[0] = fma_(h[j], four.x, sum[0]);
            sum[1] = fma_(h[j + 1], four.y, sum[1]);
            sum[2] = fma_(h[j + 2], four.z, sum[2]);
            sum[3] = fma_(h[j + 3], four.w, sum[3]);
          }
        }
        const real product = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        *out = !last ? product : r == own ? R(0.0) : scale * product;
      }
    }
  }
  lane_sync();
}

// The order of the next sweep: `shuffle` of random.cuh, by all lanes at once. `first` is the generator's state for the
// first number of the lane; returns that for the sweep after.
//
// Number t exchanges place n - 1 - t, which is then final, with the place p(t) that was drawn. What ends there was at
// p(t) just before. An earlier number u that drew the same place had put there what was at its own place, so the latest
// such u leads on to the place n - 1 - u, and from there the latest number that drew this place, until none did. With
// latest[p] the latest number that drew place p, each lane follows the chain of its own places. No number is later than
// that of place p and draws p, so latest[p] is the right one except where a number drew its own place.
template <int SLOTS>
DEVICE uint64 next_order(int n, uint64 first, const PullMemory<SLOTS>& at) {
  int drawn[SLOTS], from[SLOTS], *order = at.order, *latest = at.latest;
  uint64 state = first;
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) latest[lane() + s * LANES] = -1;
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) {
    const int t = lane() + s * LANES, place = n - 1 - t;
    const unsigned number = pcg_output(state), divisor = unsigned(place + 1);
    unsigned rest = number - high_product(number, at.magic[t]) * divisor;
    rest = rest >= divisor ? rest - divisor : rest;
    // numbers beyond the last draw places of their own, which no other does
    drawn[s] = place > 0 ? int(rest) : place == 0 ? 0 : t;
    if (s + 1 < SLOTS) state = pcg_apply(at.steps[0], state);
    const unsigned same = lane_match(drawn[s]), earlier = same & ((1u << lane()) - 1u);
    lane_sync();
    from[s] = earlier ? highest_bit(earlier) + s * LANES : latest[drawn[s]];
    lane_sync();
    if (highest_bit(same) == lane()) latest[drawn[s]] = t;
  }
  lane_sync();
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) {
    const int t = lane() + s * LANES;
    // a number that drew its own place is the latest to draw it, and exchanged nothing
    if (t < n && drawn[s] == n - 1 - t) latest[drawn[s]] = from[s];
  }
  lane_sync();
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) {
    if (lane() + s * LANES >= n) continue;
    while (from[s] >= 0) {
      drawn[s] = n - 1 - from[s];
      from[s] = latest[drawn[s]];
    }
    drawn[s] = order[drawn[s]];
  }
  lane_sync();
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) {
    const int t = lane() + s * LANES;
    if (t < n) order[n - 1 - t] = drawn[s];
  }
  lane_sync();
  return pcg_apply(at.steps[1], first);
}

// What four rows of a sweep need, loaded ahead of them.
template <int SLOTS>
struct FourRows {
  int row[4];
  real least[4], most[4], pull[4][SLOTS];

  DEVICE_METHOD void load(const PullMemory<SLOTS>& at, int k) {
    const Int4 four = *reinterpret_cast<const Int4*>(at.order + k);
    const Vec4 low = broadcast4(at.least + k), high = broadcast4(at.most + k);
    row[0] = four.x, row[1] = four.y, row[2] = four.z, row[3] = four.w;
    least[0] = low.x, least[1] = low.y, least[2] = low.z, least[3] = low.w;
    most[0] = high.x, most[1] = high.y, most[2] = high.z, most[3] = high.w;
#pragma unroll
    for (int e = 0; e < 4; ++e) at.load(row[e], pull[e]);
  }

  // Visit them; gap is that of the lane's rows.
  DEVICE_METHOD void visit(real* gap, real* found) const {
    real own[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      real of_slot = gap[0];
#pragma unroll
      for (int s = 1; s < SLOTS; ++s) of_slot = row[e] >= s * LANES ? gap[s] : of_slot;
      own[e] = lane_get(of_slot, row[e] & (LANES - 1));
      const real change = at_least(at_most(own[e], most[e]), least[e]);
#pragma unroll
      for (int s = 0; s < SLOTS; ++s) gap[s] = fma_(change, pull[e][s], gap[s]);
    }
    if (lane() == 0) *reinterpret_cast<Vec4*>(found) = {own[0], own[1], own[2], own[3]};
  }
};

// (5) one sweep. Positions from n on are those of row 0 with no room to move.
template <int SLOTS>
DEVICE void sweep_in_registers(const PullMemory<SLOTS>& at, int n, real* gap) {
  // two sets of registers alternate, so that none is copied; what is loaded beyond the last row is not used
  FourRows<SLOTS> one, other;
  one.load(at, 0);
  ROLLED for (int k = 0; k < n; k += 8) {
    other.load(at, k + 4);
    one.visit(gap, at.found + k);
    if (k + 4 >= n) break;
    one.load(at, k + 8 < at.ROOM ? k + 8 : 0);
    other.visit(gap, at.found + k + 4);
  }
  lane_sync();
}

// `descend` of pgs.cuh for an island of at most SLOTS * LANES rows; `words` is shared memory.
template <int SLOTS>
DEVICE_CALL int descend_in_registers(const Model& m, const DenseDual d, int n, int* list, real trace, real* words) {
  const PullMemory<SLOTS> at(words);
  // each lane draws numbers lane(), lane() + 32 and so on of a shuffle
  uint64 state = pcg_apply(pcg_steps(lane()), 1);
  if (lane() == 0) at.steps[0] = pcg_steps(LANES), at.steps[1] = pcg_steps(n - 1);
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) {
    const int j = lane() + s * LANES, r = j < n ? list[j] : 0, type = d.rows.type[r];
    const bool loss = type == ROW_FRICTION_DOF || type == ROW_FRICTION_TENDON;
    at.force[j] = at.before[j] = j < n ? d.force[r] : R(0.0);
    at.diagonal[j] = d.diagonal[r];
    at.free[j] = j < n ? -(d.b[r] * reciprocal_(d.diagonal[r])) : R(0.0);
    at.high[j] = j >= n ? R(0.0) : loss ? d.rows.frictionloss[r] : REAL_MAX;
    at.low[j] = j >= n ? R(0.0) : loss ? -d.rows.frictionloss[r] : type == ROW_EQUALITY ? -REAL_MAX : R(0.0);
    at.least[j] = at.most[j] = 0;
    at.order[j] = j < n ? j : 0;
    at.magic[j] = j < n - 1 ? 0xffffffffu / unsigned(n - j) : 0u;
  }
  form_pull(d.Y, m.nvp(), d.diagonal, n, list, SLOTS, at.pull);
  int iteration = 0, since_restart = 0;
  real total = 0;
  while (iteration < m.opt_iterations()) {
    state = next_order<SLOTS>(n, state, at);
    // (4) extrapolate, and clamp to the bounds
    const real momentum = since_restart > 1 ? divide_(R(1.0) * (since_restart - 1), R(1.0) * (since_restart + 2)) : 0;
    real gap[SLOTS];
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
      const int j = lane() + s * LANES;
      const real now = at.force[j];
      real force = fma_(momentum, now - at.before[j], now);
      if (momentum > 0) force = clamp_(force, at.low[j], at.high[j]);
      at.force[j] = force;
      at.before[j] = now;
      gap[s] = at.free[j] - force;
    }
    lane_sync();
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
      const int k = lane() + s * LANES, r = at.order[k];
      if (k < n) {
        at.least[k] = at.low[r] - at.force[r];
        at.most[k] = at.high[r] - at.force[r];
      }
    }
#pragma unroll 4
    for (int r = 0; r < n; ++r) {
      const real of_row = at.force[r];
      real pull[SLOTS];
      at.load(r, pull);
#pragma unroll
      for (int s = 0; s < SLOTS; ++s) gap[s] = fma_(of_row, pull[s], gap[s]);
    }
    lane_sync();
    sweep_in_registers<SLOTS>(at, n, gap);
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
      const int k = lane() + s * LANES;
      if (k < n) at.seen[at.order[k]] = at.found[k];
    }
    lane_sync();
    real improvement = 0, against = 0;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
      const int j = lane() + s * LANES;
      if (j >= n) continue;
      const real seen = at.seen[j], force = at.force[j], low = at.low[j], high = at.high[j];
      const real change = clamp_(seen, low - force, high - force);
      improvement = fma_(-change * at.diagonal[j], fma_(R(0.5), change, -seen), improvement);
      against = fma_(-change, force - at.before[j], against);
      at.force[j] = clamp_(force + change, low, high);
    }
    improvement = lane_sum(improvement);
    against = lane_sum(against);
    ++iteration;
    // (6) the momentum grows until the extrapolation goes against the descent
    since_restart = against > 0 ? 0 : since_restart + 1;
    // (7) stop when the decrease of the cost is below the tolerance, or is rounding alone
    total += abs_(improvement);
    if (improvement < max_(m.opt_tolerance()[0] * trace, 16 * REAL_EPS * REAL_EPS * total)) break;
  }
  int visited[SLOTS];
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) {
    const int j = lane() + s * LANES, r = j < n ? list[j] : 0;
    if (j < n) d.force[r] = at.force[j], d.before[r] = at.before[j];
    visited[s] = j < n ? list[at.order[j]] : 0;
  }
  lane_sync();
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) {
    if (lane() + s * LANES < n) list[lane() + s * LANES] = visited[s];
  }
  lane_sync();
  return iteration;
}

// `descend` for an island of any size.
DEVICE int descend_anyhow(const Model& m, const DenseDual& d, int n, int* list, real trace, int* draw, real* words) {
  if (n <= LANES) return descend_in_registers<1>(m, d, n, list, trace, words);
#if PGS_SLOTS > 1
  if (n <= 2 * LANES) return descend_in_registers<2>(m, d, n, list, trace, words);
#endif
#if PGS_SLOTS > 2
  if (n <= 3 * LANES) return descend_in_registers<3>(m, d, n, list, trace, words);
#endif
  return descend(m, d, n, list, trace, draw);
}
#endif
