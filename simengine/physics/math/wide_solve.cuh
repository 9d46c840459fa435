// Solution of linear systems whose matrix is in registers, two rows in a lane (wide.cuh).
#pragma once

#ifdef MATRIX_ROWS
// Solve H x = y by elimination without pivoting; y becomes x, and H is overwritten. `column` is COLUMN_WORDS and
// `beyond` 4 * FAR_ROWS words of shared memory.
//
// The first LANES columns are eliminated four at a time from all rows. Each lane writes its four entries of them, and
// the lanes of the pivots the part of their rows in `far`, before the pivots are known. So one barrier serves all that
// the lanes read, and the loads of a lane overlap with its pivots. What is left is the corner.
DEVICE void wide_solve(WideRows* h, TwoDofs* y, real* column, real* beyond, int n) {
  const int i = lane();
  real inverse[2] = {0, 0};
  ROLLED for (int k = 0; k < LANES; k += 4) {
    real under[4], multiplier[2][4];
    lane_sync();
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      h->near[c] += i == k + c ? h->diagonal[0] : R(0.0);
      column[c * LANES + i] = h->near[c];
    }
    if (i / 4 == k / 4) {
#pragma unroll
      for (int j = 0; j < FAR_ROWS; j += 4) {
        if (beyond_far(j, n)) break;
        *reinterpret_cast<Vec4*>(beyond + i % 4 * FAR_ROWS + j) = {h->far[j], h->far[j + 1], h->far[j + 2],
                                                                   h->far[j + 3]};
      }
    }
    lane_sync();
    const FourPivots p = four_pivots(column, k, [&](int c) { return lane_get(y->at[0], k + c); });
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      inverse[0] = i == k + c ? p.pivot[c] : inverse[0];
      under[c] = LANES + i < wide_stride(n) ? beyond[c * FAR_ROWS + i] : R(0.0);
    }
    eliminate_four(p, i - k, h->near, &y->at[0], multiplier[0]);
    eliminate_four(p, 4, under, &y->at[1], multiplier[1]);
#pragma unroll
    for (int j = 0; j < FAR_ROWS; j += 4) {
      if (beyond_far(j, n)) break;
      Vec4 entry[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) entry[c] = broadcast4(beyond + c * FAR_ROWS + j);
      subtract_four(h->far + j, h->far + j, multiplier[0], entry);
      subtract_four(h->corner + j, h->corner + j, multiplier[1], entry);
    }
    subtract_and_turn<LANES>(h->near, column, k, LANES, multiplier[0]);
  }
  int k = 0;
  ROLLED for (; k < FAR_ROWS && !beyond_far(k, n); k += 4) {
    real multiplier[4];
    lane_sync();
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      h->corner[c] += i == k + c ? h->diagonal[1] : R(0.0);
      column[c * LANES + i] = h->corner[c];
    }
    lane_sync();
    const FourPivots p = four_pivots(column, k, [&](int c) { return lane_get(y->at[1], k + c); });
#pragma unroll
    for (int c = 0; c < 4; ++c) inverse[1] = i == k + c ? p.pivot[c] : inverse[1];
    eliminate_four(p, i - k, h->corner, &y->at[1], multiplier);
    subtract_and_turn<FAR_ROWS>(h->corner, column, k, wide_stride(n) - LANES, multiplier);
  }
  ROLLED for (; k < FAR_ROWS; k += 4) turn_by_four<FAR_ROWS>(h->corner);
  y->at[1] = back_substitute<FAR_ROWS>(h->corner, y->at[1] * inverse[1], inverse[1]);
  lane_sync();
  column[i] = y->at[1];
  lane_sync();
#pragma unroll
  for (int j = 0; j < FAR_ROWS; j += 4) {
    if (beyond_far(j, n)) break;
    const Vec4 x = broadcast4(column + j);
    const real known[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int e = 0; e < 4; ++e) y->at[0] = fma_(-h->far[j + e], known[e], y->at[0]);
  }
  y->at[0] = back_substitute<LANES>(h->near, y->at[0] * inverse[0], inverse[0]);
}

// Column k + c of L for a row of the matrix whose entries `entry` under four pivots are eliminated. `above` of the
// pivots are above the row.
DEVICE real factor_entry(const FourPivots& p, int c, int above, const real* entry) {
  const real scale = sqrt_(p.pivot[c]);  // one over the root of the pivot
  const bool usable = p.a[c][c] > 0;
  return c > above ? R(0.0) : c == above && !usable ? reciprocal_(scale) : entry[c] * scale;
}

