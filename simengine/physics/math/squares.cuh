// Factors and solutions of blocks of the inertia (blocks.cuh) with more dofs than there are lanes, in memory. Four
// columns are eliminated at a time, and a lane has a square of four by four other entries in registers. Loads of a
// square wait together. Every entry sees the operations of mem_factor, mem_solve and lu_solve (dense.cuh, linalg.cuh)
// in their order, so the bits are the same.
#pragma once

#if SIMENGINE_GPU
// The words of four by four entries of a matrix of n rows, from row i and column j on; zero behind its end.
struct FourByFour {
  real at[4][4];

  DEVICE_METHOD void load(const real* A, int n, int i, int j) {
    UNROLLED for (int q = 0; q < 4; ++q) {
      UNROLLED for (int c = 0; c < 4; ++c) at[q][c] = i + q < n && j + c < n ? A[(i + q) * n + j + c] : R(0.0);
    }
  }

  // The same, or without `whole` the lower triangle alone.
  DEVICE_METHOD void store(real* A, int n, int i, int j, bool whole) const {
    UNROLLED for (int q = 0; q < 4; ++q) {
      UNROLLED for (int c = 0; c < 4; ++c) {
        if (i + q < n && j + c < n && (whole || j + c <= i + q)) A[(i + q) * n + j + c] = at[q][c];
      }
    }
  }

  DEVICE_METHOD bool is_zero() const {
    bool zero = true;
    UNROLLED for (int q = 0; q < 4; ++q) {
      UNROLLED for (int c = 0; c < 4; ++c) zero &= at[q][c] == 0;
    }
    return zero;
  }
};

// x - factor * other, unless the factor is zero.
DEVICE real without(real x, real factor, real other) { return factor != 0 ? fma_(-factor, other, x) : x; }

// The row of entry e of a lower triangle, whose entries are numbered row by row.
DEVICE int row_in_triangle(int e) { return int((sqrt_(real(8 * e + 1)) - 1) * R(0.5)); }

// mem_factor, for a matrix whose part above the diagonal is zero.
DEVICE void factor_by_squares(real* H, int n) {
  ROLLED for (int k = 0; k < n; k += 4) {
    // (1) four pivots, by every lane
    FourByFour p;
    real inverse[4];
    p.load(H, n, k, k);
    UNROLLED for (int c = 0; c < 4; ++c) {
      const real d = p.at[c][c];
      p.at[c][c] = sqrt_(select(d <= 0, REAL_MAX, d));
      inverse[c] = R(1.0) / p.at[c][c];
      UNROLLED for (int r = c + 1; r < 4; ++r) p.at[r][c] *= inverse[c];
      UNROLLED for (int r = c + 1; r < 4; ++r) {
        UNROLLED for (int q = c + 1; q <= r; ++q) p.at[r][q] = without(p.at[r][q], p.at[r][c], p.at[q][c]);
      }
    }
    lane_sync();
    // (2) the columns of the pivots: a lane for each row
    LANE_FOR(e, n - k) {
      real* row = H + (k + e) * n + k;
      real x[4];
      UNROLLED for (int c = 0; c < 4; ++c) x[c] = c <= e && k + c < n ? row[c] : R(0.0);
      UNROLLED for (int c = 0; c < 4; ++c) {
        x[c] = c == e ? p.at[c][c] : x[c] * inverse[c];
        UNROLLED for (int q = c + 1; q < 4; ++q) x[q] = without(x[q], x[c], p.at[q][c]);
      }
      UNROLLED for (int c = 0; c < 4; ++c) {
        if (c <= e && k + c < n) row[c] = x[c];
      }
    }
    lane_sync();
    // (3) what is left of the lower triangle
    const int first = k + 4, squares = (n - first + 3) / 4;
    LANE_FOR(e, first < n ? squares * (squares + 1) / 2 : 0) {
      const int row = row_in_triangle(e), i = first + 4 * row, j = first + 4 * (e - row * (row + 1) / 2);
      FourByFour l, other, left;
      l.load(H, n, i, k);
      other.load(H, n, j, k);
      left.load(H, n, i, j);
      if (l.is_zero()) continue;
      UNROLLED for (int q = 0; q < 4; ++q) {
        UNROLLED for (int c = 0; c < 4; ++c) {
          UNROLLED for (int s = 0; s < 4; ++s) left.at[q][c] = without(left.at[q][c], l.at[q][s], other.at[c][s]);
        }
      }
      left.store(H, n, i, j, i != j);
    }
    lane_sync();
  }
}

