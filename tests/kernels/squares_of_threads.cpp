// Factors and solutions by squares (squares.cuh) against loops over memory, both by 32 threads of the host. Prints one
// line, and the exit status is 1 if a bit differs.
#define SOLVER_WARPS 1  // so that registers.cuh defines Vec4
#include <cstring>

#include "threads_as_lanes.h"

struct Model {
  real* column;
};

#include "registers.cuh"

#include "dense.cuh"
#include "linalg.cuh"
#include "squares.cuh"

typedef std::vector<real> Words;

// A matrix with zeros in a third of its entries, symmetric or not, and in odd problems a pivot that is not positive.
Words matrix_of(int n, int seed, bool symmetric) {
  Words A(size_t(n * n), 0);
  for (int i = 0; i < n; ++i) {
    A[size_t(i * n + i)] = 4 + uniform();
    for (int j = 0; j < i; ++j) {
      if (rand() % 3) A[size_t(i * n + j)] = uniform() / n;
      if (symmetric) A[size_t(j * n + i)] = A[size_t(i * n + j)];
      else if (rand() % 3) A[size_t(j * n + i)] = uniform() / n;
    }
  }
  if (symmetric && seed % 2) A[size_t(rand() % n * (n + 1))] = -1;
  return A;
}

bool same(const Words& a, const Words& b) { return !std::memcmp(a.data(), b.data(), a.size() * sizeof(real)); }

int main() {
  int different = 0, seed = 0;
  for (int n : {1, 3, 4, 9, 31, 33, 42, 63, 64, 65, 96, 123, 128, 131}) {
    srand(unsigned(++seed));
    const Words A = matrix_of(n, seed, true), B = matrix_of(n, seed, false);
    Words b(static_cast<size_t>(n)), L = A, M = B;
    for (real& word : b) word = uniform();
    for (int i = 0; i < n; ++i) {
      for (int j = i + 1; j < n; ++j) L[size_t(i * n + j)] = 0;
    }
    Words by_loops = L, x = b, x_by_loops = b, y = b, y_by_loops = b, M_by_loops = B;
    run_warp([&] {
      factor_by_squares(L.data(), n);
      solve_by_squares(x.data(), L.data(), n);
      lu_solve_by_squares(y.data(), M.data(), n);
    });
    run_warp([&] {
      mem_factor(by_loops.data(), n);
      mem_solve(x_by_loops.data(), by_loops.data(), n);
      lu_solve(y_by_loops.data(), M_by_loops.data(), n);
    });
    if (same(L, by_loops) && same(x, x_by_loops) && same(y, y_by_loops)) continue;
    std::printf("%d: factors %d, solutions %d, of matrices that are not symmetric %d\n", n, same(L, by_loops),
                same(x, x_by_loops), same(y, y_by_loops));
    ++different;
  }
  std::printf("%d sizes differ\n", different);
  return different > 0;
}
