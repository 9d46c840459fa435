// Linear systems of several ranges of dofs (dof_ranges.cuh), of whose matrices each lane has a row in registers.
#pragma once

#if DOF_RANGES
// Entry of the lane's row of A x; x is padded with zeros to a multiple of four.
template <int WORDS>
DEVICE real range_mul(const real* h, const DofRange& range, const real* x) {
  real sum = 0;
#pragma unroll
  for (int q = 0; q < WORDS; q += 4) {
    if (q < 4 * range.fours) {
      const Vec4 v = broadcast4(x + range.base + q);
      sum = fma_(h[q + 3], v.w, fma_(h[q + 2], v.z, fma_(h[q + 1], v.y, fma_(h[q], v.x, sum))));
    }
  }
  return sum;
}

// out[r] = row r of J times x, without the columns before its first entry and behind its last.
DEVICE void rows_times_in_spans(unsigned spans, int nrow, const real* J, int stride, const real* x, real* out) {
  LANE_FOR(r, nrow) {
    const bool known = r < CHUNKS_OF_ROWS * LANES;
    const int first = known ? spans & 255 : 0, end = known ? spans >> 8 & 255 : stride / 4;
    spans >>= 16;
    real sum = 0;
    ROLLED for (int q = first; q < end; ++q) {
      const Vec4 a = broadcast4(J + r * stride + 4 * q), b = broadcast4(x + 4 * q);
      sum = fma_(a.w, b.w, fma_(a.z, b.z, fma_(a.y, b.y, fma_(a.x, b.x, sum))));
    }
    out[r] = sum;
  }
}

// h += c times the window of a row of J, and then d times that of another.
template <int WORDS>
DEVICE void range_add_two(real* h, const DofRange& range, real c, const real* row, real d, const real* other) {
#pragma unroll
  for (int q = 0; q < WORDS; q += 4) {
    if (q < 4 * range.fours) {
      const Vec4 first = broadcast4(row + range.base + q), second = broadcast4(other + range.base + q);
      h[q] = fma_(d, second.x, fma_(c, first.x, h[q]));
      h[q + 1] = fma_(d, second.y, fma_(c, first.y, h[q + 1]));
      h[q + 2] = fma_(d, second.z, fma_(c, first.z, h[q + 2]));
      h[q + 3] = fma_(d, second.w, fma_(c, first.w, h[q + 3]));
    }
  }
}

// Add rows of J to the lane's row of its range's matrix: those of a chunk of LANES rows from `first` on that are bits
// of `left`, which differ between ranges, in their order. Row r is added entry(r, there) times, which all lanes ask
// for. Where a range has none left, `there` is false, and the entry must be zero. A round adds two rows of each range,
// so that their loads overlap.
template <int WORDS, class Entry>
DEVICE void add_rows_of_range(real* h, const DofRange& range, unsigned left, int first, const real* J, int stride,
                              const Entry& entry) {
  ROLLED while (lane_any(left != 0)) {
    const bool one = left != 0;
    const int r = first + (one ? lowest_bit(left) : 0);
    left &= left - 1;
    const bool two = left != 0;
    const int other = two ? first + lowest_bit(left) : r;
    left &= left - 1;
    const real c = entry(r, one), d = entry(other, two);
    range_add_two<WORDS>(h, range, c, J + r * stride, d, J + other * stride);
  }
}

// Rotate the row by four words: the first four become the last.
template <int WORDS>
DEVICE void range_turn(real* h) {
  const real first[4] = {h[0], h[1], h[2], h[3]};
#pragma unroll
  for (int j = 0; j < WORDS - 4; ++j) h[j] = h[j + 4];
#pragma unroll
  for (int e = 0; e < 4; ++e) h[WORDS - 4 + e] = first[e];
}
template <int WORDS>
DEVICE void range_turn_back(real* h) {
  const real last[4] = {h[WORDS - 4], h[WORDS - 3], h[WORDS - 2], h[WORDS - 1]};
#pragma unroll
  for (int j = WORDS - 1; j >= 4; --j) h[j] = h[j - 4];
#pragma unroll
  for (int e = 0; e < 4; ++e) h[e] = last[e];
}

