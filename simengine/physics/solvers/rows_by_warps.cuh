// Worlds of many rows and few dofs, solved by several warps: the Newton direction, and the sum of the rows' forces. The
// warps share the rows. Lanes have parts of the Hessian's lower triangle in registers: four columns of a row each.
//
// A single warp may do this as SOLVER_WARPS warps would, with the same bits: it takes the share of one after that of
// another.
#pragma once

#ifdef SOLVER_WARPS
#define SHARES_OF_A_WARP (SOLVER_WARPS * WARP_LANES / LANES)
// The share of the rows that is number k of this warp's.
DEVICE int warp_share(int k) { return SHARES_OF_A_WARP > 1 ? k : warp_index(); }

#define MOST_PARTS_OF_ROWS (SOLVER_DOFS <= 8 ? 12 : SOLVER_DOFS <= 16 ? 40 : 144)
#define LANE_PARTS ((MOST_PARTS_OF_ROWS + WARP_LANES - 1) / WARP_LANES)

// Row and first column of a part; row -1 beyond the last.
struct RowPart {
  int row, column;
};

// Part b of the lower triangle of n rows: rows 4 g to 4 g + 3 have g + 1 parts each.
DEVICE RowPart row_part(int b, int n) {
  int g = 0;
  ROLLED while (2 * (g + 1) * (g + 2) <= b) ++g;
  const int rest = b - 2 * g * (g + 1), row = 4 * g + rest / (g + 1);
  return {row < n ? row : -1, 4 * (rest % (g + 1))};
}

// The parts of a lane.
struct LaneParts {
  RowPart at[LANE_PARTS];
  real sum[LANE_PARTS][4];
};

DEVICE LaneParts parts_of_lane(int n) {
  LaneParts parts;
  UNROLLED for (int s = 0; s < LANE_PARTS; ++s) parts.at[s] = row_part(s * WARP_LANES + warp_lane(), n);
  return parts;
}

// Add rows r to r + DIM - 1 of J, which belong together: J' W J, with W in the rows' weights.
template <int DIM>
DEVICE void add_together(LaneParts* parts, const real* J, int stride, const real* weight) {
  real w[DIM][DIM];
  UNROLLED for (int k = 0; k < DIM; ++k) {
    UNROLLED for (int l = 0; l < DIM; ++l) w[k][l] = weight[MAX_CONE_ROWS * k + l];
  }
  UNROLLED for (int s = 0; s < LANE_PARTS; ++s) {
    const RowPart at = parts->at[s];
    if (at.row < 0) continue;
    real c[DIM];
    Vec4 v[DIM];
    UNROLLED for (int k = 0; k < DIM; ++k) {
      c[k] = J[k * stride + at.row];
      v[k] = broadcast4(J + k * stride + at.column);
    }
    UNROLLED for (int k = 0; k < DIM; ++k) {
      real u = w[k][0] * c[0];
      UNROLLED for (int l = 1; l < DIM; ++l) u = fma_(w[k][l], c[l], u);
      parts->sum[s][0] = fma_(u, v[k].x, parts->sum[s][0]);
      parts->sum[s][1] = fma_(u, v[k].y, parts->sum[s][1]);
      parts->sum[s][2] = fma_(u, v[k].z, parts->sum[s][2]);
      parts->sum[s][3] = fma_(u, v[k].w, parts->sum[s][3]);
    }
  }
}

// Does row r, or the cone whose first row is r, have second derivatives?
DEVICE bool have_weight(const real* weight, int dim) {
  bool there = false;
  UNROLLED for (int k = 0; k < MAX_CONE_ROWS; ++k) there |= k < dim && weight[(MAX_CONE_ROWS + 1) * k] != 0;
  return there;
}

// The sums of J' W J over a share of the rows: every WARPS-th of the rows, or cones, that have a weight.
DEVICE void sum_parts(const Model& m, const Rows& rows, const real* weight, int share, LaneParts* parts) {
  const int stride = m.nvp();
  UNROLLED for (int s = 0; s < LANE_PARTS; ++s) {
    UNROLLED for (int q = 0; q < 4; ++q) parts->sum[s][q] = 0;
  }
  int next = 0;  // number of the row or cone
  ROLLED for (int first = 0; first < rows.n; first += WARP_LANES) {
    const int own = first + warp_lane(), own_dim = own < rows.n ? rows_together(m, rows, own) : 0;
    unsigned left = warp_ballot(own_dim && have_weight(weight + MAX_CONE_ROWS * own, own_dim));
    ROLLED for (; left; left &= left - 1, ++next) {
      if (next % SOLVER_WARPS != share) continue;
      const int from = lowest_bit(left), dim = warp_get_int(own_dim, from), r = first + from;
      const real *J = rows.J + size_t(r) * stride, *w = weight + MAX_CONE_ROWS * r;
#if HAS_CONES
      switch (dim) {
        case 1: add_together<1>(parts, J, stride, w); break;
        case 3: add_together<3>(parts, J, stride, w); break;
        case 4: add_together<4>(parts, J, stride, w); break;
        default: add_together<6>(parts, J, stride, w);
      }
#else
      add_together<1>(parts, J, stride, w);
#endif
    }
  }
}

// Place of an entry in a lower triangle, row by row.
DEVICE int in_triangle(int row, int column) { return row * (row + 1) / 2 + column; }

// x = (M + J' W J)^-1 b. The first warp solves, with one row of the matrix in each lane. H is scratch for a triangle.
DEVICE void solve_by_warps(const Model& m, const Rows& rows, real* x, const real* M, const real* weight, const real* b,
                           real* H) {
  const int n = m.nv();
  LaneParts parts = parts_of_lane(n);
  ROLLED for (int k = 0; k < SHARES_OF_A_WARP; ++k) {
    sum_parts(m, rows, weight, warp_share(k), &parts);
    // each entry of a share has one lane, so that only other warps wait
    ROLLED for (int w = 0; w < LANES / WARP_LANES; ++w) {
      if (w > 0) lane_sync();
      if (w != warp_index()) continue;
      const bool first = k == 0 && w == 0;
      UNROLLED for (int s = 0; s < LANE_PARTS; ++s) {
        const RowPart at = parts.at[s];
        const real* from = first ? M + at.row * n : H + in_triangle(at.row, 0);
        real* to = H + in_triangle(at.row, 0);
        UNROLLED for (int q = 0; q < 4; ++q) {
          const int j = at.column + q;
          if (at.row >= 0 && j <= at.row) to[j] = from[j] + parts.sum[s][q];
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
