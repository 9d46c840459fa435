// Newton's direction in a large island by a factor of its whole Hessian, on the host.
#pragma once

#ifdef MATRIX_VECTORS
// The upper triangle of H = M + J' W J as one matrix, from its blocks.
DEVICE void join_blocks(const LargeIsland& s, PaddedMatrix& H) {
  for (int k = 0; k < s.nblock; ++k) {
    const int *words = s.blocks + BLOCK_WORDS * k, dof = words[BLOCK_DOF], n = words[BLOCK_SIZE];
    for (int i = 0; i < n; ++i) {
      for (int j = i; j < n; ++j) H.words(dof + i)[dof + j] = s.H[words[BLOCK_AT] + i * n + j];
    }
  }
  for (int k = 0; k < s.nrun; ++k) {
    const RowParts p = parts_of_run(s, k);
    const real* beside = s.H + s.run[RUN_WORDS * k + RUN_AT];
    const bool before = p.dof1 < p.dof2;
    for (int i = 0; i < p.n1; ++i) {
      for (int j = 0; j < p.n2; ++j) {
        real* entry = before ? H.words(p.dof1 + i) + p.dof2 + j : H.words(p.dof2 + j) + p.dof1 + i;
        *entry += beside[i * p.n2 + j];
      }
    }
  }
}

// x = inv(H) b, by a factor of the whole matrix.
DEVICE_CALL void solve_directly(const LargeIsland& s, const real* b, real* x) {
  PaddedMatrix H(s.n, false, true);
  Lanes right[MOST_VECTORS];
  for (int i = 0; i < s.n; ++i) {
    for (int q = i / VECTOR_WIDTH; q < H.vectors; ++q) H.row(i)[q] = Lanes{};
  }
  join_blocks(s, H);
  for (int q = 0; q < H.vectors; ++q) right[q] = H.part(b, q);
  H.solve(x, right);
}
#endif
