// Small dense linear algebra of one world: symmetric positive definite matrices of the size of nv.
//
// On the GPU lane i holds row i in registers while n fits in the group; factor and solves go through shuffles.
// Elsewhere (the host, or more dofs than lanes) the lanes share loops over memory. The choice depends on the model's nv
// alone.
#pragma once

// Four neighbouring numbers, read at once; the address is a multiple of their size.
struct alignas(16) Vec4 {
  real x, y, z, w;
};

// ------------------------------------------------------------------------------------------- symmetric matrices
//
// SymRows is a symmetric matrix as the group holds it: on the GPU lane i has row i in registers while n fits in the
// group; elsewhere it is a pointer to n x n numbers.

#if SIMENGINE_GPU && LANES <= 32
#if LANES < 32
#define REGISTERS_FIT(n) 1  // lanes are chosen so
#else
#define REGISTERS_FIT(n) ((n) <= LANES)
#endif

struct SymRows {
  const real* memory;
  real row[LANES];
};

DEVICE void sym_load(SymRows* rows, const real* A, int n) {
  const int i = lane();
  rows->memory = A;
  if (!REGISTERS_FIT(n)) return;
#pragma unroll
  for (int j = 0; j < LANES; ++j) rows->row[j] = i < n && j < n ? A[i * n + j] : R(0.0);
}

// Four words that every lane reads.
DEVICE Vec4 broadcast4(const real* p) { return *reinterpret_cast<const Vec4*>(p); }

// Solve A x = y by Gaussian elimination without pivots, A symmetric positive definite with row i in h of lane i; lane i
// gives y_i and receives x_i. Rows and columns from n up to the next multiple of four must be those of the identity.
//
// Column k is spread through `column`, LANES words of shared memory that all lanes then read as broadcasts: three times
// faster here than one shuffle an entry. Lanes i <= k take part with a multiplier of zero, so no step branches; by
// symmetry row k's own upper part is what the backward solve needs. A pivot of which rounding has left nothing, as
// stiff rows may do, takes its dof out of the solution.
DEVICE real reg_solve(real* h, real y, int n, real* column) {
  const int i = lane();
  real inverse = 0;
#pragma unroll
  for (int block = 0; block < LANES; block += 4) {
    if (block < n) {
#pragma unroll
      for (int k = block; k < block + 4; ++k) {
        lane_sync();
        column[i] = h[k];
        lane_sync();
        const real pivot = reciprocal_(column[k] > 0 ? column[k] : REAL_MAX);
        const real multiplier = i > k ? h[k] * pivot : R(0.0);
        inverse = i == k ? pivot : inverse;
#pragma unroll
        for (int q = block; q < LANES; q += 4) {
          if (q < n) {
            const Vec4 c = broadcast4(column + q);
            if (q > k) h[q] = fma_(-multiplier, c.x, h[q]);
            if (q + 1 > k) h[q + 1] = fma_(-multiplier, c.y, h[q + 1]);
            if (q + 2 > k) h[q + 2] = fma_(-multiplier, c.z, h[q + 2]);
            if (q + 3 > k) h[q + 3] = fma_(-multiplier, c.w, h[q + 3]);
          }
        }
        y = fma_(-multiplier, lane_get(y, k), y);
      }
    }
  }
  y *= inverse;
#pragma unroll
  for (int block = LANES - 4; block >= 0; block -= 4) {
    if (block < n) {
#pragma unroll
      for (int k = block + 3; k >= block; --k) y = fma_(i < k ? -(h[k] * inverse) : R(0.0), lane_get(y, k), y);
    }
  }
  return y;
}

// Make the rows from n up to the next multiple of four those of the identity.
DEVICE void reg_pad(real* h, int n) {
  const int i = lane();
#pragma unroll
  for (int j = 0; j < LANES; ++j) h[j] = i >= n && i == j ? R(1.0) : h[j];
}
#else
#define REGISTERS_FIT(n) 0

struct SymRows {
  const real* memory;
};

DEVICE void sym_load(SymRows* rows, const real* A, int n) { rows->memory = A; }
#endif

// --------------------------------------------------------------------------------------------- loops over memory

