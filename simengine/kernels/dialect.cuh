// The portable kernel dialect: one source for the GPU (NVRTC) and the host (any C++17 compiler).
//
// A kernel's unit is a world, worked on by a group of LANES lanes. Code is LANE_FOR loops separated by lane_sync();
// reductions have a fixed order, so that results never depend on timing. Built with fused multiply-add contraction off:
// the same expression then rounds the same in every kernel, and fma_() is written where it is wanted.
//
//   GPU          LANES of a warp, block = (LANES, worlds), collectives masked to the group; LANES > 32 is a whole
//                block; as a task of executor `device`, block = (32 or LANES), and 32 / LANES worlds a tile; in a
//                kernel of whole steps, block = (32 times the teams), a team's groups in a row
//   host, 1      a plain loop, collectives are the identity
//   host, more   one thread per lane with barriers, for the thread sanitizer
//
// Beside sums, lane_most is the largest x of all lanes, lane_scan the sum of x over the lower lanes, and
// lane_sum_of_key that over the lower lanes with the same key; its total is of all lanes with the key, of which one is
// the first. lane_ballot has a bit set for each lane with x not zero, for groups of 32 lanes or fewer on the GPU alone.
// lower_at makes an integer in memory the smaller of itself and x, whatever other lanes do: its result knows no order.
//
// The build defines REAL (float or double), REAL_IS_FLOAT and LANES.
#pragma once

typedef REAL real;

#if defined(__CUDACC__)
// Bodies for workers are linked with those of other numbers of lanes: what they share by name must not be shared.
#ifdef AS_TASK
#define DEVICE static __device__ __forceinline__
#define DEVICE_CALL static __device__ __noinline__
#else
#define DEVICE __device__ __forceinline__
#define DEVICE_CALL __device__ __noinline__
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

// DEVICE_CALL is for large functions with several callers, which would outgrow the instruction cache if inlined.
//
// Loops over the lanes' shares. They are not unrolled: kernels hold many of them, and code that outgrows the
// instruction cache costs more than a branch. ROLLED says the same of a serial loop. DOF_FOR is for loops over nv, of
// which a lane below 32 has one at most.
#if SIMENGINE_GPU
#define ROLLED _Pragma("unroll 1")
#define OVERLAPPED _Pragma("unroll 4")
#else
#define ROLLED
#define OVERLAPPED
#endif
#define LANE_FOR(i, n) ROLLED for (int i = lane(); i < (n); i += LANES)
#define LANE_FOR_LOADS(i, n) OVERLAPPED for (int i = lane(); i < (n); i += LANES)
#if SIMENGINE_GPU && LANES < 32
#define DOF_FOR(i, n) if (const int i = lane(); i < (n))
#else
#define DOF_FOR(i, n) LANE_FOR(i, n)
#endif

#if SIMENGINE_GPU  // ------------------------------------------------------------------------------------ GPU

#if (defined(AS_TASK) && LANES < 32) || defined(AS_STEP)  // the warps of workers and teams stand in one row
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
DEVICE int lowest_bit(unsigned x) { return __ffs(x) - 1; }
DEVICE int lane_most(int x) {
#pragma unroll
  for (int o = LANES / 2; o > 0; o /= 2) x = max(x, __shfl_xor_sync(lane_mask(), x, o, LANES));
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
#else  // one block is one group
DEVICE void lane_sync() { __syncthreads(); }
// All lanes' x combined, within warps and then across them: an order that LANES alone decides.
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
DEVICE int lane_sum_int(int x) {
  return lane_combine(x, [](int a, int b) { return a + b; });
}
DEVICE int lane_or(int x) {
  return lane_combine(x, [](int a, int b) { return a | b; });
}
DEVICE int lane_most(int x) {
  return lane_combine(x, [](int a, int b) { return a > b ? a : b; });
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
  // every warp scans the totals of all warps for itself: one barrier fewer than sharing the result
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
DEVICE int lane_sum_of_key(int key, int x, int* total, bool* first) {
  *total = x;
  *first = true;
  return 0;
}
DEVICE int lane_scan(int x, int* total) {
  *total = x;
  return 0;
}
DEVICE void lower_at(int* place, int x) { *place = x < *place ? x : *place; }
DEVICE void publish_fence() {}

#else  // ------------------------------------------------------------------------------ host, lanes are threads

#include <pthread.h>
extern thread_local int lane_id, lane_phase;
extern pthread_barrier_t lane_barrier[2];
extern real lane_slot[LANES];
extern int lane_slot_int[LANES], lane_slot_key[LANES];

DEVICE int lane() { return lane_id; }
// Two barriers in turn: with one, the thread sanitizer takes a lane that leaves late to have seen what the others wrote
// until they came back to it, and misses races.
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
DEVICE void lower_at(int* place, int x) {
  int there = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (x < there && !__atomic_compare_exchange_n(place, &there, x, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
DEVICE void publish_fence() {}
#endif

// ------------------------------------------------------------------------------------------------ scalar functions

#if REAL_IS_FLOAT
#define R(x) (x##f)
DEVICE real fma_(real a, real b, real c) { return fmaf(a, b, c); }
DEVICE real abs_(real x) { return fabsf(x); }
DEVICE real pow_(real x, real y) { return powf(x, y); }
DEVICE real atan2_(real y, real x) { return atan2f(y, x); }
DEVICE real expm1_(real x) { return expm1f(x); }
DEVICE real floor_(real x) { return floorf(x); }
DEVICE real asin_(real x) { return asinf(x); }
#if SIMENGINE_GPU
// In half turns the range reduction is exact and cheap, without the slow path for large arguments.
DEVICE void sincos_(real x, real* s, real* c) { sincospif(0.31830988618f * x, s, c); }
#else
DEVICE void sincos_(real x, real* s, real* c) {
  *s = sinf(x);
  *c = cosf(x);
}
#endif
#if SIMENGINE_GPU
// One or two instructions each and within two units in the last place, where the exact forms take a branch and eight or
// more. Written as instructions, not asked of the compiler by a flag, they round the same in every kernel.
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

DEVICE real max_(real a, real b) { return a > b ? a : b; }
DEVICE real min_(real a, real b) { return a < b ? a : b; }
DEVICE real clamp_(real x, real low, real high) { return max_(low, min_(x, high)); }
// True for numbers, false for infinities and NaN.
DEVICE bool finite_(real x) { return abs_(x) <= REAL_MAX; }

#define MJMINVAL R(1e-15)

// A finished field from scratch to memory. Scratch is near: there is no wait for loads that overlapping would hide.
template <typename T>
DEVICE void copy_out(T* out, const T* in, int n) {
  LANE_FOR(i, n) out[i] = in[i];
}

// A field that several bodies read: on the GPU a copy in scratch, valid after the next lane_sync; elsewhere itself.
template <typename T>
DEVICE const T* preload(T* copy, const T* in, int n) {
#if SIMENGINE_GPU
  LANE_FOR_LOADS(i, n) copy[i] = in[i];
  return copy;
#else
  return in;
#endif
}

// Words that linear algebra keeps per group, at the start of its scratch: on the GPU four columns of a matrix.
#if SIMENGINE_GPU && LANES <= 32
#define COLUMN_WORDS (4 * LANES)
#else
#define COLUMN_WORDS 4
#endif

#if SIMENGINE_GPU
struct alignas(16) real4_storage {
  real x, y, z, w;
};
#endif
