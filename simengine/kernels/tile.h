// Real numbers of tiled kernels on the host: vectors with one entry for each of TILE worlds. Every operation is that of
// the dialect on each entry, without contraction, so that a world has the same bits in a tile as alone.
//
// A comparison gives a truth for each world, which only select() and any_world() take. The compiler refuses a body that
// branches on one, or that passes a part of the model table as `const real*`.
#define DIVERGES __attribute__((error("a tiled body takes a number of one world, or of the model, for all worlds")))

#define TILE VECTOR_WIDTH

struct truth {
  Truths of;

  DIVERGES operator bool() const;
};
static inline truth operator&(const truth& a, const truth& b) { return {a.of & b.of}; }
static inline truth operator|(const truth& a, const truth& b) { return {a.of | b.of}; }
static inline truth operator!(const truth& a) { return {~a.of}; }

struct real {
  Lanes of;

  real() = default;
  real(const Lanes& lanes) : of(lanes) {}
  template <class T, class = decltype(REAL(T()))>
  real(T x) : of(every(REAL(x))) {}
  DIVERGES explicit operator int() const;

  friend real operator+(const real& a, const real& b) { return a.of + b.of; }
  friend real operator-(const real& a, const real& b) { return a.of - b.of; }
  friend real operator*(const real& a, const real& b) { return a.of * b.of; }
  friend real operator/(const real& a, const real& b) { return a.of / b.of; }
  friend real operator-(const real& a) { return -a.of; }
  real& operator+=(const real& a) { return *this = *this + a; }
  real& operator-=(const real& a) { return *this = *this - a; }
  real& operator*=(const real& a) { return *this = *this * a; }
  real& operator/=(const real& a) { return *this = *this / a; }
  friend truth operator<(const real& a, const real& b) { return {a.of < b.of}; }
  friend truth operator>(const real& a, const real& b) { return {a.of > b.of}; }
  friend truth operator<=(const real& a, const real& b) { return {a.of <= b.of}; }
  friend truth operator>=(const real& a, const real& b) { return {a.of >= b.of}; }
  friend truth operator==(const real& a, const real& b) { return {a.of == b.of}; }
  friend truth operator!=(const real& a, const real& b) { return {a.of != b.of}; }
};

// Numbers of a model that the worlds of a tile share.
struct Shared {
  const REAL* base;

  REAL operator[](int i) const { return base[i]; }
  Shared operator+(int i) const { return {base + i}; }
  DIVERGES operator const real*() const;
};

// A part of the model table. With OWN_TABLES each world has a table of its own, at its offset.
#ifdef OWN_TABLES
struct Part {
  const REAL* base;
  const long long* offset;

  real operator[](int i) const {
    real out;
    for (int k = 0; k < TILE; ++k) out.of[k] = base[offset[k] + i];
    return out;
  }
  Part operator+(int i) const { return {base + i, offset}; }
  DIVERGES operator const real*() const;
};
#else
typedef Shared Part;
#endif
typedef Part Numbers;

static inline real select(const truth& condition, const real& a, const real& b) {
  return Lanes(condition.of ? a.of : b.of);
}
static inline real select(bool condition, const real& a, const real& b) { return condition ? a : b; }
static inline truth any_lane(const truth& condition) { return condition; }
static inline bool any_world(bool condition) { return condition; }
static inline bool any_world(const truth& condition) {
  long long any = 0;
  typedef long long Words __attribute__((vector_size(sizeof(Truths))));
  const Words words = (Words)condition.of;
  for (unsigned i = 0; i < sizeof(Words) / sizeof(long long); ++i) any |= words[i];
  return any != 0;
}

template <class Function>
static inline real each_world(Function function) {
  real out;
  for (int i = 0; i < TILE; ++i) out.of[i] = function(i);
  return out;
}

#if REAL_IS_FLOAT
#define R(x) (x##f)
#define REAL_EPS 1.1920929e-7f
#define REAL_MAX 3.0e38f
#else
#define R(x) (x)
#define REAL_EPS 2.220446049250313e-16
#define REAL_MAX 1.7e308
#endif

static inline real fma_(const real& a, const real& b, const real& c) { return vector_fma(a.of, b.of, c.of); }
static inline real sqrt_(const real& x) { return vector_sqrt(x.of); }
static inline real abs_(const real& x) {
  Truths bits = (Truths)x.of;
  return Lanes((Lanes)(bits & ~(Truths)(-Lanes{})));
}
static inline real pow_(const real& x, const real& y) {
  return each_world([&](int i) { return OF_REAL(pow)(x.of[i], y.of[i]); });
}
static inline real atan2_(const real& y, const real& x) {
  return each_world([&](int i) { return OF_REAL(atan2)(y.of[i], x.of[i]); });
}
static inline real expm1_(const real& x) {
  return each_world([&](int i) { return OF_REAL(expm1)(x.of[i]); });
}
static inline real floor_(const real& x) {
  return each_world([&](int i) { return OF_REAL(floor)(x.of[i]); });
}
static inline real asin_(const real& x) {
  return each_world([&](int i) { return OF_REAL(asin)(x.of[i]); });
}
static inline void sincos_(const real& x, real* s, real* c) {
  *s = each_world([&](int i) { return OF_REAL(sin)(x.of[i]); });
  *c = each_world([&](int i) { return OF_REAL(cos)(x.of[i]); });
}
static inline real reciprocal_(const real& x) { return REAL(1) / x; }
static inline real divide_(const real& x, const real& y) { return x / y; }
static inline real reciprocal_sqrt_(const real& x) { return REAL(1) / sqrt_(x); }

