// Cholesky factors of the worlds of a tile, whose numbers are vectors with an entry for each world.
#pragma once

#ifdef TILE
#define TILE_BLOCK (VECTOR_BYTES == 64 ? 4 : 2)  // rows and columns of a block that fits the registers

// The same as factor_by_columns, with the same rounding. A block of the matrix stays in registers while the products of
// the columns before it are subtracted, in their order.
struct TileFactor {
  real* H;
  int n;
  real block[TILE_BLOCK][TILE_BLOCK], inverse[TILE_BLOCK];

  // Row `a` of a block whose first row is `first`; rows behind the last one repeat it.
  real* row(int first, int a) const { return H + (first + a < n ? first + a : n - 1) * n; }

  // The rows from i on in the columns from k on, less the products of the columns before k.
  void reduce(int i, int k) {
    real *left[TILE_BLOCK], *right[TILE_BLOCK];
    for (int a = 0; a < TILE_BLOCK; ++a) left[a] = row(i, a), right[a] = row(k, a);
#pragma GCC unroll 4
    for (int a = 0; a < TILE_BLOCK; ++a) {
#pragma GCC unroll 4
      for (int b = 0; b < TILE_BLOCK; ++b) block[a][b] = left[a][k + b < n ? k + b : n - 1];
    }
    for (int j = 0; j < k; ++j) {
      real taken[TILE_BLOCK];
#pragma GCC unroll 4
      for (int b = 0; b < TILE_BLOCK; ++b) taken[b] = right[b][j];
#pragma GCC unroll 4
      for (int a = 0; a < TILE_BLOCK; ++a) {
        const real factor = -left[a][j];
#pragma GCC unroll 4
        for (int b = 0; b < TILE_BLOCK; ++b) block[a][b] = fma_(factor, taken[b], block[a][b]);
      }
    }
  }

  // The diagonal block becomes its factor.
  void factor_diagonal() {
#pragma GCC unroll 4
    for (int b = 0; b < TILE_BLOCK; ++b) {
      const real d = block[b][b], pivot = sqrt_(select(d <= 0, REAL_MAX, d));
      inverse[b] = R(1.0) / pivot;
      block[b][b] = pivot;
#pragma GCC unroll 4
      for (int a = b + 1; a < TILE_BLOCK; ++a) block[a][b] *= inverse[b];
#pragma GCC unroll 4
      for (int c = b + 1; c < TILE_BLOCK; ++c) {
#pragma GCC unroll 4
        for (int a = c; a < TILE_BLOCK; ++a) block[a][c] = fma_(-block[a][b], block[c][b], block[a][c]);
      }
    }
  }

  // A block below the diagonal block of its columns, whose factor is L.
  void finish(const real (*L)[TILE_BLOCK]) {
#pragma GCC unroll 4
    for (int b = 0; b < TILE_BLOCK; ++b) {
#pragma GCC unroll 4
      for (int a = 0; a < TILE_BLOCK; ++a) {
#pragma GCC unroll 4
        for (int j = 0; j < b; ++j) block[a][b] = fma_(-block[a][j], L[b][j], block[a][b]);
        block[a][b] *= inverse[b];
      }
    }
  }

  void store(int i, int k) {
    for (int a = 0; a < TILE_BLOCK && i + a < n; ++a) {
      for (int b = 0; b < TILE_BLOCK && k + b < n && k + b <= i + a; ++b) row(i, a)[k + b] = block[a][b];
    }
  }

  void factor() {
    for (int k = 0; k < n; k += TILE_BLOCK) {
      real diagonal[TILE_BLOCK][TILE_BLOCK];
      reduce(k, k);
      factor_diagonal();
      store(k, k);
      for (int a = 0; a < TILE_BLOCK; ++a) {
        for (int b = 0; b < TILE_BLOCK; ++b) diagonal[a][b] = block[a][b];
      }
      for (int i = k + TILE_BLOCK; i < n; i += TILE_BLOCK) {
        reduce(i, k);
        finish(diagonal);
        store(i, k);
      }
    }
    for (int i = 0; i < n; ++i) {
      for (int j = i + 1; j < n; ++j) H[i * n + j] = 0;
    }
  }
};

DEVICE void factor_in_tile(real* H, int n) {
  TileFactor L{H, n};
  L.factor();
}
#endif
