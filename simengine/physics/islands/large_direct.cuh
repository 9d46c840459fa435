// Newton's direction in a large island by a factor of its whole Hessian, on the host.
#pragma once

#ifdef MATRIX_VECTORS
// The upper triangle of H = M + J' W J as one matrix, where no block has more than VECTOR_WIDTH dofs.
DEVICE void whole_hessian(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight,
                          PaddedMatrix& H) {
  const int stride = H.vectors * VECTOR_WIDTH;
  for (int k = 0; k < s.nblock; ++k) {
    const int *words = s.blocks + BLOCK_WORDS * k, dof = words[BLOCK_DOF], n = words[BLOCK_SIZE];
    const real* inertia = s.M + m.block_adr()[words[BLOCK_NUMBER]];
    for (int i = 0; i < n; ++i) store_words(H.words(dof + i) + dof, load_words(inertia + i * n, n), n);
  }
  for (int k = 0; k < s.nrun; ++k) {
    const RowParts p = parts_of_run(s, k);
    real *first = H.words(p.dof1), *second = H.words(p.dof2) + p.dof2;
    RunBlocks to = {first + p.dof1, second, first + p.dof2, stride, stride, stride};
    real below[VECTOR_WIDTH * VECTOR_WIDTH] = {};
    const bool turned = p.n2 && p.dof1 > p.dof2;
    if (turned) {
      to.beside = below;
      to.stride_beside = VECTOR_WIDTH;
    }
    add_run_in_vectors(m, s, rows, weight, s.run + RUN_WORDS * k, to);
    for (int j = 0; turned && j < p.n2; ++j) {
      for (int i = 0; i < p.n1; ++i) H.words(p.dof2 + j)[p.dof1 + i] += below[i * VECTOR_WIDTH + j];
    }
  }
}

// The same from its blocks.
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
DEVICE_CALL void solve_directly(const Model& m, const LargeIsland& s, const Rows& rows, const real* weight,
                                const real* b, real* x) {
  PaddedMatrix H(s.n, false, true);
  Lanes right[MOST_VECTORS];
  for (int i = 0; i < s.n; ++i) {
    for (int q = i / VECTOR_WIDTH; q < H.vectors; ++q) H.row(i)[q] = Lanes{};
  }
  if (m.nwidest() <= VECTOR_WIDTH) {
    whole_hessian(m, s, rows, weight, H);
  } else {
    large_hessian(m, s, rows, weight);
    join_blocks(s, H);
  }
  for (int q = 0; q < H.vectors; ++q) right[q] = H.part(b, q);
  H.solve(x, right);
}
#endif
