// Random problems for Newton directions: an inertia, and rows of constraints.
#pragma once

#include <vector>

// A problem whose last `dim` rows are one cone, with a dense block of weights. Of the others, each fourth has one entry,
// the next has a 1 in the column of a dof, and the next has zeros at its start.
struct Problem {
  int n, stride, nrow, first;
  std::vector<real> A, J, W, force, b, d;
};

Problem problem_of(int seed, int dim, int n, int stride) {
  srand(unsigned(seed));
  Problem p;
  p.n = n, p.stride = stride, p.first = rand() % 50, p.nrow = p.first + dim;
  p.J.assign(size_t((p.nrow + 1) * p.stride), 0);
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
    for (int i = kind == 3 ? 0 : begin; i < end && kind != 1; ++i) p.J[size_t(r * p.stride + i)] = uniform();
    if (kind == 1) p.J[size_t(r * p.stride + r % p.n)] = 1;
    p.force.push_back(r % 5 ? uniform() : 0);
    if (r < p.first) p.W[size_t(r * p.nrow + r)] = r % 7 ? 1 + uniform() : 0;
    for (int s = p.first; s <= r; ++s) {
      p.W[size_t(r * p.nrow + s)] = p.W[size_t(s * p.nrow + r)] = r == s ? 3 : uniform();
    }
  }
  return p;
}
