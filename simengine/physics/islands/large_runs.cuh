// The contribution of a run of rows to the Hessian of a large island, on the host: rows of its blocks are vectors. Each
// entry sees the operations of the loops in large_hessian.cuh.
#pragma once

#ifdef MATRIX_VECTORS
#define WIDEST_VECTOR_BLOCK 8

// A block of dofs that a run touches: its number of dofs, its first column in the rows, and where the run adds to the
// diagonal block, whose rows are `stride` words apart.
struct RunSide {
  int n, column;
  real* own;
  int stride;
};

// Add the contribution of a run of rows over N1 and N2 dofs, or over as many as the run has where these are negative,
// but at most eight. Rows of blocks are vectors, which are in registers where their number is fixed. `beside` is the
// block in the rows of the first and the columns of the second.
template <int N1, int N2>
DEVICE void add_run_of(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight, const int* run,
                       const RunSide* side, real* beside, int stride_beside) {
  const int n1 = N1 < 0 ? side[0].n : N1, n2 = N2 < 0 ? side[1].n : N2, column1 = side[0].column;
  const int column2 = side[1].column;
  Eight first[N1 < 0 ? WIDEST_VECTOR_BLOCK : N1 + 1], across[N1 < 0 ? WIDEST_VECTOR_BLOCK : N1 + 1];
  Eight second[N2 < 0 ? WIDEST_VECTOR_BLOCK : N2 + 1], J[2], scaled[2];
  const real* c[2] = {reinterpret_cast<const real*>(scaled), reinterpret_cast<const real*>(scaled + 1)};
  const auto load = [&](int r, Eight* part) {
    part[0] = load_eight(s.J + size_t(r) * s.stride + column1, n1);
    part[1] = load_eight(s.J + size_t(r) * s.stride + column2, n2);
  };
#pragma GCC unroll 6
  for (int i = 0; i < n1; ++i) {
    first[i] = load_eight(side[0].own + i * side[0].stride, n1);
    across[i] = Eight{};
  }
#pragma GCC unroll 6
  for (int i = 0; i < n2; ++i) second[i] = load_eight(side[1].own + i * side[1].stride, n2);
  for (int r = run[RUN_ROW]; r < run[RUN_END]; ++r) {
    if (!has_weight(rows, r, weight)) continue;
    const real* w = weight + MAX_CONE_ROWS * r;
    load(r, J);
    if (rows.type[r] == ROW_CONTACT_ELLIPTIC) {
      const int begin = rows.address[rows.id[r]], dim = m.cand_rows()[rows.cand[rows.id[r]]];
      scaled[0] = scaled[1] = Eight{};
      for (int k = 0; k < dim; ++k) {
        Eight other[2];
        load(begin + k, other);
        for (int part = 0; part < 2; ++part) scaled[part] = eight_fma(eight(w[k]), other[part], scaled[part]);
      }
    } else {
      for (int part = 0; part < 2; ++part) scaled[part] = eight(w[0]) * J[part];
    }
#pragma GCC unroll 6
    for (int i = 0; i < n1; ++i) {
      const Eight factor = eight(c[0][i]);
      first[i] = eight_fma(factor, J[0], first[i]);
      if (n2) across[i] = eight_fma(factor, J[1], across[i]);
    }
#pragma GCC unroll 6
    for (int i = 0; i < n2; ++i) second[i] = eight_fma(eight(c[1][i]), J[1], second[i]);
  }
#pragma GCC unroll 6
  for (int i = 0; i < n1; ++i) {
    store_eight(side[0].own + i * side[0].stride, first[i], n1);
    if (!n2) continue;
    real* out = beside + i * stride_beside;
    store_eight(out, load_eight(out, n2) + across[i], n2);
  }
#pragma GCC unroll 6
  for (int i = 0; i < n2; ++i) store_eight(side[1].own + i * side[1].stride, second[i], n2);
}

DEVICE_CALL void add_run_in_vectors(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight,
                                    const int* run, const RunSide* side, real* beside, int stride_beside) {
  if (side[0].n == 6 && side[1].n == 6) {
    add_run_of<6, 6>(m, s, rows, weight, run, side, beside, stride_beside);
  } else if (side[0].n == 6 && side[1].n == 0) {
    add_run_of<6, 0>(m, s, rows, weight, run, side, beside, stride_beside);
  } else {
    add_run_of<-1, -1>(m, s, rows, weight, run, side, beside, stride_beside);
  }
}
#endif
