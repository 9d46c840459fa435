// block_rows.cuh, run by 128 threads of the host: Newton directions of random problems of 65 to BLOCK_ROWS dofs against
// loops of one thread. Prints one line, and the exit status is 1 if something differs.
#include "threads_as_lanes.h"

#include "newton_by_one.h"
#include "row_problem.h"

#include "row_terms.cuh"
#include "wide.cuh"
#include "four_pivots.cuh"
#include "block_rows.cuh"

Result by_block(const Problem& p) {
  Result result;
  result.gradient.assign(BLOCK_ROWS, 0), result.x.assign(BLOCK_ROWS, 0), result.product.assign(BLOCK_ROWS, 0);
  std::vector<real> columns(2 * BLOCK_WORDS_OF_COLUMNS + LANES);
  run_warp([&] {
    const real norm = block_solve_rows(
        columns.data(), result.x.data(), p.A.data(), p.nrow, p.J.data(),
        [&](int r) {
          return RowTerm{p.force[size_t(r)], p.W[size_t(r * p.nrow + r)], r >= p.first, -1};
        },
        [&](int r, int i) {
          real sum = 0;
          for (int s = p.first; s < p.nrow; ++s) sum += p.W[size_t(r * p.nrow + s)] * p.J[size_t(s * p.stride + i)];
          return sum;
        },
        p.b.data(), result.gradient.data(), 0, p.n);
    if (!(norm > 0)) std::abort();
    block_mul(p.A.data(), result.x.data(), result.product.data(), p.n);
  });
  return result;
}

int main(int, char** arguments) {
  const int trials = std::atoi(arguments[1]);
  real worst = 0;
  for (int seed = 0; seed < trials; ++seed) {
    const int n = BLOCK_ROWS - 7 * seed % (BLOCK_ROWS - 64);
    const Problem p = problem_of(seed, seed % 3 ? 3 : 0, n, (n + 3) & ~3);
    const Result one = by_one(p, p.stride, 0), block = by_block(p);
    for (int i = 0; i < n; ++i) {
      worst = std::fmax(worst, std::fabs(one.gradient[size_t(i)] - block.gradient[size_t(i)]));
      worst = std::fmax(worst, std::fabs(one.x[size_t(i)] - block.x[size_t(i)]));
      worst = std::fmax(worst, std::fabs(one.product[size_t(i)] - block.product[size_t(i)]));
    }
  }
  std::printf("directions differ by %.1e\n", worst);
  return !(worst < 1e-11);
}
