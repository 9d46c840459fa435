// The Hessian of weighted_rows.cuh, run by 32 threads of the host, against a loop of one thread over the rows, in which
// each entry sees the same operations. Rows are equalities, friction losses of dofs, limits and elliptic cones, as many
// as the argument says. The exit status is 1 if a bit differs.
#define ONE_ROW_A_LANE 1
#include "threads_as_lanes.h"

enum { ROW_EQUALITY, ROW_FRICTION_DOF, ROW_FRICTION_TENDON, ROW_LIMIT, ROW_CONTACT_ELLIPTIC = 7 };

// The part of the generated `Model` that the solver reads; all cones have three rows.
struct Model {
  int dofs;
  real* column;
  std::vector<int> dims = {3};

  int nv() const { return dofs; }
  int nvp() const { return (dofs + 3) & ~3; }
  const int* cand_rows() const { return dims.data(); }
  const real* cand_friction() const { return nullptr; }
  const real* opt_impratio() const { return nullptr; }
};

void into_cone(int, const real*, real*) { std::abort(); }

#include "row_law.cuh"
#include "weighted_rows.cuh"

int main(int, char** arguments) {
  int wrong = 0, cones = 0, losses = 0;
  for (int seed = 0; seed < 6; ++seed) {
    srand(unsigned(seed));
    const int nv = seed % 2 ? 30 : 9, nvp = (nv + 3) & ~3, most = std::atoi(arguments[1]);
    std::vector<int> type, id, address, cand;
    for (int i = 0; i < 7; ++i) type.push_back(ROW_EQUALITY), id.push_back(i);
    for (int i = 0; i < nv; i += 2) type.push_back(ROW_FRICTION_DOF), id.push_back(i), ++losses;
    while (int(type.size()) + 3 <= most) {
      if (rand() % 2) {
        type.push_back(ROW_LIMIT), id.push_back(rand() % nv);
        continue;
      }
      const int contact = int(address.size());
      address.push_back(int(type.size())), cand.push_back(0), ++cones;
      for (int k = 0; k < 3; ++k) type.push_back(ROW_CONTACT_ELLIPTIC), id.push_back(contact);
    }
    const int n = int(type.size());
    std::vector<real> J(size_t(n * nvp + 4), 0), weight(size_t(MAX_CONE_ROWS * n), 0), none(size_t(n), 0);
    for (int r = 0; r < n; ++r) {
      for (int i = 0; i < nv; ++i) {
        const bool loss = type[size_t(r)] == ROW_FRICTION_DOF;
        J[size_t(r * nvp + i)] = loss ? i == id[size_t(r)] : rand() % 3 ? uniform() : 0;
      }
      if (rand() % 3 == 0) continue;
      for (int k = 0; k < 3; ++k) weight[size_t(MAX_CONE_ROWS * r + k)] = 1 + uniform();
    }
    const Rows rows = {n, type.data(), id.data(), address.data(), cand.data(), J.data(), none.data(), none.data(),
                       none.data()};
    std::vector<real> column(COLUMN_WORDS), start(size_t(LANES * LANES)), found(size_t(LANES * LANES)), one;
    for (real& x : start) x = 2 + uniform();
    one = start;
    Model m;
    m.dofs = nv, m.column = column.data();
    for (int r = 0; r < n; ++r) {
      if (!has_weight(rows, r, weight.data())) continue;
      const bool cone = type[size_t(r)] == ROW_CONTACT_ELLIPTIC;
      const int first = cone ? address[size_t(id[size_t(r)])] : r;
      for (int i = 0; i < nv; ++i) {
        real c = 0;
        for (int k = 0; k < (cone ? 3 : 1); ++k) {
          const real w = weight[size_t(MAX_CONE_ROWS * r + k)], entry = J[size_t((first + k) * nvp + i)];
          c = cone ? fma_(w, entry, c) : w * entry;
        }
        for (int j = 0; j < nv; ++j) {
          one[size_t(i * LANES + j)] = fma_(c, J[size_t(r * nvp + j)], one[size_t(i * LANES + j)]);
        }
      }
    }
    run_warp([&] {
      real h[LANES];
      for (int j = 0; j < LANES; ++j) h[j] = start[size_t(lane() * LANES + j)];
      reg_add_weighted(m, rows, weight.data(), h);
      for (int j = 0; j < LANES; ++j) found[size_t(lane() * LANES + j)] = h[j];
    });
    for (int i = 0; i < LANES; ++i) {  // lanes without a dof keep what they have
      for (int j = 0; j < nv; ++j) wrong += one[size_t(i * LANES + j)] != found[size_t(i * LANES + j)];
    }
  }
  std::printf("%d entries differ, %d cones, %d losses\n", wrong, cones, losses);
  return wrong || !cones || !losses;
}
