// The cost of elliptic cones in vectors (cone_rows.cuh) against the functions for one row or cone at a time, bit by bit,
// for as many cones as the argument says behind rows of every other type.
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
#include "padded_matrix.cuh"

#define ROW_EQUALITY 0
#define ROW_FRICTION_DOF 1
#define ROW_FRICTION_TENDON 2
#define ROW_LIMIT 3
#define ROW_CONTACT_ELLIPTIC 7
#define CONE_ELLIPTIC 1

typedef std::vector<real> Array;

static real drawn() { return real(std::rand()) / real(RAND_MAX) - real(0.5); }

// The part of the generated `Model` that is read; each contact is of a pair of its own.
struct Model {
  std::vector<int> dims;
  Array friction;
  real impratio = real(3);

  int opt_cone() const { return CONE_ELLIPTIC; }
  const int* cand_rows() const { return dims.data(); }
  const real* cand_friction() const { return friction.data(); }
  const real* opt_impratio() const { return &impratio; }
};

#include "row_law.cuh"
#include "plain_rows.cuh"
#include "cone_rows.cuh"

struct World {
  Model m;
  std::vector<int> type, id, address, cand;
  Array D, aref, loss, jar, jv;
  int others;

  explicit World(int cones) {
    for (int i = 0; i < 6; ++i) type.push_back(i / 2 == 2 ? ROW_LIMIT : i / 2), id.push_back(i);
    others = int(type.size());
    for (int k = 0; k < cones; ++k) {
      m.dims.push_back(3);
      cand.push_back(k);
      address.push_back(int(type.size()));
      for (int i = 0; i < 5; ++i) m.friction.push_back(real(0.8) + drawn());
      for (int i = 0; i < 3; ++i) type.push_back(ROW_CONTACT_ELLIPTIC), id.push_back(k);
    }
    for (size_t r = 0; r < type.size(); ++r) {
      D.push_back(real(1) + drawn());
      aref.push_back(drawn());
      loss.push_back(type[r] == ROW_FRICTION_DOF ? real(0.1) : real(0));
      jar.push_back(drawn());
      jv.push_back(drawn());
    }
  }
  Rows rows() const {
    return {int(type.size()), type.data(), id.data(), address.data(), cand.data(),
            nullptr,          D.data(),    aref.data(), loss.data()};
  }
};

static int differ(const char* what, const void* a, const void* b, size_t bytes) {
  if (!std::memcmp(a, b, bytes)) return 0;
  std::printf("%s differs\n", what);
  return 1;
}

static bool bends(const World& w, const Rows& rows, int r) {
  const auto then = [&](int i) { return w.jar[r + i] + w.jv[r + i]; };
  if (rows.type[r] != ROW_CONTACT_ELLIPTIC) {
    const Zone before = scalar_zone(rows, r, w.jar[r]);
    return before != scalar_zone(rows, r, then(0)) || (before == BETWEEN && (w.jar[r] < 0) != (then(0) < 0));
  }
  const Zone before = cone_at(w.m, rows, r, 3, w.jar.data() + r).zone;
  return before == BETWEEN || before != cone_of(w.m, rows, r, 3, then).zone;
}

static int checked(World w, bool calm) {
  Rows rows = w.rows();
  if (calm) {
    for (real& rate : w.jv) rate *= real(1e-6);
    for (int r = w.others; r < rows.n; r += 3) w.jar[r] += r % 2 ? real(900) : real(-900);
  }
  const int n = rows.n;
  Array force(n), weight(MAX_CONE_ROWS * n), lines(MAX_CONE_ROWS * n), other_force(n), other_weight(MAX_CONE_ROWS * n);
  real cost = 0;
  bool full = true;
  for (int r = 0; r < n; ++r) {
    const int dim = rows_together(w.m, rows, r);
    real* to = weight.data() + MAX_CONE_ROWS * r;
    if (dim) cost += row_law(w.m, rows, r, dim, w.jar.data() + r, force.data() + r, to);
    if (dim) full &= !bends(w, rows, r);
    put_line(w.m, rows, r, w.jar.data() + r, w.jv.data() + r, lines.data() + MAX_CONE_ROWS * r);
  }
  ThreeRowCones cones;
  if (!find_cones(w.m, rows, cones)) return std::printf("no cones were found\n");
  rows.cones = &cones;
  const Rows others = before_cones(rows);
  real* push = other_force.data();
  const real first = plain_rows_cost(others, w.jar.data(), push, other_weight.data());
  const real other_cost = cones_cost(cones, first, w.jar.data(), push, other_weight.data());
  int wrong = differ("cost", &cost, &other_cost, sizeof(real));
  wrong += differ("force", force.data(), push, n * sizeof(real));
  wrong += differ("weight", weight.data(), other_weight.data(), weight.size() * sizeof(real));
  const real *jar = w.jar.data(), *jv = w.jv.data();
  const bool other_full = plain_full_step(others, jar, jv) && cones_full_step(cones, jar, jv);
  if (full != other_full || (calm && !full)) wrong += std::printf("a full step is told wrongly\n");
  ConeLines cone_lines[MOST_CONE_VECTORS];
  put_cone_lines(cones, jar, jv, cone_lines);
  for (const real alpha : {real(0), real(0.3), real(1), real(7)}) {
    LineLaw sum = {0, 0, 0};
    for (int r = 0; r < n; ++r) {
      const LineLaw law = line_law(lines.data() + MAX_CONE_ROWS * r, alpha);
      sum.first += law.first, sum.second += law.second, sum.size += law.size;
    }
    LineLaw other = plain_line_law(others, jar, jv, alpha);
    add_cone_lines(cone_lines, cones.vectors, alpha, other);
    wrong += differ("line", &sum, &other, sizeof(sum));
  }
  return wrong;
}

// Rows that are not cones of three rows behind the others.
static int refused(World w) {
  ThreeRowCones cones;
  int wrong = find_cones(w.m, World(0).rows(), cones) || find_cones(w.m, World(65).rows(), cones);
  w.m.dims[0] = 4;
  wrong += find_cones(w.m, w.rows(), cones);
  w.m.dims[0] = 3;
  w.type.back() = ROW_LIMIT;
  wrong += find_cones(w.m, w.rows(), cones);
  if (wrong) std::printf("other rows are taken for cones\n");
  return wrong;
}

int main(int, char** arguments) {
  int wrong = 0;
  for (int seed = 0; seed < 8; ++seed) {
    std::srand(unsigned(seed));
    const World w(std::atoi(arguments[1]));
    wrong += checked(w, false) + checked(w, true) + refused(w);
  }
  return wrong != 0;
}