// In place: the lower triangle of H becomes L, column after column; pivots without anything left as in reg_solve.
DEVICE void mem_factor(real* H, int n) {
  if (n > MOST_DENSE) {
    envelope_factor(H, n);
    return;
  }
  for (int k = 0; k < n; ++k) {
    if (lane() == k % LANES) {
      real d = H[k * n + k];
      for (int j = 0; j < k; ++j) d = fma_(-H[k * n + j], H[k * n + j], d);
      H[k * n + k] = sqrt_(d > 0 ? d : REAL_MAX);
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
  if (n > MOST_DENSE) {
    row_solve(x, L, n);
    return;
  }
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
    const int i = lane();
    SymRows rows;
    sym_load(&rows, A, n);
    real* h = rows.row;
#pragma unroll
    for (int k = 0; k < LANES; ++k) {
      if (k < n) {
        lane_sync();
        m.column[i] = h[k];
        lane_sync();
        const Vec4 four = broadcast4(m.column + k / 4 * 4);
        const real inverse = reciprocal_sqrt_(k % 4 == 0 ? four.x : k % 4 == 1 ? four.y : k % 4 == 2 ? four.z : four.w);
        const real scaled = h[k] * inverse, multiplier = i > k ? scaled * inverse : R(0.0);
#pragma unroll
        for (int q = k / 4 * 4; q < LANES; q += 4) {
          const Vec4 c = q == k / 4 * 4 ? four : broadcast4(m.column + q);
          if (q > k) h[q] = fma_(-multiplier, c.x, h[q]);
          if (q + 1 > k) h[q + 1] = fma_(-multiplier, c.y, h[q + 1]);
          if (q + 2 > k) h[q + 2] = fma_(-multiplier, c.z, h[q + 2]);
          if (q + 3 > k) h[q + 3] = fma_(-multiplier, c.w, h[q + 3]);
        }
        h[k] = scaled;
      }
    }
    if (i < n) {
      real* row = L + i * n;
#pragma unroll
      for (int j = 0; j < LANES; ++j) {
        if (j < n) row[j] = j <= i ? h[j] : R(0.0);
      }
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
    const int i = lane();
    const real inverse = i < n ? reciprocal_(L[i * n + i]) : R(0.0);
    real y = i < n ? x[i] : R(0.0), l[LANES];
#pragma unroll
    for (int k = 0; k < LANES; ++k) l[k] = k < i && i < n ? L[i * n + k] : R(0.0);
#pragma unroll
    for (int k = 0; k < LANES; ++k) {
      if (k < n) {
        const real solved = lane_get(y * inverse, k);
        y = i == k ? solved : fma_(-l[k], solved, y);
      }
    }
#pragma unroll
    for (int k = 0; k < LANES; ++k) l[k] = k > i && k < n ? L[k * n + i] : R(0.0);
#pragma unroll
    for (int k = LANES - 1; k >= 0; --k) {
      if (k < n) {
        const real solved = lane_get(y * inverse, k);
        y = i == k ? solved : fma_(-l[k], solved, y);
      }
    }
    lane_sync();
    if (i < n) x[i] = y;
    lane_sync();
    return;
  }
#endif
  mem_solve(x, L, n);
}

// In place: x becomes the solution of A x = x by elimination without pivots; A (n x n, any matrix) is used up.
DEVICE void lu_solve(real* x, real* A, int n) {
  ROLLED for (int k = 0; k < n - 1; ++k) {
    const real inverse = reciprocal_(A[k * n + k]);
    LANE_FOR(e, n - k - 1) {
      real* row = A + (k + 1 + e) * n;
      const real factor = row[k] * inverse;
      if (factor != 0) {
        for (int j = k + 1; j < n; ++j) row[j] = fma_(-factor, A[k * n + j], row[j]);
        x[k + 1 + e] = fma_(-factor, x[k], x[k + 1 + e]);
      }
    }
    lane_sync();
  }
  ROLLED for (int k = n - 1; k >= 0; --k) {
    if (lane() == 0) x[k] = divide_(x[k], A[k * n + k]);
    lane_sync();
    LANE_FOR(i, k) x[i] = fma_(-A[i * n + k], x[k], x[i]);
    lane_sync();
  }
}

// out = A x; x is padded with zeros to a multiple of four.
DEVICE void sym_mul(const SymRows& A, const real* x, real* out, int n) {
#if SIMENGINE_GPU && LANES <= 32
  if (REGISTERS_FIT(n)) {
    real sum = 0;
#pragma unroll
    for (int q = 0; q < LANES; q += 4) {
      if (q < n) {
        const Vec4 v = broadcast4(x + q);
        sum = fma_(A.row[q + 3], v.w, fma_(A.row[q + 2], v.z, fma_(A.row[q + 1], v.y, fma_(A.row[q], v.x, sum))));
      }
    }
    if (lane() < n) out[lane()] = sum;
    return;
  }
#endif
  DOF_FOR(i, n) {
    // neighbouring lanes read neighbouring words, and so does one lane alone
    const real* entry = A.memory + (LANES > 1 ? i : i * n);
    real sum = 0;
    for (int j = 0; j < n; ++j) sum = fma_(entry[LANES > 1 ? j * n : j], x[j], sum);
    out[i] = sum;
  }
}

// Product of row r of J (stride a multiple of four, padded with zeros) and x (padded alike).
DEVICE real row_dot(const real* J, int r, int stride, const real* x) {
  const Vec4* row = reinterpret_cast<const Vec4*>(J + r * stride);
  const Vec4* v = reinterpret_cast<const Vec4*>(x);
  real sum = 0;
  ROLLED for (int q = 0; q < stride / 4; ++q) {
    const Vec4 a = row[q], b = v[q];
    sum = fma_(a.w, b.w, fma_(a.z, b.z, fma_(a.y, b.y, fma_(a.x, b.x, sum))));
  }
  return sum;
}

// x = (A + scale diag(d) + sum over rows r with residual[r] < 0 of D[r] J[r]' J[r])^-1 b, and b is left as it is.
//
// J has nrow rows of `stride` words. H is n x n scratch for the form that loops over memory. With `gradient` not null,
// b is first completed to b - sum over the same rows of D[r] residual[r] J[r]', written to `gradient`; the solution is
// skipped, and x not written, if the squared norm of that is below `floor`. Returns the squared norm.
DEVICE real solve_with_rows(const Model& m, real* x, const SymRows& A, const real* d, real scale, int nrow,
                            const real* J, int stride, const real* D, const real* residual, const real* b,
                            real* gradient, real floor, real* H, int n) {
#if SIMENGINE_GPU && LANES <= 32
  if (REGISTERS_FIT(n)) {
    const int i = lane();
    real h[LANES];
    const real extra = i < n && scale != 0 ? scale * d[i] : R(0.0);
    real right = i < n ? b[i] : R(0.0);
#pragma unroll
    for (int j = 0; j < LANES; ++j) h[j] = A.row[j] + (i == j ? extra : R(0.0));
    ROLLED for (int r = 0; r < nrow; ++r) {
      const real x_r = residual[r];
      if (x_r < 0) {
        const real* row = J + r * stride;
        const real c = i < stride ? D[r] * row[i] : R(0.0);
        right = fma_(-x_r, c, right);
#pragma unroll
        for (int j = 0; j < LANES; j += 4) {
          if (j < n) {
            const Vec4 v = broadcast4(row + j);
            h[j] = fma_(c, v.x, h[j]);
            h[j + 1] = fma_(c, v.y, h[j + 1]);
            h[j + 2] = fma_(c, v.z, h[j + 2]);
            h[j + 3] = fma_(c, v.w, h[j + 3]);
          }
        }
      }
    }
    real norm = 0;
    if (gradient) {
      norm = lane_sum(right * right);
      if (i < n) gradient[i] = right;
      if (norm < floor) return norm;
    }
    reg_pad(h, n);
    const real solved = reg_solve(h, right, n, m.column);
    lane_sync();
    if (i < n) x[i] = solved;
    lane_sync();
    return norm;
  }
#endif
  real norm = 0;
  const bool sparse = n > MOST_DENSE;
  LANE_FOR(i, n) {
    real right = b[i];
    for (int j = 0; j <= i; ++j) H[i * n + j] = A.memory[i * n + j];
    if (scale != 0) H[i * n + i] += scale * d[i];
    x[i] = right;
    if (sparse) continue;
    ROLLED for (int r = 0; r < nrow; ++r) {
      if (residual[r] < 0) {
        const real c = D[r] * J[r * stride + i];
        if (c != 0) {
          right = fma_(-residual[r], c, right);
          for (int j = 0; j <= i; ++j) H[i * n + j] = fma_(c, J[r * stride + j], H[i * n + j]);
        }
      }
    }
    x[i] = right;
  }
  if (sparse) add_sparse_rows(H, x, n, nrow, J, stride, D, residual);
  LANE_FOR(i, n) {
    if (gradient) gradient[i] = x[i];
    norm = fma_(x[i], x[i], norm);
  }
  norm = lane_sum(norm);
  lane_sync();
  if (gradient && norm < floor) return norm;
  mem_factor(H, n);
  mem_solve(x, H, n);
  return norm;
}
