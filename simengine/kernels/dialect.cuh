// The portable kernel dialect: one source for the GPU (NVRTC) and the host (any C++17 compiler).
//
// A group of LANES lanes works on one unit, usually a world. Code consists of LANE_FOR loops separated by lane_sync().
// Reductions have a fixed order, so that results never depend on timing. The compilers must not contract
// multiplications and additions: then the same expression rounds in the same way in every kernel, and fma_() is written
// where it is wanted.
//
//   GPU          LANES threads of a warp; block = (LANES, worlds); collectives are masked to the group. With LANES > 32
//                the group is a whole block. As a task of the executor `device`, block = (32 or LANES), with 32 / LANES
//                worlds per tile. In a kernel of whole steps, the warps of all teams form a one-dimensional block.
//   host, 1      a plain loop, collectives are the identity
//   host, more   one thread per lane with barriers, for the thread sanitizer
//   host, tile   one lane that works on TILE worlds at once: a real number is a vector with one entry for each world,
//                see tile.h. Bodies of tiled kernels write select() where worlds may take different branches.
//
// Collectives: lane_sum is the sum over all lanes, lane_sums the same for several numbers at once, lane_most the
// largest x, and lane_least the smallest. lane_get is x of one lane. lane_scan is the sum over the lower lanes, and
// lane_rank the number of those with a flag; their total is that over all lanes. lane_sum_of_key is the sum over the
// lower lanes with the same key; its total is that over all lanes with the key, and `first` is true for the first of
// them. lane_get_int is lane_get of an integer, lane_ballot has a bit for each lane whose x is not zero, and lane_match
// for each lane with the same x; these three exist on the GPU only, for groups of at most 32 lanes. lower_at sets an
// integer in memory to the minimum of itself and x, atomically; the result does not depend on the order of the lanes.
//
// The build defines REAL (float or double), REAL_IS_FLOAT and LANES.
#pragma once

#ifndef TILE
typedef REAL real;
typedef bool truth;  // of a comparison of real numbers
#endif

#if defined(__CUDACC__)
// Bodies for workers are linked with bodies for other numbers of lanes, so their functions need internal linkage.
#ifdef AS_TASK
#define DEVICE static __device__ __forceinline__
#define DEVICE_CALL static DEVICE_CALLED
#else
#define DEVICE __device__ __forceinline__
#define DEVICE_CALL DEVICE_CALLED
#endif
#ifdef ALL_INLINE
#define DEVICE_CALLED __device__ __forceinline__
#else
#define DEVICE_CALLED __device__ __noinline__
#endif
#define DEVICE_METHOD __device__ __forceinline__
#define GRID_CONSTANT __grid_constant__
#define SIMENGINE_GPU 1
#else
#include <cmath>
#include <cstddef>
#include <cstdint>
#define DEVICE static inline
#define DEVICE_CALL static
#define DEVICE_METHOD inline
#define GRID_CONSTANT
#define SIMENGINE_GPU 0
#endif

// DEVICE_CALL is for large functions with several callers: inlined, they would exceed the instruction cache. A kernel
// that is small without them has ALL_INLINE. Then arrays in SHORT_LOOPs, of a fixed number of rounds, are in registers.
//
// LANE_FOR divides a loop among the lanes. It is not unrolled, because kernels contain many such loops, and code that
// exceeds the instruction cache costs more than a branch. ROLLED has the same effect on a serial loop. The loads of
// four rounds of an OVERLAPPED loop overlap. An UNROLLED loop has a fixed number of rounds. DOF_FOR is for loops over
// nv: with fewer than 32 lanes, nv is at most LANES, so that a lane has at most one iteration.
#if SIMENGINE_GPU
#define ROLLED _Pragma("unroll 1")
#define OVERLAPPED _Pragma("unroll 4")
#define UNROLLED _Pragma("unroll")
#else
#define ROLLED
#define OVERLAPPED
#define UNROLLED
#endif
#ifdef ALL_INLINE
#define SHORT_LOOP UNROLLED
#else
#define SHORT_LOOP ROLLED
#endif
#define LANE_FOR(i, n) ROLLED for (int i = lane(); i < (n); i += LANES)
// The entries of a table of rows and columns, row by row, where `of_row` declares what the entries of row i share. A
// single lane computes that once for each row.
#if !SIMENGINE_GPU && LANES == 1
#define LANE_FOR_TABLE(i, rows, j, columns, of_row)                        \
  for (int i = 0, once_ = 1; i < (rows); ++i, once_ = 1)                   \
    for (of_row; once_; once_ = 0)                                         \
      for (int j = 0; j < (columns); ++j)
