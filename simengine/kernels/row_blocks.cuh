// Rows of the constraint Jacobian, in the two ways they are stored. What writes a row of one length or body starts it,
// which clears it and gives the place of dof 0; only the dofs of that block may then be written.
#pragma once

// Over all dofs, one row after another.
struct DenseRows {
  real* efc_J;
  int stride;

  DEVICE_METHOD real* start(const Model& m, int r, int dof) const {
    real* row = efc_J + r * stride;
    ROLLED for (int v = 0; v < stride; ++v) row[v] = 0;
    return row;
  }
};

// Over the dofs of the one or two blocks that the row touches.
struct SparseRows {
  real* efc_J_blocks;
  int* efc_block;

  DEVICE_METHOD real* start(const Model& m, int r, int dof) const {
    real* row = efc_J_blocks + size_t(r) * m.nJ();
    ROLLED for (int v = 0; v < m.nJ(); ++v) row[v] = 0;
    efc_block[2 * r] = m.dof_block()[dof];
    efc_block[2 * r + 1] = -1;
    return row - m.block_dofadr()[m.dof_block()[dof]];
  }
};

// A dof that length `id` depends on.
DEVICE int length_dof(const Model& m, int id) {
  return id < m.njnt() ? m.jnt_dofadr()[id] : m.wrap_dofadr()[m.tendon_adr()[id - m.njnt()]];
}

// A row of the block Jacobian holds the dofs of its first block, then those of its second, if it touches two.
struct RowBlocks {
  int dof1, n1, dof2, n2;
};

DEVICE RowBlocks row_blocks(const Model& m, const int* blocks) {
  const Block first = block_of(m, blocks[0]);
  if (blocks[1] < 0) return {first.dof, first.n, 0, 0};
  const Block second = block_of(m, blocks[1]);
  return {first.dof, first.n, second.dof, second.n};
}

// Dof of column c of such a row; nv beyond its last.
DEVICE int column_dof(const Model& m, const RowBlocks& row, int c) {
  return c < row.n1 ? row.dof1 + c : c < row.n1 + row.n2 ? row.dof2 + c - row.n1 : m.nv();
}
