// Projected Gauss-Seidel on the dual problem of MuJoCo documentation, "Computation", "Constraint solver":
//
//   minimise over f >= 0   1/2 f' (A + R) f + f' b        A = J inv(M) J'   R = 1 / D   b = J qacc_smooth - aref
//
// A is never formed: with qM = L L' and Y = J inv(L') it is Y Y', and z = Y' f is carried along, so that a row costs
// one product of nv terms and one update of z. Row order, momentum and termination are MuJoCo's, since its iterations
// seldom converge: every sweep takes the rows in another random order, from a point extrapolated along the latest
// change (Y. Nesterov, Soviet Math. Dokl. 27 (1983)), until the extrapolation turns out to have gone against the
// descent (B. O'Donoghue and E. Candes, Found. Comput. Math. 15 (2015), gradient restart).

DEVICE int lower(int a, int b) { return a < b ? a : b; }

// (1) rows by island: rows that share a kinematic tree, directly or through others, are solved together and apart from
// the rest, as MuJoCo does. `tree` receives each tree's island.
DEVICE void find_islands(const Model& m, int n, const real* efc_J, int* efc_island, int* efc_order, int* tree) {
  const int nv = m.nv(), stride = m.nvp();
  LANE_FOR(t, m.ntree()) tree[t] = t;
  int changed = 1;
  while (changed) {
    lane_sync();
    LANE_FOR(r, n) {
      int lowest = m.ntree();
      ROLLED for (int v = 0; v < nv; ++v) {
        if (efc_J[r * stride + v] != 0) lowest = lower(lowest, tree[m.dof_treeid()[v]]);
      }
      efc_island[r] = lowest;
    }
    lane_sync();
    changed = 0;
    LANE_FOR(t, m.ntree()) {
      int lowest = tree[t];
      ROLLED for (int v = 0; v < nv; ++v) {
        if (m.dof_treeid()[v] != t) continue;
        ROLLED for (int r = 0; r < n; ++r) {
          if (efc_J[r * stride + v] != 0) lowest = lower(lowest, efc_island[r]);
        }
      }
      changed |= lowest != tree[t];
      tree[t] = lowest;
    }
    changed = m.ntree() > 1 && lane_any(changed);
  }
  LANE_FOR(r, n) {
    int place = 0;
    const int own = efc_island[r];
    ROLLED for (int k = 0; k < n; ++k) place += efc_island[k] < own || (efc_island[k] == own && k < r);
    efc_order[place] = r;
  }
  lane_sync();
}

// (2) whitened Jacobian, residual without forces and diagonal; a lane takes whole rows.
DEVICE void whiten(const Model& m, int n, const real* qLD, const real* qacc_smooth, const real* efc_J,
                   const real* efc_D, const real* efc_aref, real* efc_Y, real* efc_b, real* efc_diagAR) {
  const int nv = m.nv(), stride = m.nvp();
  LANE_FOR(r, n) {
    const real* J = efc_J + r * stride;
    real* Y = efc_Y + r * stride;
    real b = -efc_aref[r], norm = reciprocal_(efc_D[r]);
    ROLLED for (int k = 0; k < nv; ++k) {
      real x = J[k];
      b = fma_(x, qacc_smooth[k], b);
      ROLLED for (int j = 0; j < k; ++j) x = fma_(-qLD[k * nv + j], Y[j], x);
      Y[k] = divide_(x, qLD[k * nv + k]);
      norm = fma_(Y[k], Y[k], norm);
    }
    ROLLED for (int k = nv; k < stride; ++k) Y[k] = 0;
    efc_b[r] = b;
    efc_diagAR[r] = norm;
  }
}

// z = Y' f over the rows of a list.
DEVICE void whitened_force(int nv, int stride, int n, const int* rows, const real* efc_Y, const real* efc_force,
                           real* z) {
  DOF_FOR(v, nv) {
    real x = 0;
    ROLLED for (int k = 0; k < n; ++k) x = fma_(efc_Y[rows[k] * stride + v], efc_force[rows[k]], x);
    z[v] = x;
  }
}

// (3) forces of the last acceleration, or none if those cost less.
DEVICE void warm_force(const Model& m, int n, const real* qacc_warmstart, const real* efc_J, const real* efc_D,
                       const real* efc_aref, const real* efc_Y, const real* efc_b, const int* efc_order,
                       real* efc_force, real* z) {
  const int nv = m.nv(), stride = m.nvp();
  real cost = 0;
  LANE_FOR(r, n) {
    real jar = -efc_aref[r];
    ROLLED for (int v = 0; v < nv; ++v) jar = fma_(efc_J[r * stride + v], qacc_warmstart[v], jar);
    const real force = m.opt_warmstart() ? max_(R(0.0), -(efc_D[r] * jar)) : R(0.0);
    efc_force[r] = force;
    cost = fma_(force, efc_b[r] + R(0.5) * divide_(force, efc_D[r]), cost);
  }
  lane_sync();
  whitened_force(nv, stride, n, efc_order, efc_Y, efc_force, z);
  DOF_FOR(v, nv) cost = fma_(R(0.5) * z[v], z[v], cost);
  if (lane_sum(cost) > 0) {
    lane_sync();
    LANE_FOR(r, n) efc_force[r] = 0;
  }
  lane_sync();
}

struct Sweep {
  real improvement, against;  // decrease of the cost; positive if the extrapolation went against the descent
};

