// The Hessian M + J' W J of rows of every type where ranges of dofs (dof_ranges.cuh) are solved side by side: in every
// round, each range has a row of its own.
#pragma once

#if DOF_RANGES && ONE_ROW_A_LANE
// h += J' W J with the bits of reg_add_weighted. Friction losses of dofs change the diagonal, many at once, between the
// rows before them and those behind.
DEVICE void range_add_weighted(const Model& m, const Rows& rows, const DofRange& range, const real* weight, real* h) {
  const int i = lane(), stride = m.nvp();
  ROLLED for (int first = 0; first < rows.n; first += LANES) {
    WeightedRow own = {0, -1, 0, -1};
    if (first + i < rows.n) own = weighted_row(m, rows, first + i, weight);
    unsigned left = lane_ballot(own.weight != 0);
    const unsigned named = lane_ballot(own.weight != 0 && own.dof >= 0);
    const unsigned of_range = rows_of_range(range, rows.n, rows.J, stride, first);
    ROLLED while (left) {
      const unsigned named_left = left & named;
      if (named >> lowest_bit(left) & 1u) {
        const real extra = named_weight(m, own);
#pragma unroll
        for (int j = 0; j < LANES; ++j) h[j] += i == range.base + j ? extra : R(0.0);
        left &= ~named;
        continue;
      }
      const unsigned now = named_left ? left & ((1u << lowest_bit(named_left)) - 1) : left;
      left &= ~now;
      add_rows_of_range<LANES>(h, range, now & of_range, first, rows.J, stride, [&](int r, bool there) {
        const real v = i < stride ? rows.J[r * stride + i] : R(0.0);
#if HAS_CONES
        const int from = r - first, cone = lane_get_int(own.cone, from), dim = lane_get_int(own.dim, from);
        real c = lane_get(own.weight, from) * v;
        if (cone >= 0) {
          const real *w = weight + MAX_CONE_ROWS * r, *column = rows.J + cone * stride + (i < stride ? i : 0);
          c = 0;
          UNROLLED for (int k = 0; k < MAX_CONE_ROWS; ++k) {
            if (k < dim) c = fma_(w[k], column[k * stride], c);
          }
          c = i < stride ? c : R(0.0);
        }
#else
        const real c = weight[r] * v;
#endif
        return there ? c : R(0.0);
      });
    }
  }
}
#endif
