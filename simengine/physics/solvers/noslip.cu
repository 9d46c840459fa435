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

// (2) diagonal blocks of A, without the regularisation.
DEVICE void bare_blocks(const Model& m, const DenseDual& d, real* efc_weight) {
  const int stride = m.nvp();
  LANE_FOR(r, d.rows.n) {
    const int n = rows_improved(m, d.rows, r);
    ROLLED for (int e = 0; e < MAX_CONE_ROWS * n; ++e) {
      const int i = e / MAX_CONE_ROWS, j = e % MAX_CONE_ROWS;
      efc_weight[MAX_CONE_ROWS * r + e] = j < n ? row_dot(d.Y, r + i, stride, d.Y + (r + j) * stride) : R(0.0);
    }
  }
  lane_sync();
}

// Optimal friction forces of a cone for a quadratic cost: minimise
// 1/2 (x - old)' A (x - old) + (x - old)' slip over sum (x_i / friction_i)^2 <= radius^2.
// With x_i = friction_i y_i and A, slip and old scaled to match, (A + lambda) (y - old) = -slip - lambda old, where
// lambda >= 0 is the root of |y| = radius. As in MuJoCo, Newton's method on |y|^2 has 20 iterations, which are too few
// where a friction coefficient is small. A matrix whose pivots are small or mere rounding gives no force. Pivot i is
// v' A v, where v_i = 1 and the others make A v zero above i. So it is mere rounding below the rounding of that product.
#define TANGENT_ITERATIONS 20
#define LEAST_PIVOT R(1e-10)

// y = old - inv(A + lambda) (slip + lambda old), scaled; L receives the Cholesky factor. Returns false if the matrix
// counts as singular.
DEVICE bool tangents_at(int n, const real* A, const real* slip, const real* old, const real* friction, real lambda,
                        real* L, real* y) {
  real root[MAX_CONE_ROWS], v[MAX_CONE_ROWS], least = 1, product = 1;
  bool rounding = false;
  ROLLED for (int i = 0; i < n; ++i) {
    const real before = friction[i] > 0 ? divide_(old[i], friction[i]) : R(0.0);
    real right = -fma_(lambda, before, friction[i] * slip[i]);
    ROLLED for (int j = 0; j <= i; ++j) {
      const real whole = friction[i] * friction[j] * A[MAX_CONE_ROWS * i + j] + (i == j ? lambda : R(0.0));
      real a = whole;
      ROLLED for (int k = 0; k < j; ++k) a = fma_(-L[MAX_CONE_ROWS * i + k], L[MAX_CONE_ROWS * j + k], a);
      if (i == j) {
        least = min_(least, a);
        product *= a;
        real extent = root[i] = sqrt_(whole);
        ROLLED for (int k = i - 1; k >= 0; --k) {
          v[k] = L[MAX_CONE_ROWS * i + k];
          ROLLED for (int q = k + 1; q < i; ++q) v[k] = fma_(-L[MAX_CONE_ROWS * q + k], v[q], v[k]);
          v[k] = divide_(v[k], L[MAX_CONE_ROWS * k + k]);
          extent = fma_(abs_(v[k]), root[k], extent);
        }
        rounding |= a <= 32 * REAL_EPS * extent * extent;
      }
      L[MAX_CONE_ROWS * i + j] = i == j ? sqrt_(max_(a, MJMINVAL)) : divide_(a, L[MAX_CONE_ROWS * j + j]);
    }
    ROLLED for (int k = 0; k < i; ++k) right = fma_(-L[MAX_CONE_ROWS * i + k], y[k], right);
    y[i] = divide_(right, L[MAX_CONE_ROWS * i + i]);
  }
  ROLLED for (int i = n - 1; i >= 0; --i) {
    ROLLED for (int k = i + 1; k < n; ++k) y[i] = fma_(-L[MAX_CONE_ROWS * k + i], y[k], y[i]);
    y[i] = divide_(y[i], L[MAX_CONE_ROWS * i + i]);
  }
  ROLLED for (int i = 0; i < n; ++i) y[i] += friction[i] > 0 ? divide_(old[i], friction[i]) : R(0.0);
  return !rounding && (n > 3 ? least : product) >= LEAST_PIVOT;
}

