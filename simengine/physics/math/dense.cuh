// Symmetric positive definite matrices of one world, handled by loops over memory: on the host, and on the GPU where
// they have more rows than there are lanes. Most of their entries may be zero, as in worlds with many bodies.
#pragma once

#define FEW_ROWS 32

// Subtract the contribution of column k of L, which is final, from the rest of the lower triangle. Row k above the
// diagonal holds a copy of the column, so that consecutive lanes read consecutive words. Rows whose entry in the column
// is zero are skipped.
DEVICE void remove_column(real* H, int n, int k) {
#if SIMENGINE_GPU && LANES <= 32
  ROLLED for (int base = k + 1; base < n; base += LANES) {
    const int j = base + lane();
    const real own = j < n ? H[k * n + j] : R(0.0);
    ROLLED for (int first = base; first < n; first += LANES) {
      const real entry = first + lane() < n ? H[k * n + first + lane()] : R(0.0);
      unsigned rows = lane_ballot(entry != 0);
      while (rows) {
        // four rows at a time, so that the latencies of their loads overlap
        int row[4];
        real factor[4], h[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          row[q] = rows ? first + lowest_bit(rows) : -1;
          factor[q] = lane_get(entry, lowest_bit(rows) & (LANES - 1));
          rows &= rows - 1;
          if (row[q] >= j) h[q] = H[row[q] * n + j];
        }
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          if (row[q] >= j) H[row[q] * n + j] = fma_(-factor[q], own, h[q]);
        }
      }
    }
  }
#else
  for (int i = k + 1; i < n; ++i) {
    const real factor = H[k * n + i];
    if (!any_world(factor != 0)) continue;
    real* row = H + i * n + k + 1;
    LANE_FOR(e, i - k) row[e] = select(factor != 0, fma_(-factor, H[k * n + k + 1 + e], row[e]), row[e]);
  }
#endif
}

DEVICE void factor_by_columns(real* H, int n) {
  ROLLED for (int k = 0; k < n; ++k) {
    const real d = H[k * n + k], pivot = sqrt_(select(d <= 0, REAL_MAX, d)), inverse = R(1.0) / pivot;
    lane_sync();
    LANE_FOR(e, n - k) {
      const int i = k + e;
      const real x = e ? H[i * n + k] * inverse : pivot;
      H[i * n + k] = x;
      H[k * n + i] = x;
    }
    lane_sync();
    remove_column(H, n, k);
    lane_sync();
    LANE_FOR(e, n - k - 1) H[k * n + k + 1 + e] = 0;
  }
  lane_sync();
}

