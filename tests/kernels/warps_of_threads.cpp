// Newton directions of rows_by_warps.cuh, run by warps of 32 threads of the host, and the sums of the rows' forces,
// against loops of one thread over dense matrices. Rows are equalities, friction losses of dofs, limits, and elliptic
// cones of every size. The exit status is 1 if something differs.
#include "threads_as_lanes.h"

#include "newton_by_one.h"

enum { ROW_EQUALITY, ROW_FRICTION_DOF, ROW_FRICTION_TENDON, ROW_LIMIT, ROW_CONTACT_ELLIPTIC = 7 };

// The part of the generated `Model` that the solver reads.
struct Model {
  int dofs;
  real* column;
  const int* dims;

  int nv() const { return dofs; }
  int nvp() const { return (dofs + 3) & ~3; }
  const int* cand_rows() const { return dims; }
  const real* cand_friction() const { return nullptr; }
  const real* opt_impratio() const { return nullptr; }
};

void into_cone(int, const real*, real*) { std::abort(); }

#include "registers.cuh"
#include "row_law.cuh"
#include "rows_by_warps.cuh"

struct Problem {
  int n, stride, nrow;
  std::vector<real> A, J, W, force, b, d, weight;
  std::vector<int> type, id, address, cand, dims = {3, 4, 6};
};

Problem problem_of(int seed, int n, int rows) {
  srand(unsigned(seed));
  Problem p;
  p.n = n, p.stride = (n + 3) & ~3, p.d.assign(size_t(n), 0);
  for (int i = 0; i < n; ++i) p.type.push_back(i % 2 ? ROW_FRICTION_DOF : ROW_EQUALITY), p.id.push_back(i);
  while (int(p.type.size()) < rows) {
    if (rand() % 3 == 0) {
      p.type.push_back(ROW_LIMIT), p.id.push_back(rand() % n);
      continue;
    }
    const int contact = int(p.address.size()), kind = rand() % 3;
    p.address.push_back(int(p.type.size())), p.cand.push_back(kind);
    for (int k = 0; k < p.dims[size_t(kind)]; ++k) p.type.push_back(ROW_CONTACT_ELLIPTIC), p.id.push_back(contact);
  }
  p.nrow = int(p.type.size());
  p.J.assign(size_t(p.nrow * p.stride), 0), p.W.assign(size_t(p.nrow * p.nrow), 0);
  p.weight.assign(size_t(MAX_CONE_ROWS * p.nrow), 0), p.A.assign(size_t(n * n), 0);
  for (int i = 0; i < n; ++i) {
    p.b.push_back(uniform());
    for (int j = 0; j <= i; ++j) p.A[size_t(i * n + j)] = p.A[size_t(j * n + i)] = i == j ? 9 : 0.2 * uniform();
  }
  for (int r = 0; r < p.nrow; ++r) {
    const int type = p.type[size_t(r)], id = p.id[size_t(r)];
    const bool cone = type == ROW_CONTACT_ELLIPTIC;
    for (int i = 0; i < n; ++i) {
      p.J[size_t(r * p.stride + i)] = type == ROW_FRICTION_DOF ? i == id : rand() % 3 ? uniform() : 0;
    }
    p.force.push_back(uniform());
    const int first = cone ? p.address[size_t(id)] : r;
    if (cone ? p.address[size_t(id)] % 5 == 0 : rand() % 3 == 0) continue;  // no weight
    for (int k = first; k <= r; ++k) {
      const real w = k == r ? 2 : 0.3 * uniform();
      p.W[size_t(r * p.nrow + k)] = p.W[size_t(k * p.nrow + r)] = w;
      p.weight[size_t(MAX_CONE_ROWS * r + k - first)] = p.weight[size_t(MAX_CONE_ROWS * k + r - first)] = w;
    }
  }
  return p;
}

int main(int, char** arguments) {
  real worst = 0;
  for (int seed = 0; seed < 3; ++seed) {
    const int n = SOLVER_DOFS - 3 * seed;
    const Problem p = problem_of(seed, n, std::atoi(arguments[1]) + 7 * seed);
    const Rows rows = {p.nrow,        p.type.data(), p.id.data(), p.address.data(), p.cand.data(),
                       p.J.data(), nullptr,       nullptr,     nullptr};
    std::vector<Vec4> column(COLUMN_WORDS / 4);
    const Model m = {n, &column[0].x, p.dims.data()};
    std::vector<real> gradient(size_t(n), 0), x(size_t(n), 0), H(size_t(n * n), 0);
    run_warp([&] {
      add_forces_by_warps(m, rows, p.force.data(), p.b.data(), gradient.data());
      solve_by_warps(m, rows, x.data(), p.A.data(), p.weight.data(), gradient.data(), H.data());
    });
    const Result one = by_one(p, p.stride, 0);
    worst = std::fmax(worst, difference(one.gradient, gradient));
    worst = std::fmax(worst, difference(one.x, x));
  }
  std::printf("directions differ by %.1e\n", worst);
  return !(worst < 1e-11);
}
