// The Newton direction of a problem by one thread with dense matrices, for comparison.
#pragma once

#include <cmath>
#include <vector>

struct Result {
  std::vector<real> gradient, x, product;
};

// A problem has n dofs, `nrow` rows J of `stride` numbers each with forces and weights W (nrow, nrow), the inertia A, and
// the gradient b and diagonal d of the rest of the cost. Returns the gradient with the rows' forces, the solution x of
// (A + scale diag(d) + J' W J) x = gradient, and A x.
template <typename Problem>
Result by_one(const Problem& p, int stride, real scale) {
  const int n = p.n;
  std::vector<real> H = p.A, g = p.b, product(size_t(n), 0);
  const auto J = [&](int r, int i) { return p.J[size_t(r * stride + i)]; };
  for (int i = 0; i < n; ++i) {
    H[size_t(i * n + i)] += scale * p.d[size_t(i)];
    for (int r = 0; r < p.nrow; ++r) {
      g[size_t(i)] += J(r, i) * p.force[size_t(r)];
      for (int s = 0; s < p.nrow; ++s) {
        for (int j = 0; j < n; ++j) H[size_t(i * n + j)] += J(r, i) * p.W[size_t(r * p.nrow + s)] * J(s, j);
      }
    }
  }
  std::vector<real> x = g;
  for (int k = 0; k < n; ++k) {
    for (int i = k + 1; i < n; ++i) {
      const real factor = H[size_t(i * n + k)] / H[size_t(k * n + k)];
      for (int j = k; j < n; ++j) H[size_t(i * n + j)] -= factor * H[size_t(k * n + j)];
      x[size_t(i)] -= factor * x[size_t(k)];
    }
  }
  for (int k = n - 1; k >= 0; --k) {
    x[size_t(k)] /= H[size_t(k * n + k)];
    for (int i = 0; i < k; ++i) x[size_t(i)] -= H[size_t(i * n + k)] * x[size_t(k)];
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) product[size_t(i)] += p.A[size_t(i * n + j)] * x[size_t(j)];
  }
  return {g, x, product};
}

real difference(const std::vector<real>& a, const std::vector<real>& b) {
  real worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::fmax(worst, std::fabs(a[i] - b[i]));
  return worst;
}