// Solve A x = y as reg_solve does, with its bits, and all ranges at once: each eliminates the columns of its window. A
// column that is none of the range's dofs has no pivot. What lanes of another range have in its place changes nothing
// but words beyond the range, which no pivot reads.
template <int WORDS>
DEVICE real range_solve_of(real* h, real y, const DofRange& range, real* column) {
  const int i = lane(), words = 4 * range.fours;
  const real none = reciprocal_(REAL_MAX);
  real inverse = 0;
  int k = 0;
  ROLLED for (; k < words; k += 4) {
    const int at = range.base + k;
    real a[4][4], x[4], multiplier[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int c = 0; c <= r; ++c) a[r][c] = lane_get(h[c], at + r);
      x[r] = lane_get(y, at + r);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const bool there = is_in(range, at + c);
      const real reciprocal = reciprocal_(a[c][c]), pivot = !there || a[c][c] <= 0 ? none : reciprocal;
      inverse = i == at + c ? pivot : inverse;
      multiplier[c] = there && i > at + c ? h[c] * pivot : R(0.0);
      y = fma_(-multiplier[c], x[c], y);
#pragma unroll
      for (int r = c + 1; r < 4; ++r) {
        h[r] = fma_(-multiplier[c], a[r][c], h[r]);
        const real of_row = there ? a[r][c] * pivot : R(0.0);
        x[r] = fma_(-of_row, x[c], x[r]);
#pragma unroll
        for (int q = c + 1; q <= r; ++q) a[r][q] = fma_(-of_row, a[q][c], a[r][q]);
      }
    }
    lane_sync();
#pragma unroll
    for (int c = 0; c < 4; ++c) column[c * LANES + i] = h[c];
    lane_sync();
#pragma unroll
    for (int q = 4; q < WORDS; q += 4) {
      if (k + q < words) {
        Vec4 entry[4];
#pragma unroll
        for (int c = 0; c < 4; ++c) entry[c] = broadcast4(column + c * LANES + at + q);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          h[q] = fma_(-multiplier[c], entry[c].x, h[q]);
          h[q + 1] = fma_(-multiplier[c], entry[c].y, h[q + 1]);
          h[q + 2] = fma_(-multiplier[c], entry[c].z, h[q + 2]);
          h[q + 3] = fma_(-multiplier[c], entry[c].w, h[q + 3]);
        }
      }
    }
    range_turn<WORDS>(h);
  }
  y *= inverse;
  ROLLED for (k -= 4; k >= 0; k -= 4) {
    const int at = range.base + k;
    range_turn_back<WORDS>(h);
    real a[4], x[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      a[c] = is_in(range, at + c) && i < at + c ? -(h[c] * inverse) : R(0.0);
      x[c] = lane_get(y, at + c);
    }
#pragma unroll
    for (int c = 3; c >= 0; --c) {
      y = fma_(a[c], x[c], y);
#pragma unroll
      for (int r = c - 1; r >= 0; --r) x[r] = fma_(lane_get(a[c], at + r), x[c], x[r]);
    }
  }
  return y;
}

#define NARROW_WORDS 16  // of a window whose words are turned in half of the time

// The same, for an array with room for the widest window.
DEVICE real range_solve(real* h, real y, const DofRange& range, real* column) {
#if LANES > NARROW_WORDS
  if (4 * range.fours <= NARROW_WORDS) return range_solve_of<NARROW_WORDS>(h, y, range, column);
#endif
  return range_solve_of<LANES>(h, y, range, column);
}

#if ONE_ROW_A_LANE
// solve_with_rows for ranges.
DEVICE real range_solve_with_rows(const Model& m, real* x, const SymRows& A, const real* d, real scale, int nrow,
                                  const real* J, int stride, const real* D, const real* residual, const real* b,
                                  real* gradient, real floor, int n) {
  const int i = lane();
  const DofRange& range = A.range;
  real h[LANES];
  const real extra = i < n && scale != 0 ? scale * d[i] : R(0.0);
  real right = i < n ? b[i] : R(0.0);
#pragma unroll
  for (int j = 0; j < LANES; ++j) {
    if (j < 4 * range.fours) h[j] = A.row[j] + (i == range.base + j ? extra : R(0.0));
  }
  ROLLED for (int first = 0; first < nrow; first += LANES) {
    const unsigned active = lane_ballot(first + i < nrow && residual[first + i] < 0);
    if (!active) continue;
    const unsigned left = active & rows_of_range(range, nrow, J, stride, first);
    add_rows_of_range<LANES>(h, range, left, first, J, stride, [&](int r, bool there) {
      const real c = there ? D[r] * J[r * stride + i] : R(0.0);
      right = fma_(-residual[r], c, right);
      return c;
    });
  }
  real norm = 0;
  if (gradient) {
    norm = lane_sum(right * right);
    if (i < n) gradient[i] = right;
    if (norm < floor) return norm;
  }
  const real solved = range_solve(h, right, range, m.column);
  lane_sync();
  if (i < n) x[i] = solved;
  lane_sync();
  return norm;
}
#endif
#endif
