// The optimal friction forces of an elliptic contact for a quadratic cost, by MuJoCo's iteration.
#pragma once

// Optimal friction forces of a cone for a quadratic cost: minimise
// 1/2 (x - old)' A (x - old) + (x - old)' slip over sum (x_i / friction_i)^2 <= radius^2.
// With x_i = friction_i y_i and A, slip and old scaled to match, (A + lambda) (y - old) = -slip - lambda old, where
// lambda >= 0 is the root of |y| = radius. As in MuJoCo, Newton's method on |y|^2 has 20 iterations, which are too few
// where a friction coefficient is small. A matrix whose pivots are small or mere rounding gives no force. Pivot i is
// v' A v, where v_i = 1 and the others make A v zero above i. So it is mere rounding below the rounding of that
// product, `noise` times its terms. Only lambda = 0 can show that, because pivots grow with lambda.
#define TANGENT_ITERATIONS 20
#if SIMENGINE_GPU
#define CONE_LOOP ROLLED
#else
#define CONE_LOOP _Pragma("GCC unroll 6")  // where the compiler knows their number, forces are in registers
#endif
#define LEAST_PIVOT R(1e-10)
#define PIVOT_NOISE (32 * REAL_EPS)

// y = old - inv(A + lambda) (slip + lambda old), scaled; L receives the Cholesky factor. Returns false if the matrix
// counts as singular.
template <class Number>
DEVICE bool tangents_at(int n, const Number* A, const Number* slip, const Number* old, const Number* friction,
                        Number lambda, Number noise, Number* L, Number* y) {
  Number root[MAX_CONE_ROWS], v[MAX_CONE_ROWS], least = 1, product = 1;
  bool rounding = false;
  CONE_LOOP for (int i = 0; i < n; ++i) {
    const Number before = friction[i] > 0 ? divide_(old[i], friction[i]) : R(0.0);
    Number right = -fma_(lambda, before, friction[i] * slip[i]);
    CONE_LOOP for (int j = 0; j <= i; ++j) {
      const Number whole = friction[i] * friction[j] * A[MAX_CONE_ROWS * i + j] + (i == j ? lambda : R(0.0));
      Number a = whole;
      CONE_LOOP for (int k = 0; k < j; ++k) a = fma_(-L[MAX_CONE_ROWS * i + k], L[MAX_CONE_ROWS * j + k], a);
      if (i == j && !(lambda > 0)) {
        least = min_(least, a);
        product *= a;
        Number extent = root[i] = sqrt_(whole);
        CONE_LOOP for (int k = i - 1; k >= 0; --k) {
          v[k] = L[MAX_CONE_ROWS * i + k];
          CONE_LOOP for (int q = k + 1; q < i; ++q) v[k] = fma_(-L[MAX_CONE_ROWS * q + k], v[q], v[k]);
          v[k] = divide_(v[k], L[MAX_CONE_ROWS * k + k]);
          extent = fma_(abs_(v[k]), root[k], extent);
        }
        rounding |= a <= noise * extent * extent;
      }
      L[MAX_CONE_ROWS * i + j] = i == j ? sqrt_(max_(a, Number(MJMINVAL))) : divide_(a, L[MAX_CONE_ROWS * j + j]);
    }
    CONE_LOOP for (int k = 0; k < i; ++k) right = fma_(-L[MAX_CONE_ROWS * i + k], y[k], right);
    y[i] = divide_(right, L[MAX_CONE_ROWS * i + i]);
  }
  CONE_LOOP for (int i = n - 1; i >= 0; --i) {
    CONE_LOOP for (int k = i + 1; k < n; ++k) y[i] = fma_(-L[MAX_CONE_ROWS * k + i], y[k], y[i]);
    y[i] = divide_(y[i], L[MAX_CONE_ROWS * i + i]);
  }
  CONE_LOOP for (int i = 0; i < n; ++i) y[i] += friction[i] > 0 ? divide_(old[i], friction[i]) : R(0.0);
  return lambda > 0 || (!rounding && (n > 3 ? least : product) >= LEAST_PIVOT);
}

