// Projected Gauss-Seidel on the dual problem of a world or an island. MuJoCo documentation, "Computation",
// "Constraint solver":
//
//   minimise over f   1/2 f' (A + R) f + f' b        A = J inv(M) J'   R = 1 / D   b = J qacc_smooth - aref
//
// where f is free for equalities, bounded by the loss for friction loss, in its cone for an elliptic contact, and not
// negative otherwise. Below, an elliptic contact counts as one row: the first of its rows.
//
// A is never formed. With qM = L L' and Y = J inv(L') it is Y Y', and z = Y' f is updated with every change of f, so
// that a row costs one product of nv terms and one update of z. The iterations seldom converge, so their result depends
// on the row order, the momentum and the termination, all of which are MuJoCo's. Every sweep visits the rows in another
// random order, from a point extrapolated along the latest change (Y. Nesterov, Soviet Math. Dokl. 27 (1983)). The
// momentum restarts when the extrapolation has gone against the descent (B. O'Donoghue and E. Candes, Found. Comput.
// Math. 15 (2015), gradient restart).
#pragma once

// Columns of the rows of J and Y, here of all dofs; large_pgs.cuh has others. All rows have `stride` words.
struct AllColumns {
  int n, stride;

  // Number of columns of a row, and the dof of column c.
  struct Row {
    int width;

    DEVICE_METHOD int dof(int c) const { return c; }
  };

  DEVICE_METHOD Row row(int r) const { return {n}; }

  // z = Y' f over the rows in a list, and over the other rows of their cones.
  DEVICE_METHOD void whitened_force(const Model& m, const Rows& rows, const real* Y, const real* force, int listed,
                                    const int* list, real* z) const {
    DOF_FOR(v, n) {
      real x = 0;
      OVERLAPPED for (int k = 0; k < listed; ++k) {
        const int r = list[k], dim = rows_together(m, rows, r);
        ROLLED for (int i = 0; i < dim; ++i) x = fma_(Y[(r + i) * stride + v], force[r + i], x);
      }
      z[v] = x;
    }
  }
};

// The dual problem: its rows, and the arrays that whiten() computes from them.
template <class Columns>
struct DualProblem {
  Columns columns;
  Rows rows;
  const real *Y, *b, *diagonal, *block;  // efc_Y, efc_b, efc_diagAR and efc_weight, written by `whiten`
  real *before, *force, *z;
};

DEVICE const real* friction_of(const Model& m, const Rows& rows, int r) {
  return m.cand_friction() + 5 * rows.cand[rows.id[r]];
}

// Clamp the force of row r to its bounds, or project that of the cone whose first row is r into the cone.
DEVICE void confine(const Model& m, const Rows& rows, int r, int dim, real* force) {
  const int type = rows.type[r];
  if (in_cone(type)) {
    into_cone(dim, friction_of(m, rows, r), force);
  } else if (type == ROW_FRICTION_DOF || type == ROW_FRICTION_TENDON) {
    force[0] = clamp_(force[0], -rows.frictionloss[r], rows.frictionloss[r]);
  } else if (type != ROW_EQUALITY) {
    force[0] = max_(R(0.0), force[0]);
  }
}

typedef DualProblem<AllColumns> DenseDual;

// The diagonal block of A + R of each row, or of each cone.
DEVICE void cone_blocks(const Model& m, const Rows& rows, const real* Y, int stride, const real* efc_diagAR,
                        real* efc_weight) {
  LANE_FOR(r, rows.n) {
    const int dim = rows_together(m, rows, r);
    ROLLED for (int e = 0; e < MAX_CONE_ROWS * dim; ++e) {
      const int i = e / MAX_CONE_ROWS, j = e % MAX_CONE_ROWS;
      const real *other = Y + size_t(r + j) * stride, norm = i == j ? efc_diagAR[r + i] : R(0.0);
      efc_weight[MAX_CONE_ROWS * r + e] = j >= dim || i == j ? norm : row_dot(Y, r + i, stride, other);
    }
  }
  lane_sync();
}

