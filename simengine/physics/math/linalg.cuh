// Small dense linear algebra of one world: symmetric positive definite matrices of the size of nv.
//
// On the GPU, if n is at most LANES, lane i holds row i in registers, and the lanes exchange entries through shared
// memory and shuffles. Otherwise (on the host, or with more dofs than lanes) the lanes share loops over memory, see
// dense.cuh. The choice depends on the model's nv alone.
#pragma once

#if ONE_ROW_A_LANE
// L = lower Cholesky factor of the matrix of which lane i has row i in h, zero above the diagonal; n is at most LANES.
// Pivots that are not positive are as in mem_factor.
//
// The loop takes four columns at a time. Unrolled, it would have more than a thousand instructions, and a warp that
// runs alone would wait for their fetch. Each round rotates the row by four words, so that the current columns are its
// first words and all register indices are constants. With TO_MEMORY, neighbouring lanes write neighbouring words of L:
// the four columns go through `columns`, which has COLUMN_WORDS.
template <bool TO_MEMORY>
DEVICE void reg_factor(real* h, real* L, int n, real* columns) {
  const int i = lane();
  ROLLED for (int k = 0; k < n; k += 4) {
    real four[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      four[c] = 0;
      if (k + c >= n) break;
      // two columns alternate, so that one is read while the next is written
      real* column = columns + c % 2 * LANES;
      column[i] = h[c];
      const real pivot = lane_get(h[c], k + c), d = pivot <= 0 ? REAL_MAX : pivot, inverse = reciprocal_sqrt_(d);
      const real scaled = (i == k + c ? d : h[c]) * inverse, multiplier = i > k + c ? scaled * inverse : R(0.0);
      lane_sync();
#pragma unroll
      for (int q = 0; q < LANES; q += 4) {
        if (k + q < n) {
          const Vec4 v = broadcast4(column + k + q);
          if (q > c) h[q] = fma_(-multiplier, v.x, h[q]);
          if (q + 1 > c) h[q + 1] = fma_(-multiplier, v.y, h[q + 1]);
          if (q + 2 > c) h[q + 2] = fma_(-multiplier, v.z, h[q + 2]);
          if (q + 3 > c) h[q + 3] = fma_(-multiplier, v.w, h[q + 3]);
        }
      }
      four[c] = i >= k + c ? scaled : R(0.0);
      if (!TO_MEMORY && i < n) L[i * n + k + c] = four[c];
    }
    if (TO_MEMORY) {
      lane_sync();
      *reinterpret_cast<Vec4*>(columns + 4 * i) = {four[0], four[1], four[2], four[3]};
      lane_sync();
      LANE_FOR(e, 4 * n) {
        if (k + e % 4 < n) L[e / 4 * n + k + e % 4] = columns[e];
      }
      lane_sync();
    }
#pragma unroll
    for (int j = 0; j < LANES - 4; ++j) h[j] = h[j + 4];
  }
  lane_sync();
}
#endif

// L = lower Cholesky factor of A (n x n, row-major), zero above the diagonal; L may be A itself.
DEVICE void chol_factor(const Model& m, real* L, const real* A, int n) {
#if ONE_ROW_A_LANE
  if (REGISTERS_FIT(n)) {
    const int i = lane();
    real h[LANES];
#pragma unroll
    for (int j = 0; j < LANES; ++j) h[j] = i < n && j < n ? A[i * n + j] : R(0.0);
    reg_factor<false>(h, L, n, m.column);
    return;
  }
#endif
#ifdef MATRIX_VECTORS
  if (fits_vectors(n)) {
    factor_in_vectors(L, A, n);
    return;
  }
#endif
#ifdef MATRIX_ROWS
  wide_factor(L, A, m.column, n);
#else
  if (n > MOST_DENSE) {
    LANE_FOR(e, n * n) L[e] = e % n <= e / n ? A[e] : R(0.0);
  } else {
    LANE_FOR_LOADS(e, n * n) L[e] = A[e];
  }
  lane_sync();
  mem_factor(L, n);
#endif
}