// (5) one sweep over the rows in the given order: each force becomes the best one while the others stay.
DEVICE Sweep sweep_rows(const Model& m, int n, const int* order, const real* efc_D, const real* efc_Y,
                        const real* efc_b, const real* efc_diagAR, const real* efc_before, real* efc_force, real* z) {
  const int nv = m.nv(), stride = m.nvp();
  Sweep sweep = {0, 0};
  ROLLED for (int k = 0; k < n; ++k) {
    const int r = order[k];
    const real* Y = efc_Y + r * stride;
    const real old = efc_force[r], diagonal = efc_diagAR[r];
    real coupled = 0;
    DOF_FOR(v, nv) coupled = fma_(Y[v], z[v], coupled);
    const real residual = efc_b[r] + lane_sum(coupled) + divide_(old, efc_D[r]);
    const real force = max_(R(0.0), old - divide_(residual, diagonal)), change = force - old;
    sweep.improvement = fma_(-change, fma_(R(0.5) * diagonal, change, residual), sweep.improvement);
    sweep.against = fma_(-change, old - efc_before[r], sweep.against);
    DOF_FOR(v, nv) z[v] = fma_(change, Y[v], z[v]);
    lane_sync();
    if (lane() == 0) efc_force[r] = force;
  }
  lane_sync();
  return sweep;
}

// Iterations over the rows of one island, whose inertia has the given trace; returns their number.
DEVICE int descend(const Model& m, int n, int* rows, real trace, const real* efc_D, const real* efc_Y,
                   const real* efc_b, const real* efc_diagAR, real* efc_before, real* efc_force, real* z, int* draw) {
  const PcgStep by_lanes = pcg_steps(LANES), by_sweep = pcg_steps(n - 1);
  uint64 state = pcg_apply(pcg_steps(lane()), 1);
  int iteration = 0, since_restart = 0;
  real total = 0;
  while (iteration < m.opt_iterations()) {
    shuffle(rows, n, state, by_lanes, draw);
    state = pcg_apply(by_sweep, state);
    // (4) extrapolate, within the bounds
    const real momentum = since_restart > 1 ? divide_(R(1.0) * (since_restart - 1), R(1.0) * (since_restart + 2)) : 0;
    LANE_FOR(k, n) {
      const int r = rows[k];
      const real force = efc_force[r];
      efc_force[r] = max_(R(0.0), fma_(momentum, force - efc_before[r], force));
      efc_before[r] = force;
    }
    lane_sync();
    whitened_force(m.nv(), m.nvp(), n, rows, efc_Y, efc_force, z);
    const Sweep sweep = sweep_rows(m, n, rows, efc_D, efc_Y, efc_b, efc_diagAR, efc_before, efc_force, z);
    ++iteration;
    // (6) momentum grows until it hurts
    since_restart = sweep.against > 0 ? 0 : since_restart + 1;
    // (7) until the cost hardly falls, or falls by rounding alone
    total += abs_(sweep.improvement);
    const real least = max_(m.opt_tolerance()[0] * trace, 16 * REAL_EPS * REAL_EPS * total);
    if (sweep.improvement < least) break;
  }
  return iteration;
}

DEVICE void solve_pgs(const Model& m, const int* nefc, const real* qM, const real* qLD, const real* qacc_smooth,
                      const real* qacc_warmstart, const real* efc_J, const real* efc_D, const real* efc_aref,
                      real* qacc, real* efc_force, real* qfrc_constraint, int* solver_niter, real* efc_Y, real* efc_b,
                      real* efc_diagAR, real* efc_before, int* efc_island, int* efc_order, real* z, real* draw,
                      real* tree) {
  const int nv = m.nv(), n = nefc[0], stride = m.nvp();
  int* island_of = reinterpret_cast<int*>(tree);
  find_islands(m, n, efc_J, efc_island, efc_order, island_of);
  whiten(m, n, qLD, qacc_smooth, efc_J, efc_D, efc_aref, efc_Y, efc_b, efc_diagAR);
  lane_sync();
  warm_force(m, n, qacc_warmstart, efc_J, efc_D, efc_aref, efc_Y, efc_b, efc_order, efc_force, z);
  LANE_FOR(r, n) efc_before[r] = efc_force[r];
  int most = 0;
  ROLLED for (int begin = 0, end; begin < n; begin = end) {
    const int island = efc_island[efc_order[begin]];
    for (end = begin; end < n && efc_island[efc_order[end]] == island;) ++end;
    real trace = 0;
    DOF_FOR(v, nv) trace += island_of[m.dof_treeid()[v]] == island ? qM[v * nv + v] : R(0.0);
    const int iterations = descend(m, end - begin, efc_order + begin, lane_sum(trace), efc_D, efc_Y, efc_b,
                                   efc_diagAR, efc_before, efc_force, z, reinterpret_cast<int*>(draw));
    most = iterations > most ? iterations : most;
  }
  // (8) acceleration of the forces
  DOF_FOR(v, nv) {
    real x = 0;
    ROLLED for (int r = 0; r < n; ++r) x = fma_(efc_J[r * stride + v], efc_force[r], x);
    qfrc_constraint[v] = x;
    qacc[v] = x;
  }
  lane_sync();
  chol_solve(qacc, qLD, nv);
  DOF_FOR(v, nv) qacc[v] += qacc_smooth[v];
  LANE_FOR(i, 1) solver_niter[0] = most;
  lane_sync();
}
