// Vector instructions of the host's processor.
#pragma once

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

// Transposition of VECTOR_WIDTH vectors in place, by exchanging blocks of H entries between vectors that are H apart.
template <int H, int... J>
static inline void exchange(Lanes* x, Places<J...>) {
#pragma GCC unroll 16
  for (int i = 0; i < VECTOR_WIDTH; ++i) {
    if (i & H) continue;
    const Lanes a = x[i], b = x[i + H];
    x[i] = blend<(J & H ? VECTOR_WIDTH + J - H : J)...>(a, b);
    x[i + H] = blend<(J & H ? VECTOR_WIDTH + J : J + H)...>(a, b);
  }
}
static inline void transpose(Lanes* x) {
  const PlacesBelow<VECTOR_WIDTH> all{};
  if (VECTOR_WIDTH > 8) exchange<VECTOR_WIDTH / 2 < 8 ? 1 : 8>(x, all);
  if (VECTOR_WIDTH > 4) exchange<VECTOR_WIDTH / 2 < 4 ? 1 : 4>(x, all);
  if (VECTOR_WIDTH > 2) exchange<VECTOR_WIDTH / 2 < 2 ? 1 : 2>(x, all);
  exchange<1>(x, all);
}

// A vector with its entries in opposite order.
template <int... J>
static inline Lanes reversed_by(Lanes x, Places<J...>) {
  return blend<(VECTOR_WIDTH - 1 - J)...>(x, x);
}
static inline Lanes reversed(Lanes x) { return reversed_by(x, PlacesBelow<VECTOR_WIDTH>()); }

// The bits that are set in any of four vectors.
static inline Truths any_bits(Lanes a, Lanes b, Lanes c, Lanes d) {
  return ((Truths)a | (Truths)b) | ((Truths)c | (Truths)d);
}

static inline bool has_bits(Truths x) {
#if !defined(__clang__) && VECTOR_BYTES == 64
  typedef long long Words __attribute__((vector_size(VECTOR_BYTES)));
  return __builtin_ia32_ptestmq512((Words)x, (Words)x, -1) != 0;
#else
  uint64_t word[VECTOR_BYTES / 8], all = 0;
  __builtin_memcpy(word, &x, sizeof(x));
  for (uint64_t each : word) all |= each;
  return all != 0;
#endif
}

// The first `number` words at an address, and zeros behind them.
static inline Lanes load_words(const REAL* from, int number) {
  Lanes x;
  if (number >= VECTOR_WIDTH) {
    __builtin_memcpy(&x, from, sizeof(Lanes));
    return x;
  }
#if !defined(__clang__) && VECTOR_BYTES == 64 && REAL_IS_FLOAT
  return __builtin_ia32_loadups512_mask(from, Lanes{}, (unsigned short)((1u << number) - 1u));
#elif !defined(__clang__) && VECTOR_BYTES == 64
  return __builtin_ia32_loadupd512_mask(from, Lanes{}, (unsigned char)((1u << number) - 1u));
#else
  x = Lanes{};
  for (int i = 0; i < number; ++i) x[i] = from[i];
  return x;
#endif
}

// VECTOR_WIDTH rows of up to VECTOR_WIDTH columns of a matrix whose rows have `stride` words become vectors of columns.
// Rows from `rows` on repeat the last.
static inline void load_columns(Lanes* x, const REAL* from, size_t stride, int rows, int columns) {
  for (int k = 0; k < VECTOR_WIDTH; ++k) x[k] = load_words(from + (k < rows ? k : rows - 1) * stride, columns);
  transpose(x);
}

// The first `number` words of a vector to an address.
static inline void store_words(REAL* to, Lanes x, int number) {
  if (number >= VECTOR_WIDTH) {
    __builtin_memcpy(to, &x, sizeof(Lanes));
    return;
  }
#if !defined(__clang__) && VECTOR_BYTES == 64 && REAL_IS_FLOAT
  __builtin_ia32_storeups512_mask(to, x, (unsigned short)((1u << number) - 1u));
#elif !defined(__clang__) && VECTOR_BYTES == 64
  __builtin_ia32_storeupd512_mask(to, x, (unsigned char)((1u << number) - 1u));
#else
  for (int i = 0; i < number; ++i) to[i] = x[i];
#endif
}

// A bit for each entry, the lowest for the first: whether it is true.
static inline unsigned bits_of(Truths x) {
#if !defined(__clang__) && VECTOR_BYTES == 64 && REAL_IS_FLOAT
  return __builtin_ia32_ptestmd512(x, x, (unsigned short)-1);
#elif !defined(__clang__) && VECTOR_BYTES == 64
  return __builtin_ia32_ptestmq512((long long __attribute__((vector_size(64))))x,
                                   (long long __attribute__((vector_size(64))))x, (unsigned char)-1);
#elif VECTOR_BYTES == 32 && REAL_IS_FLOAT
  return __builtin_ia32_movmskps256((Lanes)x);
#elif VECTOR_BYTES == 32
  return __builtin_ia32_movmskpd256((Lanes)x);
#elif VECTOR_BYTES == 16 && defined(__SSE2__) && REAL_IS_FLOAT
  return __builtin_ia32_movmskps((Lanes)x);
#elif VECTOR_BYTES == 16 && defined(__SSE2__)
  return __builtin_ia32_movmskpd((Lanes)x);
#else
  unsigned bits = 0;
  for (int i = 0; i < VECTOR_WIDTH; ++i) bits |= (x[i] ? 1u : 0u) << i;
  return bits;
#endif
}

