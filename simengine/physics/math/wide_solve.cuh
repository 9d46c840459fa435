// Solution of linear systems whose matrix is in registers, two rows in a lane (wide.cuh).
#pragma once

#ifdef MATRIX_ROWS
// Four entries of a row of registers: to[e] = from[e] minus the sum over c of multiplier[c] times entry[c].
DEVICE void subtract_four(real* to, const real* from, const real* multiplier, const Vec4* entry) {
  real x = from[0], y = from[1], z = from[2], w = from[3];
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    x = fma_(-multiplier[c], entry[c].x, x);
    y = fma_(-multiplier[c], entry[c].y, y);
    z = fma_(-multiplier[c], entry[c].z, z);
    w = fma_(-multiplier[c], entry[c].w, w);
  }
  to[0] = x, to[1] = y, to[2] = z, to[3] = w;
}

// Four pivots, eliminated by every lane by itself: the latency of the chain from pivot to pivot bounds the speed of a
// warp, so nothing comes from other lanes between them. Below the diagonal, `a` has the entries under each pivot, and
// `l` those divided by it; x are the right sides of the four rows.
struct FourPivots {
  real a[4][4], l[4][4], pivot[4], x[4];
};

// The pivots from row k on; `column` holds their four columns, LANES words each, and y is the right side of each lane's
// row. A pivot that rounding has left not positive takes its dof out of the solution, as in reg_solve.
DEVICE FourPivots four_pivots(const real* column, int k, real y) {
  const real none = reciprocal_(REAL_MAX);
  FourPivots p;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const Vec4 v = broadcast4(column + c * LANES + k);
    p.a[0][c] = v.x, p.a[1][c] = v.y, p.a[2][c] = v.z, p.a[3][c] = v.w;
    p.x[c] = lane_get(y, k + c);
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const real inverse = reciprocal_(p.a[c][c]);
    p.pivot[c] = p.a[c][c] <= 0 ? none : inverse;
#pragma unroll
    for (int r = c + 1; r < 4; ++r) {
      p.l[r][c] = p.a[r][c] * p.pivot[c];
      p.x[r] = fma_(-p.l[r][c], p.x[c], p.x[r]);
#pragma unroll
      for (int q = c + 1; q <= r; ++q) p.a[r][q] = fma_(-p.l[r][c], p.a[q][c], p.a[r][q]);
    }
  }
  return p;
}

// Eliminate the pivots from a row, of which `above` pivots are above it. `entry` are the row's four entries in their
// columns, and y is its right side. The rest of the row is to lose the sum of multiplier[c] times row c, as the four
// rows were before the first of the pivots was eliminated.
DEVICE void eliminate_four(const FourPivots& p, int above, real* entry, real* y, real* multiplier) {
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    multiplier[c] = c < above ? entry[c] * p.pivot[c] : R(0.0);
    *y = fma_(-multiplier[c], p.x[c], *y);
#pragma unroll
    for (int r = c + 1; r < 4; ++r) entry[r] = fma_(-multiplier[c], p.a[r][c], entry[r]);
  }
#pragma unroll
  for (int c = 2; c >= 0; --c) {
#pragma unroll
    for (int r = c + 1; r < 4; ++r) multiplier[c] = fma_(-multiplier[r], p.l[r][c], multiplier[c]);
  }
}

// Subtract four columns, of LANES words each, from the entries of a row behind them, and turn the row by four entries:
// so the next four columns have the same registers, and the code is a loop, since instruction fetch bounds the speed of
// a warp too.
template <int SIZE>
DEVICE void subtract_and_turn(real* h, const real* column, int k, const real* multiplier) {
  const real done[4] = {h[0], h[1], h[2], h[3]};
#pragma unroll
  for (int q = 4; q < SIZE; q += 4) {
    if (k + q < SIZE) {
      Vec4 entry[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) entry[c] = broadcast4(column + c * LANES + k + q);
      subtract_four(h + q - 4, h + q, multiplier, entry);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) h[q - 4 + e] = h[q + e];
    }
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) h[SIZE - 4 + e] = done[e];
}

