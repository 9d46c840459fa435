// Elimination of four pivots at a time from matrices in registers: with two rows in each lane of a warp (wide.cuh), or
// one in each lane of a block (block_rows.cuh).
#pragma once

#if defined(MATRIX_ROWS) || defined(BLOCK_ROWS)
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

// The pivots from row k on; `column` holds their four columns, LANES words each, and right(c) is the right side of row
// k + c. A pivot that rounding has left not positive takes its dof out of the solution, as in reg_solve.
template <typename Right>
DEVICE FourPivots four_pivots(const real* column, int k, Right right) {
  const real none = reciprocal_(REAL_MAX);
  FourPivots p;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const Vec4 v = broadcast4(column + c * LANES + k);
    p.a[0][c] = v.x, p.a[1][c] = v.y, p.a[2][c] = v.z, p.a[3][c] = v.w;
    p.x[c] = right(c);
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

// Turn a row by four entries.
template <int SIZE>
DEVICE void turn_by_four(real* h) {
  const real first[4] = {h[0], h[1], h[2], h[3]};
#pragma unroll
  for (int j = 4; j < SIZE; ++j) h[j - 4] = h[j];
#pragma unroll
  for (int e = 0; e < 4; ++e) h[SIZE - 4 + e] = first[e];
}

// Subtract four columns, of LANES words each, from the entries of a row behind them, and turn the row by four entries:
// so the next four columns have the same registers, and the code is a loop, since instruction fetch bounds the speed of
// a warp too. Columns from `end` on are those of the identity.
template <int SIZE>
DEVICE void subtract_and_turn(real* h, const real* column, int k, int end, const real* multiplier) {
  const real done[4] = {h[0], h[1], h[2], h[3]};
#pragma unroll
  for (int q = 4; q < SIZE; q += 4) {
    if (k + q < end) {
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

// Solve for four unknowns from row k on, of which `entry` are the columns in the lane's row. Every lane computes them
// by itself.
DEVICE real substitute_four(const real* entry, int k, real y, real inverse) {
  const int i = warp_lane();
  real a[4], x[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    a[c] = i < k + c ? -(entry[c] * inverse) : R(0.0);
    x[c] = warp_get(y, k + c);
  }
#pragma unroll
  for (int c = 3; c >= 0; --c) {
    y = fma_(a[c], x[c], y);
#pragma unroll
    for (int r = c - 1; r >= 0; --r) x[r] = fma_(warp_get(a[c], k + r), x[c], x[r]);
  }
  return y;
}

// Turn a row back by so many entries: the last ones become the first.
template <int SIZE, int BY>
DEVICE void turn_back(real* h) {
  real last[BY];
#pragma unroll
  for (int e = 0; e < BY; ++e) last[e] = h[SIZE - BY + e];
#pragma unroll
  for (int j = SIZE - 1; j >= BY; --j) h[j] = h[j - BY];
#pragma unroll
  for (int e = 0; e < BY; ++e) h[e] = last[e];
}

// Solve U x = y, where row i of U, whose first entries are not used, is in h of lane i of a warp, and y is divided by
// the pivots. Long rows are turned in a loop, eight entries at a time, because of instruction fetch.
template <int SIZE>
DEVICE real back_substitute(real* h, real y, real inverse) {
  if (SIZE > 8 && SIZE % 8 == 0) {
    ROLLED for (int k = SIZE - 8; k >= 0; k -= 8) {
      turn_back<SIZE, 8>(h);
      y = substitute_four(h + 4, k + 4, y, inverse);
      y = substitute_four(h, k, y, inverse);
    }
    return y;
  }
#pragma unroll
  for (int k = SIZE - 4; k >= 0; k -= 4) y = substitute_four(h + k, k, y, inverse);
  return y;
}
#endif