#if !SIMENGINE_GPU
// The same as factor_by_columns, with the same rounding; faster for small matrices with few zeros.
DEVICE void factor_by_dots(real* H, int n) {
  for (int k = 0; k < n; ++k) {
    if (lane() == k % LANES) {
      real d = H[k * n + k];
      for (int j = 0; j < k; ++j) d = fma_(-H[k * n + j], H[k * n + j], d);
      H[k * n + k] = sqrt_(select(d <= 0, REAL_MAX, d));
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
  for (int i = 0; i < n; ++i) LANE_FOR(e, n - i - 1) H[i * n + i + 1 + e] = 0;
  lane_sync();
}
#endif

// In place: the lower triangle of H becomes L, and the part above the diagonal becomes zero. A pivot that rounding has
// left not positive takes its dof out of the solution, as in reg_solve. One of NaN stays, so that the world is flagged.
DEVICE void mem_factor(real* H, int n) {
#ifdef MATRIX_VECTORS
  if (fits_vectors(n)) {
    factor_in_vectors(H, H, n);
    return;
  }
#endif
  if (n > MOST_DENSE) {
    envelope_factor(H, n);
    return;
  }
#ifdef TILE
  factor_in_tile(H, n);
#else
#if !SIMENGINE_GPU
  if (n <= FEW_ROWS) {
    factor_by_dots(H, n);
    return;
  }
#endif
  factor_by_columns(H, n);
#endif
}

#if SIMENGINE_GPU && LANES <= 32
// Entries k to k + 3 of row i of L left of the diagonal, or of its column i below the diagonal; zero elsewhere.
DEVICE void four_before(real* l, const real* L, int n, int i, int k) {
#pragma unroll
  for (int e = 0; e < 4; ++e) l[e] = k + e < i && i < n ? L[i * n + k + e] : R(0.0);
}
DEVICE void four_below(real* l, const real* L, int n, int i, int k) {
#pragma unroll
  for (int e = 0; e < 4; ++e) l[e] = k + e > i && k + e < n ? L[(k + e) * n + i] : R(0.0);
}
#endif

#if SIMENGINE_GPU && (LANES == 32 || defined(DOFS_BEYOND_LANES))
// mem_solve with one or two unknowns per lane in registers. While four entries of a row are used, the next four are
// being loaded.
DEVICE void solve_in_two(real* x, const real* L, int n) {
  real y[2], inverse[2], l[2][4], next[2][4];
#pragma unroll
  for (int p = 0; p < 2; ++p) {
    const int i = lane() + p * LANES;
    inverse[p] = i < n ? reciprocal_(L[i * n + i]) : R(0.0);
    y[p] = i < n ? x[i] : R(0.0);
    four_before(next[p], L, n, i, 0);
  }
  ROLLED for (int k = 0; k < n; k += 4) {
#pragma unroll
    for (int p = 0; p < 2; ++p) {
#pragma unroll
      for (int e = 0; e < 4; ++e) l[p][e] = next[p][e];
      four_before(next[p], L, n, lane() + p * LANES, k + 4);
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const real solved = lane_get(k < LANES ? y[0] * inverse[0] : y[1] * inverse[1], (k + e) % LANES);
#pragma unroll
      for (int p = 0; p < 2; ++p) y[p] = lane() + p * LANES == k + e ? solved : fma_(-l[p][e], solved, y[p]);
    }
  }
  const int last = (n - 1) / 4 * 4;
  four_below(next[0], L, n, lane(), last);
  four_below(next[1], L, n, lane() + LANES, last);
  ROLLED for (int k = last; k >= 0; k -= 4) {
#pragma unroll
    for (int p = 0; p < 2; ++p) {
#pragma unroll
      for (int e = 0; e < 4; ++e) l[p][e] = next[p][e];
      four_below(next[p], L, n, lane() + p * LANES, k >= 4 ? k - 4 : n);
    }
#pragma unroll
    for (int e = 3; e >= 0; --e) {
      const real solved = lane_get(k < LANES ? y[0] * inverse[0] : y[1] * inverse[1], (k + e) % LANES);
#pragma unroll
      for (int p = 0; p < 2; ++p) y[p] = lane() + p * LANES == k + e ? solved : fma_(-l[p][e], solved, y[p]);
    }
  }
  lane_sync();
#pragma unroll
  for (int p = 0; p < 2; ++p) {
    if (lane() + p * LANES < n) x[lane() + p * LANES] = y[p];
  }
  lane_sync();
}
#endif

// In place: x becomes the solution of L L' x = x.
DEVICE void mem_solve(real* x, const real* L, int n) {
#ifdef MATRIX_VECTORS
  if (fits_vectors(n)) {
    solve_in_vectors(x, L, n);
    return;
  }
#endif
  if (n > MOST_DENSE) {
    row_solve(x, L, n);
    return;
  }
#if SIMENGINE_GPU && (LANES == 32 || defined(DOFS_BEYOND_LANES))
  if (n <= 2 * LANES) {
    solve_in_two(x, L, n);
    return;
  }
#endif
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

#if SIMENGINE_GPU && LANES <= 32
// ----------------------------------------------------------------------------- sums of rank one, by loops over memory
//
// H += c v' for vectors with few entries that are not zero: the lanes gather these in order into shared memory, and
// then divide among themselves the pairs that lie in the lower triangle.

#define MOST_GATHERED (COLUMN_WORDS / 3)
#define PAIRS_AT_ONCE 4

// The entries of c and v that are not both zero, and their indices. If `count` exceeds MOST_GATHERED, the arrays hold
// only the first MOST_GATHERED of them.
struct Gathered {
  int count;
  real *c, *v, *place;
};

DEVICE Gathered gather_nothing(real* column) {
  return {0, column, column + MOST_GATHERED, column + 2 * MOST_GATHERED};
}

// Add the entries of the lanes, which have the indices first, first + 1 and so on.
DEVICE void gather_more(Gathered* rows, int first, real c, real v) {
  const unsigned there = lane_ballot(c != 0 || v != 0);
  const int at = rows->count + __popc(there & ((1u << lane()) - 1u));
  if ((c != 0 || v != 0) && at < MOST_GATHERED) {
    rows->c[at] = c;
    rows->v[at] = v;
    rows->place[at] = first + lane();
  }
  rows->count += __popc(there);
}

// Row a and column b of entry p of a lower triangle, counted row by row.
DEVICE void pair_of(int p, int* a, int* b) {
  int row = int((sqrtf(8.0f * p + 1.0f) - 1.0f) * 0.5f);
  if ((row + 1) * (row + 2) / 2 <= p) ++row;
  if (row * (row + 1) / 2 > p) --row;
  *a = row;
  *b = p - row * (row + 1) / 2;
}

// H += c v' of the gathered entries; `a` and `b` are the first PAIRS_AT_ONCE pairs of each lane.
DEVICE void add_gathered(real* H, int n, const Gathered& rows, const int* a, const int* b) {
  const int pairs = rows.count * (rows.count + 1) / 2;
  real h[PAIRS_AT_ONCE];
  int entry[PAIRS_AT_ONCE];
#pragma unroll
  for (int q = 0; q < PAIRS_AT_ONCE; ++q) {
    if (lane() + q * LANES < pairs) {
      entry[q] = int(rows.place[a[q]]) * n + int(rows.place[b[q]]);
      h[q] = H[entry[q]];
    }
  }
#pragma unroll
  for (int q = 0; q < PAIRS_AT_ONCE; ++q) {
    if (lane() + q * LANES < pairs) H[entry[q]] = fma_(rows.c[a[q]], rows.v[b[q]], h[q]);
  }
  ROLLED for (int p = lane() + PAIRS_AT_ONCE * LANES; p < pairs; p += LANES) {
    int row, column;
    pair_of(p, &row, &column);
    const int at = int(rows.place[row]) * n + int(rows.place[column]);
    H[at] = fma_(rows.c[row], rows.v[column], H[at]);
  }
}

// H += c v' row by row, for the entries of c that the lanes have, with the indices first, first + 1 and so on.
DEVICE void add_ungathered(real* H, int n, int first, real c, const real* v) {
  unsigned there = lane_ballot(c != 0);
  while (there) {
    const int from = lowest_bit(there), i = first + from;
    const real factor = lane_get(c, from);
    LANE_FOR(j, i + 1) H[i * n + j] = fma_(factor, v[j], H[i * n + j]);
    there &= there - 1;
  }
}

// H_ij += the sum of c(r, i) J[r][j] over the rows r for which taken(r) is true, in the lower triangle. c(r, i) is
// coefficient(r, i, J[r][i]), and each(r, i, c) is called where it is not zero.
template <typename Taken, typename Coefficient, typename Each>
DEVICE void add_rows(real* column, real* H, int n, int nrow, const real* J, int stride, Taken taken,
                     Coefficient coefficient, Each each) {
  int a[PAIRS_AT_ONCE], b[PAIRS_AT_ONCE];
#pragma unroll
  for (int q = 0; q < PAIRS_AT_ONCE; ++q) pair_of(lane() + q * LANES, a + q, b + q);
  ROLLED for (int r = 0; r < nrow; ++r) {
    if (!taken(r)) continue;
    Gathered rows = gather_nothing(column);
    ROLLED for (int first = 0; first < n; first += LANES) {
      const int i = first + lane();
      const real v = i < n ? J[r * stride + i] : R(0.0), c = i < n ? coefficient(r, i, v) : R(0.0);
      if (c != 0) each(r, i, c);
      gather_more(&rows, first, c, v);
    }
    lane_sync();
    if (rows.count <= MOST_GATHERED) {
      add_gathered(H, n, rows, a, b);
    } else {
      ROLLED for (int first = 0; first < n; first += LANES) {
        const int i = first + lane();
        const real c = i < n ? coefficient(r, i, J[r * stride + i]) : R(0.0);
        add_ungathered(H, n, first, c, J + r * stride);
      }
    }
    lane_sync();
  }
}
#endif