// In place: x becomes the solution of L L' x = x.
DEVICE void chol_solve(real* x, const real* L, int n) {
#if ONE_ROW_A_LANE
  if (REGISTERS_FIT(n)) {
    const int i = lane();
    const real inverse = i < n ? reciprocal_(L[i * n + i]) : R(0.0);
    // while four entries are used, the next four are being loaded
    real y = i < n ? x[i] : R(0.0), l[4], next[4];
    four_before(next, L, n, i, 0);
    ROLLED for (int k = 0; k < n; k += 4) {
#pragma unroll
      for (int e = 0; e < 4; ++e) l[e] = next[e];
      four_before(next, L, n, i, k + 4);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const real solved = lane_get(y * inverse, k + e);
        y = i == k + e ? solved : fma_(-l[e], solved, y);
      }
    }
    const int last = (n - 1) / 4 * 4;
    four_below(next, L, n, i, last);
    ROLLED for (int k = last; k >= 0; k -= 4) {
#pragma unroll
      for (int e = 0; e < 4; ++e) l[e] = next[e];
      four_below(next, L, n, i, k >= 4 ? k - 4 : n);
#pragma unroll
      for (int e = 3; e >= 0; --e) {
        const real solved = lane_get(y * inverse, k + e);
        y = i == k + e ? solved : fma_(-l[e], solved, y);
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

// In place: x becomes the solution of A x = x, by elimination without pivoting. A (n x n, need not be symmetric) is
// overwritten.
DEVICE void lu_solve(real* x, real* A, int n) {
#ifdef MATRIX_VECTORS
  if (fits_vectors(n)) {
    eliminate_in_vectors(x, A, n);
    return;
  }
#endif
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
#if ONE_ROW_A_LANE && DOF_RANGES
  const real product = range_mul<LANES>(A.row, A.range, x);
  if (lane() < n) out[lane()] = product;
  return;
#elif ONE_ROW_A_LANE
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
#ifdef MATRIX_ROWS
  two_store(out, wide_mul(A.memory, x, n), n);
  return;
#endif
#ifdef BLOCK_ROWS
  block_mul(A.memory, x, out, n);
  return;
#endif
#ifdef MATRIX_VECTORS
  if (fits_vectors(n)) {
    multiply_in_vectors(A.memory, x, out, n);
    return;
  }
#endif
#ifdef BRANCH_ROWS
  branches_mul(A.branches, A.memory, x, out);
  return;
#endif
  DOF_FOR(i, n) {
    // consecutive lanes read consecutive words; a single lane reads along the row, which is the same by symmetry
    const real* entry = A.memory + (LANES > 1 ? i : i * n);
    real sum = 0;
#if DOF_RANGES
    OVERLAPPED for (int j = A.range.begin; j < A.range.end; ++j) sum = fma_(entry[j * n], x[j], sum);
#else
    for (int j = 0; j < n; ++j) sum = fma_(entry[LANES > 1 ? j * n : j], x[j], sum);
#endif
    out[i] = sum;
  }
}

// Product of row r of J (stride a multiple of four, padded with zeros) and x (padded in the same way).
DEVICE real row_dot(const real* J, int r, int stride, const real* x) {
  const Vec4* row = reinterpret_cast<const Vec4*>(J + r * stride);
  const Vec4* v = reinterpret_cast<const Vec4*>(x);
  real sum = 0;
#if defined(MATRIX_ROWS) && !defined(UNIT_ISLAND)
  OVERLAPPED for (int q = 0; q < MATRIX_ROWS / 4; ++q) {
#elif defined(MATRIX_ROWS) || defined(BRANCH_ROWS) || defined(BLOCK_ROWS)
  OVERLAPPED for (int q = 0; q < stride / 4; ++q) {
#else
  ROLLED for (int q = 0; q < stride / 4; ++q) {
#endif
    const Vec4 a = row[q], b = v[q];
    sum = fma_(a.w, b.w, fma_(a.z, b.z, fma_(a.y, b.y, fma_(a.x, b.x, sum))));
  }
  return sum;
}

// out[r] = row r of J times x, as row_dot.
DEVICE void rows_times(int nrow, const real* J, int stride, const real* x, real* out) {
#ifdef MATRIX_VECTORS
  if (nrow >= FEWEST_VECTOR_ROWS && stride >= FEWEST_COLUMNS) {
    rows_times_in_vectors(nrow, J, stride, x, out);
    return;
  }
#endif
  LANE_FOR(r, nrow) out[r] = row_dot(J, r, stride, x);
}

// solve_with_rows for a matrix in memory.
DEVICE_CALL real solve_by_loops(real* column, real* x, const real* A, const real* d, real scale, int nrow,
                                const real* J, int stride, const real* D, const real* residual, const real* b,
                                real* gradient, real floor, real* H, int n) {
  real norm = 0;
#ifdef MATRIX_VECTORS
  if (fits_vectors(n)) {
    return solve_with_rows_in_vectors(x, A, d, scale, nrow, J, stride, D, residual, b, gradient, floor, n);
  }
#endif
#if SIMENGINE_GPU && LANES <= 32
  LANE_FOR_LOADS(e, n * n) H[e] = A[e];
  lane_sync();
  LANE_FOR(i, n) {
    if (scale != 0) H[i * n + i] += scale * d[i];
    x[i] = b[i];
  }
  lane_sync();
  add_rows(
      column, H, n, nrow, J, stride, [=](int r) { return residual[r] < 0; },
      [=](int r, int, real v) { return D[r] * v; },
      [=](int r, int i, real c) { x[i] = fma_(-residual[r], c, x[i]); });
#else
  const bool sparse = n > MOST_DENSE;
  LANE_FOR(i, n) {
    // the sums below start from a zero without a sign, so that rows that do not push may also be added with weight zero
    real right = b[i] + R(0.0);
    for (int j = 0; j <= i; ++j) H[i * n + j] = A[i * n + j] + R(0.0);
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
#endif
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

// x = (A + scale diag(d) + sum over rows r with residual[r] < 0 of D[r] J[r]' J[r])^-1 b; b is not changed.
//
// J has nrow rows of `stride` words. H is n x n scratch for matrices in memory. If `gradient` is not null, it receives
// b - sum over the same rows of D[r] residual[r] J[r]', which takes the place of b; if its squared norm is below
// `floor`, the solution is skipped and x is not written. Returns the squared norm.
DEVICE real solve_with_rows(const Model& m, real* x, const SymRows& A, const real* d, real scale, int nrow,
                            const real* J, int stride, const real* D, const real* residual, const real* b,
                            real* gradient, real floor, real* H, int n) {
#if ONE_ROW_A_LANE && DOF_RANGES
  return range_solve_with_rows(m, x, A, d, scale, nrow, J, stride, D, residual, b, gradient, floor, n);
#elif ONE_ROW_A_LANE
  if (REGISTERS_FIT(n)) {
    const int i = lane();
    real h[LANES];
    const real extra = i < n && scale != 0 ? scale * d[i] : R(0.0);
    real right = i < n ? b[i] : R(0.0);
#pragma unroll
    for (int j = 0; j < LANES; ++j) h[j] = A.row[j] + (i == j ? extra : R(0.0));
    // Each lane checks one row, and then all lanes go through the active rows together. The weight of the next active
    // row is loaded before the entries of the current one are changed.
    ROLLED for (int first = 0; first < nrow; first += LANES) {
      unsigned active = lane_ballot(first + i < nrow && residual[first + i] < 0);
      if (!active) continue;
      int r = first + lowest_bit(active);
      real x_r = residual[r], D_r = D[r], J_r = i < stride ? J[r * stride + i] : R(0.0);
      do {
        const real* row = J + r * stride;
        const real c = D_r * J_r;
        right = fma_(-x_r, c, right);
        active &= active - 1;
        if (active) {
          r = first + lowest_bit(active);
          x_r = residual[r];
          D_r = D[r];
          J_r = i < stride ? J[r * stride + i] : R(0.0);
        }
#pragma unroll
        for (int j = 0; j < LANES; j += 16) {
          if (j < n) {
            Vec4 v[4];
#pragma unroll
            for (int q = 0; q < 16 && j + q < LANES; q += 4) {
              if (j + q < n) v[q / 4] = broadcast4(row + j + q);
            }
#pragma unroll
            for (int q = 0; q < 16 && j + q < LANES; q += 4) {
              if (j + q < n) {
                h[j + q] = fma_(c, v[q / 4].x, h[j + q]);
                h[j + q + 1] = fma_(c, v[q / 4].y, h[j + q + 1]);
                h[j + q + 2] = fma_(c, v[q / 4].z, h[j + q + 2]);
                h[j + q + 3] = fma_(c, v[q / 4].w, h[j + q + 3]);
              }
            }
          }
        }
      } while (active);
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
#if defined(MATRIX_ROWS) || defined(BRANCH_ROWS) || defined(BLOCK_ROWS)
  const auto term = [=](int r) {
    return residual[r] < 0 ? RowTerm{-(D[r] * residual[r]), D[r], false, -1} : RowTerm{0, 0, false, -1};
  };
  const auto no_cone = [](int, int) { return R(0.0); };
#endif
#if defined(MATRIX_ROWS)
  return wide_solve_rows(m.column, x, A.memory, d, scale, nrow, J, term, no_cone, b, gradient, floor, H, n);
#elif defined(BLOCK_ROWS)
  return block_solve_rows(H, x, A.memory, nrow, J, term, no_cone, b, gradient, floor, n);
#elif defined(BRANCH_ROWS)
  return solve_along_branches(A.branches, x, A.memory, d, scale, nrow, J, stride, term, no_cone, b, gradient, floor);
#else
  return solve_by_loops(m.column, x, A.memory, d, scale, nrow, J, stride, D, residual, b, gradient, floor, H, n);
#endif
}
