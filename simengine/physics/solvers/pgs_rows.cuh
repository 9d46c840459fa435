// Projected Gauss-Seidel on the host for one island without elliptic cones: the same iterations as in pgs.cuh, with
// rows as the entries of vectors. Here A + R is formed. With its diagonal d, the force at which row j is optimal while
// the others stay fixed is
//
//   best_j = -(b_j + sum over i != j of A_ij f_i) / d_j
//
// and a change of f_r adds -change A_rj / d_j to all best_j at once, so that a row costs a few vector instructions.
#pragma once

#if defined(VECTOR_BYTES) && !defined(TILE) && !defined(UNIT_ISLAND) && LANES == 1
#define MOST_VECTOR_ROWS 64
#define MOST_VECTOR_DOFS 64
#define MOST_KEPT_SWEEPS 1000

// The order in which each sweep visits n rows, which depends on n alone. Orders are kept by the calling thread.
struct SweepOrders {
  unsigned char* rows[MOST_VECTOR_ROWS + 1] = {};
  int known[MOST_VECTOR_ROWS + 1] = {}, room[MOST_VECTOR_ROWS + 1] = {};
  uint64 state[MOST_VECTOR_ROWS + 1];

  ~SweepOrders() {
    for (unsigned char* each : rows) delete[] each;
  }

  // The order of sweep number `sweep`, which is at most one after the last known.
  const unsigned char* of(int n, int sweep) {
    if (sweep < known[n]) return rows[n] + sweep * n;
    if (sweep == room[n]) {
      unsigned char* larger = new unsigned char[(2 * sweep + 64) * n];
      for (int i = 0; i < sweep * n; ++i) larger[i] = rows[n][i];
      delete[] rows[n];
      rows[n] = larger;
      room[n] = 2 * sweep + 64;
    }
    unsigned char* own = rows[n] + sweep * n;
    int order[MOST_VECTOR_ROWS], draw[1];
    for (int i = 0; i < n; ++i) order[i] = sweep ? own[i - n] : i;
    if (sweep == 0) state[n] = pcg_apply(pcg_steps(lane()), 1);
    shuffle(order, n, state[n], pcg_steps(LANES), draw);
    state[n] = pcg_apply(pcg_steps(n - 1), state[n]);
    for (int i = 0; i < n; ++i) own[i] = order[i];
    ++known[n];
    return own;
  }
};

// The rows of an island in vectors: WIDTH is the number of rows, rounded up to a power of two, and at least 16.
template <int WIDTH>
struct VectorRows {
  static constexpr int VECTORS = WIDTH / VECTOR_WIDTH;
  typedef Lanes Row[VECTORS];

  Row b, inverse, diagonal, low, high, force, before;
  Row Y[MOST_VECTOR_DOFS];  // transposed: for each dof, its entry of each row
  Row A[WIDTH];             // A + R
  Row pull[WIDTH];          // A_rj / d_j, without the diagonal
  bool bounded;             // whether some force is bounded from above

  static REAL& entry(Row& row, int i) { return reinterpret_cast<REAL*>(row)[i]; }
  static void bound(const Row& low, const Row& high, Row& x) {
    for (int q = 0; q < VECTORS; ++q) {
      x[q] = x[q] > high[q] ? high[q] : x[q];
      x[q] = x[q] < low[q] ? low[q] : x[q];
    }
  }

