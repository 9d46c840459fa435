// Rows of the constraint Jacobian in the two ways in which they are stored: over all dofs (DenseRows), or over the dofs
// of the one or two blocks that the row touches (SparseRows). The code that writes the rows is the same for both.
#pragma once

// Addresses of the derivatives with respect to the dofs of a row's first and second block. They are offset so that the
// index is the number of the dof in the world.
struct RowPlace {
  real *first, *second;
};

// The dof of each column of a row.
struct AllDofs {
  DEVICE_METHOD int dof(const Model& m, int c) const { return c; }
};

struct DofsOfBlocks {
  int block1, block2, dof1, n1, dof2, n2;

  // nv for a column beyond the dofs of both blocks
  DEVICE_METHOD int dof(const Model& m, int c) const {
    return c < n1 ? dof1 + c : c < n1 + n2 ? dof2 + c - n1 : m.nv();
  }
};

// The dofs of two blocks, which may be the same, and either of which may be missing (-1). A row without any moving
// body, which explicit pairs can create, is given block 0.
DEVICE DofsOfBlocks dofs_of_blocks(const Model& m, int b1, int b2) {
  const int first = b1 >= 0 ? b1 : b2 >= 0 ? b2 : 0, second = b1 >= 0 && b2 != b1 ? b2 : -1;
  const int dof1 = m.block_dofadr()[first], n1 = m.block_dofadr()[first + 1] - dof1;
  if (second < 0) return {first, -1, dof1, n1, 0, 0};
  const int dof2 = m.block_dofadr()[second];
  return {first, second, dof1, n1, dof2, m.block_dofadr()[second + 1] - dof2};
}

// Clear a row; its width is a multiple of four.
DEVICE void clear_row(real* row, int stride) {
  OVERLAPPED for (int q = 0; q < stride / 4; ++q) reinterpret_cast<Vec4*>(row)[q] = {0, 0, 0, 0};
}

struct DenseRows {
  typedef AllDofs Dofs;
  static constexpr bool BY_CONTACT = false;
  real* J;
  int stride;

  // Clear row r. It depends only on dofs of the block of dof1 and, if dof2 is not negative, of the block of dof2.
  DEVICE_METHOD RowPlace start(const Model& m, int r, int dof1, int dof2) const {
    real* row = J + r * stride;
    clear_row(row, stride);
    return {row, row};
  }

  // The columns of a row that depends on the motion of two bodies.
  DEVICE_METHOD AllDofs dofs(const Model& m, int body1, int body2) const { return {}; }
  DEVICE_METHOD AllDofs dofs_of(const Model& m, int r) const { return {}; }

  // Record which blocks row r touches; the lane of column c calls this.
  DEVICE_METHOD void touch(int r, int c, const AllDofs& dofs) const {}
  DEVICE_METHOD int width(const Model& m, const AllDofs& dofs) const { return m.nv(); }

  // The column of a dof of the row's blocks.
  DEVICE_METHOD int column(const AllDofs& dofs, int v) const { return v; }
};

struct SparseRows {
  typedef DofsOfBlocks Dofs;
  static constexpr bool BY_CONTACT = SIMENGINE_GPU && LANES <= 32;  // whether a lane finishes all rows of a contact
  real* J;
  int stride;
  int* efc_block;

  DEVICE_METHOD RowPlace start(const Model& m, int r, int dof1, int dof2) const {
    real* row = J + size_t(r) * stride;
    clear_row(row, stride);
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
  DEVICE_METHOD int column(const DofsOfBlocks& dofs, int v) const {
    return v >= dofs.dof1 && v < dofs.dof1 + dofs.n1 ? v - dofs.dof1 : dofs.n1 + v - dofs.dof2;
  }
};

// A dof that length `id` depends on.
DEVICE int length_dof(const Model& m, int id) {
  return id < m.njnt() ? m.jnt_dofadr()[id] : m.tendon_dof()[id - m.njnt()];
}

// The dofs in whose columns row `id` of a type has entries, if the type says that there are at most two.
DEVICE FewDofs few_dofs(const Model& m, int type, int id) {
  FewDofs few;
  if (type == ROW_FRICTION_DOF) few.low = id;
  if (type == ROW_LIMIT_JOINT && m.jnt_type()[id] != JNT_BALL) few.low = m.jnt_dofadr()[id];
  if (type != ROW_EQUALITY || m.eq_type()[id] != EQ_JOINT) return few;
  const int joint1 = m.eq_obj()[2 * id], joint2 = m.eq_obj()[2 * id + 1];
  const int one = m.jnt_dofadr()[joint1], two = joint2 < 0 ? one : m.jnt_dofadr()[joint2];
  few.low = one < two ? one : two;
  if (one != two) few.high = one < two ? two : one;
  return few;
}

// The velocities along rows, each a sum in the order of the columns. A single lane computes those of all rows of a
// contact with the first one, several sums at a time, and skips the zeros of rows of single joints.
struct RowVelocities {
#if !SIMENGINE_GPU && LANES == 1
  real ahead[10];  // of the rows of a contact

