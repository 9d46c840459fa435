// What the lanes of a group do together that is the same on the GPU and on the host.
#pragma once

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
DEVICE int warp_most(int x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xffffffffu, x);
#else
  UNROLLED for (int o = 16; o > 0; o /= 2) x = max(x, __shfl_xor_sync(0xffffffffu, x, o));
  return x;
#endif
}
#elif SIMENGINE_GPU
#define WARP_LANES LANES
DEVICE int warp_lane() { return lane(); }
DEVICE int warp_index() { return 0; }
DEVICE void warp_sync() { lane_sync(); }
DEVICE real warp_get(real x, int from) { return lane_get(x, from); }
DEVICE int warp_get_int(int x, int from) { return lane_get_int(x, from); }
#ifdef SOLVER_WARPS
DEVICE unsigned warp_ballot(int x) { return lane_ballot(x); }
#endif
#endif

// Sums over the rows of a world, to which each lane adds its rows of a LANE_FOR. A lane of a single warp that works as
// two has two rows where each of their lanes has one. It keeps the rows of the first warp apart from those of the
// second, and all lanes add them in the order of two warps, so that results have the same bits. Sums over dofs need no
// care: the second warp has none.
#if SIMENGINE_GPU && defined(SOLVER_WARPS) && LANES == 32
#define WARP_AS_TWO
struct RowSum {
  real first, second;
};
DEVICE void add_row(RowSum& sum, int row, real x) {
  const bool of_second = row & LANES;
  sum.first += of_second ? R(0.0) : x;
  sum.second += of_second ? x : R(0.0);
}
// Afterwards the sums over all lanes are `total`. Half of the lanes go on with the first part and the other half with
// the second, so that this takes one shuffle more than sums without parts.
template <int COUNT>
DEVICE void lane_sums(RowSum* x) {
  const bool upper = lane() >= 16;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const real other = __shfl_xor_sync(lane_mask(), upper ? x[i].first : x[i].second, 16);
    x[i].first = (upper ? x[i].second : x[i].first) + other;
  }
#pragma unroll
  for (int o = 8; o > 0; o /= 2) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) x[i].first += __shfl_xor_sync(lane_mask(), x[i].first, o);
  }
#pragma unroll
  for (int i = 0; i < COUNT; ++i) x[i].first += __shfl_xor_sync(lane_mask(), x[i].first, 16);
}
DEVICE real total(RowSum sum) { return sum.first; }
DEVICE real lane_sum(RowSum x) {
  lane_sums<1>(&x);
  return total(x);
}
#else
typedef real RowSum;
DEVICE void add_row(RowSum& sum, int row, real x) { sum += x; }
DEVICE real total(RowSum sum) { return sum; }
#endif

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

// Words at the start of a group's scratch that linear algebra uses: on the GPU four columns of a matrix. A kernel that
// solves nothing may have none.
#ifdef COLUMN_WORDS
#elif SIMENGINE_GPU && LANES <= 32
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