// First word of each block of TILE words: where they do not divide evenly, the last block overlaps the one before.
static inline int block_at(int i, int words) { return i + TILE <= words ? i : words - TILE; }

// Entries of the worlds, each of which has `words` in a row, become vectors; and back, for the first `number` worlds.
static inline void gather(real* out, const REAL* const* from, int words) {
  if (words < TILE) {
    for (int k = 0; k < TILE; ++k) {
      for (int i = 0; i < words; ++i) reinterpret_cast<REAL*>(out + i)[k] = from[k][i];
    }
    return;
  }
  for (int first = 0; first < words; first += TILE) {
    const int at = block_at(first, words);
    Lanes x[TILE];
#pragma GCC unroll 16
    for (int k = 0; k < TILE; ++k) __builtin_memcpy(x + k, from[k] + at, sizeof(Lanes));
    transpose(x);
#pragma GCC unroll 16
    for (int k = 0; k < TILE; ++k) out[at + k].of = x[k];
  }
}
static inline void scatter(REAL* const* to, const real* in, int number, int words) {
  if (words < TILE) {
    for (int k = 0; k < number; ++k) {
      for (int i = 0; i < words; ++i) to[k][i] = reinterpret_cast<const REAL*>(in + i)[k];
    }
    return;
  }
  for (int first = 0; first < words; first += TILE) {
    const int at = block_at(first, words);
    Lanes x[TILE];
#pragma GCC unroll 16
    for (int k = 0; k < TILE; ++k) x[k] = in[at + k].of;
    transpose(x);
#pragma GCC unroll 16
    for (int k = 0; k < TILE; ++k) {
      if (k < number) __builtin_memcpy(to[k] + at, x + k, sizeof(Lanes));
    }
  }
}

// The entries of a field, of which each world has `words`, or a single integer.
static void load(real* out, const REAL* field, const int* worlds, int words) {
  const REAL* from[TILE];
  for (int k = 0; k < TILE; ++k) from[k] = field + size_t(worlds[k]) * words;
  gather(out, from, words);
}
static inline void load(int* out, const int* field, const int* worlds) {
  for (int k = 0; k < TILE; ++k) out[k] = field[worlds[k]];
}

// The same from the tile to the fields of its first `number` worlds.
static void store(REAL* field, const real* in, const int* worlds, int number, int words) {
  REAL* to[TILE];
  for (int k = 0; k < TILE; ++k) to[k] = field + size_t(worlds[k]) * words;
  scatter(to, in, number, words);
}
static inline void store(int* field, const int* in, const int* worlds, int number) {
  for (int k = 0; k < number; ++k) field[worlds[k]] = in[k];
}

// Rows of `words` entries, of which world k has rows[k], at lanes + k * stride, where there is room for `most`. In the
// tile all worlds have `most` rows, those that they lack being zero.
static void load_rows(real* out, REAL* lanes, int stride, int number, const int* rows, int most, int words) {
  const REAL* from[TILE];
  for (int k = 0; k < TILE; ++k) {
    REAL* own = lanes + size_t(k < number ? k : number - 1) * stride;
    from[k] = own;
    if (k < number) {
      for (int i = rows[k] * words; i < most * words; ++i) own[i] = 0;
    }
  }
  gather(out, from, most * words);
}
static inline void store_rows(REAL* field, const real* in, const int* worlds, const int* address, const int* rows,
                              int number, int words) {
  for (int k = 0; k < number; ++k) {
    REAL* out = field + size_t(address[worlds[k]]) * words;
    const REAL* from = reinterpret_cast<const REAL*>(in) + k;
    for (int i = 0; i < rows[k] * words; ++i) out[i] = from[i * TILE];
  }
}

// Scratch of the calling thread, for one tile.
static inline real* tile_scratch(size_t words) {
  static thread_local struct Memory {
    char* bytes = nullptr;
    size_t size = 0;

    ~Memory() { delete[] bytes; }
  } memory;
  const size_t size = words * sizeof(real) + alignof(real);
  if (memory.size < size) {
    delete[] memory.bytes;
    memory.bytes = new char[size];
    memory.size = size;
  }
  const uintptr_t at = reinterpret_cast<uintptr_t>(memory.bytes);
  return reinterpret_cast<real*>((at + alignof(real) - 1) / alignof(real) * alignof(real));
}