#else
#define LANE_FOR_TABLE(i, rows, j, columns, of_row)                                                             \
  ROLLED for (int entry_ = lane(), i, j, once_;                                                                 \
              entry_ < (rows) * (columns) && (i = entry_ / (columns), j = entry_ % (columns), once_ = 1, true); \
              entry_ += LANES)                                                                                  \
    for (of_row; once_; once_ = 0)
#endif
#define LANE_FOR_LOADS(i, n) OVERLAPPED for (int i = lane(); i < (n); i += LANES)
#if SIMENGINE_GPU && LANES < 32
#define DOF_FOR(i, n) if (const int i = lane(); i < (n))
#else
#define DOF_FOR(i, n) LANE_FOR(i, n)
#endif

#if SIMENGINE_GPU  // ------------------------------------------------------------------------------------ GPU

#if (defined(AS_TASK) && LANES < 32) || defined(AS_STEP)  // the block of workers and teams is one-dimensional
DEVICE int lane() { return threadIdx.x % LANES; }
DEVICE int group_in_block() { return threadIdx.x / LANES; }
#else
DEVICE int lane() { return threadIdx.x; }
DEVICE int group_in_block() { return threadIdx.y; }
#endif

#if LANES <= 32
DEVICE unsigned lane_mask() {
#if LANES == 32
  return 0xffffffffu;
#else
  return ((1u << LANES) - 1u) << ((group_in_block() * LANES) & 31);
#endif
}
DEVICE void lane_sync() { __syncwarp(lane_mask()); }
DEVICE real lane_sum(real x) {
#pragma unroll
  for (int o = LANES / 2; o > 0; o /= 2) x += __shfl_xor_sync(lane_mask(), x, o, LANES);
  return x;
}
template <int COUNT>
DEVICE void lane_sums(real* x) {
#pragma unroll
  for (int o = LANES / 2; o > 0; o /= 2) {
    real other[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) other[i] = __shfl_xor_sync(lane_mask(), x[i], o, LANES);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) x[i] += other[i];
  }
}
DEVICE int lane_sum_int(int x) {
#pragma unroll
  for (int o = LANES / 2; o > 0; o /= 2) x += __shfl_xor_sync(lane_mask(), x, o, LANES);
  return x;
}
DEVICE int lane_or(int x) {
#pragma unroll
  for (int o = LANES / 2; o > 0; o /= 2) x |= __shfl_xor_sync(lane_mask(), x, o, LANES);
  return x;
}
DEVICE int lane_any(int x) { return __any_sync(lane_mask(), x); }
DEVICE unsigned lane_ballot(int x) {
  return __ballot_sync(lane_mask(), x) >> ((LANES < 32 ? group_in_block() * LANES : 0) & 31);
}
DEVICE unsigned lane_match(int x) {
  return __match_any_sync(lane_mask(), x) >> ((LANES < 32 ? group_in_block() * LANES : 0) & 31);
}
DEVICE int lowest_bit(unsigned x) { return __ffs(x) - 1; }
DEVICE int highest_bit(unsigned x) { return 31 - __clz(x); }
DEVICE unsigned high_product(unsigned x, unsigned y) { return __umulhi(x, y); }
DEVICE int lane_most(int x) {
#pragma unroll
  for (int o = LANES / 2; o > 0; o /= 2) x = max(x, __shfl_xor_sync(lane_mask(), x, o, LANES));
  return x;
}
DEVICE real lane_least(real x) {
#pragma unroll
  for (int o = LANES / 2; o > 0; o /= 2) x = min(x, __shfl_xor_sync(lane_mask(), x, o, LANES));
  return x;
}
DEVICE int lane_sum_of_key(int key, int x, int* total, bool* first) {
  int before = 0;
  *total = 0;
  *first = true;
  ROLLED for (int k = 0; k < LANES; ++k) {
    const int other = __shfl_sync(lane_mask(), key, k, LANES), add = __shfl_sync(lane_mask(), x, k, LANES);
    if (other != key) continue;
    *total += add;
    before += k < lane() ? add : 0;
    *first = *first && k >= lane();
  }
  return before;
}
DEVICE real lane_get(real x, int from) { return __shfl_sync(lane_mask(), x, from, LANES); }
DEVICE int lane_get_int(int x, int from) { return __shfl_sync(lane_mask(), x, from, LANES); }
// Sum of x over the lower lanes; total receives the sum over all lanes.
DEVICE int lane_scan(int x, int* total) {
  int inclusive = x;
#pragma unroll
  for (int o = 1; o < LANES; o *= 2) {
    int y = __shfl_up_sync(lane_mask(), inclusive, o, LANES);
    if (lane() >= o) inclusive += y;
  }
  *total = __shfl_sync(lane_mask(), inclusive, LANES - 1, LANES);
  return inclusive - x;
}
// The number of lower lanes with a flag; total receives that of all lanes.
DEVICE int lane_rank(bool flag, int* total) {
  const unsigned flags = lane_ballot(flag);
  *total = __popc(flags);
  return __popc(flags & ((1u << lane()) - 1u));
}
#else  // one block is one group
DEVICE void lane_sync() { __syncthreads(); }
// Combine x over all lanes, within warps and then across them; the order depends on LANES alone.
template <typename T, typename Combine>
DEVICE T lane_combine(T x, Combine combine) {
  __shared__ T of_warp[LANES / 32];
#pragma unroll
  for (int o = 16; o > 0; o /= 2) x = combine(x, __shfl_xor_sync(0xffffffffu, x, o));
  if ((threadIdx.x & 31) == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  x = of_warp[threadIdx.x % (LANES / 32)];
#pragma unroll
  for (int o = LANES / 64; o > 0; o /= 2) x = combine(x, __shfl_xor_sync(0xffffffffu, x, o));
  __syncthreads();
  return x;
}
DEVICE real lane_sum(real x) {
  return lane_combine(x, [](real a, real b) { return a + b; });
}
template <int COUNT>
DEVICE void lane_sums(real* x) {
  __shared__ real of_warp[COUNT][LANES / 32];
#pragma unroll
  for (int o = 16; o > 0; o /= 2) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) x[i] += __shfl_xor_sync(0xffffffffu, x[i], o);
  }
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    if ((threadIdx.x & 31) == 0) of_warp[i][threadIdx.x / 32] = x[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < COUNT; ++i) x[i] = of_warp[i][threadIdx.x % (LANES / 32)];
#pragma unroll
  for (int o = LANES / 64; o > 0; o /= 2) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) x[i] += __shfl_xor_sync(0xffffffffu, x[i], o);
  }
  __syncthreads();
}
DEVICE int lane_sum_int(int x) {
  return lane_combine(x, [](int a, int b) { return a + b; });
}
DEVICE int lane_or(int x) {
  return lane_combine(x, [](int a, int b) { return a | b; });
}
DEVICE int lane_most(int x) {
  return lane_combine(x, [](int a, int b) { return a > b ? a : b; });
}
DEVICE real lane_least(real x) {
  return lane_combine(x, [](real a, real b) { return a < b ? a : b; });
}
DEVICE real lane_get(real x, int from) {
  __shared__ real slot;
  if (lane() == from) slot = x;
  __syncthreads();
  x = slot;
  __syncthreads();
  return x;
}
DEVICE int lane_any(int x) { return __syncthreads_or(x); }
DEVICE int lane_sum_of_key(int key, int x, int* total, bool* first) {
  __shared__ int keys[LANES], values[LANES];
  keys[lane()] = key;
  values[lane()] = x;
  __syncthreads();
  int before = 0, sum = 0, lower = 0;
  OVERLAPPED for (int k = 0; k < LANES; ++k) {
    const int add = keys[k] == key ? values[k] : 0;
    sum += add;
    before += k < lane() ? add : 0;
    lower |= k < lane() && keys[k] == key;
  }
  __syncthreads();
  *total = sum;
  *first = !lower;
  return before;
}
DEVICE int lane_scan(int x, int* total) {
  __shared__ int warp_total[32];
  int inclusive = x, in_warp = threadIdx.x & 31, warp = threadIdx.x / 32;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    int y = __shfl_up_sync(0xffffffffu, inclusive, o);
    if (in_warp >= o) inclusive += y;
  }
  if (in_warp == 31) warp_total[warp] = inclusive;
  __syncthreads();
  // every warp scans the totals of all warps itself, which takes one barrier less than sharing the result
  int sum = in_warp < LANES / 32 ? warp_total[in_warp] : 0;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    int y = __shfl_up_sync(0xffffffffu, sum, o);
    if (in_warp >= o) sum += y;
  }
  const int before = __shfl_sync(0xffffffffu, sum, warp > 0 ? warp - 1 : 0);
  *total = __shfl_sync(0xffffffffu, sum, 31);
  __syncthreads();
  return (warp > 0 ? before : 0) + inclusive - x;
}
DEVICE int lane_rank(bool flag, int* total) { return lane_scan(flag, total); }
#endif

