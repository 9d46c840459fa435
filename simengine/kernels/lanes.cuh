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
#elif SIMENGINE_GPU
#define WARP_LANES LANES
DEVICE int warp_lane() { return lane(); }
DEVICE int warp_index() { return 0; }
DEVICE void warp_sync() { lane_sync(); }
DEVICE real warp_get(real x, int from) { return lane_get(x, from); }
DEVICE int warp_get_int(int x, int from) { return lane_get_int(x, from); }
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
