// What XLA's loops do one number after another on a CPU: JAX's Threefry generator, 16 hashes at a time, arrays side by side
// in one, part by part, and long sums in one order.

typedef uint32_t Lanes __attribute__((vector_size(64)));
static constexpr int64_t LANES = sizeof(Lanes) / sizeof(uint32_t);

// Threefry-2x32 with 20 rounds: hashes the words (x, y) under the key (a, b).
static inline void hash(const Lanes& a, const Lanes& b, Lanes& x, Lanes& y) {
  static constexpr int ROTATIONS[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Lanes words[3] = {a, b, a ^ b ^ 0x1BD11BDAu};
  x += a;
  y += b;
#pragma GCC unroll 5
  for (int block = 0; block < 5; ++block) {
#pragma GCC unroll 4
    for (int round = 0; round < 4; ++round) {
      const int by = ROTATIONS[block % 2][round];
      x += y;
      y = x ^ ((y << by) | (y >> (32 - by)));
    }
    x += words[(block + 1) % 3];
    y += words[(block + 2) % 3] + uint32_t(block + 1);
  }
}

// Keys (rows, 2) and words (rows), or one word for all, to keys (rows, 2): the hash of (0, word).
static void fold(const uint32_t* key, const uint32_t* word, bool one, int64_t rows, uint32_t* to) {
  for (int64_t at = 0; at < rows; at += LANES) {
    const int64_t some = std::min(LANES, rows - at);
    Lanes a = {}, b = {}, x = {}, y = {};
    for (int64_t i = 0; i < some; ++i) {
      a[i] = key[2 * (at + i)];
      b[i] = key[2 * (at + i) + 1];
      y[i] = word[one ? 0 : at + i];
    }
    hash(a, b, x, y);
    for (int64_t i = 0; i < some; ++i) {
      to[2 * (at + i)] = x[i];
      to[2 * (at + i) + 1] = y[i];
    }
  }
}

// Numbers (rows, count) of keys (rows, 2): entry j of a row is the hash of (0, j), both words of it or their exclusive or.
template <bool WIDE>
static void draw(const uint32_t* key, int64_t rows, int64_t count, char* numbers) {
  const int64_t all = rows * count;
  for (int64_t at = 0, row = 0, column = 0; at < all; at += LANES) {
    const int64_t some = std::min(LANES, all - at);
    Lanes a = {}, b = {}, x = {}, y = {};
    for (int64_t i = 0; i < some; ++i) {
      a[i] = key[2 * row];
      b[i] = key[2 * row + 1];
      y[i] = uint32_t(column);
      if (++column == count) column = 0, ++row;
    }
    hash(a, b, x, y);
    if (WIDE) {
      uint64_t* to = reinterpret_cast<uint64_t*>(numbers) + at;
      for (int64_t i = 0; i < some; ++i) to[i] = uint64_t(x[i]) << 32 | y[i];
    } else {
      const Lanes both = x ^ y;
      std::memcpy(reinterpret_cast<uint32_t*>(numbers) + at, &both, some * sizeof(uint32_t));
    }
  }
}

// Numbers of keys, or of the keys that follow from them and a word, which is negative if there is none.
static ffi::Error random_bits(ffi::Buffer<ffi::U32> keys, ffi::Result<ffi::AnyBuffer> numbers, int64_t word) {
  const uint32_t* key = keys.typed_data();
  const bool wide = numbers->element_type() == ffi::U64;
  const int64_t rows = keys.size_bytes() / 8, all = numbers->size_bytes() / (wide ? 8 : 4);
  if (!rows) return ffi::Error::Success();
  std::vector<uint32_t> folded;
  if (word >= 0) {
    folded.resize(2 * rows);
    const uint32_t given = uint32_t(word);
    fold(key, &given, true, rows, folded.data());
    key = folded.data();
  }
  char* to = static_cast<char*>(numbers->untyped_data());
  wide ? draw<true>(key, rows, all / rows, to) : draw<false>(key, rows, all / rows, to);
  return ffi::Error::Success();
}

static ffi::Error fold_in(ffi::Buffer<ffi::U32> keys, ffi::Buffer<ffi::U32> words, ffi::ResultBuffer<ffi::U32> folded) {
  fold(keys.typed_data(), words.typed_data(), false, words.size_bytes() / 4, folded->typed_data());
  return ffi::Error::Success();
}

// Arrays (..., k) side by side along their last axis.
static ffi::Error join(ffi::RemainingArgs parts, ffi::Result<ffi::AnyBuffer> joined) {
  char* to = static_cast<char*>(joined->untyped_data());
  const int64_t columns = joined->dimensions().back(), all = joined->size_bytes();
  const int64_t row = all ? all / (joined->element_count() / columns) : 0;
  for (size_t i = 0; i < parts.size() && all; ++i) {
    auto part = parts.get<ffi::AnyBuffer>(i);
    if (!part.has_value()) return part.error();
    const char* from = static_cast<const char*>(part->untyped_data());
    const int64_t size = row / columns * part->dimensions().back();
    for (int64_t at = 0; at < all; at += row, from += size) std::memcpy(to + at, from, size);
    to += size;
  }
  return ffi::Error::Success();
}

// Sums of rows of `count` numbers, at least two: the first half of them is added to the second, and so on. The last of an
// odd number of them stays behind the sums.
template <class Real>
static void add(const Real* from, int64_t rows, int64_t count, Real* to) {
  std::vector<Real> sums(count / 2 + 1);
  for (int64_t row = 0; row < rows; ++row, from += count) {
    int64_t left = count;
    for (const Real* now = from; left > 1; now = sums.data()) {
      const int64_t half = left / 2;
      for (int64_t i = 0; i < half; ++i) sums[i] = now[i] + now[half + i];
      if (left % 2) sums[half] = now[2 * half];
      left = half + left % 2;
    }
    to[row] = sums[0];
  }
}

static ffi::Error sum_of_last(ffi::AnyBuffer numbers, ffi::Result<ffi::AnyBuffer> sums) {
  const int64_t rows = sums->element_count(), count = numbers.dimensions().back();
  if (numbers.element_type() == ffi::F32) {
    add(static_cast<const float*>(numbers.untyped_data()), rows, count, static_cast<float*>(sums->untyped_data()));
  } else if (numbers.element_type() == ffi::F64) {
    add(static_cast<const double*>(numbers.untyped_data()), rows, count, static_cast<double*>(sums->untyped_data()));
  } else {
    return ffi::Error::InvalidArgument("simengine adds float32 and float64");
  }
  return ffi::Error::Success();
}

// Sums of the entries of arrays of one shape, each added to those before it.
template <class Real>
static ffi::Error add_arrays(ffi::RemainingArgs& arrays, Real* sums, int64_t count) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    auto array = arrays.get<ffi::AnyBuffer>(i);
    if (!array.has_value()) return array.error();
    const Real* from = static_cast<const Real*>(array->untyped_data());
    if (i == 0) {  // added to zero, -0 would be 0
      std::copy(from, from + count, sums);
    } else {
      for (int64_t k = 0; k < count; ++k) sums[k] += from[k];
    }
  }
  return ffi::Error::Success();
}

static ffi::Error sum_of_arrays(ffi::RemainingArgs arrays, ffi::Result<ffi::AnyBuffer> sums) {
  const int64_t count = sums->element_count();
  if (sums->element_type() == ffi::F32) return add_arrays(arrays, static_cast<float*>(sums->untyped_data()), count);
  if (sums->element_type() == ffi::F64) return add_arrays(arrays, static_cast<double*>(sums->untyped_data()), count);
  return ffi::Error::InvalidArgument("simengine adds float32 and float64");
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(simengine_sum_of_last, sum_of_last,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(simengine_sum_of_arrays, sum_of_arrays,
                              ffi::Ffi::Bind().RemainingArgs().Ret<ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    simengine_random_bits, random_bits,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::U32>>().Ret<ffi::AnyBuffer>().Attr<int64_t>("word"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    simengine_fold_in, fold_in,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::U32>>().Arg<ffi::Buffer<ffi::U32>>().Ret<ffi::Buffer<ffi::U32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(simengine_join, join, ffi::Ffi::Bind().RemainingArgs().Ret<ffi::AnyBuffer>());