// (2) whitened Jacobian Y, residual b without forces, and diagonal of A + R.
DEVICE void whiten(const Model& m, const Rows& rows, const real* qLD, const real* qacc_smooth, real* efc_Y, real* efc_b,
                   real* efc_diagAR, real* efc_weight) {
  whiten_rows(m, rows, qLD, qacc_smooth, qacc_smooth, efc_Y, [&](int r, const RowSums& sums) {
    efc_b[r] = sums.residual;
    efc_diagAR[r] = sums.regularised;
  });
  cone_blocks(m, rows, efc_Y, m.nvp(), efc_diagAR, efc_weight);
}

// (3) warm start: the forces at the residuals in d.before. Each lane returns its part of 1/2 z' z; force_cost gives the
// rest of the cost, row by row.
template <class Columns>
DEVICE real force_at(const Model& m, const DualProblem<Columns>& d, const int* list, int listed) {
  const Rows& rows = d.rows;
  LANE_FOR(r, rows.n) {
    const int dim = rows_together(m, rows, r);
    if (dim) row_law(m, rows, r, dim, d.before + r, d.force + r, (real*)0);
    for (int i = r; i < r + dim; ++i) {
      if (!m.opt_warmstart()) d.force[i] = 0;
    }
  }
  lane_sync();
  d.columns.whitened_force(m, rows, d.Y, d.force, listed, list, d.z);
  real cost = 0;
  DOF_FOR(v, m.nv()) cost = fma_(R(0.5) * d.z[v], d.z[v], cost);
  return cost;
}

// The same at the last acceleration.
template <class Columns>
DEVICE real warm_force(const Model& m, const DualProblem<Columns>& d, const int* list, int listed,
                       const real* qacc_warmstart) {
  const Rows& rows = d.rows;
  LANE_FOR(r, rows.n) {
    real jar = -rows.aref[r];
    const real* J = rows.J + size_t(r) * d.columns.stride;
    const typename Columns::Row row = d.columns.row(r);
    ROLLED for (int c = 0; c < row.width; ++c) jar = fma_(J[c], qacc_warmstart[row.dof(c)], jar);
    d.before[r] = jar;
  }
  lane_sync();
  return force_at(m, d, list, listed);
}

// The part of the cost that depends on the force of row r alone: f b + 1/2 R f^2.
template <class Columns>
DEVICE real force_cost(const DualProblem<Columns>& d, int r) {
  return d.force[r] * (d.b[r] + R(0.5) * divide_(d.force[r], d.rows.D[r]));
}

// Initial order: rows outside cones and first rows of cones, in their order; then the other rows of cones.
DEVICE void in_order(const Model& m, const Rows& rows, int* efc_order) {
  const auto opens = [&](int r) { return int(rows_together(m, rows, r) > 0); };
  const int opening = sums_before(rows.n, opens, [&](int r, int before) {
    if (opens(r)) efc_order[before] = r;
  });
  sums_before(rows.n, opens, [&](int r, int before) {
    if (!opens(r)) efc_order[opening + r - before] = r;
  });
  lane_sync();
}

struct Sweep {
  real improvement, against;  // decrease of the cost; positive if the extrapolation went against the descent
};

// Set the force of row r, or of the cone whose first row is r, to its optimum while the others stay fixed; update z.
template <class Columns>
DEVICE void visit(const Model& m, const DualProblem<Columns>& d, int r, Sweep* sweep) {
  const Rows& rows = d.rows;
  const typename Columns::Row row = d.columns.row(r);
  const int dim = rows_together(m, rows, r);
  const real* Y = d.Y + size_t(r) * d.columns.stride;
  const real* A = d.block + MAX_CONE_ROWS * r;
  real old[MAX_CONE_ROWS], residual[MAX_CONE_ROWS], force[MAX_CONE_ROWS];
  ROLLED for (int i = 0; i < dim; ++i) {
    real coupled = 0;
    DOF_FOR(c, row.width) coupled = fma_(Y[i * d.columns.stride + c], d.z[row.dof(c)], coupled);
    old[i] = d.force[r + i];
    residual[i] = d.b[r + i] + lane_sum(coupled) + divide_(old[i], rows.D[r + i]);
  }
  if (in_cone(rows.type[r])) {
    best_in_cone(dim, A, residual, old, friction_of(m, rows, r), force);
  } else {
    force[0] = old[0] - divide_(residual[0], A[0]);
    confine(m, rows, r, dim, force);
  }
  ROLLED for (int i = 0; i < dim; ++i) {
    const real change = force[i] - old[i];
    real slope = residual[i];
    ROLLED for (int j = 0; j < dim; ++j) slope = fma_(R(0.5) * A[MAX_CONE_ROWS * i + j], force[j] - old[j], slope);
    sweep->improvement = fma_(-change, slope, sweep->improvement);
    sweep->against = fma_(-change, old[i] - d.before[r + i], sweep->against);
    DOF_FOR(c, row.width) {
      real* z = d.z + row.dof(c);
      *z = fma_(change, Y[i * d.columns.stride + c], *z);
    }
  }
  lane_sync();
  if (lane() == 0) {
    ROLLED for (int i = 0; i < dim; ++i) d.force[r + i] = force[i];
  }
}

