// The forms of branch_rows.cuh and branch_solve.cuh, run by 32 threads of the host: products, and Newton directions of
// random problems on random trees, against loops of one thread over dense matrices. Some rows couple branches. Prints
// one line, and the exit status is 1 if something differs.
#define BRANCH_ROWS 1
#include "threads_as_lanes.h"

#include <algorithm>

#include "newton_by_one.h"

// A tree in which each dof has a body.
struct Model {
  std::vector<int> parent, body, last;
  int nv() const { return int(parent.size()); }
  int nbranch() const {
    int words = 0;
    for (int i = 0; i < nv(); ++i) words += (depth(i) + 4) & ~3;
    return words;
  }
  int nvp() const { return (nv() + 3) & ~3; }
  int njoined() const { return nvp() * (nvp() + 4) / 2; }  // one branch has all dofs
  int depth(int i) const { return parent[size_t(i)] < 0 ? 0 : 1 + depth(parent[size_t(i)]); }
  bool above(int j, int i) const { return i == j || (i > j && parent[size_t(i)] >= 0 && above(j, parent[size_t(i)])); }
  const int* dof_parentid() const { return parent.data(); }
  const int* dof_bodyid() const { return body.data(); }
  const int* body_last() const { return last.data(); }
};

void lower_at(int* place, int x) {
  int there = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (x < there && !__atomic_compare_exchange_n(place, &there, x, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
int low_bit(unsigned x) { return __builtin_ctz(x); }
void raise_bit(int* word, int bit) { __atomic_fetch_or(word, int(1u << bit), __ATOMIC_RELAXED); }

#include "row_terms.cuh"
#include "branch_rows.cuh"
#include "branch_terms.cuh"
#include "branch_solve.cuh"

// Depth-first numbering: the parent of a dof is the dof before it, or a dof above that.
Model tree_of(int n) {
  Model m;
  for (int i = 0; i < n; ++i) {
    int parent = i - 1;
    for (int up = rand() % 4 ? 0 : rand() % 12; up > 0 && parent >= 0; --up) parent = m.parent[size_t(parent)];
    m.parent.push_back(parent);
    m.body.push_back(i);
  }
  m.last.assign(size_t(n), 0);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      if (m.above(j, i)) m.last[size_t(j)] = i;
    }
  }
  return m;
}

// Rows of a branch, or of two; the last `dim` rows are a cone of one contact. Some name the one or two dofs they have.
struct Problem {
  Model m;
  int n, stride, nrow, first;
  std::vector<real> A, J, W, force, b, d;
  std::vector<FewDofs> few;
};

Problem problem_of(int seed, int n, int dim) {
  srand(unsigned(seed));
  Problem p;
  p.m = tree_of(n), p.n = n, p.stride = (n + 3) & ~3, p.first = rand() % 30, p.nrow = p.first + dim;
  p.A.assign(size_t(n * n), 0), p.J.assign(size_t(p.nrow * p.stride), 0), p.W.assign(size_t(p.nrow * p.nrow), 0);
  for (int i = 0; i < n; ++i) {
    p.b.push_back(uniform()), p.d.push_back(1 + uniform());
    p.A[size_t(i * n + i)] = 5 + uniform();
    for (int j = 0; j < i; ++j) {
      if (p.m.above(j, i)) p.A[size_t(i * n + j)] = p.A[size_t(j * n + i)] = 0.2 * uniform();
    }
  }
  int ends[2] = {0, 0};
  for (int r = 0; r < p.nrow; ++r) {
    if (r <= p.first) ends[0] = rand() % n, ends[1] = rand() % 3 ? ends[0] : rand() % n;
    const int named = r >= p.first ? 0 : r % 5 == 4 ? 1 : r % 5 == 3 ? 2 : 0, other = rand() % n;
    for (int i = 0; i < n; ++i) {
      const bool there = named ? i == ends[0] || (named == 2 && i == other) : p.m.above(i, ends[0]) != p.m.above(i, ends[1]) || p.m.above(i, ends[0]);
      // rows of a cone have zeros of their own
      if (there && (r < p.first || rand() % 3)) p.J[size_t(r * p.stride + i)] = named == 1 ? 1 : uniform();
    }
    FewDofs few;
    if (named) few.low = ends[0];
    if (named == 2 && other != ends[0]) few = {std::min(ends[0], other), std::max(ends[0], other)};
    p.few.push_back(few);
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
  const size_t n = size_t(p.n);
  result.gradient.assign(n, 0), result.x.assign(n, 0), result.product.assign(n, 0);
  std::vector<Vec4> memory(n * n / 4 + 5 * n + 64);  // its alignment is that of four numbers
  run_warp([&] {
    real* words = &memory[0].x;
    const auto together = [&](int r) { return r < p.first ? 1 : r == p.first ? p.nrow - p.first : 0; };
    const auto few = [&](int r) { return p.few[size_t(r)]; };
    const BranchRows B = branches_of(p.m, p.nrow, p.J.data(), p.stride, together, few, words);
    const auto term = [&](int r) {
      return RowTerm{p.force[size_t(r)], p.W[size_t(r * p.nrow + r)], r >= p.first, -1, few(r)};
    };
    const auto cone_entry = [&](int r, int i) {
      real sum = 0;
      for (int s = p.first; s < p.nrow; ++s) sum += p.W[size_t(r * p.nrow + s)] * p.J[size_t(s * p.stride + i)];
      return sum;
    };
    const real norm = solve_along_branches(B, result.x.data(), p.A.data(), p.d.data(), scale, p.nrow, p.J.data(),
                                           p.stride, term, cone_entry, p.b.data(), result.gradient.data(), 0);
    if (!(norm > 0)) std::abort();
    branches_mul(B, p.A.data(), result.x.data(), result.product.data());
  });
  return result;
}

// The error of A x where x is the solution with the inertia alone, in two parts as for friction without slip.
real solution_error(const Problem& p) {
  const int n = p.n;
  std::vector<real> x = p.b, none(size_t(n), 0);
  std::vector<Vec4> memory(size_t(n * n / 4 + 4 * n + 64));
  run_warp([&] {
    const BranchRows B = branches_of_trees(p.m, &memory[0].x);
    load_branches(B, p.A.data(), none.data(), 0);
    factor_branches(B, none.data());
    solve_from_leaves(B, x.data());
    solve_to_leaves(B, x.data());
  });
  real worst = 0;
  for (int i = 0; i < n; ++i) {
    real rest = p.b[size_t(i)];
    for (int j = 0; j < n; ++j) rest -= p.A[size_t(i * n + j)] * x[size_t(j)];
    worst = std::fmax(worst, std::fabs(rest));
  }
  return worst;
}

int main(int, char** arguments) {
  const int n = std::atoi(arguments[1]), trials = std::atoi(arguments[2]);
  real worst = 0;
  for (int seed = 0; seed < trials; ++seed) {
    const Problem p = problem_of(seed, n - seed % 4, seed % 3 ? 3 : 0);
    const real scale = seed % 2 ? 0.1 : 0;
    const Result one = by_one(p, p.stride, scale), warp = by_warp(p, scale);
    worst = std::fmax(worst, difference(one.gradient, warp.gradient));
    worst = std::fmax(worst, difference(one.x, warp.x));
    worst = std::fmax(worst, difference(one.product, warp.product));
    worst = std::fmax(worst, solution_error(p));
  }
  std::printf("directions and products differ by %.1e\n", worst);
  return !(worst < 1e-11);
}
