// The cost of constraint rows as a function of their residuals, and its derivatives: MuJoCo documentation,
// "Computation", "Constraint solver", "Friction cones". With the residual x = J a - aref of a row and D = 1 / R:
//
//   equality                1/2 D x^2
//   friction of loss f      1/2 D x^2 where D |x| < f, elsewhere f |x| - f^2 / (2 D)
//   limit, contact, edge    1/2 D x^2 where x < 0
//   elliptic cone           sum of 1/2 D_i x_i^2 over its rows where mu N + T <= 0; zero where N >= mu T; elsewhere
//                           1/2 Dm (N - mu T)^2 with Dm = D_0 / (mu^2 (1 + mu^2))
//
//   N = mu x_0   U_i = friction_i x_i   T = |U|   mu = friction_1 / sqrt(impratio)
#pragma once

// Whether the model may have elliptic cones. Kernels for models without them are compiled without their code; of the
// second derivatives of a row they have one word.
#ifndef HAS_CONES
#define HAS_CONES 1
#endif
#define MAX_CONE_ROWS (HAS_CONES ? 6 : 1)

DEVICE bool in_cone(int type) { return HAS_CONES && type == ROW_CONTACT_ELLIPTIC; }

// The constraint rows of a world.
struct Rows {
  int n;
  const int *type, *id, *address, *cand;  // address and cand: contact_efc_address and contact_cand
  const real *J, *D, *aref, *frictionloss;
#if DOF_RANGES
  unsigned spans;  // of the lane's rows, as in DofRange
#endif
#ifdef MATRIX_VECTORS
  const struct UnitRows* unit;        // see unit_rows.cuh; or null
  const struct ThreeRowCones* cones;  // see cone_rows.cuh; or null
#endif
};

// Number of rows whose cost depends on them jointly and whose first row is r: the dimension of an elliptic cone, 1 for
// a row outside cones, and 0 if r is a later row of its cone.
DEVICE int rows_together(const Model& m, const Rows& rows, int r) {
  if (!in_cone(rows.type[r])) return 1;
  return rows.address[rows.id[r]] == r ? m.cand_rows()[rows.cand[rows.id[r]]] : 0;
}

enum Zone { FREE, QUADRATIC, BETWEEN };

// The coordinates of a cone at one point. Its U is not kept: an array whose index varies would be in memory.
struct Cone {
  const real* friction;
  real mu, N, T, Dm;
  Zone zone;

  // How N or entry i of U grows with residual i, and entry i of U.
  DEVICE_METHOD real scale(int i) const { return i ? friction[i - 1] : mu; }
  DEVICE_METHOD real along(int i, real x) const { return friction[i - 1] * x; }
};

// The cone whose first row is r, at residuals x(i).
template <typename Residual>
DEVICE Cone cone_of(const Model& m, const Rows& rows, int r, int dim, Residual x) {
  Cone cone;
  real square = 0;
  cone.friction = m.cand_friction() + 5 * rows.cand[rows.id[r]];
  cone.mu = cone.friction[0] * reciprocal_sqrt_(m.opt_impratio()[0]);
  cone.N = cone.mu * x(0);
  for (int i = 1; i < dim; ++i) {
    const real u = cone.along(i, x(i));
    square = fma_(u, u, square);
  }
  cone.T = sqrt_(square);
  cone.Dm = divide_(rows.D[r], cone.mu * cone.mu * (1 + cone.mu * cone.mu));
  cone.zone = cone.N >= cone.mu * cone.T ? FREE : cone.mu * cone.N + cone.T <= 0 ? QUADRATIC : BETWEEN;
  return cone;
}

DEVICE Cone cone_at(const Model& m, const Rows& rows, int r, int dim, const real* x) {
  return cone_of(m, rows, r, dim, [&](int i) { return x[i]; });
}

DEVICE Zone scalar_zone(const Rows& rows, int r, real x) {
  const int type = rows.type[r];
  if (type == ROW_EQUALITY) return QUADRATIC;
  if (type <= ROW_FRICTION_TENDON) return abs_(rows.D[r] * x) < rows.frictionloss[r] ? QUADRATIC : BETWEEN;
  return x < 0 ? QUADRATIC : FREE;
}

