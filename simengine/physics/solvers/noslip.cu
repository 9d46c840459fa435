// Friction without slip: MuJoCo documentation, "Computation", "Constraint solver", "Algorithms", NoSlip. After the
// solver, friction forces (friction loss, and friction at contacts) are updated one after another as if their rows had
// no regularisation. The sweeps are like those of solve_pgs, without momentum and random order. Normal forces do not
// change, nor does the sum of two opposite edges of a pyramid. The sweeps work with changes of forces: where large
// forces cancel, the solver's acceleration is more accurate than one computed from its forces.

// Number of rows that are updated together and whose first row is r: a friction loss alone, two opposite edges of a
// pyramid, or the rows of an elliptic contact; 0 for other rows.
DEVICE int rows_improved(const Model& m, const Rows& rows, int r) {
  const int type = rows.type[r];
  if (type == ROW_FRICTION_DOF || type == ROW_FRICTION_TENDON) return 1;
  if (type == ROW_CONTACT_PYRAMIDAL) return (r - rows.address[rows.id[r]]) % 2 ? 0 : 2;
  return type == ROW_CONTACT_ELLIPTIC ? rows_together(m, rows, r) : 0;
}

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

// (2) what the sweeps need of A, without the regularisation; efc_weight has A_rr first for each row r. With it, opposite
// edges have the curvature along the difference of their rows, and a cone has its diagonal block of A between tangents.
DEVICE void bare_blocks(const Model& m, const Rows& rows, const real* Y, real* efc_weight) {
  const int nv = m.nv(), stride = m.nvp();
  LANE_FOR(r, rows.n) {
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

// Change of the cost when forces change from `old`, where its derivative is `slip`; `noise` receives the change that
// rounding alone may cause.
DEVICE real cost_of(int n, const real* A, const real* slip, const real* old, const real* force, real* noise) {
  real cost = 0;
  *noise = R(1e-10);
  ROLLED for (int i = 0; i < n; ++i) {
    real slope = slip[i];
    *noise = fma_(4 * REAL_EPS * abs_(slope), abs_(force[i]) + abs_(old[i]), *noise);
    ROLLED for (int j = 0; j < n; ++j) slope = fma_(R(0.5) * A[MAX_CONE_ROWS * i + j], force[j] - old[j], slope);
    cost = fma_(force[i] - old[i], slope, cost);
  }
  return cost;
}

// The force of a friction loss, or half the difference of the forces of two opposite edges: one number, whose absolute
// value has a bound. Its cost has the curvature `curve`, and the slope `residual` while no force has changed.
struct ScalarForce {
  real residual, force, bound, curve;
};

// That of the friction loss r, or of the edges whose first row is r. Without curvature, edges get equal forces.
DEVICE ScalarForce scalar_force(const DenseDual& d, int r, bool edges) {
  const real *force = d.force + r, *block = d.block + MAX_CONE_ROWS * r;
  if (!edges) return {d.b[r], force[0], d.rows.frictionloss[r], block[0]};
  const real curve = block[1], noise = 16 * REAL_EPS;
  const bool flat = curve < max_(MJMINVAL, noise * noise * (block[0] + block[MAX_CONE_ROWS]));
  const real middle = R(0.5) * (force[0] + force[1]), half = R(0.5) * (force[0] - force[1]);
  return {d.b[r] - d.b[r + 1], half, flat ? R(0.0) : middle, curve};
}

DEVICE void put_scalar(const DenseDual& d, int r, bool edges, real x) {
  real* force = d.force + r;
  const real middle = edges ? R(0.5) * (force[0] + force[1]) : R(0.0);
  force[0] = edges ? middle + x : x;
  if (edges) force[1] = middle - x;
}

// (4) the optimum of such a force while the others stay fixed; `coupled` is what their changes add to the slope. Returns
// false if the optimum costs more, or else adds the decrease of the cost to `improvement`.
DEVICE bool improve_scalar(const ScalarForce& now, bool edges, real coupled, real* best, real* improvement) {
  const real slope = now.residual + coupled;
  *best = clamp_(now.force - divide_(slope, now.curve), -now.bound, now.bound);
  const real change = *best - now.force, cost = change * fma_(R(0.5) * now.curve, change, slope);
  const real rounding = edges ? R(0.0) : 4 * REAL_EPS * abs_(slope);
  if (cost > fma_(rounding, abs_(*best) + abs_(now.force), R(1e-10))) return false;
  *improvement -= cost;
  return true;
}

// (4) the same for the friction forces of a cone whose first row is r.
DEVICE real improve_cone(const Model& m, const DenseDual& d, int r, int dim) {
  const int nv = m.nv(), stride = m.nvp(), first = r + 1, n = dim - 1;
  const real *A = d.block + MAX_CONE_ROWS * r + MAX_CONE_ROWS + 1, *Y = d.Y + first * stride;
  real old[MAX_CONE_ROWS], slip[MAX_CONE_ROWS], force[MAX_CONE_ROWS], coupled[MAX_CONE_ROWS - 1];
  UNROLLED for (int i = 0; i < MAX_CONE_ROWS - 1; ++i) {
    coupled[i] = 0;
    if (i >= n) continue;
    DOF_FOR(v, nv) coupled[i] = fma_(Y[i * stride + v], d.z[v], coupled[i]);
    slip[i] = d.b[first + i];
    old[i] = d.force[first + i];
    force[i] = 0;
  }
  if (n > 2) {
    lane_sums<MAX_CONE_ROWS - 1>(coupled);
  } else {
    lane_sums<2>(coupled);
  }
  UNROLLED for (int i = 0; i < MAX_CONE_ROWS - 1; ++i) {
    if (i < n) slip[i] += coupled[i];
  }
  if (d.force[r] >= MJMINVAL) {
    best_tangents(n, A, slip, old, friction_of(m, d.rows, r), d.force[r], force);
  }
  real noise;
  const real cost = cost_of(n, A, slip, old, force, &noise);
  if (cost > noise) return 0;  // these forces may not be optimal
  ROLLED for (int i = 0; i < n; ++i) {
    const real change = force[i] - old[i];
    DOF_FOR(v, nv) d.z[v] = fma_(change, Y[i * stride + v], d.z[v]);
  }
  lane_sync();
  if (lane() == 0) {
    ROLLED for (int i = 0; i < n; ++i) d.force[first + i] = force[i];
  }
  return -cost;
}

// What a sweep leaves to the next one. On the GPU, a lane has its first column of z, and has looked up an entry of the
// list ahead: the first row that is updated, and how many are.
struct SweepState {
  real improvement;
#if SIMENGINE_GPU && LANES <= 32
  real z;
  int first, together;
#endif
};

#if SIMENGINE_GPU && LANES <= 32
DEVICE void look_up(const Model& m, const Rows& rows, int n, const int* list, int k, SweepState* state) {
  state->first = k < n ? list[k] : 0;
  state->together = k < n ? rows_improved(m, rows, state->first) : 0;
}

DEVICE void begin_sweeps(const Model& m, const DenseDual& d, int n, const int* list, SweepState* state) {
  state->z = lane() < m.nv() ? d.z[lane()] : R(0.0);
  look_up(m, d.rows, n, list, lane(), state);
}
DEVICE void end_sweeps(const Model& m, const DenseDual& d, const SweepState& state) {
  if (lane() < m.nv()) d.z[lane()] = state.z;
  lane_sync();
}

// The first rows of friction losses and edges among the entries of the lanes, one for each of the first lanes, with a
// bit for edges: 2 r + 1. Returns their number.
DEVICE int line_up(const Model& m, int first, int together, int* line) {
  const bool scalar = together == 1 || together == 2;
  const unsigned found = lane_ballot(scalar);
  int* place = reinterpret_cast<int*>(m.column);
  lane_sync();
  if (scalar) place[__popc(found & ((1u << lane()) - 1u))] = 2 * first + (together == 2);
  lane_sync();
  *line = lane() < __popc(found) ? place[lane()] : 0;
  return __popc(found);
}

// What a turn needs of Y: the lane's column of the row, and of the opposite edge.
struct Turn {
  int line;
  real row, opposite;

  DEVICE_METHOD void load(const real* column, int stride) {
    const real* own = column + (line >> 1) * stride;
    row = own[0], opposite = own[(line & 1) * stride];
  }
};

// The updates of friction losses and edges in `count` lanes, in turn. Each lane loads what the update of its rows needs
// beside Y, and passes it on in their turn. Y is loaded one turn ahead, and the row is known two turns ahead, so that
// the updates wait for each other only. Two sets of registers alternate, so that none is copied while it is loaded.
DEVICE void take_turns(const Model& m, const DenseDual& d, int count, int line, SweepState* state) {
  const int nv = m.nv(), stride = m.nvp(), own = lane();
  const real* column = d.Y + (own < nv ? own : 0);
  const ScalarForce mine = own < count ? scalar_force(d, line >> 1, line & 1) : ScalarForce{0, 0, 0, 0};
  real force = mine.force;
  unsigned moved = 0;
  const auto update = [&](int k, Turn* now, Turn* next) {
    const real *Y = d.Y + (now->line >> 1) * stride, *opposite = Y + stride;
    const bool edges = now->line & 1;
    next->load(column, stride);
    now->line = lane_get_int(line, (k + 2) & (LANES - 1));
    const ScalarForce before = {lane_get(mine.residual, k), lane_get(mine.force, k), lane_get(mine.bound, k),
                                lane_get(mine.curve, k)};
    const real across = own >= nv ? R(0.0) : edges ? now->row - now->opposite : now->row;
    real coupled = fma_(across, state->z, R(0.0)), best;
    ROLLED for (int v = own + LANES; v < nv; v += LANES) {
      coupled = fma_(edges ? Y[v] - opposite[v] : Y[v], d.z[v], coupled);
    }
    if (!improve_scalar(before, edges, lane_sum(coupled), &best, &state->improvement)) return;
    const real change = best - before.force;
    state->z = fma_(change, across, state->z);
    ROLLED for (int v = own + LANES; v < nv; v += LANES) {
      d.z[v] = fma_(change, edges ? Y[v] - opposite[v] : Y[v], d.z[v]);
    }
    moved |= 1u << k;
    force = own == k ? best : force;
  };
  Turn one = {lane_get_int(line, 0), 0, 0}, other = {lane_get_int(line, 1), 0, 0};
  one.load(column, stride);
  ROLLED for (int k = 0; k < count; k += 2) {
    update(k, &one, &other);
    if (k + 1 < count) update(k + 1, &other, &one);
  }
  if (moved >> own & 1) put_scalar(d, line >> 1, line & 1, force);
}

// One sweep over the rows in a list, whose friction losses come before all cones.
DEVICE void sweep(const Model& m, const DenseDual& d, int n, const int* list, SweepState* state) {
  const int own = lane();
  ROLLED for (int base = 0; base < n; base += LANES) {
    const int first = state->first, together = state->together;
    int line;
    const int count = line_up(m, first, together, &line);
    look_up(m, d.rows, n, list, base + LANES < n ? base + LANES + own : own, state);
    if (count) take_turns(m, d, count, line, state);
    unsigned cones = lane_ballot(together > 2);
    if (!cones) continue;
    if (own < m.nv()) d.z[own] = state->z;
    ROLLED for (; cones; cones &= cones - 1) {
      const int k = lowest_bit(cones);
      state->improvement += improve_cone(m, d, lane_get_int(first, k), lane_get_int(together, k));
    }
    state->z = own < m.nv() ? d.z[own] : R(0.0);
  }
  lane_sync();
}
#else
DEVICE void begin_sweeps(const Model&, const DenseDual&, int, const int*, SweepState*) {}
DEVICE void end_sweeps(const Model&, const DenseDual&, const SweepState&) {}

// One sweep over the rows in a list.
DEVICE void sweep(const Model& m, const DenseDual& d, int n, const int* list, SweepState* state) {
  const int nv = m.nv(), stride = m.nvp();
  ROLLED for (int k = 0; k < n; ++k) {
    const int r = list[k], together = rows_improved(m, d.rows, r);
    if (!together) continue;
    if (together > 2) {
      state->improvement += improve_cone(m, d, r, together);
      continue;
    }
    const bool edges = together == 2;
    const real *Y = d.Y + r * stride, *minus = Y + stride;
    const ScalarForce now = scalar_force(d, r, edges);
    real coupled = 0, best;
    DOF_FOR(v, nv) coupled = fma_(edges ? Y[v] - minus[v] : Y[v], d.z[v], coupled);
    if (!improve_scalar(now, edges, lane_sum(coupled), &best, &state->improvement)) continue;
    const real change = best - now.force;
    DOF_FOR(v, nv) d.z[v] = fma_(change, edges ? Y[v] - minus[v] : Y[v], d.z[v]);
    lane_sync();
    if (lane() == 0) put_scalar(d, r, edges, best);
  }
  lane_sync();
}
#endif

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
    sweep(m, d, n, list, &state);
    // (5) stop when the decrease of the cost is below the tolerance
    if (state.improvement < m.opt_noslip_tolerance()[0] * trace) break;
    state.improvement = 0;
  }
  end_sweeps(m, d, state);
}

