// The linear algebra of one world in vectors against plain loops, bit by bit, for matrices of n rows: every size up to the
// argument, and some larger ones. Arrays end where their last word does, so that the address sanitizer sees every word
// beyond.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define DIVERGES
#include "host_math.h"
#include "dialect.cuh"
#include "lanes_host.cuh"
#include "scalars.cuh"
#include "lanes.cuh"
#include "vectors.h"
#include "padded_matrix.cuh"
#include "vector_matrices.cuh"
#include "register_products.cuh"

typedef std::vector<real> Array;

static real drawn() { return real(std::rand()) / real(RAND_MAX) - real(0.5); }

static Array random_array(int size) {
  Array x(size);
  for (real& each : x) each = drawn();
  return x;
}

// Symmetric and positive definite, with zeros between most entries of the last third and the others.
static Array positive(int n) {
  Array A(n * n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) A[i * n + j] = A[j * n + i] = i > 2 * n / 3 && j % 3 ? real(0) : drawn();
    A[i * n + i] = real(n);
  }
  return A;
}

static Array factor(const Array& A, int n) {
  Array L(n * n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) L[i * n + j] = A[i * n + j];
  }
  for (int k = 0; k < n; ++k) {
    real d = L[k * n + k];
    for (int j = 0; j < k; ++j) d = fma_(-L[k * n + j], L[k * n + j], d);
    L[k * n + k] = sqrt_(d);
    const real inverse = real(1) / L[k * n + k];
    for (int i = k + 1; i < n; ++i) {
      real x = L[i * n + k];
      for (int j = 0; j < k; ++j) x = fma_(-L[i * n + j], L[k * n + j], x);
      L[i * n + k] = x * inverse;
    }
  }
  return L;
}

static Array solved(const Array& L, Array x, int n) {
  for (int k = 0; k < n; ++k) {
    x[k] = x[k] / L[k * n + k];
    for (int i = k + 1; i < n; ++i) x[i] = fma_(-L[i * n + k], x[k], x[i]);
  }
  for (int k = n - 1; k >= 0; --k) {
    x[k] = x[k] / L[k * n + k];
    for (int i = 0; i < k; ++i) x[i] = fma_(-L[k * n + i], x[k], x[i]);
  }
  return x;
}

static Array backwards(const Array& x) { return Array(x.rbegin(), x.rend()); }

// inv(H) x for the lower triangle of H, by the factor that Newton's method takes: of the dofs in opposite order where
// there are many.
static Array newton_direction(const Array& H, const Array& x, int n) {
  if (n <= MOST_FORWARD) return solved(factor(H, n), x, n);
  Array opposite(n * n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) opposite[(n - 1 - j) * n + n - 1 - i] = H[i * n + j];
  }
  return backwards(solved(factor(opposite, n), backwards(x), n));
}

static Array eliminated(Array A, Array x, int n) {
  for (int k = 0; k < n - 1; ++k) {
    const real inverse = reciprocal_(A[k * n + k]);
    for (int i = k + 1; i < n; ++i) {
      const real multiple = A[i * n + k] * inverse;
      for (int j = k + 1; j < n; ++j) A[i * n + j] = fma_(-multiple, A[k * n + j], A[i * n + j]);
      x[i] = fma_(-multiple, x[k], x[i]);
    }
  }
  for (int k = n - 1; k >= 0; --k) {
    x[k] = divide_(x[k], A[k * n + k]);
    for (int i = 0; i < k; ++i) x[i] = fma_(-A[i * n + k], x[k], x[i]);
  }
  return x;
}

static void check(const char* what, int n, const Array& expected, const Array& found) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] != found[i]) {
      std::printf("%s of %d rows: entry %zu is %.17g and should be %.17g\n", what, n, i, double(found[i]),
                  double(expected[i]));
      std::exit(1);
    }
  }
}

static void check_size(int n) {
  const Array A = positive(n), b = random_array(n), L = factor(A, n);
  Array lower = A, found(n * n), x = b;
  for (int i = 0; i < n; ++i) {
    for (int j = i + 1; j < n; ++j) lower[i * n + j] = 7;  // only the lower triangle may be read
  }
  factor_in_vectors(found.data(), lower.data(), n);
  check("factor", n, L, found);
  factor_in_vectors(lower.data(), lower.data(), n);
  check("factor in place", n, L, lower);
  solve_in_vectors(x.data(), L.data(), n);
  check("solution", n, solved(L, b, n), x);

  Array general = random_array(n * n), y = b;
  for (int i = 0; i < n; ++i) general[i * n + i] += real(n);
  const Array copy = general;
  eliminate_in_vectors(y.data(), general.data(), n);
  check("elimination", n, eliminated(copy, b, n), y);

  Array product(n), plain(n);
  multiply_in_vectors(A.data(), b.data(), product.data(), n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) plain[i] = fma_(A[i * n + j], b[j], plain[i]);
  }
  check("product", n, plain, product);
}

static void check_rows(int n, int nrow) {
  const int stride = (n + 3) & ~3;
  Array J = random_array(nrow * stride), D = random_array(nrow), residual = random_array(nrow), x(stride), y(nrow);
  for (int r = 0; r < nrow; ++r) {
    D[r] = abs_(D[r]);
    for (int v = 0; v < stride; ++v) {
      if (v >= n || (v + r) % 3 == 0) J[r * stride + v] = 0;
    }
  }
  for (int v = 0; v < n; ++v) x[v] = drawn();
  rows_times_in_vectors(nrow, J.data(), stride, x.data(), y.data());
  Array plain(nrow), sums = random_array(n), found(n);
  for (int r = 0; r < nrow; ++r) {
    for (int v = 0; v < stride; ++v) plain[r] = fma_(J[r * stride + v], x[v], plain[r]);
  }
  check("rows times a vector", n, plain, y);
  add_rows_in_vectors(nrow, J.data(), stride, residual.data(), sums.data(), found.data(), n);
  Array expected = sums;
  for (int v = 0; v < n; ++v) {
    for (int r = 0; r < nrow; ++r) expected[v] = fma_(J[r * stride + v], residual[r], expected[v]);
  }
  check("sum of rows", n, expected, found);

  const Array A = positive(n);
  Array H = A, right = sums, gradient(n), solution(n);
  for (int r = 0; r < nrow; ++r) {
    if (!(residual[r] < 0)) continue;
    for (int i = 0; i < n; ++i) {
      const real c = D[r] * J[r * stride + i];
      right[i] = fma_(-residual[r], c, right[i]);
      for (int j = 0; j <= i; ++j) {
        const real own = J[r * stride + i], other = J[r * stride + j];  // of two dofs, the later in the factor has a weight
        H[i * n + j] = n > MOST_FORWARD ? fma_(own, D[r] * other, H[i * n + j]) : fma_(c, other, H[i * n + j]);
      }
    }
  }
  solve_with_rows_in_vectors(solution.data(), A.data(), A.data(), real(0), nrow, J.data(), stride, D.data(),
                             residual.data(), sums.data(), gradient.data(), real(0), n);
  check("gradient", n, right, gradient);
  check("Newton direction", n, newton_direction(H, right, n), solution);
}

int main(int, char** arguments) {
  const int most = std::atoi(arguments[1]), larger[] = {48, 63, 64, 65, 100, 128, 192};
  for (int n = FEWEST_COLUMNS; n <= most; ++n) {
    check_size(n);
    for (int nrow : {1, 3, 16, 21}) check_rows(n, nrow);
  }
  for (int n : larger) {
    check_size(n);
    check_rows(n, 37);
  }
  return 0;
}
