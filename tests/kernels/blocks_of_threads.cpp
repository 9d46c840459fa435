// Factors and solutions of block-diagonal matrices (blocks.cuh) by 32 threads of the host, against loops of one thread.
// Blocks are small, have a row in each lane, or more rows than there are lanes. Prints one line, and the exit status is
// 1 if something differs.
#define SOLVER_WARPS 1  // so that registers.cuh defines Vec4
#include "threads_as_lanes.h"

enum { LARGE_ISLANDS = 4, HUGE_ISLANDS = 5, MOST_LARGE_DOFS = 512, FACTOR_SIDE = 6 };
enum { COLUMN_ISLANDS = 0, COLUMN_ISLAND_M = 1, COLUMN_ISLAND_J = 2 };
#define ISLAND_BOUND(index) (8 << (index))

// The part of the generated `Model` that blocks.cuh reads.
struct Model {
  std::vector<int> first, start, block;
  real* column;
  int nv() const { return first.back(); }
  int nblock() const { return int(first.size()) - 1; }
  int nwidest() const { return 48; }
  int nJ() const { return 0; }
  int large_island() const { return 64; }
  const int* block_dofadr() const { return first.data(); }
  const int* block_adr() const { return start.data(); }
  const int* dof_block() const { return block.data(); }
};

int lane_sum_of_key(int, int, int*, bool*) { std::abort(); }

#include "registers.cuh"

#include "dense.cuh"
#include "linalg.cuh"
#include "squares.cuh"
#include "lane_blocks.cuh"
#include "blocks.cuh"

struct Problem {
  Model m;
  std::vector<real> A, b, damping;
};

Problem problem_of(int seed) {
  srand(unsigned(seed));
  Problem p;
  p.m.first = {0};
  int words = 0;
  for (int n : {27, 6, 1 + rand() % 32, 33 + rand() % 16, 9, 32, 1 + rand() % 8}) {
    const int b = p.m.nblock();
    p.m.start.push_back(words);
    p.m.first.push_back(p.m.first.back() + n);
    words += n * n;
    p.A.resize(size_t(words), 0);
    real* A = &p.A[size_t(words - n * n)];
    for (int i = 0; i < n; ++i) {
      p.m.block.push_back(b);
      p.b.push_back(uniform());
      p.damping.push_back(0.5 + uniform());
      A[i * n + i] = 4 + uniform();
      for (int j = 0; j < i; ++j) A[i * n + j] = A[j * n + i] = uniform() / real(n);
    }
    for (int i = 0; seed % 2 && i < n; ++i) A[i * n + n - 1] = A[(n - 1) * n + i] = 0;  // a dof without inertia
    if (seed % 2) p.damping.back() = -1;
  }
  return p;
}

// The factors of A + damping, and what solves it: by one thread.
void by_one(const Problem& p, std::vector<real>* L, std::vector<real>* x) {
  *L = p.A, *x = p.b;
  for (int b = 0; b < p.m.nblock(); ++b) {
    const int first = p.m.first[size_t(b)], n = p.m.first[size_t(b) + 1] - first;
    real* H = &(*L)[size_t(p.m.start[size_t(b)])];
    for (int i = 0; i < n; ++i) {
      H[i * n + i] += p.damping[size_t(first + i)];
      for (int j = i + 1; j < n; ++j) H[i * n + j] = 0;
    }
    lane_factor(H, n);
    lane_solve(&(*x)[size_t(first)], H, n);
  }
}

// The largest difference; a pivot that is not positive counts as the root of the largest number.
real difference(const std::vector<real>& a, const std::vector<real>& b) {
  real most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const real error = std::fabs(a[i] - b[i]) / std::fmax(1, std::fabs(a[i]));
    most = error <= most ? most : error;  // also where it is no number
  }
  return most;
}

int main(int, char** arguments) {
  real worst = 0;
  int others = 0;  // that hold a number that is none
  for (int seed = 0; seed < std::atoi(arguments[1]); ++seed) {
    Problem p = problem_of(seed);
    std::vector<real> column(COLUMN_WORDS + 4), L(p.A.size(), -1), room = L, twice = p.b, once = p.b, one, x;
    p.m.column = column.data();
    run_warp([&] {
      const auto damped = [&](int v, real entry) { return entry + p.damping[size_t(v)]; };
      blocks_factor(p.m, L.data(), p.A.data(), damped);
      blocks_solve(p.m, twice.data(), L.data());
      blocks_solve(p.m, once.data(), room.data(), p.A.data(), damped);
    });
    by_one(p, &one, &x);
    worst = std::fmax(worst, std::fmax(difference(one, L), std::fmax(difference(x, twice), difference(x, once))));
    others += std::isnan(difference(one, L)) || std::isnan(difference(x, twice)) || std::isnan(difference(x, once));
  }
  std::printf("factors and solutions differ by %.1e\n", worst);
  return others || !(worst < 1e-13);
}