DEVICE void best_tangents(int n, const real* A, const real* slip, const real* old, const real* friction, real radius,
                          real* x) {
  real L[MAX_CONE_ROWS * MAX_CONE_ROWS], y[MAX_CONE_ROWS], lambda = 0, length2 = 0;
  const real slack = max_(R(1e-10), REAL_EPS * radius * radius);
  ROLLED for (int iteration = 0; iteration < TANGENT_ITERATIONS; ++iteration) {
    if (!tangents_at(n, A, slip, old, friction, lambda, L, y)) return;
    real curve = 0;
    length2 = 0;
    ROLLED for (int i = 0; i < n; ++i) {
      // x = inv(L) y, so that |x|^2 = y' inv(A + lambda) y
      x[i] = y[i];
      ROLLED for (int k = 0; k < i; ++k) x[i] = fma_(-L[MAX_CONE_ROWS * i + k], x[k], x[i]);
      x[i] = divide_(x[i], L[MAX_CONE_ROWS * i + i]);
      curve = fma_(x[i], x[i], curve);
      length2 = fma_(y[i], y[i], length2);
    }
    const real excess = length2 - radius * radius;
    if (excess < slack) break;
    const real further = divide_(excess, 2 * curve);
    if (further < R(1e-10) || iteration == TANGENT_ITERATIONS - 1) break;
    lambda += further;
  }
  const real shrink = lambda > 0 ? divide_(radius, sqrt_(length2)) : R(1.0);
  ROLLED for (int i = 0; i < n; ++i) x[i] = shrink * friction[i] * y[i];
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

// (4) optimise the forces of two opposite edges, the first of which is r, at constant sum while the others stay fixed;
// returns the decrease of the cost. The code works with the difference of the two rows, in which their common part
// cancels.
DEVICE real improve_edges(const Model& m, const DenseDual& d, int r) {
  const int nv = m.nv(), stride = m.nvp();
  const real *plus = d.Y + r * stride, *minus = plus + stride, *A = d.block + MAX_CONE_ROWS * r;
  real coupled = 0, curve = 0;
  DOF_FOR(v, nv) {
    const real across = plus[v] - minus[v];
    coupled = fma_(across, d.z[v], coupled);
    curve = fma_(across, across, curve);
  }
  const real slope = d.b[r] - d.b[r + 1] + lane_sum(coupled), noise = 16 * REAL_EPS;
  curve = lane_sum(curve);
  const real middle = R(0.5) * (d.force[r] + d.force[r + 1]), old = R(0.5) * (d.force[r] - d.force[r + 1]);
  const bool flat = curve < max_(MJMINVAL, noise * noise * (A[0] + A[MAX_CONE_ROWS + 1]));
  const real half = flat ? R(0.0) : clamp_(old - divide_(slope, curve), -middle, middle);
  const real change = half - old, cost = change * fma_(R(0.5) * curve, change, slope);
  if (cost > R(1e-10)) return 0;
  DOF_FOR(v, nv) d.z[v] = fma_(change, plus[v] - minus[v], d.z[v]);
  lane_sync();
  if (lane() == 0) {
    d.force[r] = middle + half;
    d.force[r + 1] = middle - half;
  }
  return -cost;
}

// (4) the same for a friction loss, and for the friction forces of a cone.
DEVICE real improve_row(const Model& m, const DenseDual& d, int r) {
  const Rows& rows = d.rows;
  const int nv = m.nv(), stride = m.nvp(), together = rows_improved(m, rows, r);
  if (!together) return 0;
  if (rows.type[r] == ROW_CONTACT_PYRAMIDAL) return improve_edges(m, d, r);
  const bool cone = rows.type[r] == ROW_CONTACT_ELLIPTIC;
  const int first = cone ? r + 1 : r, n = cone ? together - 1 : together;
  const real* A = d.block + MAX_CONE_ROWS * r + (cone ? MAX_CONE_ROWS + 1 : 0);
  real old[MAX_CONE_ROWS], slip[MAX_CONE_ROWS], force[MAX_CONE_ROWS];
  ROLLED for (int i = 0; i < n; ++i) {
    real coupled = 0;
    DOF_FOR(v, nv) coupled = fma_(d.Y[(first + i) * stride + v], d.z[v], coupled);
    slip[i] = d.b[first + i] + lane_sum(coupled);
    old[i] = d.force[first + i];
    force[i] = 0;
  }
  if (!cone) {
    force[0] = clamp_(old[0] - divide_(slip[0], A[0]), -rows.frictionloss[r], rows.frictionloss[r]);
  } else if (d.force[r] >= MJMINVAL) {
    best_tangents(n, A, slip, old, friction_of(m, rows, r), d.force[r], force);
  }
  real noise;
  const real cost = cost_of(n, A, slip, old, force, &noise);
  if (cost > noise) return 0;  // the friction forces of a cone may not be optimal
  ROLLED for (int i = 0; i < n; ++i) {
    const real change = force[i] - old[i];
    DOF_FOR(v, nv) d.z[v] = fma_(change, d.Y[(first + i) * stride + v], d.z[v]);
  }
  lane_sync();
  if (lane() == 0) {
    ROLLED for (int i = 0; i < n; ++i) d.force[first + i] = force[i];
  }
  return -cost;
}

// Sweeps over the rows of one island; `trace` is the trace of its inertia matrix.
DEVICE void improve_island(const Model& m, const DenseDual& d, int n, const int* list, real trace) {
  real improvement = 0;
  // (3) the first sweep also counts the cost of the regularisation as improvement
  LANE_FOR(k, n) {
    const int r = list[k], dim = rows_together(m, d.rows, r);
    for (int i = r; i < r + dim; ++i) {
      improvement = fma_(R(0.5) * d.force[i], divide_(d.force[i], d.rows.D[i]), improvement);
    }
  }
  improvement = lane_sum(improvement);
  ROLLED for (int sweep = 0; sweep < m.opt_noslip_iterations(); ++sweep) {
    ROLLED for (int k = 0; k < n; ++k) improvement += improve_row(m, d, list[k]);
    lane_sync();
    // (5) stop when the decrease of the cost is below the tolerance
    if (improvement < m.opt_noslip_tolerance()[0] * trace) break;
    improvement = 0;
  }
}

// (1) make qacc the acceleration of the solver's forces. The solver's own is used unless it stopped so early that the
// two differ by more than rounding. `rest` is scratch.
DEVICE void settle_acceleration(const Model& m, const Rows& rows, const real* qM, const real* qLD,
                                const real* qacc_smooth, const real* force, real* qacc, real* rest) {
  const int nv = m.nv(), stride = m.nvp();
  real early = 0;
  DOF_FOR(v, nv) {
    real sum = 0, size = 0;
    ROLLED for (int r = 0; r < rows.n; ++r) {
      const real part = rows.J[r * stride + v] * force[r];
      sum += part;
      size += abs_(part);
    }
    ROLLED for (int u = 0; u < nv; ++u) {
      const real part = qM[v * nv + u] * (qacc[u] - qacc_smooth[u]);
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
    ROLLED for (int k = 0; k <= v; ++k) x = fma_(qLD[v * nv + k], z[k], x);
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
  whiten(m, rows, qLD, qacc, efc_Y, efc_b, efc_diagAR, efc_weight);
  bare_blocks(m, d, efc_weight);
  ROLLED for (int begin = 0, end; begin < n; begin = end) {
    const int island = efc_island[efc_order[begin]];
    if (island > m.ntree()) break;
    for (end = begin; end < n && efc_island[efc_order[end]] == island;) ++end;
    real trace = 0;
    DOF_FOR(v, m.nv()) trace += island_of[m.dof_treeid()[v]] == island ? qM[v * m.nv() + v] : R(0.0);
    improve_island(m, d, end - begin, efc_order + begin, lane_sum(trace));
  }
  add_changes(m, qLD, z, qacc, qfrc_constraint, change);
}
