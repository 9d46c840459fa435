// Collectives of the dialect on the host, whose meaning dialect.cuh tells: of one lane, or of lanes that are threads.
#pragma once

#if !SIMENGINE_GPU
#if LANES == 1

DEVICE int lane() { return 0; }
DEVICE void lane_sync() {}
DEVICE real lane_sum(real x) { return x; }
DEVICE int lane_sum_int(int x) { return x; }
DEVICE int lane_or(int x) { return x; }
DEVICE int lane_any(int x) { return x != 0; }
DEVICE int lane_most(int x) { return x; }
DEVICE real lane_least(real x) { return x; }
template <typename T>
DEVICE T lane_get(T x, int from) {
  return x;
}
DEVICE int lane_sum_of_key(int key, int x, int* total, bool* first) {
  *total = x;
  *first = true;
  return 0;
}
DEVICE int lane_scan(int x, int* total) {
  *total = x;
  return 0;
}
DEVICE int lane_rank(bool flag, int* total) { return lane_scan(flag, total); }
DEVICE void lower_at(int* place, int x) { *place = x < *place ? x : *place; }
DEVICE int count_up(int* number) { return (*number)++; }
DEVICE void raise_bit(int* word, int bit) { *word |= int(1u << bit); }
DEVICE void publish_fence() {}

#else

#include <pthread.h>
extern thread_local int lane_id, lane_phase;
extern pthread_barrier_t lane_barrier[2];
extern real lane_slot[LANES];
extern double lane_slot_any[LANES];
extern int lane_slot_int[LANES], lane_slot_key[LANES];

DEVICE int lane() { return lane_id; }
// Two barriers alternate. With a single one, the thread sanitizer assumes that a lane that leaves late has seen all
// writes of the others up to their return to the barrier, and so misses races.
DEVICE void lane_sync() { pthread_barrier_wait(&lane_barrier[lane_phase ^= 1]); }
DEVICE real lane_sum(real x) {
  lane_slot[lane()] = x;
  lane_sync();
  real sum = 0;
  for (int i = 0; i < LANES; ++i) sum += lane_slot[i];
  lane_sync();
  return sum;
}
DEVICE int lane_sum_int(int x) {
  lane_slot_int[lane()] = x;
  lane_sync();
  int sum = 0;
  for (int i = 0; i < LANES; ++i) sum += lane_slot_int[i];
  lane_sync();
  return sum;
}
DEVICE int lane_or(int x) {
  lane_slot_int[lane()] = x;
  lane_sync();
  int all = 0;
  for (int i = 0; i < LANES; ++i) all |= lane_slot_int[i];
  lane_sync();
  return all;
}
DEVICE int lane_any(int x) { return lane_or(x) != 0; }
DEVICE int lane_most(int x) {
  lane_slot_int[lane()] = x;
  lane_sync();
  for (int i = 0; i < LANES; ++i) x = lane_slot_int[i] > x ? lane_slot_int[i] : x;
  lane_sync();
  return x;
}
DEVICE real lane_least(real x) {
  lane_slot[lane()] = x;
  lane_sync();
  for (int i = 0; i < LANES; ++i) x = lane_slot[i] < x ? lane_slot[i] : x;
  lane_sync();
  return x;
}
template <typename T>
DEVICE T lane_get(T x, int from) {
  lane_slot_any[lane()] = x;
  lane_sync();
  x = T(lane_slot_any[from]);
  lane_sync();
  return x;
}
DEVICE int lane_sum_of_key(int key, int x, int* total, bool* first) {
  lane_slot_int[lane()] = x;
  lane_slot_key[lane()] = key;
  lane_sync();
  int before = 0;
  *total = 0;
  *first = true;
  for (int i = 0; i < LANES; ++i) {
    if (lane_slot_key[i] != key) continue;
    if (i < lane()) before += lane_slot_int[i];
    if (i < lane()) *first = false;
    *total += lane_slot_int[i];
  }
  lane_sync();
  return before;
}
DEVICE int lane_scan(int x, int* total) {
  lane_slot_int[lane()] = x;
  lane_sync();
  int before = 0, sum = 0;
  for (int i = 0; i < LANES; ++i) {
    if (i < lane()) before += lane_slot_int[i];
    sum += lane_slot_int[i];
  }
  lane_sync();
  *total = sum;
  return before;
}
DEVICE int lane_rank(bool flag, int* total) { return lane_scan(flag, total); }
DEVICE void lower_at(int* place, int x) {
  int there = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (x < there && !__atomic_compare_exchange_n(place, &there, x, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
DEVICE int count_up(int* number) { return __atomic_fetch_add(number, 1, __ATOMIC_RELAXED); }
DEVICE void raise_bit(int* word, int bit) { __atomic_fetch_or(word, int(1u << bit), __ATOMIC_RELAXED); }
DEVICE void publish_fence() {}

#endif

DEVICE int bit_count(unsigned x) { return __builtin_popcount(x); }
DEVICE int low_bit(unsigned x) { return __builtin_ctz(x); }

#endif
