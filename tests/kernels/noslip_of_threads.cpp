// The stage noslip, run by 32 threads of the host on random rows of two to eight trees. Built with SIMENGINE_GPU 1 it
// takes the forms for a warp, with 0 those over memory: both print the same bits. Each argument is a number of rows.
#include "threads_as_lanes.h"

#define MJMINVAL 1e-15

enum {
  ROW_EQUALITY,
  ROW_FRICTION_DOF,
  ROW_FRICTION_TENDON,
  ROW_LIMIT,
  ROW_CONTACT_PYRAMIDAL = 6,
  ROW_CONTACT_ELLIPTIC = 7
};

int lane_sum_int(int x) { return int(lane_sum(x)); }
void lower_at(int* place, int x) {
  int there = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (x < there && !__atomic_compare_exchange_n(place, &there, x, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

// The part of the generated `Model` that the stage reads. All contacts have `cone` rows.
struct Model {
  int dofs, trees, cone;
  std::vector<int> treeid, rows;
  std::vector<real> friction;
  real tolerance, impratio, *column;

  int nv() const { return dofs; }
  int nvp() const { return (dofs + 3) & ~3; }
  int ntree() const { return trees; }
  int opt_iterations() const { return 0; }
  int opt_noslip_iterations() const { return 5; }
  bool opt_warmstart() const { return true; }
  const int* dof_treeid() const { return treeid.data(); }
  const real* opt_tolerance() const { return &tolerance; }
  const real* opt_noslip_tolerance() const { return &tolerance; }
  const real* opt_impratio() const { return &impratio; }
  const int* cand_rows() const { return rows.data(); }
  const real* cand_friction() const { return friction.data(); }
};

// What only the solvers need.
void into_cone(int, const real*, real*) { std::abort(); }
void best_in_cone(int, const real*, const real*, const real*, const real*, real*) { std::abort(); }
template <typename Weight, typename Out>
int sums_before(int, Weight, Out) {
  std::abort();
}
real row_dot(const real*, int, int, const real*) { std::abort(); }

void chol_solve(real* x, const real* L, int n) {
  if (lane() == 0) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < i; ++j) x[i] -= L[i * n + j] * x[j];
      x[i] /= L[i * n + i];
    }
    for (int i = n - 1; i >= 0; --i) {
      for (int j = i + 1; j < n; ++j) x[i] -= L[j * n + i] * x[j];
      x[i] /= L[i * n + i];
    }
  }
  lane_sync();
}

#include "random.cuh"
#include "row_law.cuh"
#include "whiten.cuh"
#include "pgs.cuh"
#include "row_islands.cuh"
// The host has forms of its own for cones, whose last digits differ.
#pragma push_macro("SIMENGINE_GPU")
#undef SIMENGINE_GPU
#define SIMENGINE_GPU 1
#include "tangents.cuh"
#pragma pop_macro("SIMENGINE_GPU")
#include "thin_cones.cuh"
#include "noslip_rows.cuh"
#include "noslip_sweeps.cuh"
#include "noslip.cu"

// Rows of one or two trees each, in the order of their types; contacts are the last half.
struct Problem {
  Model m;
  int n = 0;
  std::vector<real> J, D, aref, loss, force, M, L, smooth, acceleration;
  std::vector<int> type, id, address;

  void add(int kind, real bound) {
    const int stride = m.nvp(), one = rand() % m.trees, other = rand() % 3 ? one : rand() % m.trees;
    for (int v = 0; v < stride; ++v) {
      const bool touched = v < m.dofs && (m.treeid[size_t(v)] == one || m.treeid[size_t(v)] == other);
      J.push_back(touched && rand() % 4 ? uniform() : 0);
    }
    type.push_back(kind), loss.push_back(bound), id.push_back(int(address.size()) - 1);
    D.push_back(10 + 9 * uniform()), aref.push_back(5 * uniform());
    const real push = uniform() + 0.5;
    force.push_back(kind == ROW_FRICTION_DOF ? bound * uniform() : kind == ROW_CONTACT_ELLIPTIC ? 0.1 * push : push);
    ++n;
  }
};

