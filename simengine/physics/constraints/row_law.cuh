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

#define MAX_CONE_ROWS 6

// The constraint rows of a world.
struct Rows {
  int n;
  const int *type, *id, *address, *cand;  // address and cand: contact_efc_address and contact_cand
  const real *J, *D, *aref, *frictionloss;
};

// Number of rows whose cost depends on them jointly and whose first row is r: the dimension of an elliptic cone, 1 for
// a row outside cones, and 0 if r is a later row of its cone.
DEVICE int rows_together(const Model& m, const Rows& rows, int r) {
  if (rows.type[r] != ROW_CONTACT_ELLIPTIC) return 1;
  return rows.address[rows.id[r]] == r ? m.cand_rows()[rows.cand[rows.id[r]]] : 0;
}

enum Zone { FREE, QUADRATIC, BETWEEN };

// The coordinates of a cone at one point.
struct Cone {
  const real* friction;
  real mu, N, U[MAX_CONE_ROWS], T, Dm;
  Zone zone;
};

DEVICE Cone cone_at(const Model& m, const Rows& rows, int r, int dim, const real* x) {
  Cone cone;
  real square = 0;
  cone.friction = m.cand_friction() + 5 * rows.cand[rows.id[r]];
  cone.mu = cone.friction[0] * reciprocal_sqrt_(m.opt_impratio()[0]);
  cone.N = cone.mu * x[0];
  for (int i = 1; i < dim; ++i) {
    cone.U[i] = cone.friction[i - 1] * x[i];
    square = fma_(cone.U[i], cone.U[i], square);
  }
  cone.T = sqrt_(square);
  cone.Dm = divide_(rows.D[r], cone.mu * cone.mu * (1 + cone.mu * cone.mu));
  cone.zone = cone.N >= cone.mu * cone.T ? FREE : cone.mu * cone.N + cone.T <= 0 ? QUADRATIC : BETWEEN;
  return cone;
}

DEVICE Zone scalar_zone(const Rows& rows, int r, real x) {
  const int type = rows.type[r];
  if (type == ROW_EQUALITY) return QUADRATIC;
  if (type <= ROW_FRICTION_TENDON) return abs_(rows.D[r] * x) < rows.frictionloss[r] ? QUADRATIC : BETWEEN;
  return x < 0 ? QUADRATIC : FREE;
}

// Cost of row r, or of the cone whose first row is r, at residuals x. `force` receives minus the derivative. `weight`,
// if not null, receives the second derivatives: MAX_CONE_ROWS words per row, of which a row outside a cone uses the
// first.
DEVICE real row_law(const Model& m, const Rows& rows, int r, int dim, const real* x, real* force, real* weight) {
  const real* D = rows.D + r;
  real cost = 0;
  if (rows.type[r] != ROW_CONTACT_ELLIPTIC) {
    const Zone zone = scalar_zone(rows, r, x[0]);
    const real loss = rows.frictionloss[r];
    force[0] = zone == FREE ? R(0.0) : zone == QUADRATIC ? -(D[0] * x[0]) : x[0] < 0 ? loss : -loss;
    if (weight) weight[0] = zone == QUADRATIC ? D[0] : R(0.0);
    if (zone == FREE) return 0;
    return zone == QUADRATIC ? R(0.5) * D[0] * x[0] * x[0] : loss * (abs_(x[0]) - R(0.5) * divide_(loss, D[0]));
  }
  const Cone cone = cone_at(m, rows, r, dim, x);
  if (cone.zone != BETWEEN) {
    for (int i = 0; i < dim; ++i) {
      const real d = cone.zone == QUADRATIC ? D[i] : R(0.0);
      force[i] = -(d * x[i]);
      cost = fma_(R(0.5) * d * x[i], x[i], cost);
      for (int j = 0; weight && j < dim; ++j) weight[MAX_CONE_ROWS * i + j] = i == j ? d : R(0.0);
    }
    return cost;
  }
  // with respect to (N, U): gradient Dm depth v with v = (1, -mu u) and u = U / T; second derivatives Dm v v', and for
  // U also bend (1 - u u')
  const real depth = cone.N - cone.mu * cone.T, slope = cone.Dm * depth, inverse = reciprocal_(cone.T);
  const real bend = -slope * cone.mu * inverse;
  real u[MAX_CONE_ROWS], scale[MAX_CONE_ROWS], v[MAX_CONE_ROWS];
  for (int i = 0; i < dim; ++i) {
    u[i] = i ? cone.U[i] * inverse : R(0.0);
    scale[i] = i ? cone.friction[i - 1] : cone.mu;
    v[i] = scale[i] * (i ? -cone.mu * u[i] : R(1.0));
    force[i] = -(slope * v[i]);
  }
  for (int i = 0; weight && i < dim; ++i) {
    for (int j = 0; j < dim; ++j) {
      const real across = i && j ? bend * scale[i] * scale[j] * ((i == j) - u[i] * u[j]) : R(0.0);
      weight[MAX_CONE_ROWS * i + j] = fma_(cone.Dm * v[i], v[j], across);
    }
  }
  return R(0.5) * slope * depth;
}

