// Friction without slip: MuJoCo documentation, "Computation", "Constraint solver", "Algorithms", NoSlip. After the
// solver, friction forces (friction loss, and friction at contacts) are updated one after another as if their rows had
// no regularisation. The sweeps are like those of solve_pgs, without momentum and random order. Normal forces do not
// change, nor does the sum of two opposite edges of a pyramid. The sweeps work with changes of forces: where large
// forces cancel, the solver's acceleration is more accurate than one computed from its forces.

// Call visit(k) for each k < n where wanted(k), by all lanes together.
template <class Wanted, class Visit>
DEVICE void for_each_wanted(int n, const Wanted& wanted, const Visit& visit) {
#if SIMENGINE_GPU && LANES <= 32
  ROLLED for (int first = 0; first < n; first += LANES) {
    const int own = first + lane();
    unsigned left = lane_ballot(own < n && wanted(own));
    ROLLED for (; left; left &= left - 1) visit(first + lowest_bit(left));
  }
#else
  ROLLED for (int k = 0; k < n; ++k) {
    if (wanted(k)) visit(k);
  }
#endif
}

// (2) what the sweeps need of A, without the regularisation. efc_weight already has A_rr for each row r. Opposite edges
// get the curvature along the difference of their rows, and a cone its diagonal block of A between tangents.
DEVICE void bare_blocks(const Model& m, const Rows& rows, const real* Y, real* efc_weight) {
  const int nv = m.nv(), stride = m.nvp();
  LANE_FOR(r, NOSLIP_CONES ? rows.n : 0) {
    if (rows.type[r] != ROW_CONTACT_ELLIPTIC) continue;
    const int first = rows.address[rows.id[r]], i = r - first;
    real* block = efc_weight + MAX_CONE_ROWS * first;
    if (i) block[MAX_CONE_ROWS * i + i] = block[MAX_CONE_ROWS * i];
    ROLLED for (int j = 1; j < i; ++j) {
      const Vec4* row = reinterpret_cast<const Vec4*>(Y + size_t(r) * stride);
      const Vec4* other = reinterpret_cast<const Vec4*>(Y + size_t(first + j) * stride);
      real sum = 0;
      OVERLAPPED for (int q = 0; q < stride / 4; ++q) {
        const Vec4 a = row[q], b = other[q];
        sum = fma_(a.w, b.w, fma_(a.z, b.z, fma_(a.y, b.y, fma_(a.x, b.x, sum))));
      }
      block[MAX_CONE_ROWS * i + j] = block[MAX_CONE_ROWS * j + i] = sum;
    }
  }
  const auto opens_edges = [&](int r) { return rows.type[r] == ROW_CONTACT_PYRAMIDAL && rows_improved(m, rows, r); };
  for_each_wanted(rows.n, opens_edges, [&](int r) {
    const real *plus = Y + size_t(r) * stride, *minus = plus + stride;
    real curve = 0;
    DOF_FOR(v, nv) {
      const real across = plus[v] - minus[v];
      curve = fma_(across, across, curve);
    }
    curve = lane_sum(curve);
    if (lane() == 0) efc_weight[MAX_CONE_ROWS * r + 1] = curve;
  });
  lane_sync();
}

// Sweeps over the rows of one island; `trace` is the trace of its inertia matrix.
DEVICE void improve_island(const Model& m, const DenseDual& d, int n, const int* list, real trace) {
  SweepState state;
  real regularisation = 0;
  // (3) the first sweep also counts the cost of the regularisation as improvement
  LANE_FOR(k, n) {
    const int r = list[k], dim = rows_together(m, d.rows, r);
    for (int i = r; i < r + dim; ++i) {
      regularisation = fma_(R(0.5) * d.force[i], divide_(d.force[i], d.rows.D[i]), regularisation);
    }
  }
  state.improvement = lane_sum(regularisation);
  begin_sweeps(m, d, n, list, &state);
  ROLLED for (int number = 0; number < m.opt_noslip_iterations(); ++number) {
    // (4) update the forces one after another, each to its optimum while the others stay fixed
    sweep(m, d, n, list, &state);
    // (5) stop when the decrease of the cost is below the tolerance
    if (state.improvement < m.opt_noslip_tolerance()[0] * trace) break;
    state.improvement = 0;
  }
  end_sweeps(m, d, state);
}

// The factor of the inertia, for which kernels with matrices along branches have FactorOnBranches.
struct DenseFactor {
  const real* qLD;

  // x becomes the solution of qM x = x.
  DEVICE_METHOD void solve(const Model& m, real* x) const { chol_solve(x, qLD, m.nv()); }

  template <class Put>
  DEVICE_METHOD void whiten(const Model& m, const Rows& rows, const real* qacc, real* efc_Y, const Put& put) const {
    whiten_rows(m, rows, qLD, qacc, qacc, efc_Y, put);
  }

  // The generalised force of z = Y' f.
  DEVICE_METHOD void colour(const Model& m, const real* z, real* out) const {
    DOF_FOR(v, m.nv()) {
      real x = 0;
      OVERLAPPED for (int k = 0; k <= v; ++k) x = fma_(qLD[v * m.nv() + k], z[k], x);
      out[v] = x;
    }
    lane_sync();
  }
};

