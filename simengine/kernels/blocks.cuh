// Block-diagonal matrices: one dense symmetric matrix a block of dofs, row-major, one after another from block_adr on.
// A small block is one lane's work, so that many are done side by side; the lanes share each of the others.
#pragma once

#define SMALL_BLOCK 8

struct Block {
  int dof, n, at;  // first dof, number of dofs, first word of its matrix
};

DEVICE Block block_of(const Model& m, int b) {
  const int dof = m.block_dofadr()[b];
  return {dof, m.block_dofadr()[b + 1] - dof, m.block_adr()[b]};
}

// mem_factor by one lane.
DEVICE void lane_factor(real* H, int n) {
  ROLLED for (int k = 0; k < n; ++k) {
    real d = H[k * n + k];
    ROLLED for (int j = 0; j < k; ++j) d = fma_(-H[k * n + j], H[k * n + j], d);
    d = sqrt_(d);
    H[k * n + k] = d;
    const real inverse = R(1.0) / d;
    ROLLED for (int i = k + 1; i < n; ++i) {
      real x = H[i * n + k];
      ROLLED for (int j = 0; j < k; ++j) x = fma_(-H[i * n + j], H[k * n + j], x);
      H[i * n + k] = x * inverse;
    }
  }
}

// mem_solve by one lane.
DEVICE void lane_solve(real* x, const real* L, int n) {
  ROLLED for (int k = 0; k < n; ++k) {
    x[k] = x[k] / L[k * n + k];
    ROLLED for (int i = k + 1; i < n; ++i) x[i] = fma_(-L[i * n + k], x[k], x[i]);
  }
  ROLLED for (int k = n - 1; k >= 0; --k) {
    x[k] = x[k] / L[k * n + k];
    ROLLED for (int i = 0; i < k; ++i) x[i] = fma_(-L[k * n + i], x[k], x[i]);
  }
}

// L = lower Cholesky factor of A + scale diag(d), zero above the diagonal.
DEVICE void blocks_factor(const Model& m, real* L, const real* A, const real* d, real scale) {
  LANE_FOR(v, m.nv()) {
    const Block block = block_of(m, m.dof_block()[v]);
    const int i = v - block.dof, row = block.at + i * block.n;
    ROLLED for (int j = 0; j < block.n; ++j) L[row + j] = j <= i ? A[row + j] : R(0.0);
    if (scale != 0) L[row + i] += scale * d[v];
  }
  lane_sync();
  LANE_FOR(b, m.nblock()) {
    const Block block = block_of(m, b);
    if (block.n <= SMALL_BLOCK) lane_factor(L + block.at, block.n);
  }
  ROLLED for (int b = 0; b < m.nblock(); ++b) {
    const Block block = block_of(m, b);
    if (block.n > SMALL_BLOCK) mem_factor(L + block.at, block.n);
  }
  lane_sync();
}

// In place: x becomes the solution of L L' x = x.
DEVICE void blocks_solve(const Model& m, real* x, const real* L) {
  LANE_FOR(b, m.nblock()) {
    const Block block = block_of(m, b);
    if (block.n <= SMALL_BLOCK) lane_solve(x + block.dof, L + block.at, block.n);
  }
  lane_sync();
  ROLLED for (int b = 0; b < m.nblock(); ++b) {
    const Block block = block_of(m, b);
    if (block.n > SMALL_BLOCK) mem_solve(x + block.dof, L + block.at, block.n);
  }
  lane_sync();
}

DEVICE int island_class(int n) {
  int index = 0;
  while (index < NUM_ISLAND_CLASSES - 1 && n > ISLAND_BOUND(index)) ++index;
  return index;
}

// Pieces of four words that an island of n dofs takes in the arena of a column, for its inertia or its Jacobian.
DEVICE int island_words(int column, int n, int rows) {
  return column == COLUMN_ISLAND_M ? (n * n + 3) / 4 : rows * ((n + 3) / 4);
}
