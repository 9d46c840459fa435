// Small dense linear algebra of one world: symmetric positive definite matrices of the size of nv.
//
// On the GPU lane i holds row i in registers while n fits in the group; factor and solves go through shuffles. Elsewhere
// (the host, or more dofs than lanes) the lanes share loops over memory. The choice depends on the model's nv alone.
#pragma once

// Four neighbouring numbers, read at once; the address is a multiple of their size.
struct alignas(16) Vec4 {
  real x, y, z, w;
};

#if SIMENGINE_GPU && LANES <= 32
#define REGISTERS_FIT(n) ((n) <= LANES)
// ------------------------------------------------------------------------------------- rows in registers, n <= LANES
//
// Lane i holds row i of a symmetric matrix in h[]. Column k of L is spread through `column`, LANES words of shared
// memory that all lanes then read as broadcasts: three times faster here than one shuffle an entry. From step k on the
// upper part of row k is free and takes column k of L, so that the backward solve needs no transpose.

DEVICE void spread(real own, real* column, real* out) {
  lane_sync();
  column[lane()] = own;
  lane_sync();
#pragma unroll
  for (int q = 0; q < LANES / 4; ++q) {
    const Vec4 c = reinterpret_cast<const Vec4*>(column)[q];
    out[4 * q] = c.x;
    out[4 * q + 1] = c.y;
    out[4 * q + 2] = c.z;
    out[4 * q + 3] = c.w;
  }
}

// Factor in place: row i of L below the diagonal, column i of L above it; returns 1 / L[i][i].
DEVICE real reg_factor(real* h, int n, real* column) {
  const int i = lane();
  real own_inverse = 0;
#pragma unroll
  for (int k = 0; k < LANES; ++k) {
    if (k < n) {
      const real inverse = R(1.0) / sqrt_(lane_get(h[k], k));
      const real l = h[k] * inverse;
      real below[LANES];
      spread(l, column, below);
      if (i == k) own_inverse = inverse;
      if (i > k) h[k] = l;
#pragma unroll
      for (int j = k + 1; j < LANES; ++j) h[j] = i == k ? below[j] : i > k ? fma_(-l, below[j], h[j]) : h[j];
    }
  }
  return own_inverse;
}

// Solve L L' x = y; lane i gives y_i and receives x_i.
DEVICE real reg_solve(const real* h, real inverse, real y, int n) {
  const int i = lane();
#pragma unroll
  for (int k = 0; k < LANES; ++k) {
    if (k < n) {
      const real solved = lane_get(y * inverse, k);
      y = i == k ? solved : i > k ? fma_(-h[k], solved, y) : y;
    }
  }
#pragma unroll
  for (int k = LANES - 1; k >= 0; --k) {
    if (k < n) {
      const real solved = lane_get(y * inverse, k);
      y = i == k ? solved : i < k ? fma_(-h[k], solved, y) : y;
    }
  }
  return y;
}

DEVICE void reg_load(real* h, const real* A, int n) {
  const int i = lane();
#pragma unroll
  for (int j = 0; j < LANES; ++j) h[j] = i < n && j < n ? A[i * n + j] : R(0.0);
}
#else
#define REGISTERS_FIT(n) 0
#endif

// --------------------------------------------------------------------------------------------- loops over memory

// In place: the lower triangle of H becomes L, column after column.
DEVICE void mem_factor(real* H, int n) {
  for (int k = 0; k < n; ++k) {
    if (lane() == k % LANES) {
      real d = H[k * n + k];
      for (int j = 0; j < k; ++j) d = fma_(-H[k * n + j], H[k * n + j], d);
      H[k * n + k] = sqrt_(d);
    }
    lane_sync();
    const real inverse = R(1.0) / H[k * n + k];
    LANE_FOR(e, n - k - 1) {
      const int i = k + 1 + e;
      real x = H[i * n + k];
      for (int j = 0; j < k; ++j) x = fma_(-H[i * n + j], H[k * n + j], x);
      H[i * n + k] = x * inverse;
    }
    lane_sync();
  }
}

// In place: x becomes the solution of L L' x = x.
DEVICE void mem_solve(real* x, const real* L, int n) {
  for (int k = 0; k < n; ++k) {
    if (lane() == 0) x[k] = x[k] / L[k * n + k];
    lane_sync();
    LANE_FOR(e, n - k - 1) x[k + 1 + e] = fma_(-L[(k + 1 + e) * n + k], x[k], x[k + 1 + e]);
    lane_sync();
  }
  for (int k = n - 1; k >= 0; --k) {
    if (lane() == 0) x[k] = x[k] / L[k * n + k];
    lane_sync();
    LANE_FOR(i, k) x[i] = fma_(-L[k * n + i], x[k], x[i]);
    lane_sync();
  }
}

