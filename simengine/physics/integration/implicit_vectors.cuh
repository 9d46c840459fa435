// Derivatives of Coriolis and centrifugal forces on the host (implicit.cuh). The six columns of a body's matrix are the
// entries of vectors. What a dof contributes to all entries of the matrix with its ancestors is computed once:
//
//   entry (v, u) = (B' a_v) . a_u - (I a_v) . drift_u      B, I  derivative of the force, and inertia, of v's subtree
//   entry (u, v) = a_u . (B a_v - I drift_v)               a     motion axes; u is above v, or of the same body
#pragma once

#ifdef MATRIX_VECTORS
#define COUPLED_IN_VECTORS

template <class A, class B>
DEVICE void crosses(Eight* out, const A* a, const B* b) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

// See cross_force.
template <class A, class B>
DEVICE void cross_forces(Eight* out, const A* v, const B* f) {
  Eight a[3], b[3];
  crosses(a, v, f);
  crosses(b, v + 3, f + 3);
  for (int i = 0; i < 3; ++i) out[i] = a[i] + b[i];
  crosses(out + 3, v, f + 3);
}

// The change of the inertial force on a body under unit changes of its velocity: row i of a 6 x 6 matrix has entry i of
// each. See coriolis_change.
DEVICE_CALL void coriolis_map(const real* inertia, const real* vel, real* map) {
  Eight x[6], turned[6], moved[3], a[6], c[6];
  real momentum[6];
  for (int i = 0; i < 6; ++i) {
    x[i] = Eight{};
    x[i][i] = 1;
  }
  crosses(turned, x, vel);
  crosses(turned + 3, x, vel + 3);
  crosses(moved, x + 3, vel);
  for (int i = 0; i < 3; ++i) turned[3 + i] += moved[i];
  inert_mul(a, inertia, turned);
  inert_mul(momentum, inertia, vel);
  cross_forces(c, x, momentum);
  for (int i = 0; i < 6; ++i) a[i] += c[i];
  inert_mul(turned, inertia, x);
  cross_forces(c, vel, turned);
  for (int i = 0; i < 6; ++i) store_eight(map + 6 * i, Eight{} - (a[i] + c[i]), 6);
}

// Row and column `row` of the matrix of a block, up to the diagonal, become zero where the dofs are not on one branch.
template <class OnBranch>
DEVICE void keep_branch(const Block& block, int row, const OnBranch& on_branch, real* matrix) {
  for (int column = 0; column < row; ++column) {
    real *lower = matrix + row * block.n + column, *upper = matrix + column * block.n + row;
    if ((*lower != 0 || *upper != 0) && !on_branch(block.dof + row, block.dof + column)) *lower = *upper = 0;
  }
}

// Each entry of the matrix of a block becomes its sum with what the motion of bodies adds, where its dofs are on one
// branch, and zero elsewhere; on_branch(i, j) says where. The motion adds to the dofs of trees of which it says so.
template <class OnBranch, class Turns>
DEVICE void add_coriolis(const Model& m, const Block& block, const real* maps, const real* crb, const real* cdof,
                         const real* drift, const OnBranch& on_branch, const Turns& turns, real* matrix) {
  for (int row = 0; row < block.n; ++row) {
    const int v = block.dof + row, body = m.dof_bodyid()[v];
    if (!turns(v)) {
      keep_branch(block, row, on_branch, matrix);
      continue;
    }
    const real *axis = cdof + 6 * v, *map = maps + 36 * body;
    real moved[6], left[6], right[6];
    Eight sum = {};
    for (int i = 0; i < 6; ++i) sum = eight_fma(eight(axis[i]), load_eight(map + 6 * i, 6), sum);
    inert_mul(moved, crb + 10 * body, drift + 6 * v);
    for (int i = 0; i < 6; ++i) right[i] = dot6(map + 6 * i, axis) - moved[i];
    inert_mul(moved, crb + 10 * body, axis);
    for (int i = 0; i < 6; ++i) left[i] = sum[i];
    for (int column = 0; column <= row; ++column) {
      const int u = block.dof + column;
      real *lower = matrix + row * block.n + column, *upper = matrix + column * block.n + row;
      if (!on_branch(v, u)) {
        *lower = *upper = 0;
        continue;
      }
      if (u < v) *upper += dot6(cdof + 6 * u, right);
      *lower += dot6(left, cdof + 6 * u) - dot6(moved, drift + 6 * u);
    }
  }
}
#endif
