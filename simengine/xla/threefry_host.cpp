// Random numbers on a CPU: JAX's Threefry generator as custom calls, 16 hashes at a time. XLA's own loops over the numbers
// of a world are too short for vectors where it joins them with what follows.

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

// Keys (rows, 2) to numbers (rows, count): entry j of a row is the hash of (0, j), both words of it or their exclusive or.
static ffi::Error random_bits(ffi::Buffer<ffi::U32> keys, ffi::Result<ffi::AnyBuffer> numbers) {
  const uint32_t* key = keys.typed_data();
  const bool wide = numbers->element_type() == ffi::U64;
  const int64_t rows = keys.size_bytes() / 8, all = numbers->size_bytes() / (wide ? 8 : 4);
  const int64_t count = rows ? all / rows : 0;
  for (int64_t at = 0, row = 0, column = 0; at < all; at += LANES) {
    const int64_t some = std::min(LANES, all - at);
    uint32_t given[3][LANES] = {};
    for (int64_t i = 0; i < some; ++i) {
      given[0][i] = key[2 * row];
      given[1][i] = key[2 * row + 1];
      given[2][i] = uint32_t(column);
      if (++column == count) column = 0, ++row;
    }
    Lanes a, b, x = {}, y;
    std::memcpy(&a, given[0], sizeof a);
    std::memcpy(&b, given[1], sizeof b);
    std::memcpy(&y, given[2], sizeof y);
    hash(a, b, x, y);
    if (wide) {
      uint64_t* to = static_cast<uint64_t*>(numbers->untyped_data()) + at;
      for (int64_t i = 0; i < some; ++i) to[i] = uint64_t(x[i]) << 32 | y[i];
    } else {
      const Lanes both = x ^ y;
      std::memcpy(static_cast<uint32_t*>(numbers->untyped_data()) + at, &both, some * sizeof(uint32_t));
    }
  }
  return ffi::Error::Success();
}

// Keys (rows, 2) and words (rows) to keys (rows, 2): the hash of (0, word).
static ffi::Error fold_in(ffi::Buffer<ffi::U32> keys, ffi::Buffer<ffi::U32> words, ffi::ResultBuffer<ffi::U32> folded) {
  const uint32_t *key = keys.typed_data(), *word = words.typed_data();
  uint32_t* to = folded->typed_data();
  const int64_t rows = words.size_bytes() / 4;
  for (int64_t at = 0; at < rows; at += LANES) {
    const int64_t some = std::min(LANES, rows - at);
    Lanes a = {}, b = {}, x = {}, y = {};
    for (int64_t i = 0; i < some; ++i) a[i] = key[2 * (at + i)], b[i] = key[2 * (at + i) + 1], y[i] = word[at + i];
    hash(a, b, x, y);
    for (int64_t i = 0; i < some; ++i) to[2 * (at + i)] = x[i], to[2 * (at + i) + 1] = y[i];
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(simengine_random_bits, random_bits,
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::U32>>().Ret<ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    simengine_fold_in, fold_in,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::U32>>().Arg<ffi::Buffer<ffi::U32>>().Ret<ffi::Buffer<ffi::U32>>());
