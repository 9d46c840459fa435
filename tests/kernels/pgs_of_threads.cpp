// The PGS of pgs_registers.cuh against that of pgs.cuh, both run by 32 threads of the host, on random dual problems of
// as many rows as the arguments say. Prints one line, and the exit status is 1 if something differs.
#include "threads_as_lanes.h"

enum { ROW_EQUALITY, ROW_FRICTION_DOF, ROW_FRICTION_TENDON, ROW_LIMIT, ROW_CONTACT_ELLIPTIC = 7 };

// The part of the generated `Model` that the solver reads.
struct Model {
  int dofs, iterations;
  real tolerance, impratio;
  int sweeps = 0, words = 0;
  std::vector<int> orders;

  int nsweep() const { return sweeps; }
  int nsweepword() const { return words; }
  const int* sweep_order() const { return orders.data(); }

  int nv() const { return dofs; }
  int nvp() const { return (dofs + 3) & ~3; }
  int opt_iterations() const { return iterations; }
  bool opt_warmstart() const { return true; }
  const real* opt_tolerance() const { return &tolerance; }
  const real* opt_impratio() const { return &impratio; }
  const int* cand_rows() const { return nullptr; }
  const real* cand_friction() const { return nullptr; }
};

// What elliptic cones and the acceleration need, which these problems do not have.
void into_cone(int, const real*, real*) { std::abort(); }
void best_in_cone(int, const real*, const real*, const real*, const real*, real*) { std::abort(); }
void chol_solve(real*, const real*, int) { std::abort(); }
template <typename Weight, typename Out>
int sums_before(int, Weight, Out) {
  std::abort();
}
real* settled_shared(real* p) { return p; }
real row_dot(const real* J, int r, int stride, const real* x) {
  real sum = 0;
  for (int i = 0; i < stride; ++i) sum += J[r * stride + i] * x[i];
  return sum;
}

#include "random.cuh"
#include "row_law.cuh"
#include "whiten.cuh"
#include "pgs.cuh"
#include "pgs_orders.cuh"
#include "pgs_registers.cuh"

// The orders of the first sweeps over up to `most` rows, in the form of the model table.
void keep_orders(Model* m, int sweeps, int most) {
  m->sweeps = sweeps, m->words = (most * (most + 1) / 2 + 3) / 4;
  m->orders.assign(size_t(sweeps * m->words), 0);
  unsigned char* bytes = reinterpret_cast<unsigned char*>(m->orders.data());
  for (int n = 1; n <= most; ++n) {
    std::vector<int> order;
    for (int i = 0; i < n; ++i) order.push_back(i);
    uint64 state = 1;
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (int place = n - 1; place > 0; --place) {
        std::swap(order[size_t(place)], order[pcg_output(state) % unsigned(place + 1)]);
        state = pcg_apply(pcg_steps(1), state);
      }
      for (int i = 0; i < n; ++i) bytes[4 * sweep * m->words + n * (n - 1) / 2 + i] = (unsigned char)order[size_t(i)];
    }
  }
}

// Rows of every scalar type; every other row of a second island comes between those of the first.
struct Problem {
  Model m;
  int n, others;
  std::vector<real> J, D, aref, loss, L, smooth, warm, start;
  std::vector<int> type, list;
};

