// The optimal force of one elliptic contact while all other forces stay fixed: MuJoCo documentation, "Computation",
// "Constraint solver", "Algorithms", PGS. The force is first scaled along the ray from the tip of the cone; then the
// friction forces are optimised at that normal force: of a contact of dimension 4 by MuJoCo's iteration (tangents.cuh),
// whose 20 steps and whose least determinant often leave it far from the optimum, of others exactly.
#pragma once

// Minimise 1/2 x' A x + x' b over sum (x_i / friction_i)^2 <= radius^2. n is at most MAX_CONE_ROWS - 1, and the rows of
// A have MAX_CONE_ROWS words. With x_i = friction_i y_i and A and b scaled to match, the optimum solves
// (A + lambda) y = -b. lambda >= 0 is the root of |y| = radius, which Newton's method on 1 / |y| finds from below (J.
// More and D. Sorensen, SIAM J. Sci. Stat. Comput. 4 (1983)).
DEVICE void best_in_ellipsoid(int n, const real* A, const real* b, const real* friction, real radius, real* x) {
  real L[MAX_CONE_ROWS * MAX_CONE_ROWS], w[MAX_CONE_ROWS], lambda = 0;
  ROLLED for (int iteration = 0; iteration < 30; ++iteration) {
    real length2 = 0, curve = 0;
    // L L' = A + lambda, scaled; x = -inv(A + lambda) b; w = inv(L) x
    ROLLED for (int i = 0; i < n; ++i) {
      real right = -(friction[i] * b[i]);
      ROLLED for (int j = 0; j <= i; ++j) {
        real a = friction[i] * friction[j] * A[MAX_CONE_ROWS * i + j] + (i == j ? lambda : R(0.0));
        ROLLED for (int k = 0; k < j; ++k) a = fma_(-L[MAX_CONE_ROWS * i + k], L[MAX_CONE_ROWS * j + k], a);
        L[MAX_CONE_ROWS * i + j] = i == j ? sqrt_(max_(a, MJMINVAL)) : divide_(a, L[MAX_CONE_ROWS * j + j]);
      }
      ROLLED for (int k = 0; k < i; ++k) right = fma_(-L[MAX_CONE_ROWS * i + k], x[k], right);
      x[i] = divide_(right, L[MAX_CONE_ROWS * i + i]);
    }
    ROLLED for (int i = n - 1; i >= 0; --i) {
      ROLLED for (int k = i + 1; k < n; ++k) x[i] = fma_(-L[MAX_CONE_ROWS * k + i], x[k], x[i]);
      x[i] = divide_(x[i], L[MAX_CONE_ROWS * i + i]);
      length2 = fma_(x[i], x[i], length2);
    }
    const real length = sqrt_(length2);
    if (length <= radius * (lambda > 0 ? 1 + 8 * REAL_EPS : R(1.0))) break;
    ROLLED for (int i = 0; i < n; ++i) {
      w[i] = x[i];
      ROLLED for (int k = 0; k < i; ++k) w[i] = fma_(-L[MAX_CONE_ROWS * i + k], w[k], w[i]);
      w[i] = divide_(w[i], L[MAX_CONE_ROWS * i + i]);
      curve = fma_(w[i], w[i], curve);
    }
    lambda += divide_(length - radius, radius) * divide_(length2, curve);
  }
  real length2 = 0;
  ROLLED for (int i = 0; i < n; ++i) length2 = fma_(x[i], x[i], length2);
  const real shrink = lambda > 0 ? divide_(radius, sqrt_(length2)) : R(1.0);
  ROLLED for (int i = 0; i < n; ++i) x[i] *= shrink * friction[i];
}

#define BY_ITERATION 4  // the dimension of contacts whose friction has MuJoCo's iteration

// The optimal force of a contact of dimension `dim` for a quadratic cost with the matrix A; `residual` is the
// derivative of the cost at the force `old`.
DEVICE void best_in_cone(int dim, const real* A, const real* residual, const real* old, const real* friction,
                         real* force) {
  real linear[MAX_CONE_ROWS], ray = 0, curve = 0;
  for (int i = 0; i < dim; ++i) force[i] = i ? R(0.0) : old[0];
  if (old[0] < MJMINVAL) {
    force[0] = max_(R(0.0), old[0] - divide_(residual[0], A[0]));
  } else {
    for (int i = 0; i < dim; ++i) {
      ray = fma_(old[i], residual[i], ray);
      for (int j = 0; j < dim; ++j) curve = fma_(old[i] * A[MAX_CONE_ROWS * i + j], old[j], curve);
    }
    if (curve >= MJMINVAL) force[0] = max_(R(0.0), old[0] - divide_(ray, curve) * old[0]);
  }
  if (force[0] < MJMINVAL) return;
  if (dim == BY_ITERATION) {
    real slip[MAX_CONE_ROWS], noise;
    for (int i = 1; i < dim; ++i) slip[i] = fma_(A[MAX_CONE_ROWS * i], force[0] - old[0], residual[i]);
    best_tangents(dim - 1, A + MAX_CONE_ROWS + 1, slip + 1, old + 1, friction, force[0], force + 1);
    if (cost_of(dim, A, residual, old, force, &noise) <= noise) return;
    for (int i = 0; i < dim; ++i) force[i] = old[i];
    return;
  }
  // the derivative of the cost with respect to the friction forces at this normal force
  for (int i = 1; i < dim; ++i) {
    linear[i] = fma_(A[MAX_CONE_ROWS * i], force[0] - old[0], residual[i]);
    for (int j = 1; j < dim; ++j) linear[i] = fma_(-A[MAX_CONE_ROWS * i + j], old[j], linear[i]);
  }
  best_in_ellipsoid(dim - 1, A + MAX_CONE_ROWS + 1, linear + 1, friction, force[0], force + 1);
}

// Project a force into its cone at unchanged normal force.
DEVICE void into_cone(int dim, const real* friction, real* force) {
  real square = 0;
  for (int i = 1; i < dim; ++i) {
    const real x = divide_(force[i], friction[i - 1]);
    square = fma_(x, x, square);
  }
  force[0] = max_(R(0.0), force[0]);
  if (square <= force[0] * force[0]) return;
  const real shrink = divide_(force[0], sqrt_(square));
  for (int i = 1; i < dim; ++i) force[i] *= shrink;
}
