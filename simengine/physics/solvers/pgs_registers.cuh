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
  OrderMemory orders;                  // of which `order` is by position: the row
  real *pull, *of_lane;                // [row][lane][slot], and the part of the lane

  DEVICE_METHOD explicit PullMemory(real* words) {
    low = words, high = low + ROOM, free = high + ROOM, diagonal = free + ROOM;
    force = diagonal + ROOM, before = force + ROOM, seen = before + ROOM;
    least = seen + ROOM, most = least + ROOM, found = most + ROOM;
    orders = {reinterpret_cast<int*>(found + ROOM), reinterpret_cast<int*>(found + 2 * ROOM),
              reinterpret_cast<unsigned*>(found + 3 * ROOM), reinterpret_cast<PcgStep*>(found + 4 * ROOM)};
    pull = found + 4 * ROOM + 8, of_lane = settled_shared(pull + lane() * SLOTS);
  }

  // What a change of a row's force adds to the gaps of the lane's rows.
  static DEVICE_METHOD void move(real change, const real* pull, real* gap) {
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) gap[s] = fma_(change, pull[s], gap[s]);
  }

  // The pull of row r on the lane's rows.
  DEVICE_METHOD void load(int r, real* out) const {
    const real* own = of_lane + r * ROOM;
    if (SLOTS == 2) {
      const Vec2 both = *reinterpret_cast<const Vec2*>(own);
      out[0] = both.x, out[SLOTS - 1] = both.y;
    } else {
#pragma unroll
      for (int s = 0; s < SLOTS; ++s) out[s] = own[s];
    }
  }
};