// Write four columns of L below row `first`, of which the lane has row i, counted from `first`.
DEVICE void put_factor(real* L, const FourPivots& p, int first, int i, int k, const real* entry, int n) {
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    if (first + i < n && first + k + c < n) L[(first + i) * n + first + k + c] = factor_entry(p, c, i - k, entry);
  }
}

// L = lower Cholesky factor of A, zero above the diagonal; L may be A itself. The columns are eliminated as in
// wide_solve. `column` is COLUMN_WORDS of shared memory.
DEVICE void wide_factor(real* L, const real* A, real* column, int n) {
  const int i = lane();
  WideRows h;
  wide_load(&h, A, n);
  real y = 0;  // there is no right side
  lane_sync();  // the matrix is read
  ROLLED for (int k = 0; k < LANES; k += 4) {
    real under[4], multiplier[2][4];
#pragma unroll
    for (int c = 0; c < 4; ++c) column[c * LANES + i] = h.near[c];
    lane_sync();
    const FourPivots p = four_pivots(column, k, [&](int c) { return lane_get(y, k + c); });
    eliminate_four(p, i - k, h.near, &y, multiplier[0]);
    put_factor(L, p, 0, i, k, h.near, n);
    subtract_and_turn<LANES>(h.near, column, k, LANES, multiplier[0]);
    // the rows of the pivots beyond the first LANES columns take the place of their columns
    lane_sync();
    if (i / 4 == k / 4) {
#pragma unroll
      for (int j = 0; j < FAR_ROWS; ++j) column[i % 4 * LANES + j] = h.far[j];
    }
    lane_sync();
#pragma unroll
    for (int c = 0; c < 4; ++c) under[c] = i < FAR_ROWS ? column[c * LANES + i] : R(0.0);
    eliminate_four(p, 4, under, &y, multiplier[1]);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (LANES + i < n) L[(LANES + i) * n + k + c] = under[c] * sqrt_(p.pivot[c]);
    }
#pragma unroll
    for (int j = 0; j < FAR_ROWS; j += 4) {
      Vec4 entry[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) entry[c] = broadcast4(column + c * LANES + j);
      subtract_four(h.far + j, h.far + j, multiplier[0], entry);
      subtract_four(h.corner + j, h.corner + j, multiplier[1], entry);
    }
    lane_sync();
  }
  ROLLED for (int k = 0; k < FAR_ROWS; k += 4) {
    real multiplier[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) column[c * LANES + i] = h.corner[c];
    lane_sync();
    const FourPivots p = four_pivots(column, k, [&](int c) { return lane_get(y, k + c); });
    eliminate_four(p, i - k, h.corner, &y, multiplier);
    put_factor(L, p, LANES, i, k, h.corner, n);
    subtract_and_turn<FAR_ROWS>(h.corner, column, k, FAR_ROWS, multiplier);
    lane_sync();
  }
  ROLLED for (int j = LANES; j < n; ++j) L[i * n + j] = 0;
  lane_sync();
}

// x = (A + scale diag(d) + J' W J)^-1 g with g = b + J' f, for A in memory and rows as in wide_add_rows. If `gradient`
// is not null, it receives g, and where the squared norm of g is below `floor`, x is not written. Returns the squared
// norm. `beyond` as in wide_solve.
template <typename Term, typename ConeEntry>
DEVICE real wide_solve_rows(real* column, real* x, const real* A, const real* d, real scale, int nrow, const real* J,
                            Term term, ConeEntry cone_entry, const real* b, real* gradient, real floor, real* beyond,
                            int n) {
  WideRows h;
  wide_load(&h, A, n);
  TwoDofs y = two_load(b, n);
  const TwoDofs damping = scale != 0 ? two_load(d, n) : TwoDofs{{0, 0}};
#pragma unroll
  for (int p = 0; p < 2; ++p) h.diagonal[p] = scale * damping.at[p];
  wide_add_rows(&h, &y, column, J, nrow, term, cone_entry, n);
  real norm = 0;
  if (gradient) {
    norm = lane_sum(fma_(y.at[1], y.at[1], y.at[0] * y.at[0]));
    two_store(gradient, y, n);
    if (norm < floor) return norm;
  }
  wide_solve(&h, &y, column, beyond, n);
  lane_sync();
  two_store(x, y, n);
  lane_sync();
  return norm;
}

// In place: x becomes the solution of A x = x, for a positive definite A in shared memory, which is overwritten.
DEVICE void wide_solve_in_place(real* column, real* x, real* A, int n) {
  WideRows h;
  wide_load(&h, A, n);
  TwoDofs y = two_load(x, n);
  h.diagonal[0] = h.diagonal[1] = 0;
  lane_sync();  // the matrix is read; its memory serves the elimination
  wide_solve(&h, &y, column, A, n);
  two_store(x, y, n);
  lane_sync();
}
#endif