  // Sum of the first n entries.
  static real total(Row& row, int n) {
    real sum[4] = {0, 0, 0, 0};
    for (int i = 0; i < n; i += 4) {
      for (int k = 0; k < 4; ++k) sum[k] += entry(row, i + k);
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }

  // out += scale * row
  static void add(Row& out, REAL scale, const Row& row) {
    for (int q = 0; q < VECTORS; ++q) out[q] = vector_fma(every(scale), row[q], out[q]);
  }

  // (2) whitened Jacobian, A + R, residual without forces, and bounds of the forces
  void prepare(const Model& m, const Rows& rows, const real* qLD, const real* qacc_smooth) {
    const int nv = m.nv(), stride = m.nvp(), n = rows.n;
    Row regularisation = {};
    bounded = false;
    for (int q = 0; q < VECTORS; ++q) b[q] = diagonal[q] = low[q] = high[q] = Lanes{};
    for (int v = 0; v < nv; ++v) {
      for (int q = 0; q < VECTORS; ++q) Y[v][q] = Lanes{};
    }
    for (int r = 0; r < n; ++r) {
      const int type = rows.type[r];
      const bool loss = type == ROW_FRICTION_DOF || type == ROW_FRICTION_TENDON;
      bounded |= loss;
      for (int v = 0; v < nv; ++v) entry(Y[v], r) = rows.J[r * stride + v];
      entry(b, r) = -rows.aref[r];
      entry(regularisation, r) = reciprocal_(rows.D[r]);
      entry(high, r) = loss ? rows.frictionloss[r] : REAL_MAX;
      entry(low, r) = loss ? -rows.frictionloss[r] : type == ROW_EQUALITY ? -REAL_MAX : R(0.0);
    }
    for (int v = 0; v < nv; ++v) add(b, qacc_smooth[v], Y[v]);
    for (int v = 0; v < nv; ++v) {
      const REAL scale = reciprocal_(qLD[v * nv + v]);
      for (int q = 0; q < VECTORS; ++q) Y[v][q] *= scale;
      for (int w = v + 1; w < nv; ++w) add(Y[w], -qLD[w * nv + v], Y[v]);
    }
    for (int r = 0; r < n; ++r) {
      Row sum = {};
      for (int v = 0; v < nv; ++v) add(sum, entry(Y[v], r), Y[v]);
      entry(sum, r) += entry(regularisation, r);
      for (int q = 0; q < VECTORS; ++q) A[r][q] = sum[q];
      entry(diagonal, r) = entry(sum, r);
    }
    for (int q = 0; q < VECTORS; ++q) inverse[q] = every(1) / (diagonal[q] > 0 ? diagonal[q] : every(1));
    for (int r = 0; r < n; ++r) {
      for (int q = 0; q < VECTORS; ++q) pull[r][q] = A[r][q] * inverse[q];
      entry(pull[r], r) = 0;
    }
  }

  // (3) warm start: the forces at the last acceleration, or zero if that costs less
  void start(const Model& m, const Rows& rows, const real* qacc_warmstart) {
    const int nv = m.nv(), stride = m.nvp(), n = rows.n;
    for (int q = 0; q < VECTORS; ++q) force[q] = before[q] = Lanes{};
    if (!m.opt_warmstart()) return;
    for (int r = 0; r < n; ++r) {
      real jar = -rows.aref[r];
      for (int v = 0; v < nv; ++v) jar = fma_(rows.J[r * stride + v], qacc_warmstart[v], jar);
      entry(force, r) = -(rows.D[r] * jar);
    }
    bound(low, high, force);
    Row cost = {};
    for (int r = 0; r < n; ++r) add(cost, R(0.5) * entry(force, r), A[r]);
    for (int q = 0; q < VECTORS; ++q) cost[q] = force[q] * (b[q] + cost[q]);
    const bool none = total(cost, n) > 0;
    for (int q = 0; q < VECTORS; ++q) before[q] = force[q] = none ? Lanes{} : force[q];
  }

  // (5) one sweep in the given order. `change` receives the changes of the forces, and `gap` how far each force was
  // from its best without bounds.
  void sweep(const unsigned char* order, int n, Row& change, Row& gap) {
    alignas(64) Row best;
    for (int q = 0; q < VECTORS; ++q) best[q] = -b[q] * inverse[q];
    for (int r = 0; r < n; ++r) add(best, -entry(force, r), pull[r]);
    if (VECTORS == 1) {
      sweep_in_registers(order, n, best[0], change[0], gap[0]);
      return;
    }
    for (int k = 0; k < n; ++k) {
      const int r = order[k];
      const real old = entry(force, r), free = entry(best, r), most = entry(high, r), least = entry(low, r);
      const real under = free > most ? most : free, next = under < least ? least : under, step = next - old;
      entry(change, r) = step;
      entry(gap, r) = old - free;
      entry(force, r) = next;
      add(best, -step, pull[r]);
    }
  }

  // The same if all rows are in one vector, which stays in a register: an entry costs the time to pass through it.
  void sweep_in_registers(const unsigned char* order, int n, Lanes best, Lanes& change, Lanes& gap) {
    const Lanes start = force[0], most = high[0], least = low[0];
    Lanes now = start, seen = start;
    Truths places;
    for (int i = 0; i < VECTOR_WIDTH; ++i) places[i] = i;
    for (int k = 0; k < n; ++k) {
      const Truths place = order[k] + Truths{};
      Lanes next = best;
      if (bounded) next = next > most ? most : next;
      next = next < least ? least : next;
      const Lanes step = spread(next - now, order[k]);
      seen = places == place ? best : seen;
      now = places == place ? next : now;
      best = vector_fma(-step, pull[order[k]][0], best);
    }
    force[0] = now;
    change = now - start;
    gap = start - seen;
  }

  // Iterate; returns the number of iterations.
  int descend(const Model& m, int n, real trace) {
    static thread_local SweepOrders orders;
    int iteration = 0, since_restart = 0;
    real summed = 0;
    while (iteration < m.opt_iterations()) {
      // (4) extrapolate, and clamp to the bounds
      const real momentum = since_restart > 1 ? divide_(R(1.0) * (since_restart - 1), R(1.0) * (since_restart + 2)) : 0;
      Row start;
      for (int q = 0; q < VECTORS; ++q) {
        start[q] = vector_fma(every(momentum), force[q] - before[q], force[q]);
        before[q] = force[q];
        force[q] = start[q];
      }
      if (momentum > 0) bound(low, high, force);
      for (int q = 0; q < VECTORS; ++q) start[q] = force[q];
      Row change = {}, gap = {}, improvement, against;
      sweep(orders.of(n, iteration), n, change, gap);
      for (int q = 0; q < VECTORS; ++q) {
        improvement[q] = -change[q] * diagonal[q] * vector_fma(every(R(0.5)), change[q], gap[q]);
        against[q] = -change[q] * (start[q] - before[q]);
      }
      ++iteration;
      // (6) the momentum grows until the extrapolation goes against the descent
      since_restart = total(against, n) > 0 ? 0 : since_restart + 1;
      // (7) stop when the decrease of the cost is below the tolerance, or is rounding alone
      const real gain = total(improvement, n);
      summed += abs_(gain);
      if (gain < max_(m.opt_tolerance()[0] * trace, 16 * REAL_EPS * REAL_EPS * summed)) break;
    }
    return iteration;
  }
};

// Find the island and the order of the rows if there is one tree and no cone, so that all rows are of one island.
DEVICE bool one_island(const Model& m, const Rows& rows, int* efc_island, int* efc_order, int* tree) {
  if (m.ntree() != 1) return false;
  for (int r = 0; r < rows.n; ++r) {
    const real* J = rows.J + r * m.nvp();
    int v = 0;
    while (v < m.nv() && J[v] == 0) ++v;
    if (v == m.nv() || rows.type[r] == ROW_CONTACT_ELLIPTIC) return false;
    efc_island[r] = 0;
    efc_order[r] = r;
  }
  tree[0] = 0;
  return true;
}

// Whether the vectors serve the rows of a world: they are few, outside elliptic cones, and all of one island.
DEVICE bool in_vectors(const Model& m, const Rows& rows, const int* efc_island) {
  if (rows.n > MOST_VECTOR_ROWS || m.nv() > MOST_VECTOR_DOFS || m.opt_iterations() > MOST_KEPT_SWEEPS) return false;
  for (int r = 0; r < rows.n; ++r) {
    if (rows.type[r] == ROW_CONTACT_ELLIPTIC || efc_island[r] != efc_island[0]) return false;
  }
  return efc_island[0] < m.ntree();
}

// Solve, and write what the solver of pgs.cuh would leave for each row.
template <int WIDTH>
DEVICE int pgs_in_vectors(const Model& m, const Rows& rows, const real* qLD, const real* qacc_smooth,
                          const real* qacc_warmstart, real trace, real* efc_force, real* efc_Y, real* efc_b,
                          real* efc_diagAR, real* efc_weight, real* efc_before) {
  alignas(64) static thread_local VectorRows<WIDTH> own;
  own.prepare(m, rows, qLD, qacc_smooth);
  own.start(m, rows, qacc_warmstart);
  const int iterations = own.descend(m, rows.n, trace);
  for (int r = 0; r < rows.n; ++r) {
    efc_force[r] = own.entry(own.force, r);
    efc_before[r] = own.entry(own.before, r);
    efc_b[r] = own.entry(own.b, r);
    efc_diagAR[r] = own.entry(own.diagonal, r);
    for (int i = 0; i < MAX_CONE_ROWS; ++i) efc_weight[MAX_CONE_ROWS * r + i] = efc_diagAR[r];
    for (int v = 0; v < m.nvp(); ++v) efc_Y[r * m.nvp() + v] = v < m.nv() ? own.entry(own.Y[v], r) : R(0.0);
  }
  return iterations;
}
#endif
