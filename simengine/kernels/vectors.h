// Vector instructions of the host's processor.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__) && defined(__FMA__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define VECTOR_WIDTH (VECTOR_BYTES / int(sizeof(REAL)))

#if REAL_IS_FLOAT
#define OF_REAL(name) name##f
#else
#define OF_REAL(name) name
#endif

typedef REAL Lanes __attribute__((vector_size(VECTOR_BYTES)));
typedef decltype(Lanes{} < Lanes{}) Truths;

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif

// Of these two GCC has no general vector form that it uses without being allowed to contract or to assume.
#if __has_builtin(__builtin_elementwise_fma) && __has_builtin(__builtin_elementwise_sqrt)
static inline Lanes vector_fma(Lanes a, Lanes b, Lanes c) { return __builtin_elementwise_fma(a, b, c); }
static inline Lanes vector_sqrt(Lanes x) { return __builtin_elementwise_sqrt(x); }
#elif !defined(__clang__) && VECTOR_BYTES == 64 && REAL_IS_FLOAT
static inline Lanes vector_fma(Lanes a, Lanes b, Lanes c) { return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4); }
static inline Lanes vector_sqrt(Lanes x) { return __builtin_ia32_sqrtps512_mask(x, x, -1, 4); }
#elif !defined(__clang__) && VECTOR_BYTES == 64
static inline Lanes vector_fma(Lanes a, Lanes b, Lanes c) { return __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4); }
static inline Lanes vector_sqrt(Lanes x) { return __builtin_ia32_sqrtpd512_mask(x, x, -1, 4); }
#elif !defined(__clang__) && VECTOR_BYTES == 32 && REAL_IS_FLOAT
static inline Lanes vector_fma(Lanes a, Lanes b, Lanes c) { return __builtin_ia32_vfmaddps256(a, b, c); }
static inline Lanes vector_sqrt(Lanes x) { return __builtin_ia32_sqrtps256(x); }
#elif !defined(__clang__) && VECTOR_BYTES == 32
static inline Lanes vector_fma(Lanes a, Lanes b, Lanes c) { return __builtin_ia32_vfmaddpd256(a, b, c); }
static inline Lanes vector_sqrt(Lanes x) { return __builtin_ia32_sqrtpd256(x); }
#else
static inline Lanes vector_fma(Lanes a, Lanes b, Lanes c) {
  Lanes out;
  for (int i = 0; i < VECTOR_WIDTH; ++i) out[i] = OF_REAL(fma)(a[i], b[i], c[i]);
  return out;
}
static inline Lanes vector_sqrt(Lanes x) {
  Lanes out;
  for (int i = 0; i < VECTOR_WIDTH; ++i) out[i] = OF_REAL(sqrt)(x[i]);
  return out;
}
#endif

static inline Lanes every(REAL x) { return x - Lanes{}; }

// Entry `place` of a vector, everywhere.
static inline Lanes spread(Lanes x, int place) {
#ifdef __clang__
  return every(x[place]);
#else
  return __builtin_shuffle(x, place + Truths{});
#endif
}

// The vector of the entries FROM of two vectors, those of the second after those of the first.
template <int... FROM>
static inline Lanes blend(Lanes a, Lanes b) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, FROM...);
#else
  return __builtin_shuffle(a, b, Truths{FROM...});
#endif
}