// The second derivative with respect to the residual of row r itself.
DEVICE real own_weight(const Rows& rows, int r, const real* weight) {
  const bool cone = rows.type[r] == ROW_CONTACT_ELLIPTIC;
  return weight[MAX_CONE_ROWS * r + (cone ? r - rows.address[rows.id[r]] : 0)];
}

// Does row r have second derivatives? If the diagonal of a positive semidefinite matrix is zero, so is the whole row.
DEVICE bool has_weight(const Rows& rows, int r, const real* weight) { return own_weight(rows, r, weight) != 0; }

struct LineLaw {
  real first, second;
  real size;  // of the terms whose sum is `first`
};

// First and second derivative with respect to alpha of the cost of row r, or of the cone whose first row is r, at
// residuals jar + alpha jv.
DEVICE LineLaw line_law(const Model& m, const Rows& rows, int r, int dim, const real* jar, const real* jv,
                        real alpha) {
  const real* D = rows.D + r;
  if (rows.type[r] != ROW_CONTACT_ELLIPTIC) {
    const real x = fma_(alpha, jv[0], jar[0]);
    const Zone zone = scalar_zone(rows, r, x);
    if (zone == QUADRATIC) {
      const real rate = D[0] * jv[0];
      return {D[0] * x * jv[0], rate * jv[0], abs_(rate) * (abs_(x) + abs_(jar[0]))};
    }
    const real pull = zone == FREE ? R(0.0) : (x < 0 ? -jv[0] : jv[0]) * rows.frictionloss[r];
    return {pull, R(0.0), abs_(pull)};
  }
  real x[MAX_CONE_ROWS];
  for (int i = 0; i < dim; ++i) x[i] = fma_(alpha, jv[i], jar[i]);
  const Cone cone = cone_at(m, rows, r, dim, x);
  LineLaw law = {0, 0, 0};
  if (cone.zone == QUADRATIC) {
    for (int i = 0; i < dim; ++i) {
      law.first = fma_(D[i] * x[i], jv[i], law.first);
      law.second = fma_(D[i] * jv[i], jv[i], law.second);
      law.size = fma_(abs_(D[i] * jv[i]), abs_(x[i]) + abs_(jar[i]), law.size);
    }
  } else if (cone.zone == BETWEEN) {
    real along = 0, square = 0;
    for (int i = 1; i < dim; ++i) {
      const real rate = cone.friction[i - 1] * jv[i];
      along = fma_(cone.U[i], rate, along);
      square = fma_(rate, rate, square);
    }
    const real inverse = reciprocal_(cone.T), rate = along * inverse, depth = cone.N - cone.mu * cone.T;
    const real change = cone.mu * (jv[0] - rate), curve = (square - rate * rate) * inverse;
    law.first = cone.Dm * depth * change;
    law.second = cone.Dm * (change * change - depth * cone.mu * curve);
    law.size = cone.Dm * (abs_(cone.N) + cone.mu * cone.T) * (abs_(cone.mu * jv[0]) + abs_(cone.mu * rate));
  }
  return law;
}