// Iterate over the rows of one island, whose inertia matrix has the given trace; returns the number of iterations.
template <class Columns>
DEVICE int descend(const Model& m, const DualProblem<Columns>& d, int n, int* list, real trace, int* draw) {
  const PcgStep by_lanes = pcg_steps(LANES), by_sweep = pcg_steps(n - 1);
  uint64 state = pcg_apply(pcg_steps(lane()), 1);
  int iteration = 0, since_restart = 0;
  real total = 0;
  while (iteration < m.opt_iterations()) {
    shuffle(list, n, state, by_lanes, draw);
    state = pcg_apply(by_sweep, state);
    // (4) extrapolate, and clamp to the bounds
    const real momentum = since_restart > 1 ? divide_(R(1.0) * (since_restart - 1), R(1.0) * (since_restart + 2)) : 0;
    LANE_FOR(k, n) {
      const int r = list[k], dim = rows_together(m, d.rows, r);
      ROLLED for (int i = r; i < r + dim; ++i) {
        const real force = d.force[i];
        d.force[i] = fma_(momentum, force - d.before[i], force);
        d.before[i] = force;
      }
      if (momentum > 0) confine(m, d.rows, r, dim, d.force + r);
    }
    lane_sync();
    d.columns.whitened_force(m, d.rows, d.Y, d.force, n, list, d.z);
    // (5) one sweep in the new order
    Sweep sweep = {0, 0};
    ROLLED for (int k = 0; k < n; ++k) visit(m, d, list[k], &sweep);
    lane_sync();
    ++iteration;
    // (6) the momentum grows until the extrapolation goes against the descent
    since_restart = sweep.against > 0 ? 0 : since_restart + 1;
    // (7) stop when the decrease of the cost is below the tolerance, or is rounding alone
    total += abs_(sweep.improvement);
    const real least = max_(m.opt_tolerance()[0] * trace, 16 * REAL_EPS * REAL_EPS * total);
    if (sweep.improvement < least) break;
  }
  return iteration;
}

// (8) acceleration due to the forces
DEVICE void accelerate(const Model& m, const DenseDual& d, const real* qLD, const real* qacc_smooth, real* qacc,
                       real* qfrc_constraint) {
  const int nv = m.nv(), stride = m.nvp();
#if SIMENGINE_GPU
  DOF_FOR(v, nv) {
    real x = 0;
    OVERLAPPED for (int r = 0; r < d.rows.n; ++r) x = fma_(d.rows.J[r * stride + v], d.force[r], x);
    qfrc_constraint[v] = x;
    qacc[v] = x;
  }
#else
  // the same sums, along rows
  LANE_FOR(v, nv) qacc[v] = 0;
  for (int r = 0; r < d.rows.n; ++r) LANE_FOR(v, nv) qacc[v] = fma_(d.rows.J[r * stride + v], d.force[r], qacc[v]);
  LANE_FOR(v, nv) qfrc_constraint[v] = qacc[v];
#endif
  lane_sync();
  chol_solve(qacc, qLD, nv);
  DOF_FOR(v, nv) qacc[v] += qacc_smooth[v];
  lane_sync();
}
