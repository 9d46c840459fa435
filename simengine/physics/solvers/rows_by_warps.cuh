// Worlds of many rows and few dofs, solved by several warps: the Newton direction, and the sum of the rows' forces. The
// warps share the rows. Lanes have squares of the Hessian's lower triangle in registers.
//
// A single warp may do this as SOLVER_WARPS warps would, with the same bits: it takes the share of one after that of
// another.
#pragma once

#ifdef SOLVER_WARPS
#define SHARES_OF_A_WARP (SOLVER_WARPS * WARP_LANES / LANES)
// The share of the rows that is number k of this warp's.
DEVICE int warp_share(int k) { return SHARES_OF_A_WARP > 1 ? k : warp_index(); }

#define MOST_SQUARES (SOLVER_DOFS <= 8 ? 3 : SOLVER_DOFS <= 16 ? 10 : 36)
#define LANE_SQUARES ((MOST_SQUARES + WARP_LANES - 1) / WARP_LANES)
#define MOST_DOFS_OF_ONE_SQUARE 28  // up to which no lane has more than one, if there are 32 lanes

// First row and first column of a square of 4 x 4 entries. Lanes without one compute the first and do not keep it.
struct Square {
  int row, column;
  bool there;
};

// Square b of the lower triangle of n rows: rows 4 g to 4 g + 3 have g + 1 squares.
DEVICE Square square_at(int b, int n) {
  int g = 0;
  UNROLLED for (int k = 1; k < 8; ++k) g += b >= k * (k + 1) / 2;
  const int row = 4 * g, column = 4 * (b - g * (g + 1) / 2);
  const bool there = b < MOST_SQUARES && row < n;
  return {there ? row : 0, there ? column : 0, there};
}

// The squares of a lane.
struct LaneSquares {
  Square at[LANE_SQUARES];
  real sum[LANE_SQUARES][4][4];
};

DEVICE LaneSquares squares_of_lane(int n) {
  LaneSquares squares;
  UNROLLED for (int s = 0; s < LANE_SQUARES; ++s) squares.at[s] = square_at(s * WARP_LANES + warp_lane(), n);
  return squares;
}

// Add u v' to a square.
DEVICE void add_square(real sum[4][4], const real* u, const Vec4& v) {
  UNROLLED for (int i = 0; i < 4; ++i) {
    sum[i][0] = fma_(u[i], v.x, sum[i][0]);
    sum[i][1] = fma_(u[i], v.y, sum[i][1]);
    sum[i][2] = fma_(u[i], v.z, sum[i][2]);
    sum[i][3] = fma_(u[i], v.w, sum[i][3]);
  }
}

// Add rows r to r + DIM - 1 of J, which belong together: J' W J, with W in the rows' weights.
template <int DIM, int SQUARES>
DEVICE void add_together(LaneSquares* squares, const real* J, int stride, const real* weight) {
  UNROLLED for (int s = 0; s < SQUARES; ++s) {
    const Square at = squares->at[s];
    Vec4 c[DIM];
    UNROLLED for (int k = 0; k < DIM; ++k) c[k] = broadcast4(J + k * stride + at.row);
    UNROLLED for (int k = 0; k < DIM; ++k) {
      const real* w = weight + MAX_CONE_ROWS * k;
      const Vec4 v = broadcast4(J + k * stride + at.column);
      real u[4] = {w[0] * c[0].x, w[0] * c[0].y, w[0] * c[0].z, w[0] * c[0].w};
      UNROLLED for (int l = 1; l < DIM; ++l) {
        u[0] = fma_(w[l], c[l].x, u[0]);
        u[1] = fma_(w[l], c[l].y, u[1]);
        u[2] = fma_(w[l], c[l].z, u[2]);
        u[3] = fma_(w[l], c[l].w, u[3]);
      }
      add_square(squares->sum[s], u, v);
    }
  }
}

// Does row r, or the cone whose first row is r, have second derivatives?
DEVICE bool have_weight(const real* weight, int dim) {
  bool there = false;
  UNROLLED for (int k = 0; k < MAX_CONE_ROWS; ++k) there |= k < dim && weight[(MAX_CONE_ROWS + 1) * k] != 0;
  return there;
}

