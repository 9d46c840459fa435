// Newton's direction in a large island by a sparse factor: its residual with the Hessian as a dense matrix is small.
// Blocks have 1 to 8 dofs, or 6 each; runs of rows join them at random, some turned, some of elliptic cones. The program
// prints a checksum of all bits. The exit status is 1 if a residual is large, or if an island for which there is no room
// is not refused.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define DIVERGES
#include "host_math.h"
#include "dialect.cuh"
#include "lanes_host.cuh"
#include "scalars.cuh"
#include "lanes.cuh"
#include "vectors.h"

#include "constants.h"

// The part of the generated `Model` that is read; all cones have three rows.
struct Model {
  int dofs, widest;
  real* column;
  std::vector<int> at, dims = {3};

  int nv() const { return dofs; }
  int nJ() const { return 16; }
  int nwidest() const { return widest; }
  const int* block_adr() const { return at.data(); }
  const int* block_dofadr() const { return nullptr; }
  const int* dof_block() const { return nullptr; }
  int nblock() const { return 0; }
  int large_island() const { return 0; }
  const int* cand_rows() const { return dims.data(); }
  const real* cand_friction() const { return nullptr; }
  const real* opt_impratio() const { return nullptr; }
};

void into_cone(int, const real*, real*) { std::abort(); }

// Of larger blocks, which no island here has.
void mem_factor(real*, int) { std::abort(); }
void mem_solve(real*, const real*, int) { std::abort(); }
void chol_solve(real*, const real*, int) { std::abort(); }

#include "padded_matrix.cuh"
#include "blocks.cuh"
#include "row_law.cuh"
#include "large.cuh"
#include "large_runs.cuh"
#include "elimination_order.cuh"
#include "large_sparse.cuh"

static real uniform() { return real(std::rand()) / real(RAND_MAX); }

struct Island {
  Model m;
  std::vector<int> blocks, dof_block, row_block, run, link, type, id, address, cand;
  std::vector<real> M, J, weight, none;
  std::vector<double> H;  // dense
  int nrow = 0;

  // `touching` runs of rows for each block.
  Island(int number, bool free, int touching) {
    m.dofs = 0, m.widest = 8;
    for (int b = 0; b < number; ++b) {
      const int n = free ? 6 : 1 + std::rand() % 8;
      for (int word : {b, m.dofs, n, 0, 0, 0}) blocks.push_back(word);
      m.at.push_back(int(M.size()));
      for (int i = 0; i < n; ++i, ++m.dofs) {
        dof_block.push_back(b);
        for (int j = 0; j < n; ++j) M.push_back(i == j ? real(3) + real(0.1) * real(b % 7) : real(0.1));
      }
    }
    for (int k = 0; k < touching * number; ++k) {
      const int first = std::rand() % number, second = k % 3 ? std::rand() % number : -1;
      if (first != second) add_run(first, second);
    }
  }

  int size(int b) const { return blocks[size_t(BLOCK_WORDS * b + BLOCK_SIZE)]; }
  int dof(int b) const { return blocks[size_t(BLOCK_WORDS * b + BLOCK_DOF)]; }

  void add_run(int first, int second) {
    const bool cone = std::rand() % 2;
    if (cone) address.push_back(nrow), cand.push_back(0);
    const bool sticks = std::rand() % 4;
    real pull[3];
    for (real& x : pull) x = uniform();
    for (int r = 0; r < 3; ++r, ++nrow) {
      row_block.push_back(first), row_block.push_back(second);
      type.push_back(cone ? ROW_CONTACT_ELLIPTIC : ROW_LIMIT_JOINT);
      id.push_back(cone ? int(address.size()) - 1 : 0);
      for (int j = 0; j < m.nJ(); ++j) {
        const int used = size(first) + (second < 0 ? 0 : size(second));
        J.push_back(j < used ? uniform() - real(0.5) : real(0));
      }
      for (int k = 0; k < MAX_CONE_ROWS; ++k) {
        const real product = cone ? k < 3 ? pull[r] * pull[k] + real(r == k) : 0 : k ? 0 : pull[r];
        weight.push_back(sticks ? product : 0);
      }
    }
  }

