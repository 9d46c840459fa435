// Symmetric positive definite matrices in the registers of a block of threads, one row in each lane: of islands with
// more rows than two in each lane of a warp. Kernels are compiled with BLOCK_ROWS, the most rows of an island, padded
// to a multiple of four. Rows and columns from n on are those of the identity.
#pragma once

#ifdef BLOCK_ROWS
#define BLOCK_WARPS ((BLOCK_ROWS + WARP_LANES - 1) / WARP_LANES)
#define BLOCK_WORDS_OF_COLUMNS (5 * LANES)  // four columns and the right side

// H += J' W J for the row h of each lane, and y += J' f, with the terms of rows as in wide_add_rows. The warps work
// apart from each other: each looks at 32 rows of J at a time, and then at those that add something to its rows of H. A
// row goes through shared memory, four columns of it by each lane. Parts of 16 columns without an entry are left out.
// `copies` is 8 * LANES words of shared memory.
template <typename Term, typename ConeEntry>
DEVICE void block_add_rows(real* h, real* y, real* copies, const real* J, int nrow, int stride, Term term,
                           ConeEntry cone_entry) {
  const int i = lane(), four = 4 * warp_lane();
  const auto load = [&](int r) { return four < stride ? broadcast4(J + r * stride + four) : Vec4{0, 0, 0, 0}; };
  int turn = 0;  // two copies alternate, so that one is read while the next is written
  ROLLED for (int first = 0; first < nrow; first += WARP_LANES) {
    RowTerm own = {0, 0, false, -1};
    if (first + warp_lane() < nrow) own = term(first + warp_lane());
    const unsigned cones = warp_ballot(own.cone);
    unsigned left = warp_ballot(own.force != 0 || own.weight != 0);
    Vec4 next = {0, 0, 0, 0};
    if (left) next = load(first + lowest_bit(left));
    ROLLED while (left) {
      const int from = lowest_bit(left), r = first + from;
      const unsigned there = warp_ballot(next.x != 0 || next.y != 0 || next.z != 0 || next.w != 0);
      real* row = copies + (2 * warp_index() + turn) * 4 * WARP_LANES;
      *reinterpret_cast<Vec4*>(row + four) = next;
      turn ^= 1;
      left &= left - 1;
      if (left) next = load(first + lowest_bit(left));
      warp_sync();
      const real v = row[i];
      real c = warp_get(own.weight, from) * v;
      if (cones >> from & 1u) c = i < stride ? cone_entry(r, i) : R(0.0);
      *y = fma_(warp_get(own.force, from), v, *y);
      if (!warp_ballot(c != 0)) continue;
#pragma unroll
      for (int j = 0; j < BLOCK_ROWS; j += 16) {
        if (!(there >> (j / 4) & 15u)) continue;
        Vec4 entry[4];
#pragma unroll
        for (int q = 0; q < 16 && j + q < BLOCK_ROWS; q += 4) {
          entry[q / 4] = broadcast4(row + j + q);
        }
#pragma unroll
        for (int q = 0; q < 16 && j + q < BLOCK_ROWS; q += 4) {
          h[j + q] = fma_(c, entry[q / 4].x, h[j + q]);
          h[j + q + 1] = fma_(c, entry[q / 4].y, h[j + q + 1]);
          h[j + q + 2] = fma_(c, entry[q / 4].z, h[j + q + 2]);
          h[j + q + 3] = fma_(c, entry[q / 4].w, h[j + q + 3]);
        }
      }
    }
  }
}