#if !SIMENGINE_GPU
// The same for two friction forces, with the inverse of the matrix in closed form. The host takes this way; on a GPU,
// the lanes of other contacts would wait.
DEVICE bool best_two_tangents(const real* A, const real* slip, const real* old, const real* friction, real radius,
                              real noise, real* x) {
  const real a = friction[0] * friction[0] * A[0], b = friction[1] * friction[0] * A[MAX_CONE_ROWS];
  const real c = friction[1] * friction[1] * A[MAX_CONE_ROWS + 1], pivot = c - divide_(b * b, a);
  const real extent = sqrt_(c) + divide_(abs_(b), sqrt_(a));
  if (!(a * pivot >= LEAST_PIVOT) || pivot <= noise * extent * extent) return false;
  real before[2], push[2], y[2], lambda = 0, length2 = 0;
  for (int i = 0; i < 2; ++i) {
    before[i] = friction[i] > 0 ? divide_(old[i], friction[i]) : R(0.0);
    push[i] = friction[i] * slip[i];
  }
  const real slack = max_(R(1e-10), REAL_EPS * radius * radius);
  for (int iteration = 0; iteration < TANGENT_ITERATIONS; ++iteration) {
    const real p = a + lambda, q = c + lambda, determinant = fma_(p, q, -b * b), inverse = divide_(R(1.0), determinant);
    const real r0 = -fma_(lambda, before[0], push[0]), r1 = -fma_(lambda, before[1], push[1]);
    y[0] = fma_(fma_(q, r0, -b * r1), inverse, before[0]);
    y[1] = fma_(fma_(p, r1, -b * r0), inverse, before[1]);
    length2 = fma_(y[1], y[1], y[0] * y[0]);
    const real excess = length2 - radius * radius;
    if (excess < slack) break;
    const real curve = fma_(q, y[0] * y[0], fma_(p, y[1] * y[1], -2 * b * y[0] * y[1]));
    const real further = divide_(excess * determinant, 2 * curve);
    if (further < R(1e-10) || iteration == TANGENT_ITERATIONS - 1) break;
    lambda += further;
  }
  const real shrink = lambda > 0 ? divide_(radius, sqrt_(length2)) : R(1.0);
  for (int i = 0; i < 2; ++i) x[i] = shrink * friction[i] * y[i];
  return true;
}
#endif

// The factor of a cone's matrix without lambda, which solvers that visit the cone again and again keep.
struct KeptFactor {
#if !SIMENGINE_GPU
  bool ready, singular;
  real L[5][5], inverse[5];
#endif
};

#if !SIMENGINE_GPU
// The matrix A + lambda, scaled, as L D L' with ones on the diagonal of L: without roots, and one division a pivot.
template <int N>
struct ScaledTangents {
  real A[N][N], L[N][N], D[N], inverse[N], before[N], push[N];

  ScaledTangents(const real* from, const real* slip, const real* old, const real* friction) {
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j <= i; ++j) A[i][j] = friction[i] * friction[j] * from[MAX_CONE_ROWS * i + j];
      before[i] = friction[i] > 0 ? divide_(old[i], friction[i]) : R(0.0);
      push[i] = friction[i] * slip[i];
    }
  }
  void factor(real lambda) {
    real whole[N][N];
    CONE_LOOP for (int i = 0; i < N; ++i) {
      CONE_LOOP for (int j = 0; j <= i; ++j) {
        whole[i][j] = i == j ? A[i][i] + lambda : A[i][j];
        CONE_LOOP for (int k = 0; k < j; ++k) whole[i][j] = fma_(-whole[i][k], L[j][k], whole[i][j]);
        if (j < i) L[i][j] = whole[i][j] * inverse[j];
      }
      D[i] = whole[i][i];
      inverse[i] = divide_(R(1.0), max_(D[i], real(MJMINVAL)));
    }
  }
  // Whether the matrix without lambda, as factored, counts as singular.
  bool is_singular(real noise) const {
    real root[N], v[N], least = 1, product = 1;
    bool rounding = false;
    CONE_LOOP for (int i = 0; i < N; ++i) {
      real extent = root[i] = sqrt_(A[i][i]);
      CONE_LOOP for (int k = i - 1; k >= 0; --k) {
        v[k] = L[i][k];
        CONE_LOOP for (int q = k + 1; q < i; ++q) v[k] = fma_(-L[q][k], v[q], v[k]);
        extent = fma_(abs_(v[k]), root[k], extent);
      }
      rounding |= D[i] <= noise * extent * extent;
      least = min_(least, D[i]);
      product *= D[i];
    }
    return rounding || !((N > 3 ? least : product) >= LEAST_PIVOT);
  }
  // Factor the matrix without lambda, or take what is kept of that. Returns whether it is singular.
  bool factor_or_take(real noise, KeptFactor* kept) {
    if (N != 5 || !kept) {
      factor(R(0.0));
      return is_singular(noise);
    }
    if (!kept->ready) {
      factor(R(0.0));
      kept->ready = true;
      kept->singular = is_singular(noise);
      __builtin_memcpy(kept->L, L, sizeof(L));
      __builtin_memcpy(kept->inverse, inverse, sizeof(inverse));
    }
    __builtin_memcpy(L, kept->L, sizeof(L));
    __builtin_memcpy(inverse, kept->inverse, sizeof(inverse));
    return kept->singular;
  }
  // out = inv(L) x
  void forward(const real* x, real* out) const {
    CONE_LOOP for (int i = 0; i < N; ++i) {
      out[i] = x[i];
      CONE_LOOP for (int k = 0; k < i; ++k) out[i] = fma_(-L[i][k], out[k], out[i]);
    }
  }
  // y = old - inv(A + lambda) (slip + lambda old), scaled
  void solve(real lambda, real* y) const {
    real right[N];
    for (int i = 0; i < N; ++i) right[i] = -fma_(lambda, before[i], push[i]);
    forward(right, y);
    CONE_LOOP for (int i = N - 1; i >= 0; --i) {
      y[i] *= inverse[i];
      CONE_LOOP for (int k = i + 1; k < N; ++k) y[i] = fma_(-L[k][i], y[k], y[i]);
    }
    for (int i = 0; i < N; ++i) y[i] += before[i];
  }
};

