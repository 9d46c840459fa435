// Rows of the constraint Jacobian, in the two ways they are stored: over all dofs, or over those of the one or two
// blocks that the row touches. What writes the rows is the same for both.
#pragma once

// Where the derivatives by the dofs of the first and of the second block of a row lie, as if dof 0 were in each.
struct RowPlace {
  real *first, *second;
};

// Dofs of the columns of a row.
struct AllDofs {
  DEVICE_METHOD int dof(const Model& m, int c) const { return c; }
};

struct DofsOfBlocks {
  int block1, block2, dof1, n1, dof2, n2;

  // nv beyond the last
  DEVICE_METHOD int dof(const Model& m, int c) const {
    return c < n1 ? dof1 + c : c < n1 + n2 ? dof2 + c - n1 : m.nv();
  }
};

// The dofs of two blocks, of which the second may be the same, or either missing (-1). A row that nothing moves, which
// explicit pairs can ask for, is given to the first block.
DEVICE DofsOfBlocks dofs_of_blocks(const Model& m, int b1, int b2) {
  const int first = b1 >= 0 ? b1 : b2 >= 0 ? b2 : 0, second = b1 >= 0 && b2 != b1 ? b2 : -1;
  const int dof1 = m.block_dofadr()[first], n1 = m.block_dofadr()[first + 1] - dof1;
  if (second < 0) return {first, -1, dof1, n1, 0, 0};
  const int dof2 = m.block_dofadr()[second];
  return {first, second, dof1, n1, dof2, m.block_dofadr()[second + 1] - dof2};
}

struct DenseRows {
  typedef AllDofs Dofs;
  real* J;
  int stride;

  // Clear row r, which depends on dof1 and, if that is not negative, dof2, and on no dofs of other blocks.
  DEVICE_METHOD RowPlace start(const Model& m, int r, int dof1, int dof2) const {
    real* row = J + r * stride;
    ROLLED for (int v = 0; v < stride; ++v) row[v] = 0;
    return {row, row};
  }

  // Columns of the rows that depend on the motion of two bodies.
  DEVICE_METHOD AllDofs dofs(const Model& m, int body1, int body2) const { return {}; }
  DEVICE_METHOD AllDofs dofs_of(const Model& m, int r) const { return {}; }

  // Say so of row r; done by the lane of column c.
  DEVICE_METHOD void touch(int r, int c, const AllDofs& dofs) const {}
  DEVICE_METHOD int width(const Model& m, const AllDofs& dofs) const { return m.nv(); }
};

struct SparseRows {
  typedef DofsOfBlocks Dofs;
  real* J;
  int stride;
  int* efc_block;

  DEVICE_METHOD RowPlace start(const Model& m, int r, int dof1, int dof2) const {
    real* row = J + size_t(r) * stride;
    ROLLED for (int v = 0; v < stride; ++v) row[v] = 0;
    const int b1 = m.dof_block()[dof1], b2 = dof2 >= 0 ? m.dof_block()[dof2] : -1;
    const DofsOfBlocks dofs = dofs_of_blocks(m, b1, b2);
    efc_block[2 * r] = dofs.block1;
    efc_block[2 * r + 1] = dofs.block2;
    return {row - dofs.dof1, dofs.block2 < 0 ? row - dofs.dof1 : row + dofs.n1 - dofs.dof2};
  }

  DEVICE_METHOD DofsOfBlocks dofs(const Model& m, int body1, int body2) const {
    return dofs_of_blocks(m, m.body_block()[body1], m.body_block()[body2]);
  }
  DEVICE_METHOD DofsOfBlocks dofs_of(const Model& m, int r) const {
    return dofs_of_blocks(m, efc_block[2 * r], efc_block[2 * r + 1]);
  }
  DEVICE_METHOD void touch(int r, int c, const DofsOfBlocks& dofs) const {
    if (c == 0) efc_block[2 * r] = dofs.block1;
    if (c == 1) efc_block[2 * r + 1] = dofs.block2;
  }
  DEVICE_METHOD int width(const Model& m, const DofsOfBlocks& dofs) const { return dofs.n1 + dofs.n2; }
};

// A dof that length `id` depends on.
DEVICE int length_dof(const Model& m, int id) {
  return id < m.njnt() ? m.jnt_dofadr()[id] : m.tendon_dof()[id - m.njnt()];
}
