// Symmetric matrices of one world in the registers of its lanes, and the solution of linear systems there.
#pragma once

// Four consecutive numbers, loaded by one instruction; the address must be a multiple of their size.
struct alignas(16) alignas(real) Vec4 {
  real x, y, z, w;
};

// ------------------------------------------------------------------------------------------- symmetric matrices
//
// SymRows is a symmetric matrix of a group of lanes. On the GPU, if n is at most LANES, lane i holds row i in
// registers; otherwise it is a pointer to n x n numbers. Kernels with two rows in a lane (wide.cuh) load them where
// they need them, as do those with one row in each lane of a block (block_rows.cuh), and kernels with rows along
// branches (branch_rows.cuh) have the entries that are not zero.

#if SIMENGINE_GPU && (LANES <= 32 || defined(SOLVER_WARPS) || defined(BLOCK_ROWS))
// Four words at one address for all lanes, which the hardware broadcasts.
DEVICE Vec4 broadcast4(const real* p) { return *reinterpret_cast<const Vec4*>(p); }
#endif

#if SIMENGINE_GPU && LANES <= 32 && !defined(MATRIX_ROWS) && !defined(BRANCH_ROWS) && !defined(SOLVER_WARPS)
#define ONE_ROW_A_LANE 1
#if (LANES < 32 && !defined(DOFS_BEYOND_LANES)) || defined(AS_STEP)
#define REGISTERS_FIT(n) 1  // the number of lanes is chosen so that n always fits
#else
#define REGISTERS_FIT(n) ((n) <= LANES)
#endif

struct SymRows {
  const real* memory;
#if DOF_RANGES
  DofRange range;  // to be set before the rows are loaded
#endif
  alignas(16) real row[LANES];
};

DEVICE void sym_load(SymRows* rows, const real* A, int n) {
  const int i = lane();
  rows->memory = A;
  if (!REGISTERS_FIT(n)) return;
#if DOF_RANGES
  range_load<LANES>(rows->row, rows->range, A, n);
  return;
#endif
  // by symmetry a lane reads a column, so that neighbouring lanes read neighbouring words
#pragma unroll
  for (int j = 0; j < LANES; ++j) rows->row[j] = i < n && j < n ? A[j * n + i] : R(0.0);
}

// Move the rows from registers to local memory, if they have 32 words: two rows in registers would leave too few
// registers to overlap the loads of the elimination. The compiler stores in memory whatever has its address taken.
DEVICE void sym_set_aside(SymRows* rows) {
#if LANES == 32
  asm volatile("" : : "l"(rows->row) : "memory");
#endif
}
#endif

// Where one warp of several has a row in each lane, or the group is no larger than a warp.
#if SIMENGINE_GPU && (LANES <= 32 || defined(SOLVER_WARPS)) && !defined(MATRIX_ROWS) && !defined(BRANCH_ROWS)
#define ROW_LANES WARP_LANES
// Place of an entry in a lower triangle, row by row.
DEVICE int in_triangle(int row, int column) { return row * (row + 1) / 2 + column; }

// Rotate the row by four words: the first four become the last.
DEVICE void reg_turn(real* h) {
  const real first[4] = {h[0], h[1], h[2], h[3]};
#pragma unroll
  for (int j = 0; j < ROW_LANES - 4; ++j) h[j] = h[j + 4];
#pragma unroll
  for (int e = 0; e < 4; ++e) h[ROW_LANES - 4 + e] = first[e];
}
// The inverse of reg_turn.
DEVICE void reg_turn_back(real* h) {
  const real last[4] = {h[ROW_LANES - 4], h[ROW_LANES - 3], h[ROW_LANES - 2], h[ROW_LANES - 1]};
#pragma unroll
  for (int j = ROW_LANES - 1; j >= 4; --j) h[j] = h[j - 4];
#pragma unroll
  for (int e = 0; e < 4; ++e) h[e] = last[e];
}

