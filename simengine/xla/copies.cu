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

// Copy a state into the engine's memory, set arrays without a source to zero, and clear the flags of full arenas.
// `progress` has PROGRESS_WORDS words for each shard, of which the first ARENA_FLAGS are such flags.
extern "C" __global__ void gather(const Items items, int* progress, int words) {
  const Item& item = items.item[blockIdx.y];
  const unsigned total = unsigned(item.rows) * item.words, step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
    const unsigned row = i / item.words, column = i - row * item.words;
    item.to[size_t(row) * item.to_stride + column] = item.from ? item.from[i] : 0;
  }
  if (blockIdx.x == 0 && blockIdx.y == 0) {
    for (int i = threadIdx.x; i < words; i += blockDim.x) {
      if (i % PROGRESS_WORDS < ARENA_FLAGS) progress[i] = 0;
    }
  }
}

// Copy a state out of the engine's memory. If an arena was full, steps are missing or one is not complete; all worlds
// then keep the state that the call was given.
extern "C" __global__ void scatter(const Items items, const int* progress, int words) {
  const Item& item = items.item[blockIdx.y];
  bool full = false;
  for (int i = 0; i < words; ++i) full |= i % PROGRESS_WORDS < ARENA_FLAGS && progress[i] != 0;
  const int* from = full && item.instead ? item.instead : item.from;
  const unsigned stride = full && item.instead ? item.instead_stride : item.from_stride;
  const unsigned total = unsigned(item.rows) * item.words, step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
    const unsigned row = i / item.words, column = i - row * item.words;
    item.to[i] = from[size_t(row) * stride + column];
  }
}

// List the worlds of a mask in ascending order. One block of 1024 threads, each of which looks at neighbouring worlds.
extern "C" __global__ void choose(const int* mask, int n, int* chosen, int* num_chosen) {
  __shared__ int before[1025];
  const int each = (n + 1023) / 1024, begin = threadIdx.x * each, end = min(begin + each, n);
  int own = 0;
  for (int w = begin; w < end; ++w) own += mask[w] != 0;
  before[threadIdx.x + 1] = own;
  if (threadIdx.x == 0) before[0] = 0;
  __syncthreads();
  for (int d = 1; d < 1024; d *= 2) {
    const int at = threadIdx.x + 1, more = at > d ? before[at - d] : 0;
    __syncthreads();
    before[at] += more;
    __syncthreads();
  }
  int to = before[threadIdx.x];
  for (int w = begin; w < end; ++w) {
    if (mask[w] != 0) chosen[to++] = w;
  }
  if (threadIdx.x == 0) num_chosen[0] = before[1024];
}
