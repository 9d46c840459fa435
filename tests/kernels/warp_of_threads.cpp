// The forms of dense.cuh for a warp, run by 32 threads of the host: against loops of one thread, for random matrices and
// rows. Sums and factors must have the same bits; solutions divide in another way. Prints one line, and the exit status
// is 1 if something differs.
#include <pthread.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define SIMENGINE_GPU 1
#define LANES 32
#define COLUMN_WORDS (4 * LANES)
#define MOST_DENSE 0x7fffffff
#define REAL_MAX 1e300
#define R(x) (x)
#define DEVICE static inline
#define DEVICE_CALL static
#define ROLLED
#define LANE_FOR(i, n) for (int i = lane(); i < (n); i += LANES)

typedef double real;
thread_local int lane_id;
pthread_barrier_t barrier;
real slots[LANES];

int lane() { return lane_id; }
void lane_sync() { pthread_barrier_wait(&barrier); }
real lane_get(real x, int from) {
  slots[lane_id] = x;
  lane_sync();
  const real found = slots[from];
  lane_sync();
  return found;
}
unsigned lane_ballot(int x) {
  slots[lane_id] = x != 0;
  lane_sync();
  unsigned found = 0;
  for (int i = 0; i < LANES; ++i) found |= unsigned(slots[i]) << i;
  lane_sync();
  return found;
}
int lowest_bit(unsigned x) { return __builtin_ffs(int(x)) - 1; }
#define __popc __builtin_popcount
real fma_(real a, real b, real c) { return std::fma(a, b, c); }
real sqrt_(real x) { return std::sqrt(x); }
real reciprocal_(real x) { return 1 / x; }
void envelope_factor(real*, int) { std::abort(); }
void row_solve(real*, const real*, int) { std::abort(); }

#include "dense.cuh"

struct Problem {
  int n, nrow, stride;
  std::vector<real> A, J, D, residual, b;
};

real uniform() { return rand() / real(RAND_MAX) - 0.5; }

// A of blocks of six, and rows of which so large a share is not zero.
Problem problem_of(int seed, real share) {
  srand(unsigned(seed));
  Problem p;
  p.n = 33 + rand() % 32, p.nrow = rand() % 20, p.stride = (p.n + 3) / 4 * 4;
  p.A.assign(size_t(p.n * p.n), 0);
  p.J.assign(size_t(p.nrow * p.stride + 4), 0);
  for (int i = 0; i < p.n; ++i) {
    p.b.push_back(uniform());
    p.A[size_t(i * p.n + i)] = 3 + uniform();
    for (int j = i / 6 * 6; j < i; ++j) p.A[size_t(i * p.n + j)] = p.A[size_t(j * p.n + i)] = 0.3 * uniform();
  }
  for (int r = 0; r < p.nrow; ++r) {
    p.D.push_back(1 + uniform());
    p.residual.push_back(uniform());
    for (int i = 0; i < p.n; ++i) {
      if (uniform() + 0.5 < share) p.J[size_t(r * p.stride + i)] = uniform();
    }
  }
  return p;
}

struct Result {
  std::vector<real> H, x;
};

Result by_one(const Problem& p) {
  const int n = p.n;
  std::vector<real> H = p.A, x = p.b;
  for (int r = 0; r < p.nrow; ++r) {
    const real* row = &p.J[size_t(r * p.stride)];
    for (int i = 0; i < n && p.residual[size_t(r)] < 0; ++i) {
      const real c = p.D[size_t(r)] * row[i];
      if (c == 0) continue;
      x[size_t(i)] = fma_(-p.residual[size_t(r)], c, x[size_t(i)]);
      for (int j = 0; j <= i; ++j) H[size_t(i * n + j)] = fma_(c, row[j], H[size_t(i * n + j)]);
    }
  }
  real *h = H.data(), *y = x.data();
  for (int k = 0; k < n; ++k) {
    for (int j = 0; j < k; ++j) h[k * n + k] = fma_(-h[k * n + j], h[k * n + j], h[k * n + k]);
    h[k * n + k] = sqrt_(h[k * n + k] > 0 ? h[k * n + k] : REAL_MAX);
    const real inverse = 1 / h[k * n + k];
    for (int i = k + 1; i < n; ++i) {
      for (int j = 0; j < k; ++j) h[i * n + k] = fma_(-h[i * n + j], h[k * n + j], h[i * n + k]);
      h[i * n + k] *= inverse;
      h[k * n + i] = 0;
    }
  }
  for (int k = 0; k < n; ++k) {
    y[k] /= h[k * n + k];
    for (int i = k + 1; i < n; ++i) y[i] = fma_(-h[i * n + k], y[k], y[i]);
  }
  for (int k = n - 1; k >= 0; --k) {
    y[k] /= h[k * n + k];
    for (int i = 0; i < k; ++i) y[i] = fma_(-h[k * n + i], y[k], y[i]);
  }
  return {H, x};
}

Result by_warp(const Problem& p) {
  Result result = {p.A, p.b};
  std::vector<real> column(COLUMN_WORDS);
  std::vector<std::thread> lanes;
  for (int i = 0; i < LANES; ++i) {
    lanes.emplace_back([&, i] {
      lane_id = i;
      real *H = result.H.data(), *x = result.x.data();
      add_rows(
          column.data(), H, p.n, p.nrow, p.J.data(), p.stride, [&](int r) { return p.residual[size_t(r)] < 0; },
          [&](int r, int, real v) { return p.D[size_t(r)] * v; },
          [&](int r, int k, real c) { x[k] = fma_(-p.residual[size_t(r)], c, x[k]); });
      lane_sync();
      mem_factor(H, p.n);
      mem_solve(x, H, p.n);
    });
  }
  for (std::thread& one : lanes) one.join();
  return result;
}

int main(int, char** arguments) {
  pthread_barrier_init(&barrier, nullptr, LANES);
  int others = 0, trials = std::atoi(arguments[1]);
  real worst = 0;
  for (int seed = 0; seed < trials; ++seed) {
    // all entries are more than are gathered
    const Problem p = problem_of(seed, seed % 3 == 0 ? 1.1 : seed % 3 == 1 ? 0.2 : 0.6);
    const Result one = by_one(p), warp = by_warp(p);
    others += one.H != warp.H;
    for (size_t i = 0; i < one.x.size(); ++i) worst = std::fmax(worst, std::fabs(one.x[i] - warp.x[i]));
  }
  std::printf("%d factors with other bits; solutions differ by %.1e\n", others, worst);
  return others || worst > 1e-12;
}