Problem problem_of(int count, int seed) {
  srand(unsigned(seed));
  Problem p;
  const int kinds[] = {3, 4, 6}, kind = rand() % 2 ? ROW_CONTACT_PYRAMIDAL : ROW_CONTACT_ELLIPTIC;
  p.m.dofs = seed % 2 ? 23 : 41, p.m.trees = seed % 4 == 3 ? 35 : 2 + rand() % 7;
  if (p.m.trees > p.m.dofs) p.m.dofs = 2 * p.m.trees;
  p.m.cone = kind == ROW_CONTACT_ELLIPTIC ? kinds[rand() % 3] : 4;
  p.m.tolerance = 1e-12, p.m.impratio = 1, p.m.rows = {p.m.cone}, p.m.friction = {0.9, 0.9, 0.3, 0.4, 0.4};
  const int nv = p.m.dofs;
  for (int v = 0; v < nv; ++v) p.m.treeid.push_back(v * p.m.trees / nv);
  while (p.n < count / 2) p.add(p.n < count / 8 ? ROW_EQUALITY : p.n < count / 3 ? ROW_FRICTION_DOF : ROW_LIMIT, 0.4);
  while (p.n + p.m.cone <= count) {
    p.address.push_back(p.n);
    for (int i = 0; i < p.m.cone; ++i) p.add(kind, 0);
    const real* first = &p.J[size_t(p.address.back() * p.m.nvp())];
    // the rows of a contact touch the same trees
    for (int i = 1; i < p.m.cone; ++i) {
      for (int v = 0; v < p.m.nvp(); ++v) {
        p.J[size_t((p.address.back() + i) * p.m.nvp() + v)] = first[v] != 0 ? uniform() : 0;
      }
    }
  }
  p.M.assign(size_t(nv * nv), 0), p.L = p.M;
  for (int i = 0; i < nv; ++i) {
    p.smooth.push_back(uniform()), p.acceleration.push_back(uniform());
    p.L[size_t(i * nv + i)] = 1 + 0.5 * uniform();
    for (int j = 0; j < i; ++j) {
      if (p.m.treeid[size_t(i)] == p.m.treeid[size_t(j)]) p.L[size_t(i * nv + j)] = 0.2 * uniform();
    }
    for (int j = 0; j <= i; ++j) {
      real sum = 0;
      for (int k = 0; k <= j; ++k) sum += p.L[size_t(i * nv + k)] * p.L[size_t(j * nv + k)];
      p.M[size_t(i * nv + j)] = p.M[size_t(j * nv + i)] = sum;
    }
  }
  return p;
}

void print(const char* name, const std::vector<real>& values) {
  std::printf("%s", name);
  for (const real x : values) std::printf(" %a", x);
  std::printf("\n");
}

int main(int count, char** arguments) {
  for (int k = 1; k < count; ++k) {
    Problem p = problem_of(std::atoi(arguments[k]), k);
    const size_t n = size_t(p.n), stride = size_t(p.m.nvp());
    std::vector<Vec4> Y(n * stride / 4 + 1), column(LANES);
    std::vector<real> b(n), diagonal(n), weight(n * MAX_CONE_ROWS), total(stride), z(stride), change(stride);
    std::vector<real> tree(size_t(p.m.trees)), J(p.J);
    std::vector<int> island(n), order(n), cand(p.address.size() + 1, 0);
    p.m.column = reinterpret_cast<real*>(column.data());
    run_warp([&] {
      noslip(p.m, &p.n, p.M.data(), p.L.data(), p.smooth.data(), p.J.data(), p.D.data(), p.aref.data(), p.type.data(),
             p.id.data(), p.loss.data(), p.address.data(), cand.data(), reinterpret_cast<real*>(Y.data()), b.data(),
             diagonal.data(), weight.data(), island.data(), order.data(), p.acceleration.data(), p.force.data(),
             total.data(), z.data(), change.data(), tree.data());
    });
    print("force", p.force);
    print("qacc", p.acceleration);
    print("b", b);
    for (size_t r = 0; r < n; ++r) std::printf("%d %d\n", island[r], order[r]);
  }
  return 0;
}