// The solution of H x = y by elimination without pivoting, for the row h of each lane, which is overwritten; lane i
// gives y_i and receives x_i. `columns` is 2 * BLOCK_WORDS_OF_COLUMNS + LANES words of shared memory.
//
// Four columns are eliminated at a time, as in wide_solve. The columns of one round and the next have memory of their
// own, so that there is one barrier in each. Then the unknowns of the last warp are found, those of the warp before it,
// and so on.
DEVICE real block_solve(real* h, real y, real* columns, int n) {
  const int i = lane(), end = (n + 3) & ~3;
  real inverse = 0;
  int k = 0;
  ROLLED for (; k < end; k += 4) {
    real* column = columns + k / 4 % 2 * BLOCK_WORDS_OF_COLUMNS;
#pragma unroll
    for (int c = 0; c < 4; ++c) column[c * LANES + i] = h[c];
    column[4 * LANES + i] = y;
    lane_sync();
    if (k / WARP_LANES > warp_index()) {  // all rows of the warp are above
      turn_by_four<BLOCK_ROWS>(h);
      continue;
    }
    real multiplier[4];
    const FourPivots p = four_pivots(column, k, [&](int c) { return column[4 * LANES + k + c]; });
#pragma unroll
    for (int c = 0; c < 4; ++c) inverse = i == k + c ? p.pivot[c] : inverse;
    eliminate_four(p, i - k, h, &y, multiplier);
    subtract_and_turn<BLOCK_ROWS>(h, column, k, end, multiplier);
  }
  ROLLED for (; k < BLOCK_ROWS; k += 4) turn_by_four<BLOCK_ROWS>(h);
  y *= inverse;
  real* found = columns + 2 * BLOCK_WORDS_OF_COLUMNS;
#pragma unroll
  for (int w = BLOCK_WARPS - 1; w >= 0; --w) {
    constexpr int LAST = BLOCK_ROWS - (BLOCK_WARPS - 1) * WARP_LANES;  // rows of the last warp
    const int first = w * WARP_LANES, rows = w == BLOCK_WARPS - 1 ? LAST : WARP_LANES;
    if (first >= end) continue;
    if (warp_index() == w) {
      y = w == BLOCK_WARPS - 1 ? back_substitute<LAST>(h + first, y, inverse)
                               : back_substitute<WARP_LANES>(h + first, y, inverse);
      found[i] = y;
    }
    lane_sync();
    if (warp_index() >= w) continue;
#pragma unroll
    for (int q = 0; q < rows; q += 4) {
      const Vec4 x = broadcast4(found + first + q);
      y = fma_(-(h[first + q] * inverse), x.x, y);
      y = fma_(-(h[first + q + 1] * inverse), x.y, y);
      y = fma_(-(h[first + q + 2] * inverse), x.z, y);
      y = fma_(-(h[first + q + 3] * inverse), x.w, y);
    }
  }
  return y;
}

// x = (A + J' W J)^-1 g with g = b + J' f, for A in memory and rows as in wide_add_rows. `gradient` receives g, and
// where the squared norm of g is below `floor`, x is not written. Returns the squared norm. `columns` as in
// block_solve.
template <typename Term, typename ConeEntry>
DEVICE real block_solve_rows(real* columns, real* x, const real* A, int nrow, const real* J, Term term,
                             ConeEntry cone_entry, const real* b, real* gradient, real floor, int n) {
  const int i = lane();
  real h[BLOCK_ROWS], y = i < n ? b[i] : R(0.0);
#pragma unroll
  for (int j = 0; j < BLOCK_ROWS; ++j) h[j] = i < n && j < n ? A[j * n + i] : i == j ? R(1.0) : R(0.0);
  block_add_rows(h, &y, columns, J, nrow, (n + 3) & ~3, term, cone_entry);
  const real norm = lane_sum(y * y);
  if (i < n) gradient[i] = y;
  if (norm < floor) return norm;
  y = block_solve(h, y, columns, n);
  if (i < n) x[i] = y;
  lane_sync();
  return norm;
}

// out = A x for a matrix in memory; x is padded with zeros to a multiple of four.
DEVICE void block_mul(const real* A, const real* x, real* out, int n) {
  if (lane() >= n) return;
  const real* entry = A + lane();  // consecutive lanes read consecutive words, which are a column by symmetry
  real sum = 0;
#pragma unroll 4
  for (int q = 0; q < n; q += 4) {
    const Vec4 v = broadcast4(x + q);
    sum = fma_(entry[0], v.x, sum);
    sum = q + 1 < n ? fma_(entry[n], v.y, sum) : sum;
    sum = q + 2 < n ? fma_(entry[2 * n], v.z, sum) : sum;
    sum = q + 3 < n ? fma_(entry[3 * n], v.w, sum) : sum;
    entry += 4 * n;
  }
  out[lane()] = sum;
}
#endif