// Cost of row r outside cones at residual x. `force` receives minus the derivative, and `weight`, if not null, the
// second derivative.
DEVICE real scalar_law(const Rows& rows, int r, real x, real* force, real* weight) {
  const Zone zone = scalar_zone(rows, r, x);
  const real D = rows.D[r], loss = rows.frictionloss[r];
  force[0] = zone == FREE ? R(0.0) : zone == QUADRATIC ? -(D * x) : x < 0 ? loss : -loss;
  if (weight) weight[0] = zone == QUADRATIC ? D : R(0.0);
  if (zone == FREE) return 0;
  return zone == QUADRATIC ? R(0.5) * D * x * x : loss * (abs_(x) - R(0.5) * divide_(loss, D));
}

// What the rows of a cone between its zones share. With respect to (N, U), the gradient is Dm depth v with
// v = (1, -mu u) and u = U / T; second derivatives are Dm v v', and for U also bend (1 - u u').
struct Sliding {
  const Cone& cone;
  const real* x;
  real depth, slope, inverse, bend;

  DEVICE_METHOD real u(int i) const { return cone.along(i, x[i]) * inverse; }
  DEVICE_METHOD real v(int i) const { return cone.scale(i) * (i ? -cone.mu * u(i) : R(1.0)); }
  DEVICE_METHOD real second(int i, int j) const {
    const real across = i && j ? bend * cone.scale(i) * cone.scale(j) * ((i == j) - u(i) * u(j)) : R(0.0);
    return fma_(cone.Dm * v(i), v(j), across);
  }
};

DEVICE Sliding sliding_at(const Cone& cone, const real* x) {
  const real depth = cone.N - cone.mu * cone.T, slope = cone.Dm * depth, inverse = reciprocal_(cone.T);
  return {cone, x, depth, slope, inverse, -slope * cone.mu * inverse};
}

// What `force` and `weight` of row_law receive for row i of a cone with residuals x, whose first row is r.
DEVICE void row_of_cone(const Rows& rows, int r, int dim, int i, const Cone& cone, const Sliding& sliding,
                        const real* x, real* force, real* weight) {
  if (cone.zone == BETWEEN) {
    force[i] = -(sliding.slope * sliding.v(i));
    for (int j = 0; weight && j < dim; ++j) weight[MAX_CONE_ROWS * i + j] = sliding.second(i, j);
    return;
  }
  const real d = cone.zone == QUADRATIC ? rows.D[r + i] : R(0.0);
  force[i] = -(d * x[i]);
  for (int j = 0; weight && j < dim; ++j) weight[MAX_CONE_ROWS * i + j] = i == j ? d : R(0.0);
}

DEVICE real cost_of_cone(const Rows& rows, int r, int dim, const Cone& cone, const Sliding& sliding, const real* x) {
  if (cone.zone == BETWEEN) return R(0.5) * sliding.slope * sliding.depth;
  real cost = 0;
  for (int i = 0; i < dim; ++i) {
    const real d = cone.zone == QUADRATIC ? rows.D[r + i] : R(0.0);
    cost = fma_(R(0.5) * d * x[i], x[i], cost);
  }
  return cost;
}

// Cost of row r, or of the cone whose first row is r, at residuals x. `force` receives minus the derivative. `weight`,
// if not null, receives the second derivatives: MAX_CONE_ROWS words per row, of which a row outside a cone uses the
// first.
DEVICE real row_law(const Model& m, const Rows& rows, int r, int dim, const real* x, real* force, real* weight) {
  if (!in_cone(rows.type[r])) return scalar_law(rows, r, x[0], force, weight);
  const Cone cone = cone_at(m, rows, r, dim, x);
  const Sliding sliding = sliding_at(cone, x);
  for (int i = 0; i < dim; ++i) row_of_cone(rows, r, dim, i, cone, sliding, x, force, weight);
  return cost_of_cone(rows, r, dim, cone, sliding, x);
}

