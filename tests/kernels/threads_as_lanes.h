// A warp whose lanes are 32 threads of the host, or several warps: the part of the GPU's dialect that linear algebra
// uses.
#pragma once

#include <pthread.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#ifndef SIMENGINE_GPU
#define SIMENGINE_GPU 1
#endif
#ifndef LANES
#define LANES 32
#endif
#define WARP_LANES 32
#define REAL_IS_FLOAT 0
#define COLUMN_WORDS (4 * WARP_LANES)
#define MOST_DENSE 0x7fffffff
#define REAL_MAX 1e300
#define REAL_EPS 2.220446049250313e-16
#define R(x) (x)
#define DEVICE static inline
#define DEVICE_CALL static
#define DEVICE_METHOD inline
#define ROLLED
#define OVERLAPPED
#define UNROLLED
#define LANE_FOR(i, n) for (int i = lane(); i < (n); i += LANES)
#define LANE_FOR_LOADS(i, n) LANE_FOR(i, n)
#define DOF_FOR(i, n) LANE_FOR(i, n)

typedef double real;
thread_local int lane_id, lane_phase, warp_phase;
pthread_barrier_t barriers[2], warp_barriers[LANES / WARP_LANES][2];
real slots[LANES];

int lane() { return lane_id; }
// Two barriers alternate, as in dialect.cuh: with a single one, the thread sanitizer misses races.
void lane_sync() { pthread_barrier_wait(&barriers[lane_phase ^= 1]); }
int warp_lane() { return lane_id % WARP_LANES; }
int warp_index() { return lane_id / WARP_LANES; }
void warp_sync() { pthread_barrier_wait(&warp_barriers[warp_index()][warp_phase ^= 1]); }
real warp_get(real x, int from) {
  slots[lane_id] = x;
  warp_sync();
  const real found = slots[warp_index() * WARP_LANES + from];
  warp_sync();
  return found;
}
int warp_get_int(int x, int from) { return int(warp_get(x, from)); }
unsigned warp_ballot(int x) {
  slots[lane_id] = x != 0;
  warp_sync();
  unsigned found = 0;
  for (int i = 0; i < WARP_LANES; ++i) found |= unsigned(slots[warp_index() * WARP_LANES + i]) << i;
  warp_sync();
  return found;
}
real lane_get(real x, int from) {
  slots[lane_id] = x;
  lane_sync();
  const real found = slots[from];
  lane_sync();
  return found;
}
int lane_get_int(int x, int from) { return int(lane_get(x, from)); }
unsigned lane_ballot(int x) {
  slots[lane_id] = x != 0;
  lane_sync();
  unsigned found = 0;
  for (int i = 0; i < LANES; ++i) found |= unsigned(slots[i]) << i;
  lane_sync();
  return found;
}
unsigned lane_match(int x) {
  slots[lane_id] = x;
  lane_sync();
  unsigned found = 0;
  for (int i = 0; i < LANES; ++i) found |= unsigned(slots[i] == x) << i;
  lane_sync();
  return found;
}
int lane_any(int x) { return lane_ballot(x) != 0; }
int lane_or(int x) {
  int found = 0;
  for (int bit = 0; bit < 32; ++bit) found |= int(unsigned(lane_ballot(x >> bit & 1) != 0) << bit);
  return found;
}
int lane_most(int x) {
  slots[lane_id] = x;
  lane_sync();
  real most = slots[0];
  for (int i = 1; i < LANES; ++i) most = std::fmax(most, slots[i]);
  lane_sync();
  return int(most);
}
int lane_rank(bool flag, int* total) {
  const unsigned flags = lane_ballot(flag);
  *total = __builtin_popcount(flags);
  return __builtin_popcount(flags & ((1u << lane_id) - 1u));
}
int lane_scan(int x, int* total) {
  slots[lane_id] = x;
  lane_sync();
  int before = 0;
  *total = 0;
  for (int i = 0; i < LANES; ++i) {
    if (i < lane_id) before += int(slots[i]);
    *total += int(slots[i]);
  }
  lane_sync();
  return before;
}
int lowest_bit(unsigned x) { return __builtin_ffs(int(x)) - 1; }
int bit_count(unsigned x) { return __builtin_popcount(x); }
int highest_bit(unsigned x) { return 31 - __builtin_clz(x); }
unsigned high_product(unsigned x, unsigned y) { return unsigned((unsigned long long)(x) * y >> 32); }
#define __popc __builtin_popcount
real select(bool condition, real a, real b) { return condition ? a : b; }
real fma_(real a, real b, real c) { return std::fma(a, b, c); }
real sqrt_(real x) { return std::sqrt(x); }
real reciprocal_(real x) { return 1 / x; }
real reciprocal_sqrt_(real x) { return 1 / std::sqrt(x); }
real divide_(real x, real y) { return x / y; }
real abs_(real x) { return std::fabs(x); }
real max_(real a, real b) { return a > b ? a : b; }
real min_(real a, real b) { return a < b ? a : b; }
real clamp_(real x, real low, real high) { return max_(low, min_(x, high)); }
void envelope_factor(real*, int) { std::abort(); }
void row_solve(real*, const real*, int) { std::abort(); }

real lane_sum(real x) {
  slots[lane_id] = x;
  lane_sync();
  real sum = 0;
  for (int i = 0; i < LANES; ++i) sum += slots[i];
  lane_sync();
  return sum;
}

template <int COUNT>
void lane_sums(real* x) {
  for (int i = 0; i < COUNT; ++i) x[i] = lane_sum(x[i]);
}

#ifndef SOLVER_WARPS  // otherwise as in registers.cuh
struct alignas(32) Vec4 {
  real x, y, z, w;
};
Vec4 broadcast4(const real* p) { return {p[0], p[1], p[2], p[3]}; }
#endif

real uniform() { return rand() / real(RAND_MAX) - 0.5; }

// Run a function by all lanes.
template <typename Work>
void run_warp(Work work) {
  for (pthread_barrier_t& barrier : barriers) pthread_barrier_init(&barrier, nullptr, LANES);
  for (auto& pair : warp_barriers) {
    for (pthread_barrier_t& barrier : pair) pthread_barrier_init(&barrier, nullptr, WARP_LANES);
  }
  std::vector<std::thread> lanes;
  for (int i = 0; i < LANES; ++i) {
    lanes.emplace_back([&, i] {
      lane_id = i;
      work();
    });
  }
  for (std::thread& one : lanes) one.join();
  for (pthread_barrier_t& barrier : barriers) pthread_barrier_destroy(&barrier);
  for (auto& pair : warp_barriers) {
    for (pthread_barrier_t& barrier : pair) pthread_barrier_destroy(&barrier);
  }
}