// The pull of each row of an island on the others, 0 on itself, for lanes with so many rows each. A lane takes up to
// PULL_COLUMNS of its own row at a time, whatever the number of lanes. The code is shared, since that of each number of
// rows would take long to compile.
#define PULL_COLUMNS 32
DEVICE_CALL void form_pull(const real* Y, int stride, const real* diagonal, int n, const int* list, int slots,
                           real* pull) {
  ROLLED for (int s = 0; s < slots; ++s) {
    const int own = lane() + s * LANES, own_row = own < n ? list[own] : 0;
    const real scale = own < n ? -reciprocal_(diagonal[own_row]) : R(0.0);
    ROLLED for (int first = 0; first < stride; first += PULL_COLUMNS) {
      real h[PULL_COLUMNS];
      load_row<PULL_COLUMNS>(Y + size_t(own_row) * stride + first, own < n ? stride - first : 0, h);
      const bool last = first + PULL_COLUMNS >= stride;
      ROLLED for (int r = 0; r < n; ++r) {
        const real* other = Y + size_t(list[r]) * stride + first;
        real* out = pull + (r * LANES + lane()) * slots + s;
        real sum[4] = {first ? *out : R(0.0), 0, 0, 0};
#pragma unroll
        for (int j = 0; j < PULL_COLUMNS; j += 4) {
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

// What four rows of a sweep need, loaded ahead of them.
template <int SLOTS>
struct FourRows {
  int row[4];
  real least[4], most[4], pull[4][SLOTS];

  DEVICE_METHOD void load(const PullMemory<SLOTS>& at, int k) {
    const Int4 four = *reinterpret_cast<const Int4*>(at.orders.order + k);
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
      own[e] = lane_get(of_slot, SLOTS == 1 ? row[e] : row[e] & (LANES - 1));
      PullMemory<SLOTS>::move(at_least(at_most(own[e], most[e]), least[e]), pull[e], gap);
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

// What a descent knows of the model. The whole of it would be copied to memory for the call of a function.
struct Descent {
  int stride, iterations;  // stride: words of a row of Y
  real enough;             // decrease of the cost below which sweeps end
  OrderTable orders;
};

// `descend` of pgs.cuh for an island of at most SLOTS * LANES rows; `words` is shared memory.
template <int SLOTS>
DEVICE_CALL int descend_in_registers(const Descent how, const DenseDual d, int n, int* list, real* words) {
  const PullMemory<SLOTS> at(words);
  int* order = at.orders.order;
  KnownOrders<SLOTS> known(how.orders, n);
  uint64 state = 0;
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) {
    const int j = lane() + s * LANES, r = j < n ? list[j] : 0, type = d.rows.type[r];
    const bool loss = type == ROW_FRICTION_DOF || type == ROW_FRICTION_TENDON;
    at.force[j] = at.before[j] = j < n ? d.force[r] : R(0.0);
    at.diagonal[j] = d.diagonal[r];
    at.free[j] = j < n ? -(d.b[r] * reciprocal_(d.diagonal[r])) : R(0.0);
    at.high[j] = j >= n ? R(0.0) : loss ? d.rows.frictionloss[r] : REAL_MAX;
    at.low[j] = j >= n ? R(0.0) : loss ? -d.rows.frictionloss[r] : type == ROW_EQUALITY ? -REAL_MAX : R(0.0);
    at.seen[j] = 0;
    order[j] = j < n ? j : 0;
  }
  form_pull(d.Y, how.stride, d.diagonal, n, list, SLOTS, at.pull);
  int iteration = 0, since_restart = 0;
  real total = 0;
  while (iteration < how.iterations) {
    if (!known.take(n, order)) state = draw_order<SLOTS>(n, iteration, iteration == known.sweeps, state, at.orders);
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
      const int k = lane() + s * LANES, r = order[k];
      const real least = at.low[r] - at.force[r], most = at.high[r] - at.force[r];
      at.least[k] = k < n ? least : R(0.0);
      at.most[k] = k < n ? most : R(0.0);
    }
    ROLLED for (int r = 0; r + 3 < n; r += 4) {
      const Vec4 four = broadcast4(at.force + r);
      const real of_row[4] = {four.x, four.y, four.z, four.w};
      real pull[4][SLOTS];
#pragma unroll
      for (int e = 0; e < 4; ++e) at.load(r + e, pull[e]);
#pragma unroll
      for (int e = 0; e < 4; ++e) at.move(of_row[e], pull[e], gap);
    }
    ROLLED for (int r = n & ~3; r < n; ++r) {
      real pull[SLOTS];
      at.load(r, pull);
      at.move(at.force[r], pull, gap);
    }
    lane_sync();
    sweep_in_registers<SLOTS>(at, n, gap);
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
      const int k = lane() + s * LANES;
      if (k < n) at.seen[order[k]] = at.found[k];
    }
    lane_sync();
    real sums[2] = {0, 0};
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
      const int j = lane() + s * LANES;
      const real seen = at.seen[j], force = at.force[j], low = at.low[j], high = at.high[j];
      const real change = clamp_(seen, low - force, high - force);
      sums[0] = fma_(-change * at.diagonal[j], fma_(R(0.5), change, -seen), sums[0]);
      sums[1] = fma_(-change, force - at.before[j], sums[1]);
      at.force[j] = clamp_(force + change, low, high);
    }
    lane_sums<2>(sums);
    const real improvement = sums[0], against = sums[1];
    ++iteration;
    // (6) the momentum grows until the extrapolation goes against the descent
    since_restart = against > 0 ? 0 : since_restart + 1;
    // (7) stop when the decrease of the cost is below the tolerance, or is rounding alone
    total += abs_(improvement);
    if (improvement < max_(how.enough, 16 * REAL_EPS * REAL_EPS * total)) break;
  }
  int visited[SLOTS];
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) {
    const int j = lane() + s * LANES, r = j < n ? list[j] : 0;
    if (j < n) d.force[r] = at.force[j], d.before[r] = at.before[j];
    visited[s] = j < n ? list[order[j]] : 0;
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
  const Descent how = {m.nvp(), m.opt_iterations(), m.opt_tolerance()[0] * trace, orders_of(m)};
  if (n <= LANES) return descend_in_registers<1>(how, d, n, list, words);
#if PGS_SLOTS > 1
  if (n <= 2 * LANES) return descend_in_registers<2>(how, d, n, list, words);
#endif
#if PGS_SLOTS > 2
  if (n <= 3 * LANES) return descend_in_registers<3>(how, d, n, list, words);
#endif
  return descend(m, d, n, list, trace, draw);
}
#endif