// The share of row r in row_law, where every row of a cone has a lane of its own: its force and second derivatives, and
// the cost of its cone if it is the first row. Arrays are those of all rows.
DEVICE real law_of_row(const Model& m, const Rows& rows, int r, const real* jar, real* force, real* weight) {
  if (!in_cone(rows.type[r])) {
    return scalar_law(rows, r, jar[r], force + r, weight ? weight + MAX_CONE_ROWS * r : (real*)0);
  }
  const int id = rows.id[r], first = rows.address[id], dim = m.cand_rows()[rows.cand[id]];
  const real* x = jar + first;
  const Cone cone = cone_at(m, rows, first, dim, x);
  const Sliding sliding = sliding_at(cone, x);
  row_of_cone(rows, first, dim, r - first, cone, sliding, x, force + first,
              weight ? weight + MAX_CONE_ROWS * first : (real*)0);
  return r == first ? cost_of_cone(rows, first, dim, cone, sliding, x) : R(0.0);
}

// The second derivative with respect to the residual of row r itself.
DEVICE real own_weight(const Rows& rows, int r, const real* weight) {
  const bool cone = in_cone(rows.type[r]);
  return weight[MAX_CONE_ROWS * r + (cone ? r - rows.address[rows.id[r]] : 0)];
}

// Do the second derivatives of row r, which is one of an elliptic cone, mix it with other rows? Those of a cone whose
// contact sticks do not.
DEVICE bool mixes_rows(const Model& m, const Rows& rows, int r, const real* weight) {
  const int id = rows.id[r], own = r - rows.address[id], dim = m.cand_rows()[rows.cand[id]];
  bool mixes = false;
  for (int k = 0; k < dim; ++k) mixes |= k != own && weight[MAX_CONE_ROWS * r + k] != 0;
  return mixes;
}

// Does row r have second derivatives? If the diagonal of a positive semidefinite matrix is zero, so is the whole row.
DEVICE bool has_weight(const Rows& rows, int r, const real* weight) { return own_weight(rows, r, weight) != 0; }

struct LineLaw {
  real first, second;
  real size;  // of the terms whose sum is `first`
};

// The cost of a row, or of a cone, along a line: what it follows from is put where the first row's second derivatives
// are, which a cone has room for.
#define LINE_KIND 0
#define LINE_MU 1
#define LINE_N 2  // N at the start, and its slope
#define LINE_DM 4
#define LINE_SLOPE 5   // derivative of the quadratic cost at the start; word 6 is the kind of the next row
#define LINE_UU 7      // products of U at the start and of its slope: UU, UV and VV
#define LINE_CURVE 10  // second derivative of the quadratic cost
#define LINE_SIZE 11   // size of the terms whose sum is its derivative
#define LINE_D 1       // of a row: D, then its loss by friction, then its residual and the residual's slope
#define LINE_NONE R(0.0)  // kinds: a later row of a cone; an equality; friction; what only pushes; a cone
#define LINE_ALWAYS R(1.0)
#define LINE_FRICTION R(2.0)
#define LINE_PUSH R(3.0)
#define LINE_CONE R(4.0)

