// Ranges of dofs (dof_ranges.cuh) of a world of many rows, solved side by side by a single warp that does the work of
// several (rows_by_warps.cuh), with the bits of these.
#pragma once

#if DOF_RANGES && defined(SOLVER_WARPS) && !HAS_CONES
#define RANGE_WORDS NARROW_WORDS  // of a window that leaves registers for a second one

// h += the sum over a share of the rows of the lane's range, which is added up by itself, as by squares.
DEVICE void add_share_of_range(const Model& m, const Rows& rows, const DofRange& range, const real* weight, int share,
                               real* h) {
  const int i = lane(), stride = m.nvp();
  real sum[RANGE_WORDS];
  UNROLLED for (int j = 0; j < RANGE_WORDS; ++j) sum[j] = 0;
  int before = 0;  // rows with a weight before those that lanes look at
  ROLLED for (int first = 0; first < rows.n; first += LANES) {
    const real own = first + i < rows.n ? weight[first + i] : R(0.0);
    const unsigned all = lane_ballot(own != 0);
    const int number = before + bit_count(all & ((1u << i) - 1));
    before += bit_count(all);
    const unsigned of_share = lane_ballot(own != 0 && number % SOLVER_WARPS == share);
    const unsigned of_range = rows_of_range(range, rows.n, rows.J, stride, first);
    add_rows_of_range<RANGE_WORDS>(sum, range, of_share & of_range, first, rows.J, stride, [&](int r, bool there) {
      return there && i < stride ? weight[r] * rows.J[r * stride + i] : R(0.0);
    });
  }
  UNROLLED for (int j = 0; j < RANGE_WORDS; ++j) h[j] += sum[j];
}

// Entries above the diagonal become those below it, which rounding leaves different. H is scratch for a triangle.
DEVICE void mirror_range(const DofRange& range, real* h, real* H) {
  const int i = lane(), below = range.end ? i - range.base : -1, end = range.end - range.base;
  lane_sync();
  // what a row has left of its range are zeros, which no lane reads
  UNROLLED for (int j = 0; j < RANGE_WORDS; ++j) {
    if (j <= below) H[in_triangle(i, range.base + j)] = h[j];
  }
  lane_sync();
  UNROLLED for (int j = 0; j < RANGE_WORDS; ++j) {
    if (j > below && j < end) h[j] = H[in_triangle(range.base + j, i)];
  }
}

// solve_by_warps with all ranges side by side, for windows of up to RANGE_WORDS columns.
DEVICE void solve_ranges_as_warps(const Model& m, const Rows& rows, real* x, const SymRows& M, const real* weight,
                                  const real* b, real* H) {
  const int i = lane(), n = m.nv();
  const DofRange range = made_anew(M.range);
  real h[RANGE_WORDS];
  range_load<RANGE_WORDS>(h, range, M.memory, n);
  ROLLED for (int share = 0; share < SOLVER_WARPS; ++share) {
    add_share_of_range(m, rows, range, weight, share, h);
  }
  mirror_range(range, h, H);
  const real solved = range_solve_of<RANGE_WORDS>(h, i < n ? b[i] : R(0.0), range, m.column);
  lane_sync();
  if (i < n) x[i] = solved;
  lane_sync();
}
#endif