// The same for N friction forces, as many as contacts with torques have.
template <int N>
DEVICE bool best_several_tangents(const real* A, const real* slip, const real* old, const real* friction, real radius,
                                  real noise, real* x, KeptFactor* kept) {
  ScaledTangents<N> scaled(A, slip, old, friction);
  real y[N], along[N], lambda = 0, length2 = 0;
  const real slack = max_(R(1e-10), REAL_EPS * radius * radius);
  for (int iteration = 0; iteration < TANGENT_ITERATIONS; ++iteration) {
    if (iteration == 0 && scaled.factor_or_take(noise, kept)) return false;
    if (iteration) scaled.factor(lambda);
    scaled.solve(lambda, y);
    length2 = 0;
    CONE_LOOP for (int i = 0; i < N; ++i) length2 = fma_(y[i], y[i], length2);
    const real excess = length2 - radius * radius;
    if (excess < slack) break;
    real curve = 0;  // y' inv(A + lambda) y
    scaled.forward(y, along);
    CONE_LOOP for (int i = 0; i < N; ++i) curve = fma_(along[i] * scaled.inverse[i], along[i], curve);
    const real further = divide_(excess, 2 * curve);
    if (further < R(1e-10) || iteration == TANGENT_ITERATIONS - 1) break;
    lambda += further;
  }
  const real shrink = lambda > 0 ? divide_(radius, sqrt_(length2)) : R(1.0);
  for (int i = 0; i < N; ++i) x[i] = shrink * friction[i] * y[i];
  return true;
}
#endif

// `x` stays as it is where the matrix counts as singular. Returns whether it does not.
template <class Number>
DEVICE bool best_of_tangents(int n, const Number* A, const Number* slip, const Number* old, const Number* friction,
                             Number radius, Number noise, Number* x) {
  Number L[MAX_CONE_ROWS * MAX_CONE_ROWS], y[MAX_CONE_ROWS], lambda = 0, length2 = 0;
  const Number slack = max_(Number(1e-10), REAL_EPS * radius * radius);
  ROLLED for (int iteration = 0; iteration < TANGENT_ITERATIONS; ++iteration) {
    if (!tangents_at(n, A, slip, old, friction, lambda, noise, L, y)) return false;
    length2 = 0;
    CONE_LOOP for (int i = 0; i < n; ++i) length2 = fma_(y[i], y[i], length2);
    const Number excess = length2 - radius * radius;
    if (excess < slack) break;
    // x = inv(L) y, so that |x|^2 = y' inv(A + lambda) y
    Number curve = 0;
    CONE_LOOP for (int i = 0; i < n; ++i) {
      x[i] = y[i];
      CONE_LOOP for (int k = 0; k < i; ++k) x[i] = fma_(-L[MAX_CONE_ROWS * i + k], x[k], x[i]);
      x[i] = divide_(x[i], L[MAX_CONE_ROWS * i + i]);
      curve = fma_(x[i], x[i], curve);
    }
    const Number further = divide_(excess, 2 * curve);
    if (further < R(1e-10) || iteration == TANGENT_ITERATIONS - 1) break;
    lambda += further;
  }
  const Number shrink = lambda > 0 ? divide_(radius, sqrt_(length2)) : R(1.0);
  CONE_LOOP for (int i = 0; i < n; ++i) x[i] = shrink * friction[i] * y[i];
  return true;
}

DEVICE bool best_tangents(int n, const real* A, const real* slip, const real* old, const real* friction, real radius,
                          real noise, real* x, KeptFactor* kept = nullptr) {
#if !SIMENGINE_GPU
  if (n == 2) return best_two_tangents(A, slip, old, friction, radius, noise, x);
  if (n == 3) return best_several_tangents<3>(A, slip, old, friction, radius, noise, x, kept);
  if (n == 5) return best_several_tangents<5>(A, slip, old, friction, radius, noise, x, kept);
#endif
  return best_of_tangents<real>(n, A, slip, old, friction, radius, noise, x);
}

// Change of the cost when forces change from `old`, where its derivative is `slip`; `noise` receives the change that
// rounding alone may cause.
template <class Number>
DEVICE Number cost_of(int n, const Number* A, const Number* slip, const Number* old, const Number* force,
                      Number* noise) {
  Number cost = 0;
  *noise = Number(1e-10);
  CONE_LOOP for (int i = 0; i < n; ++i) {
    Number slope = slip[i];
    *noise = fma_(4 * REAL_EPS * abs_(slope), abs_(force[i]) + abs_(old[i]), *noise);
    CONE_LOOP for (int j = 0; j < n; ++j) {
      slope = fma_(Number(0.5) * A[MAX_CONE_ROWS * i + j], force[j] - old[j], slope);
    }
    cost = fma_(force[i] - old[i], slope, cost);
  }
  return cost;
}
