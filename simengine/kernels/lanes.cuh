// What the lanes of a group do together that is the same on the GPU and on the host.
#pragma once

#if !SIMENGINE_GPU || LANES > 32
template <int COUNT>
DEVICE void lane_sums(real* x) {
  for (int i = 0; i < COUNT; ++i) x[i] = lane_sum(x[i]);
}
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
#else
#define COLUMN_WORDS 4
#endif

#if SIMENGINE_GPU
struct alignas(16) real4_storage {
  real x, y, z, w;
};
#endif
