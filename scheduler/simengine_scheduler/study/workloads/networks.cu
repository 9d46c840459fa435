// The kernels of the networks: for each a function that runs one tile, with one block of THREADS threads and its shared
// memory `memory`. kernels.py makes kernels of these functions, and bodies for workers of executor `device`. Arrays are
// row-major: (rows, features), or (pixels, channels) of a square image.
#define THREADS 256
#define TILE 16

static __device__ float activated(float x, int kind) {  // 1: rectified, 2: clipped to -1 .. 1
  if (kind == 1) return x > 0.0f ? x : 0.0f;
  return kind == 2 ? fminf(1.0f, fmaxf(-1.0f, x)) : x;
}

// A chaotic map of each input, perturbed by the latest output: x <- 0.9 (1 - 1.9 x^2) + 0.1 action.
static __device__ void observe_tile(int tile, char* memory, float* x, const float* action, int rows, int inputs,
                                    int outputs) {
  const int i = tile * THREADS + threadIdx.x;
  if (i >= rows * inputs) return;
  const float push = action[(i / inputs) * outputs + (i % inputs) % outputs];
  x[i] = 0.9f * (1.0f - 1.9f * x[i] * x[i]) + 0.1f * push;
}

// The expert of each row: the one with the largest score, the first of equals.
static __device__ void route_tile(int tile, char* memory, const float* x, const float* weights, int* chosen, int rows,
                                  int inputs, int experts) {
  const int row = tile * THREADS + threadIdx.x;
  if (row >= rows) return;
  int best = 0;
  float most = 0.0f;
  for (int e = 0; e < experts; ++e) {
    float score = 0.0f;
    for (int k = 0; k < inputs; ++k) score += x[row * inputs + k] * weights[k * experts + e];
    if (e == 0 || score > most) {
      most = score;
      best = e;
    }
  }
  chosen[row] = best;
}

// The rows of each expert in their order. Tile e serves expert e. The host gets the number of rows too.
static __device__ void bucket_tile(int tile, char* memory, const int* chosen, int* lists, int* counts, int* seen,
                                   int rows) {
  int* of_warp = (int*)memory;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int start = 0;
  for (int first = 0; first < rows; first += THREADS) {
    const int row = first + threadIdx.x;
    const bool mine = row < rows && chosen[row] == tile;
    const unsigned votes = __ballot_sync(0xffffffffu, mine);
    if (lane == 0) of_warp[warp] = __popc(votes);
    __syncthreads();
    int place = start + __popc(votes & ((1u << lane) - 1u));
    for (int w = 0; w < THREADS / 32; ++w) {
      if (w < warp) place += of_warp[w];
      start += of_warp[w];
    }
    if (mine) lists[tile * rows + place] = row;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    counts[tile] = start;
    seen[tile] = start;
  }
}

// y[row] = activation(x[row] W + bias) for the first `*count` rows, or for those in a list. A tile is TILE x TILE
// numbers.
static __device__ void dense_tile(int tile, char* memory, const int* list, const int* count, const float* x,
                                  const float* weights, const float* bias, float* y, int inputs, int outputs,
                                  int x_stride, int y_stride, int kind) {
  float* a = (float*)memory;
  float* b = a + TILE * TILE;
  const int columns = (outputs + TILE - 1) / TILE, rows = *count, tx = threadIdx.x % TILE, ty = threadIdx.x / TILE;
  const int i = tile / columns * TILE + ty, o = tile % columns * TILE + tx;
  if (i - ty >= rows) return;  // all threads of the block
  const int row = i < rows ? (list ? list[i] : i) : -1;
  float sum = o < outputs ? bias[o] : 0.0f;
  for (int first = 0; first < inputs; first += TILE) {
    const int k = first + tx, l = first + ty;
    a[ty * TILE + tx] = row >= 0 && k < inputs ? x[row * x_stride + k] : 0.0f;
    b[ty * TILE + tx] = l < inputs && o < outputs ? weights[l * outputs + o] : 0.0f;
    __syncthreads();
    for (int j = 0; j < TILE; ++j) sum += a[ty * TILE + j] * b[j * TILE + tx];
    __syncthreads();
  }
  if (row >= 0 && o < outputs) y[row * y_stride + o] = activated(sum, kind);
}

// The node of a randomly wired network before its dense part: the weighted sum of nodes, rectified, then a 3 x 3 filter
// of each channel with zero padding. Images of `nodes` have `side` pixels on a side. The output takes every
// `stride`-th.
static __device__ void join_tile(int tile, char* memory, const float* nodes, const int* before, const float* weights,
                                 const float* filters, float* y, int count, int channels, int side, int stride) {
  const int small = (side + stride - 1) / stride, i = tile * THREADS + threadIdx.x;
  if (i >= small * small * channels) return;
  const int c = i % channels, pixel = i / channels, row = pixel / small * stride, column = pixel % small * stride;
  float sum = 0.0f;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      const int v = row + dy, u = column + dx;
      if (v < 0 || v >= side || u < 0 || u >= side) continue;
      float joined = 0.0f;
      for (int n = 0; n < count; ++n)
        joined += weights[n] * nodes[((before[n] * side + v) * side + u) * channels + c];
      sum += activated(joined, 1) * filters[(3 * (dy + 1) + dx + 1) * channels + c];
    }
  }
  y[i] = sum;
}

// The mean of some nodes of `size` numbers each.
static __device__ void mean_tile(int tile, char* memory, const float* nodes, const int* chosen, float* y, int count,
                                 int size) {
  const int i = tile * THREADS + threadIdx.x;
  if (i >= size) return;
  float sum = 0.0f;
  for (int n = 0; n < count; ++n) sum += nodes[chosen[n] * size + i];
  y[i] = sum / count;
}
