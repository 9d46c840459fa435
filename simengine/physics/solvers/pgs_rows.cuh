// Projected Gauss-Seidel on the host for an island of few rows: the same iterations as in pgs.cuh, with rows as the
// entries of vectors. Here A + R is formed. With its diagonal d, the force at which row j is optimal while
// the others stay fixed is
//
//   best_j = -(b_j + sum over i != j of A_ij f_i) / d_j
//
// and a change of f_r adds -change A_rj / d_j to all best_j at once, so that a row costs a few vector instructions. The
// residual of a row is d_j (f_j - best_j), from which those of an elliptic cone find their best force together.
#pragma once

#ifdef MOST_VECTOR_ROWS
// The rows of an island in vectors: WIDTH is the number of rows, rounded up to a power of two, and at least 16.
template <int WIDTH>
struct VectorRows {
  static constexpr int VECTORS = WIDTH / VECTOR_WIDTH;
  typedef Lanes Row[VECTORS];

  int number, row[WIDTH];                // rows of the island, by their numbers in the world
  int places, first[WIDTH], dim[WIDTH];  // what a sweep visits: rows outside cones, and cones of dim rows
  const unsigned char* order;            // of the last sweep, if there was one
  bool cones;

  Row b, inverse, diagonal, low, high, force, before;
  Row Y[MOST_VECTOR_DOFS];  // transposed: for each dof, its entry of each row
  Row A[WIDTH];             // A + R
  Row pull[WIDTH];          // A_rj / d_j, without the diagonal
  real block[WIDTH][MAX_CONE_ROWS];  // of a cone's rows, their part of A + R; of others, the diagonal
  KeptFactor kept[WIDTH / 6 + 1];    // of cones of six rows, of which the first rows are at least six apart
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

  // (1) the rows of an island, given the places that its sweeps visit
  void take_rows(const Model& m, const Rows& rows, const int* list, int listed) {
    number = 0;
    places = listed;
    for (int k = 0; k < listed; ++k) {
      first[k] = number;
      dim[k] = rows_together(m, rows, list[k]);
      for (int i = 0; i < dim[k]; ++i) row[number++] = list[k] + i;
    }
    cones = number > places;
    order = nullptr;
  }

  // The rows of the Jacobian, as the entries of the vectors of dofs.
  void take_jacobian(const Rows& rows, int nv, int stride) {
    for (int q = 0; q < VECTORS; ++q) {
      for (int v = 0; v < nv; v += VECTOR_WIDTH) {
        Lanes x[VECTOR_WIDTH];
        const int columns = nv - v < VECTOR_WIDTH ? nv - v : VECTOR_WIDTH;
        for (int k = 0; k < VECTOR_WIDTH; ++k) {
          const int r = q * VECTOR_WIDTH + k;
          x[k] = r < number ? load_words(rows.J + row[r] * stride + v, columns) : Lanes{};
        }
        transpose(x);
        for (int k = 0; k < columns; ++k) Y[v + k][q] = x[k];
      }
    }
  }

  // (2) whitened Jacobian, A + R, residual without forces, and bounds of the forces
  void prepare(const Model& m, const Rows& rows, const real* qLD, const real* qacc_smooth) {
    const int nv = m.nv(), stride = m.nvp(), n = number;
    Row regularisation = {};
    bounded = false;
    for (int q = 0; q < VECTORS; ++q) b[q] = diagonal[q] = low[q] = high[q] = Lanes{};
    take_jacobian(rows, nv, stride);
    for (int r = 0; r < n; ++r) {
      const int own = row[r], type = rows.type[own];
      const bool loss = type == ROW_FRICTION_DOF || type == ROW_FRICTION_TENDON;
      const bool free = type == ROW_EQUALITY || type == ROW_CONTACT_ELLIPTIC;
      bounded |= loss;
      entry(b, r) = -rows.aref[own];
      entry(regularisation, r) = reciprocal_(rows.D[own]);
      entry(high, r) = loss ? rows.frictionloss[own] : REAL_MAX;
      entry(low, r) = loss ? -rows.frictionloss[own] : free ? -REAL_MAX : R(0.0);
    }
    for (int v = 0; v < nv; ++v) add(b, qacc_smooth[v], Y[v]);
    for (int v = 0; v < nv; ++v) {
      const REAL scale = reciprocal_(qLD[v * nv + v]);
      for (int q = 0; q < VECTORS; ++q) Y[v][q] *= scale;
      for (int w = v + 1; w < nv; ++w) add(Y[w], -qLD[w * nv + v], Y[v]);
    }
    for (int r = 0; r < n; ++r) {
      Row sum = {};
      for (int v = 0; v < nv; ++v) {
        if (entry(Y[v], r) != 0) add(sum, entry(Y[v], r), Y[v]);
      }
      for (int q = 0; q < VECTORS; ++q) {
        const Truths own = ::places() == r - q * VECTOR_WIDTH;
        A[r][q] = own ? sum[q] + regularisation[q] : sum[q];
        diagonal[q] = own ? A[r][q] : diagonal[q];
      }
    }
    for (int q = 0; q < VECTORS; ++q) inverse[q] = every(1) / (diagonal[q] > 0 ? diagonal[q] : every(1));
    for (int r = 0; r < n; ++r) {
      for (int q = 0; q < VECTORS; ++q) {
        pull[r][q] = ::places() == r - q * VECTOR_WIDTH ? Lanes{} : A[r][q] * inverse[q];
      }
    }
    for (KeptFactor& factor : kept) factor.ready = false;
    for (int k = 0; k < places; ++k) {
      for (int i = first[k]; i < first[k] + dim[k]; ++i) {
        for (int j = 0; j < MAX_CONE_ROWS; ++j) block[i][j] = entry(A[i], j < dim[k] ? first[k] + j : i);
      }
    }
  }

