// The forms of wide.cuh and wide_solve.cuh, run by 32 threads of the host: factors, and Newton directions of random
// problems against loops of one thread, for matrices of up to MATRIX_ROWS rows. Prints one line, and the exit status is
// 1 if something differs.
#include "threads_as_lanes.h"

#include "newton_by_one.h"

#include "wide.cuh"
#include "wide_solve.cuh"

// A problem whose last `dim` rows are one cone, with a dense block of weights. Of the others, each fourth has one entry,
// the next has a 1 in the column of a dof, and the next has zeros at its start.
struct Problem {
  int n, nrow, first;
  std::vector<real> A, J, W, force, b, d;
};

Problem problem_of(int seed, int dim) {
  srand(unsigned(seed));
  Problem p;
  p.n = MATRIX_ROWS - seed % 4, p.first = rand() % 50, p.nrow = p.first + dim;
  p.J.assign(size_t((p.nrow + 1) * MATRIX_ROWS), 0);
  p.W.assign(size_t(p.nrow * p.nrow), 0);
  p.A.assign(size_t(p.n * p.n), 0);
  for (int i = 0; i < p.n; ++i) {
    p.b.push_back(uniform());
    p.d.push_back(1 + uniform());
    p.A[size_t(i * p.n + i)] = 5 + uniform();
    for (int j = 0; j < i; ++j) p.A[size_t(i * p.n + j)] = p.A[size_t(j * p.n + i)] = 0.3 * uniform();
  }
  for (int r = 0; r < p.nrow; ++r) {
    const int kind = r < p.first ? r % 4 : 3, begin = rand() % p.n, end = kind == 0 ? begin + 1 : p.n;
    for (int i = kind == 3 ? 0 : begin; i < end && kind != 1; ++i) p.J[size_t(r * MATRIX_ROWS + i)] = uniform();
    if (kind == 1) p.J[size_t(r * MATRIX_ROWS + r % p.n)] = 1;
    p.force.push_back(r % 5 ? uniform() : 0);
    if (r < p.first) p.W[size_t(r * p.nrow + r)] = r % 7 ? 1 + uniform() : 0;
    for (int s = p.first; s <= r; ++s) {
      p.W[size_t(r * p.nrow + s)] = p.W[size_t(s * p.nrow + r)] = r == s ? 3 : uniform();
    }
  }
  return p;
}

Result by_warp(const Problem& p, real scale) {
  Result result;
  result.gradient.assign(MATRIX_ROWS, 0), result.x.assign(MATRIX_ROWS, 0), result.product.assign(MATRIX_ROWS, 0);
  std::vector<real> column(COLUMN_WORDS), beyond(4 * FAR_ROWS);
  run_warp([&] {
    const real norm = wide_solve_rows(
        column.data(), result.x.data(), p.A.data(), p.d.data(), scale, p.nrow, p.J.data(),
        [&](int r) {
          const int dof = r < p.first && r % 4 == 1 ? r % p.n : -1;
          return RowTerm{p.force[size_t(r)], p.W[size_t(r * p.nrow + r)], r >= p.first, dof};
        },
        [&](int r, int i) {
          real sum = 0;
          for (int s = p.first; s < p.nrow; ++s) sum += p.W[size_t(r * p.nrow + s)] * p.J[size_t(s * MATRIX_ROWS + i)];
          return sum;
        },
        p.b.data(), result.gradient.data(), 0, beyond.data(), p.n);
    if (!(norm > 0)) std::abort();
    two_store(result.product.data(), wide_mul(p.A.data(), result.x.data(), p.n), p.n);
    const TwoDofs again = wide_add_forces(p.J.data(), p.nrow, p.force.data(), two_load(p.b.data(), p.n));
    for (int q = 0; q < 2; ++q) {
      const int i = lane() + q * LANES;
      if (i < p.n && std::fabs(again.at[q] - result.gradient[size_t(i)]) > 1e-12) std::abort();
    }
  });
  return result;
}

// The largest error of L L' for the factor of A in A's own place, or above the diagonal of L.
real factor_error(const Problem& p) {
  const int n = p.n;
  std::vector<real> L = p.A, column(COLUMN_WORDS);
  run_warp([&] { wide_factor(L.data(), L.data(), column.data(), n); });
  real worst = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      real sum = 0;
      for (int k = 0; k <= j && k <= i; ++k) sum += L[size_t(i * n + k)] * L[size_t(j * n + k)];
      worst = std::fmax(worst, std::fabs(sum - p.A[size_t(i * n + j)]));
      if (j > i) worst = std::fmax(worst, std::fabs(L[size_t(i * n + j)]));
    }
  }
  return worst;
}

int main(int, char** arguments) {
  const int trials = std::atoi(arguments[1]);
  real worst = 0;
  for (int seed = 0; seed < trials; ++seed) {
    const Problem p = problem_of(seed, seed % 3 ? 3 : 0);
    const real scale = seed % 2 ? 0.1 : 0;
    const Result one = by_one(p, MATRIX_ROWS, scale), warp = by_warp(p, scale);
    worst = std::fmax(worst, difference(one.gradient, warp.gradient));
    worst = std::fmax(worst, difference(one.x, warp.x));
    worst = std::fmax(worst, difference(one.product, warp.product));
    worst = std::fmax(worst, factor_error(p));
  }
  std::printf("directions and factors differ by %.1e\n", worst);
  return !(worst < 1e-11);
}