// The part of lu_solve below the diagonal. Entries there become what their rows are multiplied by.
DEVICE void eliminate_by_squares(real* x, real* A, int n) {
  ROLLED for (int k = 0; k < n; k += 4) {
    // (1) four pivots, by every lane: below the diagonal, p has what rows are multiplied by
    FourByFour p;
    real inverse[4], right[4];
    p.load(A, n, k, k);
    UNROLLED for (int c = 0; c < 4; ++c) right[c] = k + c < n ? x[k + c] : R(0.0);
    UNROLLED for (int c = 0; c < 4; ++c) {
      inverse[c] = reciprocal_(k + c < n ? p.at[c][c] : R(1.0));
      UNROLLED for (int r = c + 1; r < 4; ++r) {
        p.at[r][c] *= inverse[c];
        UNROLLED for (int q = c + 1; q < 4; ++q) p.at[r][q] = without(p.at[r][q], p.at[r][c], p.at[c][q]);
        right[r] = without(right[r], p.at[r][c], right[c]);
      }
    }
    lane_sync();
    // (2) the rows of the pivots, a lane for each column; and their columns, a lane for each row
    LANE_FOR(e, n - k) {
      const int i = k + e;
      real down[4], y = x[i];
      UNROLLED for (int c = 0; c < 4; ++c) down[c] = k + c < n ? A[i * n + k + c] : R(0.0);
      UNROLLED for (int c = 0; c < 4; ++c) {
        if (c >= e || k + c >= n) continue;
        down[c] *= inverse[c];
        UNROLLED for (int q = c + 1; q < 4; ++q) down[q] = without(down[q], down[c], p.at[c][q]);
        y = without(y, down[c], right[c]);
      }
      UNROLLED for (int c = 0; c < 4; ++c) {
        if (k + c < n) A[i * n + k + c] = down[c];
      }
      x[i] = y;
      if (e < 4) continue;
      real across[4];
      UNROLLED for (int c = 0; c < 4; ++c) across[c] = A[(k + c) * n + i];
      UNROLLED for (int c = 0; c < 4; ++c) {
        UNROLLED for (int r = c + 1; r < 4; ++r) across[r] = without(across[r], p.at[r][c], across[c]);
      }
      UNROLLED for (int c = 1; c < 4; ++c) A[(k + c) * n + i] = across[c];
    }
    lane_sync();
    // (3) what is left behind them
    const int first = k + 4, squares = first < n ? (n - first + 3) / 4 : 0;
    LANE_FOR(e, squares * squares) {
      const int i = first + 4 * (e / squares), j = first + 4 * (e % squares);
      FourByFour l, other, left;
      l.load(A, n, i, k);
      other.load(A, n, k, j);
      left.load(A, n, i, j);
      if (l.is_zero()) continue;
      UNROLLED for (int q = 0; q < 4; ++q) {
        UNROLLED for (int c = 0; c < 4; ++c) {
          UNROLLED for (int s = 0; s < 4; ++s) left.at[q][c] = without(left.at[q][c], l.at[q][s], other.at[s][c]);
        }
      }
      left.store(A, n, i, j, true);
    }
    lane_sync();
  }
}

#if LANES == 32
#define MOST_UNKNOWNS 4  // in the registers of a lane