// ------------------------------------------------------------------------------------------------------- interface

// L = lower Cholesky factor of A (n x n, row-major), zero above the diagonal.
DEVICE void chol_factor(const Model& m, real* L, const real* A, int n) {
#if SIMENGINE_GPU && LANES <= 32
  if (REGISTERS_FIT(n)) {
    real h[LANES];
    reg_load(h, A, n);
    const int i = lane();
    const real diagonal = R(1.0) / reg_factor(h, n, m.column);
#pragma unroll
    for (int j = 0; j < LANES; ++j) {
      if (i < n && j < n) L[i * n + j] = j < i ? h[j] : j == i ? diagonal : R(0.0);
    }
    lane_sync();
    return;
  }
#endif
  LANE_FOR(e, n * n) L[e] = e % n <= e / n ? A[e] : R(0.0);
  lane_sync();
  mem_factor(L, n);
}

// In place: x becomes the solution of L L' x = x.
DEVICE void chol_solve(real* x, const real* L, int n) {
#if SIMENGINE_GPU && LANES <= 32
  if (REGISTERS_FIT(n)) {
    real h[LANES];
    const int i = lane();
#pragma unroll
    for (int j = 0; j < LANES; ++j) h[j] = i < n && j < n ? (j < i ? L[i * n + j] : L[j * n + i]) : R(0.0);
    const real inverse = i < n ? R(1.0) / L[i * n + i] : R(0.0);
    const real solved = reg_solve(h, inverse, i < n ? x[i] : R(0.0), n);
    lane_sync();
    if (i < n) x[i] = solved;
    lane_sync();
    return;
  }
#endif
  mem_solve(x, L, n);
}

// x = (A + scale diag(d) + sum over rows r with residual[r] < 0 of D[r] J[r]' J[r])^-1 b.
//
// J has nrow rows of `stride` words, stride a multiple of four. H is n x n scratch for the form that loops over memory.
DEVICE void solve_with_rows(const Model& m, real* x, const real* A, const real* d, real scale, int nrow, const real* J, int stride,
                            const real* D, const real* residual, const real* b, real* H, int n) {
#if SIMENGINE_GPU && LANES <= 32
  if (REGISTERS_FIT(n)) {
    const int i = lane();
    real h[LANES];
    reg_load(h, A, n);
    const real extra = i < n && scale != 0 ? scale * d[i] : R(0.0);
#pragma unroll
    for (int j = 0; j < LANES; ++j) h[j] += i == j ? extra : R(0.0);
    for (int r = 0; r < nrow; ++r) {
      if (residual[r] < 0) {
        const real* row = J + r * stride;
        const real c = i < n ? D[r] * row[i] : R(0.0);
#pragma unroll
        for (int j = 0; j < LANES; j += 4) {
          if (j < stride) {
            const Vec4 v = *reinterpret_cast<const Vec4*>(row + j);
            h[j] = fma_(c, v.x, h[j]);
            h[j + 1] = fma_(c, v.y, h[j + 1]);
            h[j + 2] = fma_(c, v.z, h[j + 2]);
            h[j + 3] = fma_(c, v.w, h[j + 3]);
          }
        }
      }
    }
    const real inverse = reg_factor(h, n, m.column);
    const real solved = reg_solve(h, inverse, i < n ? b[i] : R(0.0), n);
    lane_sync();
    if (i < n) x[i] = solved;
    lane_sync();
    return;
  }
#endif
  LANE_FOR(i, n) {
    for (int j = 0; j <= i; ++j) H[i * n + j] = A[i * n + j];
    if (scale != 0) H[i * n + i] += scale * d[i];
    for (int r = 0; r < nrow; ++r) {
      if (residual[r] < 0) {
        const real c = D[r] * J[r * stride + i];
        if (c != 0) {
          for (int j = 0; j <= i; ++j) H[i * n + j] = fma_(c, J[r * stride + j], H[i * n + j]);
        }
      }
    }
    x[i] = b[i];
  }
  lane_sync();
  mem_factor(H, n);
  mem_solve(x, H, n);
}