DEVICE void lower_at(int* place, int x) { atomicMin(place, x); }
DEVICE void publish_fence() { __threadfence_system(); }

#elif LANES == 1  // ------------------------------------------------------------------------------- host, one lane

DEVICE int lane() { return 0; }
DEVICE void lane_sync() {}
DEVICE real lane_sum(real x) { return x; }
DEVICE int lane_sum_int(int x) { return x; }
DEVICE int lane_or(int x) { return x; }
DEVICE int lane_any(int x) { return x != 0; }
DEVICE int lane_most(int x) { return x; }
DEVICE real lane_least(real x) { return x; }
DEVICE real lane_get(real x, int from) { return x; }
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
DEVICE void publish_fence() {}

#else  // ------------------------------------------------------------------------------ host, lanes are threads

#include <pthread.h>
extern thread_local int lane_id, lane_phase;
extern pthread_barrier_t lane_barrier[2];
extern real lane_slot[LANES];
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
DEVICE real lane_get(real x, int from) {
  lane_slot[lane()] = x;
  lane_sync();
  x = lane_slot[from];
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
DEVICE void publish_fence() {}
#endif

#if !SIMENGINE_GPU
template <int COUNT>
DEVICE void lane_sums(real* x) {
  for (int i = 0; i < COUNT; ++i) x[i] = lane_sum(x[i]);
}
#endif

// The lanes of a warp, where a group has several warps, or of the group: they have collectives of their own.
#if SIMENGINE_GPU && LANES > 32
#define WARP_LANES 32
DEVICE int warp_lane() { return threadIdx.x & 31; }
DEVICE int warp_index() { return threadIdx.x / 32; }
DEVICE void warp_sync() { __syncwarp(); }
DEVICE unsigned warp_ballot(int x) { return __ballot_sync(0xffffffffu, x); }
DEVICE real warp_get(real x, int from) { return __shfl_sync(0xffffffffu, x, from); }
DEVICE int warp_get_int(int x, int from) { return __shfl_sync(0xffffffffu, x, from); }
DEVICE int lowest_bit(unsigned x) { return __ffs(x) - 1; }
#elif SIMENGINE_GPU
#define WARP_LANES LANES
DEVICE int warp_lane() { return lane(); }
DEVICE int warp_index() { return 0; }
DEVICE void warp_sync() { lane_sync(); }
DEVICE real warp_get(real x, int from) { return lane_get(x, from); }
#endif

// ------------------------------------------------------------------------------------------------ scalar functions

#if defined(TILE)
// in tile.h
#elif REAL_IS_FLOAT
#define R(x) (x##f)
DEVICE real fma_(real a, real b, real c) { return fmaf(a, b, c); }
DEVICE real abs_(real x) { return fabsf(x); }
DEVICE real pow_(real x, real y) { return powf(x, y); }
DEVICE real atan2_(real y, real x) { return atan2f(y, x); }
DEVICE real expm1_(real x) { return expm1f(x); }
DEVICE real floor_(real x) { return floorf(x); }
DEVICE real asin_(real x) { return asinf(x); }
#if SIMENGINE_GPU
// In half turns, range reduction is exact and cheap, and needs no slow path for large arguments.
DEVICE void sincos_(real x, real* s, real* c) { sincospif(0.31830988618f * x, s, c); }
#else
DEVICE void sincos_(real x, real* s, real* c) {
  *s = sinf(x);
  *c = cosf(x);
}
#endif
#if SIMENGINE_GPU
// One or two instructions each, accurate to two units in the last place. The exact forms take a branch and at least
// eight instructions. These are written as instructions, not enabled by a compiler flag, so that they round in the same
// way in every kernel.
DEVICE real reciprocal_(real x) {
  real y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE real divide_(real x, real y) { return x * reciprocal_(y); }
DEVICE real reciprocal_sqrt_(real x) { return rsqrtf(x); }
DEVICE real sqrt_(real x) {
  real y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#else
DEVICE real reciprocal_(real x) { return 1.0f / x; }
DEVICE real divide_(real x, real y) { return x / y; }
DEVICE real reciprocal_sqrt_(real x) { return 1.0f / sqrtf(x); }
DEVICE real sqrt_(real x) { return sqrtf(x); }
#endif
#define REAL_EPS 1.1920929e-7f
#define REAL_MAX 3.0e38f
#else
#define R(x) (x)
DEVICE real fma_(real a, real b, real c) { return fma(a, b, c); }
DEVICE real sqrt_(real x) { return sqrt(x); }
DEVICE real abs_(real x) { return fabs(x); }
DEVICE real pow_(real x, real y) { return pow(x, y); }
DEVICE real atan2_(real y, real x) { return atan2(y, x); }
DEVICE real expm1_(real x) { return expm1(x); }
DEVICE real floor_(real x) { return floor(x); }
DEVICE real asin_(real x) { return asin(x); }
#if SIMENGINE_GPU
DEVICE void sincos_(real x, real* s, real* c) { sincospi(0.31830988618379067154 * x, s, c); }
#else
DEVICE void sincos_(real x, real* s, real* c) {
  *s = sin(x);
  *c = cos(x);
}
#endif
DEVICE real reciprocal_(real x) { return 1.0 / x; }
DEVICE real divide_(real x, real y) { return x / y; }
DEVICE real reciprocal_sqrt_(real x) { return 1.0 / sqrt(x); }
#define REAL_EPS 2.220446049250313e-16
#define REAL_MAX 1.7e308
#endif

#ifndef TILE
// a where the condition holds, else b, with both computed; and whether it holds for any world of a tile.
DEVICE real select(bool condition, real a, real b) { return condition ? a : b; }
DEVICE bool any_world(bool condition) { return condition; }
DEVICE bool any_lane(bool condition) { return lane_any(condition); }
#endif

DEVICE real max_(real a, real b) { return select(a > b, a, b); }
DEVICE real min_(real a, real b) { return select(a < b, a, b); }
DEVICE real clamp_(real x, real low, real high) { return max_(low, min_(x, high)); }
// True for numbers, false for infinities and NaN.
DEVICE truth finite_(real x) { return abs_(x) <= REAL_MAX; }

#define MJMINVAL R(1e-15)
#define MJMAXVAL R(1e10)

// True for numbers that a state may have: false for larger ones, infinities and NaN.
DEVICE truth bounded_(real x) { return abs_(x) <= MJMAXVAL; }

// Copy a final field from scratch to global memory. Scratch is shared memory, so there is no latency of loads to hide.
template <typename T>
DEVICE void copy_out(T* out, const T* in, int n) {
  LANE_FOR(i, n) out[i] = in[i];
}

// A field that several bodies read: on the GPU a copy in scratch, valid after the next lane_sync; on the host the
// field.
template <typename T>
DEVICE const T* preload(T* copy, const T* in, int n) {
#if SIMENGINE_GPU
  LANE_FOR_LOADS(i, n) copy[i] = in[i];
  return copy;
#else
  return in;
#endif
}

// Words at the start of a group's scratch that linear algebra uses: on the GPU four columns of a matrix.
#if SIMENGINE_GPU && LANES <= 32
#define COLUMN_WORDS (4 * LANES)
#elif SIMENGINE_GPU && defined(SOLVER_WARPS)
#define COLUMN_WORDS (4 * WARP_LANES)
#else
#define COLUMN_WORDS 4
#endif

#if SIMENGINE_GPU
struct alignas(16) real4_storage {
  real x, y, z, w;
};
#endif
