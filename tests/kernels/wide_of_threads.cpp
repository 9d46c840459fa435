// The forms of wide.cuh and wide_solve.cuh, run by 32 threads of the host: factors, and Newton directions of random
// problems against loops of one thread, for matrices of up to MATRIX_ROWS rows. With UNIT_ISLAND matrices have any
// number of rows from 33 on, as in kernels over islands. Prints one line, and the exit status is 1 if something differs.
#include "threads_as_lanes.h"

#include "newton_by_one.h"
#include "row_problem.h"

#include "row_terms.cuh"
#include "wide.cuh"
#include "four_pivots.cuh"
#include "wide_solve.cuh"

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
          for (int s = p.first; s < p.nrow; ++s) sum += p.W[size_t(r * p.nrow + s)] * p.J[size_t(s * p.stride + i)];
          return sum;
        },
        p.b.data(), result.gradient.data(), 0, beyond.data(), p.n);
    if (!(norm > 0)) std::abort();
    two_store(result.product.data(), wide_mul(p.A.data(), result.x.data(), p.n), p.n);
    const TwoDofs again = wide_add_forces(p.J.data(), p.nrow, p.force.data(), two_load(p.b.data(), p.n), p.n);
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
#ifdef UNIT_ISLAND
    const int n = MATRIX_ROWS - 5 * seed % (MATRIX_ROWS - LANES);
#else
    const int n = MATRIX_ROWS - seed % 4;
#endif
    const Problem p = problem_of(seed, seed % 3 ? 3 : 0, n, wide_stride(n));
    const real scale = seed % 2 ? 0.1 : 0;
    const Result one = by_one(p, p.stride, scale), warp = by_warp(p, scale);
    worst = std::fmax(worst, difference(one.gradient, warp.gradient));
    worst = std::fmax(worst, difference(one.x, warp.x));
    worst = std::fmax(worst, difference(one.product, warp.product));
    worst = std::fmax(worst, factor_error(p));
  }
  std::printf("directions and factors differ by %.1e\n", worst);
  return !(worst < 1e-11);
}