// Solve A x = y by Gaussian elimination without pivoting. A is symmetric positive definite, with row i in h of lane i;
// lane i gives y_i and receives x_i. Rows and columns from n on must be those of the identity (reg_pad).
//
// The latency of the chain from pivot to pivot bounds the speed of a warp, so columns are eliminated four at a time.
// Every lane computes the 4 x 4 block on the diagonal by itself and so needs nothing from other lanes between its
// pivots. Then each lane writes its four final entries to `column`, 4 ROW_LANES words of shared memory that all lanes
// read as broadcasts, and subtracts the four columns from the rest of its row. It does so four entries at a time; in
// one long sequence, the compiler would wait for each load.
//
// Instruction fetch also bounds the speed of a warp, so the blocks of columns are a loop, not unrolled. Each round
// rotates the row, so that the block's entries are always its first words.
//
// Each entry sees the same operations in the same order as if columns were eliminated one by one. Lanes i <= k take
// part with a multiplier of zero, so that no step branches. By symmetry, the backward solve needs only the upper part
// of row k, which lane k holds. A pivot that rounding has left not positive, as stiff rows may do, takes its dof out of
// the solution.
DEVICE real reg_solve(real* h, real y, int n, real* column) {
  const int i = warp_lane();
  const real none = reciprocal_(REAL_MAX);
  real inverse = 0;
  int k = 0;
  ROLLED for (; k < n; k += 4) {
    real a[4][4], x[4], multiplier[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int c = 0; c <= r; ++c) a[r][c] = warp_get(h[c], k + r);
      x[r] = warp_get(y, k + r);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const real reciprocal = reciprocal_(a[c][c]), pivot = a[c][c] <= 0 ? none : reciprocal;
      inverse = i == k + c ? pivot : inverse;
      multiplier[c] = i > k + c ? h[c] * pivot : R(0.0);
      y = fma_(-multiplier[c], x[c], y);
#pragma unroll
      for (int r = c + 1; r < 4; ++r) {
        h[r] = fma_(-multiplier[c], a[r][c], h[r]);
        const real of_row = a[r][c] * pivot;
        x[r] = fma_(-of_row, x[c], x[r]);
#pragma unroll
        for (int q = c + 1; q <= r; ++q) a[r][q] = fma_(-of_row, a[q][c], a[r][q]);
      }
    }
    warp_sync();
#pragma unroll
    for (int c = 0; c < 4; ++c) column[c * ROW_LANES + i] = h[c];
    warp_sync();
#pragma unroll
    for (int q = 4; q < ROW_LANES; q += 4) {
      if (k + q < n) {
        Vec4 entry[4];
#pragma unroll
        for (int c = 0; c < 4; ++c) entry[c] = broadcast4(column + c * ROW_LANES + k + q);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          h[q] = fma_(-multiplier[c], entry[c].x, h[q]);
          h[q + 1] = fma_(-multiplier[c], entry[c].y, h[q + 1]);
          h[q + 2] = fma_(-multiplier[c], entry[c].z, h[q + 2]);
          h[q + 3] = fma_(-multiplier[c], entry[c].w, h[q + 3]);
        }
      }
    }
    reg_turn(h);
  }
  y *= inverse;
  ROLLED for (k -= 4; k >= 0; k -= 4) {
    reg_turn_back(h);
    real a[4], x[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      a[c] = i < k + c ? -(h[c] * inverse) : R(0.0);
      x[c] = warp_get(y, k + c);
    }
    // again every lane computes the block by itself, here its four unknowns
#pragma unroll
    for (int c = 3; c >= 0; --c) {
      y = fma_(a[c], x[c], y);
#pragma unroll
      for (int r = c - 1; r >= 0; --r) x[r] = fma_(warp_get(a[c], k + r), x[c], x[r]);
    }
  }
  return y;
}

// Set the rows from n on to those of the identity.
DEVICE void reg_pad(real* h, int n) {
  const int i = warp_lane();
#pragma unroll
  for (int j = 0; j < ROW_LANES; ++j) h[j] = i >= n && i == j ? R(1.0) : h[j];
}
#endif

#if !SIMENGINE_GPU || LANES > 32 || defined(MATRIX_ROWS) || defined(BRANCH_ROWS) || defined(SOLVER_WARPS)
#define ONE_ROW_A_LANE 0
#define REGISTERS_FIT(n) 0

struct SymRows {
  const real* memory;
#if DOF_RANGES
  DofRange range;
#endif
#ifdef BRANCH_ROWS
  BranchRows branches;
#endif
};

DEVICE void sym_load(SymRows* rows, const real* A, int n) { rows->memory = A; }
DEVICE void sym_set_aside(SymRows* rows) {}
#endif