// Put what the cost of row r, or of the cone whose first row is r, follows from along jar + alpha jv.
DEVICE void put_line(const Model& m, const Rows& rows, int r, const real* jar, const real* jv, real* line) {
  const int dim = rows_together(m, rows, r), type = rows.type[r];
  const real* D = rows.D + r;
  if (!in_cone(type)) {
    line[LINE_KIND] = type == ROW_EQUALITY ? LINE_ALWAYS : type <= ROW_FRICTION_TENDON ? LINE_FRICTION : LINE_PUSH;
    line[LINE_D] = D[0];
    line[LINE_D + 1] = rows.frictionloss[r];
    line[LINE_D + 2] = jar[0];
    line[LINE_D + 3] = jv[0];
    return;
  }
  if (!dim) {
    line[LINE_KIND] = LINE_NONE;
    return;
  }
  const Cone cone = cone_at(m, rows, r, dim, jar);
  real products[3] = {0, 0, 0}, quadratic[3] = {0, 0, 0};
  for (int i = 0; i < dim; ++i) {
    const real rate = i ? cone.along(i, jv[i]) : R(0.0), pull = D[i] * jv[i];
    if (i) {
      const real u = cone.along(i, jar[i]);
      products[0] = fma_(u, u, products[0]);
      products[1] = fma_(u, rate, products[1]);
      products[2] = fma_(rate, rate, products[2]);
    }
    quadratic[0] = fma_(pull, jar[i], quadratic[0]);
    quadratic[1] = fma_(pull, jv[i], quadratic[1]);
    quadratic[2] = fma_(abs_(pull), abs_(jar[i]), quadratic[2]);
  }
  line[LINE_KIND] = LINE_CONE;
  line[LINE_MU] = cone.mu;
  line[LINE_N] = cone.N;
  line[LINE_N + 1] = cone.mu * jv[0];
  line[LINE_DM] = cone.Dm;
  line[LINE_SLOPE] = quadratic[0];
  line[LINE_CURVE] = quadratic[1];
  line[LINE_SIZE] = quadratic[2];
  for (int i = 0; i < 3; ++i) line[LINE_UU + i] = products[i];
}

DEVICE LineLaw cone_line_law(const real* line, real alpha) {
  const real mu = line[LINE_MU], Dm = line[LINE_DM], N = fma_(alpha, line[LINE_N + 1], line[LINE_N]);
  const real along = fma_(alpha, line[LINE_UU + 2], line[LINE_UU + 1]);
  const real square = fma_(alpha, along + line[LINE_UU + 1], line[LINE_UU]), T = sqrt_(max_(square, R(0.0)));
  if (N >= mu * T) return {0, 0, 0};
  if (mu * N + T <= 0) {
    const real curve = line[LINE_CURVE];
    return {fma_(alpha, curve, line[LINE_SLOPE]), curve, fma_(abs_(alpha), curve, 2 * line[LINE_SIZE])};
  }
  const real inverse = reciprocal_(T), rate = along * inverse, depth = N - mu * T;
  const real change = line[LINE_N + 1] - mu * rate, bend = (line[LINE_UU + 2] - rate * rate) * inverse;
  return {Dm * depth * change, Dm * (change * change - depth * mu * bend),
          Dm * (abs_(N) + mu * T) * (abs_(line[LINE_N + 1]) + mu * abs_(rate))};
}

// First and second derivative with respect to alpha of the cost of a row outside cones at jar + alpha jv.
DEVICE LineLaw scalar_line_law(bool friction, bool push, real D, real loss, real jar, real jv, real alpha) {
  const real x = fma_(alpha, jv, jar), rate = D * jv;
  if (friction && !(abs_(D * x) < loss)) {
    const real pull = x < 0 ? -jv * loss : jv * loss;
    return {pull, R(0.0), abs_(pull)};
  }
  if (push && !(x < 0)) return {0, 0, 0};
  return {rate * x, rate * jv, abs_(rate) * (abs_(x) + abs_(jar))};
}

// The same of row r; without cones nothing needs to be put before.
DEVICE LineLaw row_line_law(const Rows& rows, int r, const real* jar, const real* jv, real alpha) {
  const int type = rows.type[r];
  const bool push = type > ROW_FRICTION_TENDON, friction = !push && type != ROW_EQUALITY;
  return scalar_line_law(friction, push, rows.D[r], rows.frictionloss[r], jar[r], jv[r], alpha);
}

// The same of a row, or of a cone; `line` is from put_line.
DEVICE LineLaw line_law(const real* line, real alpha) {
  const real kind = line[LINE_KIND];
  if (kind == LINE_NONE) return {0, 0, 0};
  if (kind == LINE_CONE) return cone_line_law(line, alpha);
  return scalar_line_law(kind == LINE_FRICTION, kind == LINE_PUSH, line[LINE_D], line[LINE_D + 1], line[LINE_D + 2],
                         line[LINE_D + 3], alpha);
}