// The sums of J' W J over a share of the rows: every WARPS-th of the rows, or cones, that have a weight. Lanes have up
// to SQUARES squares.
template <int SQUARES>
DEVICE void sum_squares(const Model& m, const Rows& rows, const real* weight, int share, LaneSquares* squares) {
  const int stride = m.nvp();
  UNROLLED for (int s = 0; s < SQUARES; ++s) {
    UNROLLED for (int e = 0; e < 16; ++e) squares->sum[s][e / 4][e % 4] = 0;
  }
  int before = 0;  // rows or cones with a weight before those that lanes look at
  ROLLED for (int first = 0; first < rows.n; first += WARP_LANES) {
    const int own = first + warp_lane(), own_dim = own < rows.n ? rows_together(m, rows, own) : 0;
    const bool weighs = own_dim && have_weight(weight + MAX_CONE_ROWS * own, own_dim);
    const unsigned all = warp_ballot(weighs);
    const int number = before + bit_count(all & ((1u << warp_lane()) - 1));
    before += bit_count(all);
    unsigned left = warp_ballot(weighs && number % SOLVER_WARPS == share);
    ROLLED for (; left; left &= left - 1) {
      const int from = lowest_bit(left), r = first + from;
      const real *J = rows.J + r * stride, *w = weight + MAX_CONE_ROWS * r;
#if HAS_CONES
      switch (warp_get_int(own_dim, from)) {
        case 1: add_together<1, SQUARES>(squares, J, stride, w); break;
        case 3: add_together<3, SQUARES>(squares, J, stride, w); break;
        case 4: add_together<4, SQUARES>(squares, J, stride, w); break;
        default: add_together<6, SQUARES>(squares, J, stride, w);
      }
#else
      add_together<1, SQUARES>(squares, J, stride, w);
#endif
    }
  }
}

// x = (M + J' W J)^-1 b. The first warp solves, with one row of the matrix in each lane. H is scratch for a triangle.
DEVICE void solve_by_warps(const Model& m, const Rows& rows, real* x, const real* M, const real* weight, const real* b,
                           real* H) {
  const int n = m.nv();
  LaneSquares squares = squares_of_lane(n);
  ROLLED for (int k = 0; k < SHARES_OF_A_WARP; ++k) {
    if (LANE_SQUARES == 1 || n <= MOST_DOFS_OF_ONE_SQUARE) {
      sum_squares<1>(m, rows, weight, warp_share(k), &squares);
    } else {
      sum_squares<LANE_SQUARES>(m, rows, weight, warp_share(k), &squares);
    }
    // each entry of a share has one lane, so that only other warps wait
    ROLLED for (int w = 0; w < LANES / WARP_LANES; ++w) {
      if (w > 0) lane_sync();
      if (w != warp_index()) continue;
      const bool start = k == 0 && w == 0;
      UNROLLED for (int s = 0; s < LANE_SQUARES; ++s) {
        if (s > 0 && n <= MOST_DOFS_OF_ONE_SQUARE) break;
        const Square at = squares.at[s];
        if (!at.there) continue;
        UNROLLED for (int i = 0; i < 4; ++i) {
          const int row = at.row + i;
          if (row >= n) break;
          real* to = H + in_triangle(row, at.column);
          const real* from = start ? M + row * n + at.column : to;
          UNROLLED for (int q = 0; q < 4; ++q) {
            if (at.column + q <= row) to[q] = from[q] + squares.sum[s][i][q];
          }
        }
      }
    }
  }
  lane_sync();
  if (warp_index() == 0) {
    const int i = warp_lane();
    real h[ROW_LANES];
    UNROLLED for (int j = 0; j < ROW_LANES; ++j) {
      h[j] = i < n && j < n ? H[i > j ? in_triangle(i, j) : in_triangle(j, i)] : R(0.0);
    }
    reg_pad(h, n);
    const real solved = reg_solve(h, i < n ? b[i] : R(0.0), n, m.column);
    if (i < n) x[i] = solved;
  }
  lane_sync();
}

// x = J' f + y, where each warp adds up its shares of the rows.
DEVICE void add_forces_by_warps(const Model& m, const Rows& rows, const real* force, const real* y, real* x) {
  const int stride = m.nvp(), i = warp_lane(), part = (rows.n + SOLVER_WARPS - 1) / SOLVER_WARPS;
  ROLLED for (int k = 0; k < SHARES_OF_A_WARP; ++k) {
    const int share = warp_share(k), first = part * share, end = first + part < rows.n ? first + part : rows.n;
    real sum = 0;
    if (i < m.nv()) {
      OVERLAPPED for (int r = first; r < end; ++r) sum = fma_(rows.J[r * stride + i], force[r], sum);
    }
    if (k == 0) lane_sync();
    m.column[share * WARP_LANES + i] = sum;
  }
  lane_sync();
  if (warp_index() == 0 && i < m.nv()) {
    real sum = y ? y[i] : R(0.0);
    UNROLLED for (int w = 0; w < SOLVER_WARPS; ++w) sum += m.column[w * WARP_LANES + i];
    x[i] = sum;
  }
  lane_sync();
}
#endif