Problem problem_of(int n, int seed) {
  srand(unsigned(seed));
  Problem p;
  p.m = {seed % 2 ? 23 : 41, 12, 1e-9, 1};
  // all orders, those of some sweeps, or none; there is none for the most rows
  keep_orders(&p.m, seed % 3 == 0 ? 12 : seed % 3 == 1 ? 5 : 0, 95);
  p.n = n, p.others = seed % 3 ? 0 : n / 2;
  const int nv = p.m.nv(), stride = p.m.nvp(), rows = n + p.others;
  p.J.assign(size_t(rows * stride + 4), 0), p.L.assign(size_t(nv * nv), 0);
  for (int i = 0; i < nv; ++i) {
    p.smooth.push_back(uniform()), p.warm.push_back(uniform());
    p.L[size_t(i * nv + i)] = 1 + 0.5 * uniform();
    for (int j = 0; j < i; ++j) p.L[size_t(i * nv + j)] = 0.2 * uniform();
  }
  for (int r = 0; r < rows; ++r) {
    for (int i = 0; i < nv; ++i) p.J[size_t(r * stride + i)] = rand() % 2 ? uniform() : 0;
    const int kind = rand() % 4;
    p.type.push_back(kind == 0 ? ROW_EQUALITY : kind == 1 ? ROW_FRICTION_DOF : ROW_LIMIT);
    p.loss.push_back(kind == 1 ? 0.5 : 0);
    p.D.push_back(10 + 9 * uniform()), p.aref.push_back(uniform());
    p.start.push_back(kind == 0 ? uniform() : kind == 1 ? 0.5 * uniform() : std::fabs(uniform()));
    if (p.others == 0 || r % 3 < 2) p.list.push_back(r);
  }
  p.n = int(p.list.size());
  return p;
}

struct Result {
  int iterations = 0;
  std::vector<real> force, before, Y, b, warm, norm, diagonal;
  std::vector<int> list;
};

Result solve(const Problem& p, bool in_registers) {
  const int nv = p.m.nv(), stride = p.m.nvp(), rows = int(p.type.size());
  Result result;
  result.force = p.start, result.before = p.start, result.list = p.list;
  result.Y.assign(size_t(rows * stride + 4), 0), result.b.assign(size_t(rows), 0);
  result.warm = result.norm = result.diagonal = result.b;
  std::vector<real> z(size_t(stride), 0), weight(size_t(MAX_CONE_ROWS * rows + MAX_CONE_ROWS));
  std::vector<Vec4> words((size_t(13 + PGS_ROWS) * PGS_SLOTS * LANES + 8) / 4);
  std::vector<int> draw(LANES);
  run_warp([&] {
    const Rows r = {rows, p.type.data(), nullptr, nullptr, nullptr, p.J.data(), p.D.data(), p.aref.data(),
                    p.loss.data()};
    const auto put = [&](int row, const RowSums& sums) {
      result.b[size_t(row)] = sums.residual;
      result.warm[size_t(row)] = sums.other;
      result.norm[size_t(row)] = sums.norm;
      result.diagonal[size_t(row)] = sums.regularised;
    };
    if (in_registers) {
      whiten_in_registers(p.m, r, p.L.data(), p.smooth.data(), p.warm.data(), result.Y.data(), put);
    } else {
      whiten_over_memory(p.m, r, p.L.data(), p.smooth.data(), p.warm.data(), result.Y.data(), put);
    }
    cone_blocks(p.m, r, result.Y.data(), stride, result.diagonal.data(), weight.data());
    const DenseDual d = {{nv, stride}, r, result.Y.data(), result.b.data(), result.diagonal.data(), weight.data(),
                         result.before.data(), result.force.data(), z.data()};
    const int number =
        in_registers
            ? descend_anyhow(p.m, d, p.n, result.list.data(), 1, draw.data(), reinterpret_cast<real*>(words.data()))
            : descend(p.m, d, p.n, result.list.data(), 1, draw.data());
    if (lane() == 0) result.iterations = number;
  });
  return result;
}

real difference(const std::vector<real>& a, const std::vector<real>& b) {
  real worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::fmax(worst, std::fabs(a[i] - b[i]));
  return worst;
}

int main(int count, char** arguments) {
  int others = 0;
  real worst = 0;
  for (int k = 1; k < count; ++k) {
    const Problem p = problem_of(std::atoi(arguments[k]), k);
    const Result one = solve(p, false), other = solve(p, true);
    others += one.list != other.list || one.iterations != other.iterations || (p.n > 2 && one.iterations < 3);
    others += one.Y != other.Y || one.b != other.b || one.diagonal != other.diagonal;
    others += one.warm != other.warm || one.norm != other.norm;
    worst = std::fmax(worst, difference(one.force, other.force));
    worst = std::fmax(worst, difference(one.before, other.before));
  }
  std::printf("%d problems with other orders, iterations or rows; forces differ by %.1e\n", others, worst);
  return others || !(worst < 1e-10);
}