// 0, 1, 2 and so on.
static inline Truths places() {
  Truths x;
  for (int i = 0; i < VECTOR_WIDTH; ++i) x[i] = i;
  return x;
}

// Vectors of eight entries, for rows of blocks of few dofs.
typedef REAL Eight __attribute__((vector_size(8 * sizeof(REAL))));
typedef decltype(Eight{} < Eight{}) EightTruths;

static inline Eight eight(REAL x) { return x - Eight{}; }
static inline Eight eight_fma(Eight a, Eight b, Eight c) {
#if __has_builtin(__builtin_elementwise_fma)
  return __builtin_elementwise_fma(a, b, c);
#elif defined(__FMA__) && REAL_IS_FLOAT
  return __builtin_ia32_vfmaddps256(a, b, c);
#elif VECTOR_BYTES == 64
  return __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4);
#else
  Eight out;
  for (int i = 0; i < 8; ++i) out[i] = OF_REAL(fma)(a[i], b[i], c[i]);
  return out;
#endif
}

// The first `number` words at an address, and zeros behind them; at most eight.
static inline Eight load_eight(const REAL* from, int number) {
#if !defined(__clang__) && defined(__AVX512VL__) && REAL_IS_FLOAT
  return __builtin_ia32_loadups256_mask(from, Eight{}, (unsigned char)((1u << number) - 1u));
#elif !defined(__clang__) && VECTOR_BYTES == 64 && !REAL_IS_FLOAT
  return __builtin_ia32_loadupd512_mask(from, Eight{}, (unsigned char)((1u << number) - 1u));
#else
  Eight x = {};
  for (int i = 0; i < number; ++i) x[i] = from[i];
  return x;
#endif
}

// The first `number` words of a vector to an address.
static inline void store_eight(REAL* to, Eight x, int number) {
#if !defined(__clang__) && defined(__AVX512VL__) && REAL_IS_FLOAT
  __builtin_ia32_storeups256_mask(to, x, (unsigned char)((1u << number) - 1u));
#elif !defined(__clang__) && VECTOR_BYTES == 64 && !REAL_IS_FLOAT
  __builtin_ia32_storeupd512_mask(to, x, (unsigned char)((1u << number) - 1u));
#else
  for (int i = 0; i < number; ++i) to[i] = x[i];
#endif
}

// The sum of all entries, in pairs.
static inline REAL eight_sum(Eight x) {
#ifdef __clang__
  const Eight half = x + __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3);
#else
  const Eight half = x + __builtin_shuffle(x, EightTruths{4, 5, 6, 7, 0, 1, 2, 3});
#endif
  return (half[0] + half[2]) + (half[1] + half[3]);
}

// Vectors of four entries, for the axes of a frame; their last entry means nothing.
typedef REAL Four __attribute__((vector_size(4 * sizeof(REAL))));
typedef decltype(Four{} < Four{}) FourTruths;

static inline Four four(REAL x) { return x - Four{}; }
static inline Four four_abs(Four x) { return (Four)((FourTruths)x & ~(FourTruths)-Four{}); }
static inline Four four_fma(Four a, Four b, Four c) {
#if __has_builtin(__builtin_elementwise_fma)
  return __builtin_elementwise_fma(a, b, c);
#elif defined(__FMA__) && REAL_IS_FLOAT
  return __builtin_ia32_vfmaddps(a, b, c);
#elif defined(__FMA__)
  return __builtin_ia32_vfmaddpd256(a, b, c);
#else
  Four out;
  for (int i = 0; i < 4; ++i) out[i] = OF_REAL(fma)(a[i], b[i], c[i]);
  return out;
#endif
}

// The four words at an address.
static inline Four load_four(const REAL* from) {
  Four x;
  __builtin_memcpy(&x, from, sizeof(x));
  return x;
}

// The combination of three vectors with these weights.
static inline Four combined(const Four* x, REAL a, REAL b, REAL c) {
  return four_fma(x[2], four(c), four_fma(x[1], four(b), x[0] * a));
}

// The three words at an address, which are the last of an array: the word before them is read, too.
static inline Four load_last(const REAL* from) {
  const Four x = load_four(from - 1);
#ifdef __clang__
  return __builtin_shufflevector(x, x, 1, 2, 3, 3);
#else
  return __builtin_shuffle(x, FourTruths{1, 2, 3, 3});
#endif
}

// A bit for each entry, the lowest for the first: whether it is true.
static inline unsigned four_bits(FourTruths x) {
#if defined(__SSE2__) && REAL_IS_FLOAT
  return __builtin_ia32_movmskps((Four)x);
#elif defined(__AVX__)
  return __builtin_ia32_movmskpd256((Four)x);
#else
  return (x[0] ? 1u : 0u) | (x[1] ? 2u : 0u) | (x[2] ? 4u : 0u) | (x[3] ? 8u : 0u);
#endif
}

// The entries of a vector in another order.
template <int A, int B, int C, int D>
static inline Four picked(Four x) {
#ifdef __clang__
  return __builtin_shufflevector(x, x, A, B, C, D);
#else
  return __builtin_shuffle(x, FourTruths{A, B, C, D});
#endif
}
static inline Four chosen(FourTruths where, Four a, Four b) { return where ? a : b; }

// The largest entry, everywhere.
static inline Four largest(Four x) {
  const Four half = picked<2, 3, 0, 1>(x), pair = chosen(half > x, half, x), other = picked<1, 0, 3, 2>(pair);
  return chosen(other > pair, other, pair);
}

// Whether one of the first three entries is true.
static inline bool any_of_three(FourTruths x) { return four_bits(x) & 7; }
