// The matrix of implicit integration, qM - h times the derivative of the smooth forces with respect to the velocity
// (implicit.cuh), and the solution of its equations.
#pragma once

// Do lanes share the small blocks of a model that has nothing but its joints and bodies?
DEVICE bool shares_blocks(const Model& m) {
#if SIMENGINE_GPU
  return m.nblock() > 1 && m.nwidest() <= SMALL_BLOCK && !m.nu() && !m.ntendon();
#else
  return false;
#endif
}

// Column j of the block of a body that moves freely, as implicit_blocks makes its entries, with the same bits: what the
// column's motion does to the body is the same for all of them.
DEVICE void free_column(const Model& m, const Block& block, int j, const Moving& f, const real* qM, const real* maps,
                        const real* drift, real* matrix) {
  const int b = m.dof_bodyid()[block.dof], v = block.dof + j;
  const real h = m.opt_timestep()[0];
  real motion[6], pushed[6], pulled[6];
  for (int e = 0; e < 6; ++e) motion[e] = f.cdof[6 * v + e];
  UNROLLED for (int e = 0; e < 6; ++e) pushed[e] = dot6(maps + 36 * b + 6 * e, motion);
  inert_mul(pulled, f.crb + 10 * b, drift + 6 * v);
  const real damped = -damper_slope(m.dof_damping()[v], m.dof_dampingpoly() + 2 * v, f.qvel[v]);
  UNROLLED for (int i = 0; i < 6; ++i) {
    const real* axis = f.cdof + 6 * (block.dof + i);
    const int at = block.at + 6 * i + j;
    real power = 0;
    UNROLLED for (int e = 0; e < 6; ++e) power = fma_(axis[e], pushed[e], power);
    const real x = (i == j ? damped : R(0.0)) + power - dot6(axis, pulled);
    matrix[at] = fma_(-h, x, qM[at]);
  }
}

// implicit_matrix where lanes share the entries of all blocks, or the columns of bodies that move freely, with the same
// bits.
DEVICE void implicit_blocks(const Model& m, const Moving& f, const real* qM, bool coriolis, bool turns, bool has_fluid,
                            const real* maps, const real* drift, real* matrix) {
  const real h = m.opt_timestep()[0];
  const int width = m.nwidest();
  int others = 0;  // dofs of other blocks
  LANE_FOR(v, m.nv()) {
    const Block block = block_of(m, m.dof_block()[v]);
    if (block.n == 6 && free_alone(m, m.dof_bodyid()[v])) {
      free_column(m, block, v - block.dof, f, qM, maps, drift, matrix);
    } else {
      others = 1;
    }
  }
  others = lane_any(others);
  LANE_FOR(e, others ? m.nv() * width : 0) {
    const int i = e / width;
    const Block block = block_of(m, m.dof_block()[i]);
    const int j = block.dof + e % width, at = block.at + (i - block.dof) * block.n + e % width;
    if (e % width >= block.n || block.n == 6 && free_alone(m, m.dof_bodyid()[i])) continue;
    real x = i == j ? -damper_slope(m.dof_damping()[i], m.dof_dampingpoly() + 2 * i, f.qvel[i]) : R(0.0);
    if (turns || has_fluid || x != 0) {
      x = on_one_branch(m, i, j) ? add_motion(m, i, j, f, maps, drift, coriolis, has_fluid, x) : R(0.0);
    }
    matrix[at] = fma_(-h, x, qM[at]);
  }
  lane_sync();
}

