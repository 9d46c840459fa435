// The contribution of a run of rows to the Hessian of a large island, on the host: rows of its blocks are vectors. Each
// entry sees the operations of the loops in large_hessian.cuh.
#pragma once

#ifdef MATRIX_VECTORS
// Where a run adds to a matrix: to its diagonal blocks and the block beside them, whose rows are `stride` words apart.
struct RunBlocks {
  real *first, *second, *beside;
  int stride1, stride2, stride_beside;
};

// Add the contribution of a run of rows over N1 and N2 dofs, or over as many as the run has where these are negative,
// but at most VECTOR_WIDTH. Rows of blocks are vectors, which are in registers where their number is fixed.
template <int N1, int N2>
DEVICE void add_run_of(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight, const int* run,
                       const RunBlocks& to) {
  const int n1 = N1 < 0 ? run[RUN_SIZE1] : N1, n2 = N2 < 0 ? run[RUN_SIZE2] : N2;
  Lanes first[N1 < 0 ? VECTOR_WIDTH : N1 + 1], beside[N1 < 0 ? VECTOR_WIDTH : N1 + 1];
  Lanes second[N2 < 0 ? VECTOR_WIDTH : N2 + 1], J[2], scaled[2];
  const real* c[2] = {reinterpret_cast<const real*>(scaled), reinterpret_cast<const real*>(scaled + 1)};
  const auto load = [&](int r, Lanes* part) {
    part[0] = load_words(s.J + size_t(r) * s.stride, n1);
    part[1] = load_words(s.J + size_t(r) * s.stride + n1, n2);
  };
#pragma GCC unroll 6
  for (int i = 0; i < n1; ++i) {
    first[i] = load_words(to.first + i * to.stride1, n1);
    beside[i] = Lanes{};
  }
#pragma GCC unroll 6
  for (int i = 0; i < n2; ++i) second[i] = load_words(to.second + i * to.stride2, n2);
  for (int r = run[RUN_ROW]; r < run[RUN_END]; ++r) {
    if (!has_weight(rows, r, weight)) continue;
    const real* w = weight + MAX_CONE_ROWS * r;
    load(r, J);
    if (rows.type[r] == ROW_CONTACT_ELLIPTIC) {
      const int begin = rows.address[rows.id[r]], dim = m.cand_rows()[rows.cand[rows.id[r]]];
      scaled[0] = scaled[1] = Lanes{};
      for (int k = 0; k < dim; ++k) {
        Lanes other[2];
        load(begin + k, other);
        for (int side = 0; side < 2; ++side) scaled[side] = vector_fma(every(w[k]), other[side], scaled[side]);
      }
    } else {
      for (int side = 0; side < 2; ++side) scaled[side] = every(w[0]) * J[side];
    }
#pragma GCC unroll 6
    for (int i = 0; i < n1; ++i) {
      const Lanes factor = every(c[0][i]);
      first[i] = vector_fma(factor, J[0], first[i]);
      if (n2) beside[i] = vector_fma(factor, J[1], beside[i]);
    }
#pragma GCC unroll 6
    for (int i = 0; i < n2; ++i) second[i] = vector_fma(every(c[1][i]), J[1], second[i]);
  }
#pragma GCC unroll 6
  for (int i = 0; i < n1; ++i) {
    store_words(to.first + i * to.stride1, first[i], n1);
    if (!n2) continue;
    real* out = to.beside + i * to.stride_beside;
    store_words(out, load_words(out, n2) + beside[i], n2);
  }
#pragma GCC unroll 6
  for (int i = 0; i < n2; ++i) store_words(to.second + i * to.stride2, second[i], n2);
}

DEVICE_CALL void add_run_in_vectors(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight,
                                    const int* run, const RunBlocks& to) {
  if (run[RUN_SIZE1] == 6 && run[RUN_SIZE2] == 6) return add_run_of<6, 6>(m, s, rows, weight, run, to);
  if (run[RUN_SIZE1] == 6 && run[RUN_SIZE2] == 0) return add_run_of<6, 0>(m, s, rows, weight, run, to);
  add_run_of<-1, -1>(m, s, rows, weight, run, to);
}
#endif