// (1) make qacc the acceleration of the solver's forces. The solver's own is used unless it stopped so early that the
// two differ by more than rounding. `rest` is scratch.
template <class Factor>
DEVICE void settle_acceleration(const Model& m, const Rows& rows, const real* qM, const Factor& factor,
                                const real* qacc_smooth, const real* force, real* qacc, real* rest) {
  const int nv = m.nv(), stride = m.nvp();
  real early = 0;
#ifdef MATRIX_VECTORS
  for (int v = 0; v < nv; v += VECTOR_WIDTH) {
    Lanes sum = {}, size = {};
    for (int r = 0; r < rows.n; ++r) {
      const Lanes part = load_words(rows.J + r * stride + v, nv - v) * every(force[r]);
      sum += part;
      size += part < 0 ? -part : part;
    }
    for (int u = 0; u < nv; ++u) {
      const Lanes part = load_words(qM + u * nv + v, nv - v) * every(qacc[u] - qacc_smooth[u]);
      sum -= part;
      size += part < 0 ? -part : part;
    }
    store_words(rest + v, sum, nv - v);
    for (int i = 0; i < VECTOR_WIDTH && v + i < nv; ++i) {
      if (abs_(sum[i]) > 64 * REAL_EPS * size[i]) early = 1;
    }
  }
#else
  DOF_FOR(v, nv) {
    real sum = 0, size = 0;
    OVERLAPPED for (int r = 0; r < rows.n; ++r) {
      const real part = rows.J[r * stride + v] * force[r];
      sum += part;
      size += abs_(part);
    }
    // consecutive lanes read consecutive words; a single lane reads along the row, which is the same by symmetry
    const real* entry = qM + (LANES > 1 ? v : v * nv);
    OVERLAPPED for (int u = 0; u < nv; ++u) {
      const real part = entry[LANES > 1 ? u * nv : u] * (qacc[u] - qacc_smooth[u]);
      sum -= part;
      size += abs_(part);
    }
    rest[v] = sum;
    if (abs_(sum) > 64 * REAL_EPS * size) early = 1;
  }
#endif
  lane_sync();
  if (lane_sum(early) > 0) {
    factor.solve(m, rest);
    DOF_FOR(v, nv) qacc[v] += rest[v];
  }
  lane_sync();
}

// (6) acceleration and generalised force of the changes of forces: z = Y' times the changes, Y' = inv(L) J'.
template <class Factor>
DEVICE void add_changes(const Model& m, const Factor& factor, const real* z, real* qacc, real* qfrc_constraint,
                        real* change) {
  const int nv = m.nv();
  factor.colour(m, z, change);
  DOF_FOR(v, nv) qfrc_constraint[v] += change[v];
  lane_sync();
  factor.solve(m, change);
  DOF_FOR(v, nv) qacc[v] += change[v];
  lane_sync();
}

// All of it, for rows that exist.
template <class Factor>
DEVICE void improve_world(const Model& m, const Rows& rows, const real* qM, const Factor& factor,
                          const real* qacc_smooth, real* efc_Y, real* efc_b, real* efc_diagAR, real* efc_weight,
                          int* efc_island, int* efc_order, real* qacc, real* efc_force, real* qfrc_constraint, real* z,
                          real* change, real* tree) {
  const DenseDual d = {{m.nv(), m.nvp()}, rows, efc_Y, efc_b, efc_diagAR, efc_weight, 0, efc_force, z};
  int* island_of = reinterpret_cast<int*>(tree);
  settle_acceleration(m, rows, qM, factor, qacc_smooth, efc_force, qacc, change);
  LANE_FOR(v, m.nvp()) z[v] = 0;
  // (2) rows sorted by island, and the slip velocity of each
  find_islands(m, rows, efc_island, efc_order, island_of);
  factor.whiten(m, rows, qacc, efc_Y, [&](int r, const RowSums& sums) {
    efc_b[r] = sums.residual;
    efc_diagAR[r] = sums.regularised;
    UNROLLED for (int i = 0; i < MAX_CONE_ROWS; ++i) efc_weight[MAX_CONE_ROWS * r + i] = sums.norm;
  });
  bare_blocks(m, rows, efc_Y, efc_weight);
  ROLLED for (int begin = 0, end; begin < rows.n; begin = end) {
    const int island = efc_island[efc_order[begin]];
    if (island > m.ntree()) break;
    end = begin + rows_of_island(rows, efc_island, island);
    real trace = 0;
    DOF_FOR(v, m.nv()) trace += island_of[m.dof_treeid()[v]] == island ? qM[v * m.nv() + v] : R(0.0);
    improve_island(m, d, end - begin, efc_order + begin, lane_sum(trace));
  }
  add_changes(m, factor, z, qacc, qfrc_constraint, change);
}

DEVICE void noslip(const Model& m, const int* nefc, const real* qM, const real* qLD, const real* qacc_smooth,
                   const real* efc_J, const real* efc_D, const real* efc_aref, const int* efc_type,
                   const int* efc_id, const real* efc_frictionloss, const int* contact_efc_address,
                   const int* contact_cand, real* efc_Y, real* efc_b, real* efc_diagAR, real* efc_weight,
                   int* efc_island, int* efc_order, real* qacc, real* efc_force, real* qfrc_constraint, real* z,
                   real* change, real* tree) {
  const int n = nefc[0];
  if (n == 0) return;
  const Rows rows = {n, efc_type, efc_id, contact_efc_address, contact_cand, efc_J, efc_D, efc_aref, efc_frictionloss};
  improve_world(m, rows, qM, DenseFactor{qLD}, qacc_smooth, efc_Y, efc_b, efc_diagAR, efc_weight, efc_island,
                efc_order, qacc, efc_force, qfrc_constraint, z, change, tree);
}
