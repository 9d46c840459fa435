// Large matrices and Jacobians with mostly zero entries, handled by loops over memory.
#pragma once

// Matrices with more rows than this belong to many bodies, and most of their entries are zero. On the GPU, kernels
// whose unit is a world do not contain this code, because so large a world with many bodies is solved island by island.
// Neither do tiled kernels, which so large worlds do not have.
#if !defined(TILE) && (!SIMENGINE_GPU || defined(UNIT_ISLAND))
#define MOST_DENSE 64
#else
#define MOST_DENSE 0x7fffffff
#endif

// x minus the dot product of a and b from `begin` to `end`.
DEVICE real minus_dot(real x, const real* a, const real* b, int begin, int end) {
  real sum[4] = {0, 0, 0, 0};
  int j = begin;
  ROLLED for (; j + 4 <= end; j += 4) {
    for (int q = 0; q < 4; ++q) sum[q] = fma_(a[j + q], b[j + q], sum[q]);
  }
  ROLLED for (; j < end; ++j) sum[0] = fma_(a[j], b[j], sum[0]);
  return x - ((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// Cholesky factor of a large sparse matrix, in place of its lower triangle. The zeros before the first entry of a row
// stay zero in L (A. George and J. Liu, "Computer Solution of Large Sparse Positive Definite Systems", chapter 4). Row
// 0 above the diagonal holds the column of each row's first entry while the factor is computed.
DEVICE void envelope_factor(real* H, int n) {
  LANE_FOR(e, n - 1) {
    const int i = e + 1;
    int first = 0;
    while (first < i && H[i * n + first] == 0) ++first;
    H[i] = first;
  }
  lane_sync();
  ROLLED for (int k = 0; k < n; ++k) {
    const int first = k ? int(H[k]) : 0;
    if (lane() == k % LANES) {
      const real d = minus_dot(H[k * n + k], H + k * n, H + k * n, first, k);
      H[k * n + k] = sqrt_(d <= 0 ? REAL_MAX : d);  // see mem_factor
    }
    lane_sync();
    const real inverse = R(1.0) / H[k * n + k];
    LANE_FOR(e, n - k - 1) {
      const int i = k + 1 + e, own = int(H[i]);
      if (own > k) continue;
      H[i * n + k] = minus_dot(H[i * n + k], H + i * n, H + k * n, own > first ? own : first, k) * inverse;
    }
    lane_sync();
  }
  LANE_FOR(e, n - 1) H[e + 1] = 0;
  lane_sync();
}

// In place: x becomes the solution of L L' x = x. The loops run along rows, which are contiguous in memory.
DEVICE void row_solve(real* x, const real* L, int n) {
  ROLLED for (int k = 0; k < n; ++k) {
    real sum = 0;
    LANE_FOR(j, k) sum = fma_(L[k * n + j], x[j], sum);
    sum = lane_sum(sum);
    if (lane() == 0) x[k] = (x[k] - sum) / L[k * n + k];
    lane_sync();
  }
  ROLLED for (int k = n - 1; k >= 0; --k) {
    if (lane() == 0) x[k] = x[k] / L[k * n + k];
    lane_sync();
    LANE_FOR(i, k) x[i] = fma_(-L[k * n + i], x[k], x[i]);
    lane_sync();
  }
}

// H += D[r] J[r]' J[r] and x -= D[r] residual[r] J[r]' over the rows with residual[r] < 0. The rows are sparse.
DEVICE void add_sparse_rows(real* H, real* x, int n, int nrow, const real* J, int stride, const real* D,
                            const real* residual) {
  ROLLED for (int r = 0; r < nrow; ++r) {
    if (!(residual[r] < 0)) continue;
    const real* row = J + r * stride;
    int first = 0;
    while (first < n && row[first] == 0) ++first;
    LANE_FOR(i, n) {
      const real c = D[r] * row[i];
      if (c == 0) continue;
      x[i] = fma_(-residual[r], c, x[i]);
      for (int j = first; j <= i; ++j) H[i * n + j] = fma_(c, row[j], H[i * n + j]);
    }
  }
}