  // (3) warm start from given forces of all rows
  void start(const real* warm) {
    for (int q = 0; q < VECTORS; ++q) force[q] = Lanes{};
    for (int i = 0; i < number; ++i) entry(force, i) = warm[row[i]];
    for (int q = 0; q < VECTORS; ++q) before[q] = force[q];
  }

  // The same without cones, if all rows are of this island: the forces at the last acceleration, or zero if that costs
  // less.
  void start_alone(const Model& m, const Rows& rows, const real* qacc_warmstart) {
    const int nv = m.nv(), stride = m.nvp(), n = number;
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

  // (5) one sweep in order. `change` receives the changes of the forces, and `gap` how far each force was
  // from its best without bounds. Returns the part of the improvement by which rows of cones act on each other.
  real sweep(const Model& m, const Rows& rows, Row& change, Row& gap) {
    alignas(64) Row best;
    for (int q = 0; q < VECTORS; ++q) best[q] = -b[q] * inverse[q];
    for (int r = 0; r < number; ++r) add(best, -entry(force, r), pull[r]);
    if (VECTORS == 1 && !cones) {
      sweep_in_registers(best[0], change[0], gap[0]);
      return 0;
    }
    real together = 0;
    for (int k = 0; k < places; ++k) {
      const int r = first[order[k]];
      if (dim[order[k]] > 1) {
        together += visit_cone(m, rows, r, dim[order[k]], best, change, gap);
        continue;
      }
      const real old = entry(force, r), free = entry(best, r), most = entry(high, r), least = entry(low, r);
      const real under = free > most ? most : free, next = under < least ? least : under, step = next - old;
      entry(change, r) = step;
      entry(gap, r) = old - free;
      entry(force, r) = next;
      add(best, -step, pull[r]);
    }
    return together;
  }

  // The same for the cone whose first row is r.
  real visit_cone(const Model& m, const Rows& rows, int r, int dim, Row& best, Row& change, Row& gap) {
    real old[MAX_CONE_ROWS], residual[MAX_CONE_ROWS], next[MAX_CONE_ROWS], together = 0;
    for (int i = 0; i < dim; ++i) {
      old[i] = entry(force, r + i);
      entry(gap, r + i) = old[i] - entry(best, r + i);
      residual[i] = entry(diagonal, r + i) * entry(gap, r + i);
    }
    best_in_cone(dim, block[r], residual, old, friction_of(m, rows, row[r]), next, dim == 6 ? kept + r / 6 : nullptr);
    real step[MAX_CONE_ROWS];
    for (int i = 0; i < dim; ++i) {
      step[i] = next[i] - old[i];
      for (int j = 0; j < i; ++j) together = fma_(-step[i] * block[r + i][j], step[j], together);
      entry(change, r + i) = step[i];
      entry(force, r + i) = next[i];
    }
    for (int q = 0; q < VECTORS; ++q) {  // all steps at once, so that the vector is written to memory once
      Lanes x = best[q];
      for (int i = 0; i < dim; ++i) x = vector_fma(every(-step[i]), pull[r + i][q], x);
      best[q] = x;
    }
    return together;
  }

  // Clamp all forces to their bounds, and project those of cones into them.
  void confine_all(const Model& m, const Rows& rows) {
    bound(low, high, force);
    for (int k = 0; cones && k < places; ++k) {
      if (dim[k] > 1) into_cone(dim[k], friction_of(m, rows, row[first[k]]), &entry(force, first[k]));
    }
  }

  // The same if all rows are in one vector, which stays in a register: an entry costs the time to pass through it.
  void sweep_in_registers(Lanes best, Lanes& change, Lanes& gap) {
    const Lanes start = force[0], most = high[0], least = low[0];
    Lanes now = start, seen = start;
    Truths places;
    for (int i = 0; i < VECTOR_WIDTH; ++i) places[i] = i;
    for (int k = 0; k < number; ++k) {
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
  int descend(const Model& m, const Rows& rows, real trace) {
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
      if (momentum > 0) confine_all(m, rows);
      for (int q = 0; q < VECTORS; ++q) start[q] = force[q];
      Row change = {}, gap = {}, improvement, against;
      order = orders.of(places, iteration);
      const real together = sweep(m, rows, change, gap);
      for (int q = 0; q < VECTORS; ++q) {
        improvement[q] = -change[q] * diagonal[q] * vector_fma(every(R(0.5)), change[q], gap[q]);
        against[q] = -change[q] * (start[q] - before[q]);
      }
      ++iteration;
      // (6) the momentum grows until the extrapolation goes against the descent
      since_restart = total(against, number) > 0 ? 0 : since_restart + 1;
      // (7) stop when the decrease of the cost is below the tolerance, or is rounding alone
      const real gain = total(improvement, number) + together;
      summed += abs_(gain);
      if (gain < max_(m.opt_tolerance()[0] * trace, 16 * REAL_EPS * REAL_EPS * summed)) break;
    }
    return iteration;
  }
};
#endif
