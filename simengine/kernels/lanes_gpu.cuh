// Collectives of the dialect on the GPU, whose meaning dialect.cuh tells: of a group of lanes in a warp, or of a block.
#pragma once

#if SIMENGINE_GPU

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
#if LANES == 32 && __CUDA_ARCH__ >= 800
  return __reduce_add_sync(0xffffffffu, x);
#endif
#pragma unroll
  for (int o = LANES / 2; o > 0; o /= 2) x += __shfl_xor_sync(lane_mask(), x, o, LANES);
  return x;
}
DEVICE int lane_or(int x) {
#if LANES == 32 && __CUDA_ARCH__ >= 800
  return __reduce_or_sync(0xffffffffu, x);
#endif
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
#if LANES == 32 && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xffffffffu, x);
#endif
#pragma unroll
  for (int o = LANES / 2; o > 0; o /= 2) x = max(x, __shfl_xor_sync(lane_mask(), x, o, LANES));
  return x;
}
DEVICE real lane_least(real x) {
#pragma unroll
  for (int o = LANES / 2; o > 0; o /= 2) x = min(x, __shfl_xor_sync(lane_mask(), x, o, LANES));
  return x;
}
// Sums are added up bit by bit: of each bit, the number of lanes with the key that have it.
DEVICE int lane_sum_of_key(int key, int x, int* total, bool* first) {
  const unsigned same = lane_match(key), lower = same & ((1u << lane()) - 1u);
  unsigned sum = 0, before = 0;
  ROLLED for (unsigned bits = lane_or(x); bits; bits &= bits - 1) {
    const int bit = lowest_bit(bits);
    const unsigned set = lane_ballot(x >> bit & 1);
    sum += unsigned(__popc(set & same)) << bit;
    before += unsigned(__popc(set & lower)) << bit;
  }
  *total = int(sum);
  *first = !lower;
  return int(before);
}
template <typename T>
DEVICE T lane_get(T x, int from) {
  return __shfl_sync(lane_mask(), x, from, LANES);
}
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
template <typename T>
DEVICE T lane_get(T x, int from) {
  __shared__ T slot;
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
DEVICE int count_up(int* number) { return atomicAdd(number, 1); }
DEVICE void raise_bit(int* word, int bit) { atomicOr(word, int(1u << bit)); }
DEVICE int bit_count(unsigned x) { return __popc(x); }
DEVICE int low_bit(unsigned x) { return __ffs(x) - 1; }
DEVICE void publish_fence() { __threadfence_system(); }

#endif
