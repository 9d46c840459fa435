// Projected Gauss-Seidel (pgs.cuh) on the rows of a large island, each over the dofs of one or two blocks, so that the
// time of a sweep is proportional to the number of rows. Systems with the inertia are solved block by block.
#pragma once

struct BlockColumns {
  const LargeIsland& s;
  int stride;

  struct Row {
    int width, n1, dof1, dof2;

    DEVICE_METHOD int dof(int c) const { return c < n1 ? dof1 + c : dof2 + c - n1; }
  };

  DEVICE_METHOD Row row(int r) const {
    const RowParts p = parts_of(s, r);
    return {p.n1 + p.n2, p.n1, p.dof1, p.dof2};
  }

  // The list contains all rows, in any order.
  DEVICE_METHOD void whitened_force(const Model& m, const Rows& rows, const real* Y, const real* force, int listed,
                                    const int* list, real* z) const {
    large_forces(s, Y, force, (const real*)0, z);
    lane_sync();
  }
};

typedef DualProblem<BlockColumns> LargeDual;

// y = inv(L) x for the n entries of one block; returns |y|^2.
DEVICE real whiten_part(const real* L, const real* x, int n, real* y) {
  real norm = 0;
  ROLLED for (int k = 0; k < n; ++k) {
    y[k] = divide_(x[k] - short_dot(L + k * n, y, k), L[k * n + k]);
    norm = fma_(y[k], y[k], norm);
  }
  return norm;
}

// The Cholesky factor of the inertia of block b.
DEVICE const real* factor_of(const Model& m, const LargeIsland& s, const real* qLD_blocks, int b) {
  return qLD_blocks + m.block_adr()[s.blocks[BLOCK_WORDS * b + BLOCK_NUMBER]];
}

// Whitened Jacobian, residual without forces, and diagonal; each lane computes whole rows.
DEVICE void whiten_large(const Model& m, const LargeIsland& s, const Rows& rows, const real* qLD_blocks,
                         const real* qacc_smooth, real* efc_Y, real* efc_b, real* efc_diagAR, real* efc_weight) {
  LANE_FOR(r, s.nrow) {
    const RowParts p = parts_of(s, r);
    const real* J = s.J + size_t(r) * s.stride;
    real* Y = efc_Y + size_t(r) * s.stride;
    real norm = reciprocal_(rows.D[r]) + whiten_part(factor_of(m, s, qLD_blocks, s.row_block[2 * r]), J, p.n1, Y);
    if (p.n2) {
      norm += whiten_part(factor_of(m, s, qLD_blocks, s.row_block[2 * r + 1]), J + p.n1, p.n2, Y + p.n1);
    }
    ROLLED for (int c = p.n1 + p.n2; c < s.stride; ++c) Y[c] = 0;
    efc_b[r] = large_row_dot(s, r, qacc_smooth) - rows.aref[r];
    efc_diagAR[r] = norm;
  }
  lane_sync();
  cone_blocks(m, rows, efc_Y, s.stride, efc_diagAR, efc_weight);
}

// Acceleration due to the forces.
DEVICE void accelerate_large(const Model& m, const LargeIsland& s, const real* force, const real* qLD_blocks,
                             const real* qacc_smooth, real* qacc, real* qfrc_constraint) {
  large_forces(s, s.J, force, (const real*)0, qfrc_constraint);
  LANE_FOR(v, s.n) qacc[v] = qfrc_constraint[v];
  lane_sync();
  LANE_FOR(b, s.nblock) {
    const int *words = s.blocks + BLOCK_WORDS * b, n = words[BLOCK_SIZE];
    if (n <= SMALL_BLOCK) lane_solve(qacc + words[BLOCK_DOF], factor_of(m, s, qLD_blocks, b), n);
  }
  lane_sync();
  ROLLED for (int b = 0; b < s.nblock && m.nwidest() > SMALL_BLOCK; ++b) {
    const int *words = s.blocks + BLOCK_WORDS * b, n = words[BLOCK_SIZE];
    if (n > SMALL_BLOCK) mem_solve(qacc + words[BLOCK_DOF], factor_of(m, s, qLD_blocks, b), n);
  }
  lane_sync();
  LANE_FOR(v, s.n) qacc[v] += qacc_smooth[v];
  lane_sync();
}