// Solve U x = y, where row i of U, whose first entries are not used, is in h of lane i, and y is divided by the pivots.
template <int SIZE>
DEVICE real back_substitute(const real* h, real y, real inverse) {
  const int i = lane();
#pragma unroll
  for (int k = SIZE - 4; k >= 0; k -= 4) {
    real a[4], x[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      a[c] = i < k + c ? -(h[k + c] * inverse) : R(0.0);
      x[c] = lane_get(y, k + c);
    }
    // every lane computes the four unknowns by itself
#pragma unroll
    for (int c = 3; c >= 0; --c) {
      y = fma_(a[c], x[c], y);
#pragma unroll
      for (int r = c - 1; r >= 0; --r) x[r] = fma_(lane_get(a[c], k + r), x[c], x[r]);
    }
  }
  return y;
}

// Solve H x = y by elimination without pivoting; y becomes x, and H is overwritten. `column` is COLUMN_WORDS and
// `beyond` 4 * FAR_ROWS words of shared memory.
//
// The first LANES columns are eliminated four at a time from all rows. Each lane writes its four entries of them, and
// the lanes of the pivots the part of their rows in `far`, before the pivots are known. So one barrier serves all that
// the lanes read, and the loads of a lane overlap with its pivots. What is left is the corner.
DEVICE void wide_solve(WideRows* h, TwoDofs* y, real* column, real* beyond) {
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
        *reinterpret_cast<Vec4*>(beyond + i % 4 * FAR_ROWS + j) = {h->far[j], h->far[j + 1], h->far[j + 2],
                                                                   h->far[j + 3]};
      }
    }
    lane_sync();
    const FourPivots p = four_pivots(column, k, y->at[0]);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      inverse[0] = i == k + c ? p.pivot[c] : inverse[0];
      under[c] = i < FAR_ROWS ? beyond[c * FAR_ROWS + i] : R(0.0);
    }
    eliminate_four(p, i - k, h->near, &y->at[0], multiplier[0]);
    eliminate_four(p, 4, under, &y->at[1], multiplier[1]);
#pragma unroll
    for (int j = 0; j < FAR_ROWS; j += 4) {
      Vec4 entry[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) entry[c] = broadcast4(beyond + c * FAR_ROWS + j);
      subtract_four(h->far + j, h->far + j, multiplier[0], entry);
      subtract_four(h->corner + j, h->corner + j, multiplier[1], entry);
    }
    subtract_and_turn<LANES>(h->near, column, k, multiplier[0]);
  }
  ROLLED for (int k = 0; k < FAR_ROWS; k += 4) {
    real multiplier[4];
    lane_sync();
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      h->corner[c] += i == k + c ? h->diagonal[1] : R(0.0);
      column[c * LANES + i] = h->corner[c];
    }
    lane_sync();
    const FourPivots p = four_pivots(column, k, y->at[1]);
#pragma unroll
    for (int c = 0; c < 4; ++c) inverse[1] = i == k + c ? p.pivot[c] : inverse[1];
    eliminate_four(p, i - k, h->corner, &y->at[1], multiplier);
    subtract_and_turn<FAR_ROWS>(h->corner, column, k, multiplier);
  }
  y->at[1] = back_substitute<FAR_ROWS>(h->corner, y->at[1] * inverse[1], inverse[1]);
  lane_sync();
  column[i] = y->at[1];
  lane_sync();
#pragma unroll
  for (int j = 0; j < FAR_ROWS; j += 4) {
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
    const FourPivots p = four_pivots(column, k, y);
    eliminate_four(p, i - k, h.near, &y, multiplier[0]);
    put_factor(L, p, 0, i, k, h.near, n);
    subtract_and_turn<LANES>(h.near, column, k, multiplier[0]);
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
    const FourPivots p = four_pivots(column, k, y);
    eliminate_four(p, i - k, h.corner, &y, multiplier);
    put_factor(L, p, LANES, i, k, h.corner, n);
    subtract_and_turn<FAR_ROWS>(h.corner, column, k, multiplier);
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
  wide_add_rows(&h, &y, column, J, nrow, term, cone_entry);
  real norm = 0;
  if (gradient) {
    norm = lane_sum(fma_(y.at[1], y.at[1], y.at[0] * y.at[0]));
    two_store(gradient, y, n);
    if (norm < floor) return norm;
  }
  wide_solve(&h, &y, column, beyond);
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
  wide_solve(&h, &y, column, A);
  two_store(x, y, n);
  lane_sync();
}
#endif