// Unknowns k to k + 3 are found, which are part o of those of their lanes. Rows lose them times entry(i, j) of row i
// and column j: rows below with BELOW, and rows above without.
template <int COUNT, bool BELOW, typename Entry, typename Quotient>
DEVICE void substitute_part(real* y, const real* pivot, int o, int k, int n, Entry entry, Quotient quotient) {
  real l[COUNT][4];
  UNROLLED for (int p = 0; p < COUNT; ++p) {
    const int i = lane() + p * LANES;
    UNROLLED for (int e = 0; e < 4; ++e) {
      const bool there = i < n && k + e < n && (BELOW ? p >= o && k + e < i : p <= o && k + e > i);
      l[p][e] = there ? entry(i, k + e) : R(0.0);
    }
  }
  UNROLLED for (int step = 0; step < 4; ++step) {
    const int e = BELOW ? step : 3 - step, column = k + e;
    if (column >= n) continue;
    const real solved = lane_get(quotient(y[o], pivot[o]), column % LANES);
    UNROLLED for (int p = 0; p < COUNT; ++p) {
      if (BELOW ? p < o : p > o) continue;
      const int i = lane() + p * LANES;
      if (i == column) y[p] = solved;
      else if (BELOW ? column < i : column > i) y[p] = fma_(-l[p][e], solved, y[p]);
    }
  }
}

// In place: x becomes the solution of U x = x for upper triangular U with entry(i, j); with BOTH, of U' U x = x. Each
// lane has COUNT unknowns in registers.
template <int COUNT, bool BOTH, typename Entry, typename Quotient>
DEVICE void solve_triangles(real* x, int n, Entry entry, Quotient quotient) {
  real y[COUNT], pivot[COUNT];
  UNROLLED for (int p = 0; p < COUNT; ++p) {
    const int i = lane() + p * LANES;
    pivot[p] = i < n ? entry(i, i) : R(1.0);
    y[p] = i < n ? x[i] : R(0.0);
  }
  UNROLLED for (int o = 0; o < COUNT; ++o) {
    const int end = !BOTH ? 0 : n < (o + 1) * LANES ? n : (o + 1) * LANES;
    ROLLED for (int k = o * LANES; k < end; k += 4) {
      substitute_part<COUNT, true>(y, pivot, o, k, n, [&](int i, int j) { return entry(j, i); }, quotient);
    }
  }
  UNROLLED for (int o = COUNT - 1; o >= 0; --o) {
    ROLLED for (int k = (o + 1) * LANES - 4; k >= o * LANES; k -= 4) {
      if (k < n) substitute_part<COUNT, false>(y, pivot, o, k, n, entry, quotient);
    }
  }
  lane_sync();
  UNROLLED for (int p = 0; p < COUNT; ++p) {
    if (lane() + p * LANES < n) x[lane() + p * LANES] = y[p];
  }
  lane_sync();
}
#endif

// mem_solve
DEVICE void solve_by_squares(real* x, const real* L, int n) {
#if LANES == 32
  if (n > 2 * LANES && n <= MOST_UNKNOWNS * LANES) {
    const auto quotient = [](real a, real b) { return a / b; };
    solve_triangles<MOST_UNKNOWNS, true>(x, n, [=](int i, int j) { return L[j * n + i]; }, quotient);
    return;
  }
#endif
  mem_solve(x, L, n);
}

// lu_solve
DEVICE void lu_solve_by_squares(real* x, real* A, int n) {
  eliminate_by_squares(x, A, n);
#if LANES == 32
  if (n <= MOST_UNKNOWNS * LANES) {
    const auto quotient = [](real a, real b) { return divide_(a, b); };
    solve_triangles<MOST_UNKNOWNS, false>(x, n, [=](int i, int j) { return A[i * n + j]; }, quotient);
    return;
  }
#endif
  ROLLED for (int k = n - 1; k >= 0; --k) {
    if (lane() == 0) x[k] = divide_(x[k], A[k * n + k]);
    lane_sync();
    LANE_FOR(i, k) x[i] = fma_(-A[i * n + k], x[k], x[i]);
    lane_sync();
  }
}
#endif