  void dense() {
    const size_t n = size_t(m.dofs);
    H.assign(n * n, 0);
    for (size_t v = 0; v < n; ++v) {
      const int b = dof_block[v], first = dof(b);
      for (int j = 0; j < size(b); ++j) {
        H[v * n + size_t(first + j)] = double(M[size_t(m.at[size_t(b)] + (int(v) - first) * size(b) + j)]);
      }
    }
    for (int r = 0; r < nrow; ++r) {
      const bool cone = type[size_t(r)] == ROW_CONTACT_ELLIPTIC;
      const int begin = cone ? address[size_t(id[size_t(r)])] : r;
      for (int k = 0; k < (cone ? 3 : 1); ++k) {
        const double w = double(weight[size_t(MAX_CONE_ROWS * r + k)]);
        for (int i = 0; i < 16; ++i) {
          for (int j = 0; j < 16; ++j) {
            const double product = w * double(J[size_t(16 * r + i)]) * double(J[size_t(16 * (begin + k) + j)]);
            if (product) H[size_t(dof_of(r, i)) * n + size_t(dof_of(r, j))] += product;
          }
        }
      }
    }
  }
  int dof_of(int r, int j) const {
    const int first = row_block[size_t(2 * r)], second = row_block[size_t(2 * r + 1)];
    return j < size(first) ? dof(first) + j : dof(second) + j - size(first);
  }

  LargeIsland large() {
    int records[ISLAND_RECORD] = {};
    records[RECORD_ROWS] = nrow, records[RECORD_BLOCKS] = int(m.at.size());
    run.resize(size_t(RUN_WORDS * nrow)), link.resize(size_t(2 * nrow * 4)), none.resize(size_t(nrow));
    LargeIsland s = large_island(m, records + RECORD_ROWS, M.data(), J.data(), blocks.data(), dof_block.data(),
                                 row_block.data(), run.data(), link.data(), nullptr);
    find_runs(s);
    return s;
  }
  Rows rows() const {
    return {nrow,     type.data(), id.data(),   address.data(), cand.data(),
            J.data(), none.data(), none.data(), none.data(),    nullptr, nullptr};
  }
};

int main() {
  uint64_t sum = 0;
  double worst = 0;
  for (int seed = 0; seed < 8; ++seed) {
    std::srand(unsigned(seed));
    Island island(seed < 4 ? 20 + seed : 70, seed % 2, 3);
    island.dense();
    const size_t n = size_t(island.m.dofs);
    const LargeIsland s = island.large();
    SparseHessian* sparse = sparse_hessian(island.m, s);
    if (!sparse) return 1;
    std::vector<real> b(n), x(n);
    for (real& each : b) each = uniform() - real(0.5);
    sparse->assemble(island.m, s, island.rows(), island.weight.data());
    sparse->solve(s, b.data(), x.data());
    for (size_t i = 0; i < n; ++i) {
      double rest = -double(b[i]);
      for (size_t j = 0; j < n; ++j) rest += island.H[i * n + j] * double(x[j]);
      worst = std::max(worst, std::fabs(rest));
      uint64_t bits = 0;
      std::memcpy(&bits, &x[i], sizeof(real));
      sum = 31 * sum + bits;
    }
  }
  Island many(MOST_SPARSE_BLOCKS + 1, true, 1), filled(300, true, 20);
  const bool refused = !sparse_hessian(many.m, many.large()) && !sparse_hessian(filled.m, filled.large());
  std::printf("%llx\n", static_cast<unsigned long long>(sum));
  std::fprintf(stderr, "largest residual %g, refused %d\n", worst, refused);
  return !refused || worst > 100 * double(REAL_EPS);
}
