// The forms of dense.cuh for a warp, run by 32 threads of the host: against loops of one thread, for random matrices and
// rows. Sums and factors must have the same bits; solutions divide in another way. Prints one line, and the exit status
// is 1 if something differs.
#include "threads_as_lanes.h"

#include "dense.cuh"

struct Problem {
  int n, nrow, stride;
  std::vector<real> A, J, D, residual, b;
};

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
  run_warp([&] {
    real *H = result.H.data(), *x = result.x.data();
    add_rows(
        column.data(), H, p.n, p.nrow, p.J.data(), p.stride, [&](int r) { return p.residual[size_t(r)] < 0; },
        [&](int r, int, real v) { return p.D[size_t(r)] * v; },
        [&](int r, int k, real c) { x[k] = fma_(-p.residual[size_t(r)], c, x[k]); });
    lane_sync();
    mem_factor(H, p.n);
    mem_solve(x, H, p.n);
  });
  return result;
}

int main(int, char** arguments) {
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