// matrix = qM - h times the derivative of the smooth forces with respect to the velocity, in the blocks of qM. Most
// models have one block of all dofs. Returns whether the matrix is symmetric.
DEVICE bool implicit_matrix(const Model& m, const Moving& f, const real* qM, bool coriolis, real* slope,
                            real* tendon_slopes, real* maps, real* drift, real* matrix) {
  const real h = m.opt_timestep()[0];
  const bool has_fluid = m.opt_density()[0] > 0 || m.opt_viscosity()[0] > 0, turns = coriolis || any_alone(m);
  LANE_FOR(u, m.nu()) slope[u] = actuator_slope(m, u, f);
  LANE_FOR(t, m.ntendon()) tendon_slopes[t] = -tendon_slope(m, t, f);
  if (turns || has_fluid) subtree_maps(m, f, coriolis, has_fluid, maps);
  if (turns) axis_drifts(m, f, drift);
  if (shares_blocks(m)) {
    implicit_blocks(m, f, qM, coriolis, turns, has_fluid, maps, drift, matrix);
    return !turns;
  }
  ROLLED for (int b = 0; b < m.nblock(); ++b) {
    const Block block = block_of(m, b);
    real* own = matrix + block.at;
    const real* inertia = qM + block.at;
    // (a) what dampers, tendons and actuators add to the derivative
    LANE_FOR_LOADS(e, block.n * block.n) own[e] = 0;
    lane_sync();
    LANE_FOR(i, block.n) {
      const int v = block.dof + i;
      own[i * block.n + i] = -damper_slope(m.dof_damping()[v], m.dof_dampingpoly() + 2 * v, f.qvel[v]);
    }
    lane_sync();
    add_squares(m.ntendon(), f.ten_J + block.dof, m.nv(), tendon_slopes, own, block.n);
    add_squares(m.nu(), f.actuator_moment + block.dof, m.nv(), slope, own, block.n);
    lane_sync();
    // (b) what the motion of bodies adds, where two dofs are on one branch; no others are coupled
#ifdef COUPLED_IN_VECTORS
    const bool alone = !has_fluid;
    if (alone) {
      const auto on_branch = [&](int i, int j) { return on_one_branch(m, i, j); };
      const auto turns_with = [&](int v) { return coriolis || free_alone(m, m.dof_bodyid()[v]); };
      add_coriolis(m, block, maps, f.crb, f.cdof, drift, on_branch, turns_with, own);
    }
#else
    const bool alone = false;
#endif
    LANE_FOR_TABLE(row, alone ? 0 : block.n, column, block.n, const int i = block.dof + row) {
      const int e = row * block.n + column, j = block.dof + column;
      if (!turns && !has_fluid && own[e] == 0) continue;
      own[e] = on_one_branch(m, i, j) ? add_motion(m, i, j, f, maps, drift, coriolis, has_fluid, own[e]) : R(0.0);
    }
    LANE_FOR_LOADS(e, block.n * block.n) own[e] = fma_(-h, own[e], inertia[e]);
  }
  lane_sync();
  return !turns;
}

// Most dofs of a matrix that is not symmetric whose rows lanes eliminate one by one. Larger ones are eliminated by
// squares, so that what is left of them is read and written a quarter as often.
#define MOST_BY_ROWS 64

// In place: x becomes the solution of matrix x = x, block by block; `matrix` is overwritten.
DEVICE void implicit_solve(const Model& m, real* x, real* matrix, bool symmetric) {
#ifdef MATRIX_ROWS
  if (symmetric) {
    wide_solve_in_place(m.column, x, matrix, m.nv());
    return;
  }
#endif
#if SIMENGINE_GPU
  LANE_FOR(b, m.nblock()) {
    const Block block = block_of(m, b);
    if (block.n == FACTOR_SIDE && !symmetric) lane_lu_solve<FACTOR_SIDE>(x + block.dof, matrix + block.at);
  }
  lane_sync();
#endif
  ROLLED for (int b = 0; b < m.nblock(); ++b) {
    const Block block = block_of(m, b);
#if SIMENGINE_GPU
    if (block.n == FACTOR_SIDE && !symmetric) continue;
#endif
#if ONE_ROW_A_LANE
    if (symmetric && block.n <= LANES) {
      solve_rows(m, x + block.dof, block, matrix, [](int, real entry) { return entry; });
      continue;
    }
#endif
#if SIMENGINE_GPU
    if (block.n > MOST_BY_ROWS) {
      lu_solve_by_squares(x + block.dof, matrix + block.at, block.n);
      continue;
    }
#endif
    lu_solve(x + block.dof, matrix + block.at, block.n);
  }
}