// (1) make qacc the acceleration of the solver's forces. The solver's own is used unless it stopped so early that the
// two differ by more than rounding. `rest` is scratch.
DEVICE void settle_acceleration(const Model& m, const Rows& rows, const real* qM, const real* qLD,
                                const real* qacc_smooth, const real* force, real* qacc, real* rest) {
  const int nv = m.nv(), stride = m.nvp();
  real early = 0;
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
  lane_sync();
  if (lane_sum(early) > 0) {
    chol_solve(rest, qLD, nv);
    DOF_FOR(v, nv) qacc[v] += rest[v];
  }
  lane_sync();
}

// (6) acceleration and generalised force of the changes of forces: z = Y' times the changes, Y' = inv(L) J'.
DEVICE void add_changes(const Model& m, const real* qLD, const real* z, real* qacc, real* qfrc_constraint,
                        real* change) {
  const int nv = m.nv();
  DOF_FOR(v, nv) {
    real x = 0;
    OVERLAPPED for (int k = 0; k <= v; ++k) x = fma_(qLD[v * nv + k], z[k], x);
    change[v] = x;
    qfrc_constraint[v] += x;
  }
  lane_sync();
  chol_solve(change, qLD, nv);
  DOF_FOR(v, nv) qacc[v] += change[v];
  lane_sync();
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
  const DenseDual d = {{m.nv(), m.nvp()}, rows, efc_Y, efc_b, efc_diagAR, efc_weight, 0, efc_force, z};
  int* island_of = reinterpret_cast<int*>(tree);
  settle_acceleration(m, rows, qM, qLD, qacc_smooth, efc_force, qacc, change);
  LANE_FOR(v, m.nvp()) z[v] = 0;
  // (2) rows sorted by island, and the slip velocity of each
  find_islands(m, rows, efc_island, efc_order, island_of);
  whiten_rows(m, rows, qLD, qacc, qacc, efc_Y, [&](int r, const RowSums& sums) {
    efc_b[r] = sums.residual;
    efc_diagAR[r] = sums.regularised;
    efc_weight[MAX_CONE_ROWS * r] = sums.norm;
  });
  bare_blocks(m, rows, efc_Y, efc_weight);
  ROLLED for (int begin = 0, end; begin < n; begin = end) {
    const int island = efc_island[efc_order[begin]];
    if (island > m.ntree()) break;
    end = begin + rows_of_island(rows, efc_island, island);
    real trace = 0;
    DOF_FOR(v, m.nv()) trace += island_of[m.dof_treeid()[v]] == island ? qM[v * m.nv() + v] : R(0.0);
    improve_island(m, d, end - begin, efc_order + begin, lane_sum(trace));
  }
  add_changes(m, qLD, z, qacc, qfrc_constraint, change);
}
