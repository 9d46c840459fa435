// Orders of the sweeps of pgs_registers.cuh. They depend on nothing but the number of rows and that of the sweep, so
// the model table has those of the first sweeps. The orders of later ones are drawn by all lanes at once.
#pragma once

#ifdef PGS_ROWS
#define PGS_SLOTS ((PGS_ROWS + LANES - 1) / LANES)

// The orders in the model table: `sweeps` times `stride` bytes, sweep after sweep, each for every number of rows.
struct OrderTable {
  const unsigned char* bytes;
  int sweeps, stride;
};

DEVICE OrderTable orders_of(const Model& m) {
  const int* words = m.sweep_order();
  return {reinterpret_cast<const unsigned char*>(words), m.nsweep(), 4 * m.nsweepword()};
}

// The lane's part of those for n rows.
template <int SLOTS>
struct KnownOrders {
  const unsigned char* next;
  int sweeps, left, stride, row[SLOTS];  // row: those of the next sweep, which are loaded a sweep ahead

  DEVICE_METHOD KnownOrders(const OrderTable& table, int n) {
    stride = table.stride;
    sweeps = left = n * (n + 1) / 2 <= stride ? table.sweeps : 0;
    next = table.bytes + n * (n - 1) / 2 + lane();
    load(n);
  }

  DEVICE_METHOD void load(int n) {
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) row[s] = left > 0 && lane() + s * LANES < n ? next[s * LANES] : 0;
  }

  // Write the order of the next sweep; returns false if it is not in the table.
  DEVICE_METHOD bool take(int n, int* order) {
    if (left == 0) return false;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) order[lane() + s * LANES] = row[s];
    next += stride;
    --left;
    load(n);
    return true;
  }
};

// Shared memory of the orders of up to SLOTS * LANES rows.
struct OrderMemory {
  int *order, *latest;  // by position: the row; by place: see `draw_order`
  unsigned* magic;      // by number drawn: 2^32 / (place + 1), for remainders without a division
  PcgStep* steps;       // of random numbers: from a lane's number to its next, and to the next sweep
};

// Prepare drawing orders from a sweep on: each lane draws numbers lane(), lane() + 32 and so on of a shuffle.
template <int SLOTS>
DEVICE uint64 start_draws(int n, int sweep, const OrderMemory& at) {
  if (lane() == 0) at.steps[0] = pcg_steps(LANES), at.steps[1] = pcg_steps(n - 1);
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) {
    const int j = lane() + s * LANES;
    at.magic[j] = j < n - 1 ? 0xffffffffu / unsigned(n - j) : 0u;
  }
  lane_sync();
  return pcg_apply(pcg_steps(sweep * (n - 1) + lane()), 1);
}

// The order of the next sweep: `shuffle` of random.cuh, by all lanes at once. `state` is the generator's for the first
// number of the lane, unless this is the first sweep that is drawn; returns that for the sweep after.
//
// Number t exchanges place n - 1 - t, which is then final, with the place p(t) that was drawn. What ends there was at
// p(t) just before. An earlier number u that drew the same place had put there what was at its own place, so the latest
// such u leads on to the place n - 1 - u, and from there the latest number that drew this place, until none did. With
// latest[p] the latest number that drew place p, each lane follows the chain of its own places. No number is later than
// that of place p and draws p, so latest[p] is the right one except where a number drew its own place.
template <int SLOTS>
DEVICE_CALL uint64 draw_order(int n, int sweep, bool starts, uint64 state, const OrderMemory at) {
  if (starts) state = start_draws<SLOTS>(n, sweep, at);
  const uint64 first = state;
  int drawn[SLOTS], from[SLOTS], *order = at.order, *latest = at.latest;
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
#endif