  template <class Rows>
  DEVICE_METHOD void sum(const Model& m, const Rows& jacobian, int r, int number, const real* qvel) {
    const typename Rows::Dofs dofs = jacobian.dofs_of(m, r);
    const int stride = jacobian.stride, width = jacobian.width(m, dofs);
    const real* J = jacobian.J + size_t(r) * stride;
    for (int i = 0; i < number; i += 4, J += 4 * stride) {
      int at[4];
      real x[4] = {0, 0, 0, 0};
      for (int k = 0; k < 4; ++k) at[k] = i + k < number ? k * stride : 0;
      for (int c = 0; c < width; ++c) {
        const real rate = qvel[dofs.dof(m, c)];
        for (int k = 0; k < 4; ++k) x[k] = fma_(J[at[k] + c], rate, x[k]);
      }
      for (int k = 0; k < 4 && i + k < number; ++k) ahead[i + k] = x[k];
    }
  }

  // That of row r, which is row `sub` of a constraint with `together` rows.
  template <class Rows>
  DEVICE_METHOD real of(const Model& m, const Rows& jacobian, int r, int type, int id, int sub, int together,
                        const real* qvel) {
    const bool of_joint = type == ROW_LIMIT_JOINT && m.jnt_type()[id] != JNT_BALL;
    if (of_joint || type == ROW_FRICTION_DOF) {
      const int v = of_joint ? m.jnt_dofadr()[id] : id, c = jacobian.column(jacobian.dofs_of(m, r), v);
      return fma_(jacobian.J[size_t(r) * jacobian.stride + c], qvel[v], R(0.0));
    }
    if (together == 1 || !sub) sum(m, jacobian, r, together, qvel);
    return ahead[together == 1 ? 0 : sub];
  }
#else
  template <class Rows>
  DEVICE_METHOD real of(const Model& m, const Rows& jacobian, int r, int type, int id, int sub, int together,
                        const real* qvel) {
    const typename Rows::Dofs dofs = jacobian.dofs_of(m, r);
    const int width = jacobian.width(m, dofs);
    const real* J = jacobian.J + size_t(r) * jacobian.stride;
    const FewDofs few = few_dofs(m, type, id);
    if (few.low >= 0) {
      real velocity = fma_(J[jacobian.column(dofs, few.low)], qvel[few.low], R(0.0));
      if (few.high >= 0) velocity = fma_(J[jacobian.column(dofs, few.high)], qvel[few.high], velocity);
      return velocity;
    }
    return sum(m, dofs, width, J, qvel);
  }
  // That along all columns of a row. Lanes have different rows: each loads four words at once.
  template <class Dofs>
  DEVICE_METHOD static real sum(const Model& m, const Dofs& dofs, int width, const real* J, const real* qvel) {
    real velocity = 0;
    int c = 0;
    OVERLAPPED for (; c + 4 <= width; c += 4) {
      const Vec4 four = *reinterpret_cast<const Vec4*>(J + c);
      velocity = fma_(four.x, qvel[dofs.dof(m, c)], velocity);
      velocity = fma_(four.y, qvel[dofs.dof(m, c + 1)], velocity);
      velocity = fma_(four.z, qvel[dofs.dof(m, c + 2)], velocity);
      velocity = fma_(four.w, qvel[dofs.dof(m, c + 3)], velocity);
    }
    ROLLED for (; c < width; ++c) velocity = fma_(J[c], qvel[dofs.dof(m, c)], velocity);
    return velocity;
  }
#endif
};
