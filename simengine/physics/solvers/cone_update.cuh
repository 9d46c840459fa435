// The optimal force of one elliptic contact while all other forces stay fixed: MuJoCo documentation, "Computation",
// "Constraint solver", "Algorithms", PGS. The force is first scaled along the ray from the tip of the cone; then the
// friction forces are optimised at that normal force by MuJoCo's iteration (tangents.cuh). Its 20 steps and its least
// determinant may leave them far from the optimum, as they leave MuJoCo's.
#pragma once

// A force of a contact of dimension `number` that lowers a quadratic cost with the matrix A; `residual` is the
// derivative of the cost at the force `old`. DIM is the dimension where the compiler knows it, or 0.
template <int DIM>
DEVICE void best_in_cone_of(int number, const real* A, const real* residual, const real* old, const real* friction,
                            real* force, KeptFactor* kept) {
  const int dim = DIM ? DIM : number;
  real slip[MAX_CONE_ROWS], noise, ray = 0, curve = 0;
  for (int i = 0; i < dim; ++i) force[i] = i ? R(0.0) : old[0];
  if (old[0] < MJMINVAL) {
    force[0] = max_(R(0.0), old[0] - divide_(residual[0], A[0]));
  } else {
    for (int i = 0; i < dim; ++i) {
      ray = fma_(old[i], residual[i], ray);
#if SIMENGINE_GPU
      for (int j = 0; j < dim; ++j) curve = fma_(old[i] * A[MAX_CONE_ROWS * i + j], old[j], curve);
#else
      real pull = 0;  // sums of their own, which a processor computes side by side
      for (int j = 0; j < dim; ++j) pull = fma_(A[MAX_CONE_ROWS * i + j], old[j], pull);
      curve = fma_(old[i], pull, curve);
#endif
    }
    if (curve >= MJMINVAL) force[0] = max_(R(0.0), old[0] - divide_(ray, curve) * old[0]);
  }
  if (force[0] < MJMINVAL) return;
  // the derivative of the cost with respect to the friction forces at this normal force
  for (int i = 1; i < dim; ++i) slip[i] = fma_(A[MAX_CONE_ROWS * i], force[0] - old[0], residual[i]);
  best_tangents(dim - 1, A + MAX_CONE_ROWS + 1, slip + 1, old + 1, friction, force[0], PIVOT_NOISE, force + 1,
                kept);
  if (cost_of(dim, A, residual, old, force, &noise) <= noise) return;
  for (int i = 0; i < dim; ++i) force[i] = old[i];
}

DEVICE void best_in_cone(int dim, const real* A, const real* residual, const real* old, const real* friction,
                         real* force, KeptFactor* kept = nullptr) {
#if !SIMENGINE_GPU
  if (dim == 3) return best_in_cone_of<3>(dim, A, residual, old, friction, force, kept);
  if (dim == 4) return best_in_cone_of<4>(dim, A, residual, old, friction, force, kept);
  if (dim == 6) return best_in_cone_of<6>(dim, A, residual, old, friction, force, kept);
#endif
  best_in_cone_of<0>(dim, A, residual, old, friction, force, kept);
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
