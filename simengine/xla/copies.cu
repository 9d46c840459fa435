// Copies of arrays between XLA and the engine: one launch for all arrays of a call. The grid's second axis is the array.

struct Item {
  const int* from;
  const int* instead;
  int* to;
  int rows, words, from_stride, to_stride, instead_stride, unused;
};

struct Items {
  Item item[56];
};

// Copy a state into the engine's memory, and clear the flags of full arenas. `progress` has four words for each shard,
// of which the first two are such flags.
extern "C" __global__ void gather(const Items items, int* progress, int words) {
  const Item& item = items.item[blockIdx.y];
  const unsigned total = unsigned(item.rows) * item.words, step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
    const unsigned row = i / item.words, column = i - row * item.words;
    item.to[size_t(row) * item.to_stride + column] = item.from[i];
  }
  if (blockIdx.x == 0 && blockIdx.y == 0) {
    for (int i = threadIdx.x; i < words; i += blockDim.x) {
      if (i % 4 < 2) progress[i] = 0;
    }
  }
}

// Copy a state out of the engine's memory. If an arena was full, steps are missing or one is not complete; all worlds
// then keep the state that the call was given.
extern "C" __global__ void scatter(const Items items, const int* progress, int words) {
  const Item& item = items.item[blockIdx.y];
  bool full = false;
  for (int i = 0; i < words; ++i) full |= i % 4 < 2 && progress[i] != 0;
  const int* from = full && item.instead ? item.instead : item.from;
  const unsigned stride = full && item.instead ? item.instead_stride : item.from_stride;
  const unsigned total = unsigned(item.rows) * item.words, step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
    const unsigned row = i / item.words, column = i - row * item.words;
    item.to[i] = from[size_t(row) * stride + column];
  }
}
