// Islands of few rows by projected Gauss-Seidel on the host, one after another; see pgs_rows.cuh.
#pragma once

#ifdef MOST_VECTOR_ROWS
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

// Number of the rows of an island that open something, which are in `list` from its start.
DEVICE int places_of_island(const int* efc_island, const int* list, int most) {
  int places = 1;
  while (places < most && efc_island[list[places]] == efc_island[list[0]]) ++places;
  return places;
}

// Whether the vectors serve the rows of a world: every island has few.
DEVICE bool in_vectors(const Model& m, const Rows& rows, const int* efc_island, const int* efc_order) {
  if (m.nv() > MOST_VECTOR_DOFS) return false;
  for (int begin = 0; begin < rows.n && efc_island[efc_order[begin]] <= m.ntree();) {
    const int end = begin + places_of_island(efc_island, efc_order + begin, rows.n - begin);
    int number = 0;
    for (; begin < end; ++begin) number += rows_together(m, rows, efc_order[begin]);
    if (number > MOST_VECTOR_ROWS || number * m.opt_iterations() > MOST_KEPT_PLACES) return false;
  }
  return true;
}

// (3) warm start: the forces at the last acceleration, or zero if that costs less. `push` and `moved` are for J' f, and
// the acceleration by it.
DEVICE void warm_forces(const Model& m, const DenseDual& d, const real* qLD, const real* qacc_smooth,
                        const real* qacc_warmstart, real* push, real* moved) {
  const Rows& rows = d.rows;
  const int nv = m.nv(), stride = m.nvp();
  real cost = 0;
  for (int v = 0; v < nv; ++v) push[v] = 0;
  for (int r = 0; r < rows.n; ++r) {
    const real* J = rows.J + size_t(r) * stride;
    real jar = -rows.aref[r];
    for (int v = 0; v < nv; ++v) jar = fma_(J[v], qacc_warmstart[v], jar);
    d.before[r] = jar;
  }
  for (int r = 0; r < rows.n; ++r) {
    const int dim = rows_together(m, rows, r);
    if (dim) row_law(m, rows, r, dim, d.before + r, d.force + r, (real*)0);
  }
  for (int r = 0; r < rows.n; ++r) {
    const real* J = rows.J + size_t(r) * stride;
    const real force = m.opt_warmstart() ? d.force[r] : R(0.0);
    real b = -rows.aref[r];
    for (int v = 0; v < nv; ++v) {
      b = fma_(J[v], qacc_smooth[v], b);
      push[v] = fma_(J[v], force, push[v]);
    }
    cost = fma_(force, b + R(0.5) * divide_(force, rows.D[r]), cost);
  }
  for (int v = 0; v < nv; ++v) moved[v] = push[v];
  chol_solve(moved, qLD, nv);
  for (int v = 0; v < nv; ++v) cost = fma_(R(0.5) * push[v], moved[v], cost);
  for (int r = 0; r < rows.n; ++r) d.force[r] = cost > 0 || !m.opt_warmstart() ? R(0.0) : d.force[r];
}

// What an island is solved from, beside its rows: `alone` says that all rows are of it, outside cones.
struct Given {
  const real *qLD, *qacc_smooth, *qacc_warmstart;
  real trace;
  bool alone;
};

// Solve an island, and write what the solver of pgs.cuh would leave for each row, and the order of its last sweep.
template <int WIDTH>
DEVICE int pgs_in_vectors(const Model& m, const Rows& rows, int* list, int listed, const Given& given, real* efc_force,
                          real* efc_Y, real* efc_b, real* efc_diagAR, real* efc_weight, real* efc_before) {
  alignas(64) static thread_local VectorRows<WIDTH> own;
  own.take_rows(m, rows, list, listed);
  own.prepare(m, rows, given.qLD, given.qacc_smooth);
  if (given.alone) {
    own.start_alone(m, rows, given.qacc_warmstart);
  } else {
    own.start(efc_force);
  }
  const int iterations = own.descend(m, rows, given.trace);
  for (int i = 0; i < own.number; ++i) {
    const int r = own.row[i];
    efc_force[r] = own.entry(own.force, i);
    efc_before[r] = own.entry(own.before, i);
    efc_b[r] = own.entry(own.b, i);
    efc_diagAR[r] = own.entry(own.diagonal, i);
    for (int j = 0; j < MAX_CONE_ROWS; ++j) efc_weight[MAX_CONE_ROWS * r + j] = own.block[i][j];
    for (int v = 0; v < m.nvp(); ++v) efc_Y[r * m.nvp() + v] = v < m.nv() ? own.entry(own.Y[v], i) : R(0.0);
  }
  for (int k = 0; own.order && k < listed; ++k) list[k] = own.row[own.first[own.order[k]]];
  return iterations;
}

// Solve all islands of a world, whose rows are in_vectors; returns the most iterations.
DEVICE int islands_in_vectors(const Model& m, const DenseDual& d, const real* qM, const real* qLD,
                              const real* qacc_smooth, const real* qacc_warmstart, const int* efc_island,
                              int* efc_order, const int* island_of, real* efc_Y, real* efc_b, real* efc_diagAR,
                              real* efc_weight, real* push, real* moved) {
  const int n = d.rows.n, nv = m.nv();
  Given given = {qLD, qacc_smooth, qacc_warmstart, 0, false};
  given.alone = places_of_island(efc_island, efc_order, n) == n && efc_island[efc_order[0]] < m.ntree();
  if (!given.alone) warm_forces(m, d, qLD, qacc_smooth, qacc_warmstart, push, moved);
  int most = 0;
  for (int begin = 0, end; begin < n && efc_island[efc_order[begin]] <= m.ntree(); begin = end) {
    const int island = efc_island[efc_order[begin]];
    end = begin + places_of_island(efc_island, efc_order + begin, n - begin);
    int rows = 0;
    for (int k = begin; k < end; ++k) rows += rows_together(m, d.rows, efc_order[k]);
    given.trace = 0;
    for (int v = 0; v < nv; ++v) given.trace += island_of[m.dof_treeid()[v]] == island ? qM[v * nv + v] : R(0.0);
    const auto small = rows <= 16 ? pgs_in_vectors<16> : rows <= 32 ? pgs_in_vectors<32> : pgs_in_vectors<64>;
    const auto solve = rows <= 64 ? small : rows <= 128 ? pgs_in_vectors<128> : pgs_in_vectors<256>;
    const int number = solve(m, d.rows, efc_order + begin, end - begin, given, d.force, efc_Y, efc_b, efc_diagAR,
                             efc_weight, d.before);
    most = number > most ? number : most;
  }
  return most;
}
#endif
