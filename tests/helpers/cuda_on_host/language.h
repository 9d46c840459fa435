// The part of CUDA's language that kernels use, for the host: threads are fibers (fibers.h).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdlib>

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __shared__ static

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};

// Kinds of collectives.
enum { SYNC = 1, SHUFFLE, SHUFFLE_XOR, SHUFFLE_UP, BALLOT, ANY, MATCH, REDUCE_ADD, REDUCE_OR, REDUCE_MAX, BARRIER, BARRIER_OR };

template <typename T>
uint64_t as_word(T x) {
  uint64_t word = 0;
  memcpy(&word, &x, sizeof(x));
  return word;
}
template <typename T>
T given_by(int thread) {  // of the warp
  if (!(fibers[current].mask >> thread & 1u)) blame("a shuffle from a thread that its mask lacks");
  T x;
  memcpy(&x, &fibers[current].all[thread], sizeof(x));
  return x;
}
inline int own_thread() { return current & (WARP_THREADS - 1); }

inline void __syncwarp(unsigned mask = ~0u) { meet(SYNC, mask, 0); }
template <typename T>
T __shfl_sync(unsigned mask, T x, int from, int width = WARP_THREADS) {
  meet(SHUFFLE + 64 * width, mask, as_word(x));
  return given_by<T>((own_thread() & ~(width - 1)) | (from & (width - 1)));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T x, int bits, int width = WARP_THREADS) {
  meet(SHUFFLE_XOR + 64 * width + 4096 * bits, mask, as_word(x));
  return given_by<T>(own_thread() ^ bits);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T x, int by, int width = WARP_THREADS) {
  meet(SHUFFLE_UP + 64 * width + 4096 * by, mask, as_word(x));
  return (own_thread() & (width - 1)) < by ? x : given_by<T>(own_thread() - by);
}

// The bits of the threads for whose words `holds` does.
template <typename Holds>
unsigned threads_where(unsigned mask, Holds holds) {
  unsigned found = 0;
  for (int i = 0; i < WARP_THREADS; ++i) {
    if (mask >> i & 1u) found |= unsigned(holds(fibers[current].all[i])) << i;
  }
  return found;
}
inline unsigned __ballot_sync(unsigned mask, int x) {
  meet(BALLOT, mask, x != 0);
  return threads_where(mask, [](uint64_t word) { return word != 0; });
}
inline int __any_sync(unsigned mask, int x) {
  meet(ANY, mask, x != 0);
  return threads_where(mask, [](uint64_t word) { return word != 0; }) != 0;
}
inline unsigned __match_any_sync(unsigned mask, int x) {
  meet(MATCH, mask, as_word(x));
  return threads_where(mask, [x](uint64_t word) { return word == as_word(x); });
}
inline int __reduce_or_sync(unsigned mask, int x) {
  meet(REDUCE_OR, mask, as_word(x));
  int all = 0;
  for (int i = 0; i < WARP_THREADS; ++i) all |= mask >> i & 1u ? given_by<int>(i) : 0;
  return all;
}
inline int __reduce_add_sync(unsigned mask, int x) {
  meet(REDUCE_ADD, mask, as_word(x));
  unsigned sum = 0;
  for (int i = 0; i < WARP_THREADS; ++i) sum += mask >> i & 1u ? unsigned(given_by<int>(i)) : 0u;
  return int(sum);
}
inline int __reduce_max_sync(unsigned mask, int x) {
  meet(REDUCE_MAX, mask, as_word(x));
  int most = x;
  for (int i = 0; i < WARP_THREADS; ++i) {
    if (mask >> i & 1u) most = given_by<int>(i) > most ? given_by<int>(i) : most;
  }
  return most;
}
inline void __syncthreads() { meet_block(BARRIER, 0); }
inline int __syncthreads_or(int x) {
  meet_block(BARRIER_OR, x != 0);
  return int(fibers[current].all[0]);
}

inline int atomicAdd(int* to, int x) { return (*to += x) - x; }
inline int atomicMin(int* to, int x) {
  const int before = *to;
  *to = x < before ? x : before;
  return before;
}
inline int atomicOr(int* to, int x) {
  const int before = *to;
  *to |= x;
  return before;
}
inline void __threadfence_system() {}

inline int __ffs(unsigned x) { return __builtin_ffs(int(x)); }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned(uint64_t(x) * y >> 32); }

inline size_t __cvta_generic_to_global(const void* p) { return size_t(p); }
inline size_t __cvta_generic_to_shared(const void* p) { return size_t(p); }
inline void* __cvta_global_to_generic(size_t p) { return reinterpret_cast<void*>(p); }
inline void* __cvta_shared_to_generic(size_t p) { return reinterpret_cast<void*>(p); }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline void sincospif(float x, float* s, float* c) {
  *s = float(sin(M_PI * double(x)));
  *c = float(cos(M_PI * double(x)));
}
inline void sincospi(double x, double* s, double* c) {
  *s = sin(M_PI * x);
  *c = cos(M_PI * x);
}
inline int max(int a, int b) { return a > b ? a : b; }
inline int min(int a, int b) { return a < b ? a : b; }
inline float min(float a, float b) { return fminf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
