// Systems of as many dofs as a block has, which one lane solves in its registers.
#pragma once

#if SIMENGINE_GPU
// A square matrix of N rows in the registers of one lane, by rows. Where it begins at a multiple of four words, it is
// loaded and stored by four: lanes have matrices of their own, so that each of their loads touches as many places.
template <int N>
struct SquareOfLane {
  real word[N * N];

  DEVICE_METHOD static bool by_fours(const real* A) {
    return N * N % 4 == 0 && reinterpret_cast<size_t>(A) % sizeof(Vec4) == 0;
  }
  DEVICE_METHOD void load(const real* A) {
    if (by_fours(A)) {
      UNROLLED for (int q = 0; q < N * N / 4; ++q) {
        const Vec4 four = reinterpret_cast<const Vec4*>(A)[q];
        word[4 * q] = four.x, word[4 * q + 1] = four.y, word[4 * q + 2] = four.z, word[4 * q + 3] = four.w;
      }
    } else {
      UNROLLED for (int e = 0; e < N * N; ++e) word[e] = A[e];
    }
  }
  DEVICE_METHOD void put(real* A) const {
    if (by_fours(A)) {
      UNROLLED for (int q = 0; q < N * N / 4; ++q) {
        reinterpret_cast<Vec4*>(A)[q] = {word[4 * q], word[4 * q + 1], word[4 * q + 2], word[4 * q + 3]};
      }
    } else {
      UNROLLED for (int e = 0; e < N * N; ++e) A[e] = word[e];
    }
  }
};

// The factor of a block of N dofs in the registers of one lane, where loads wait together: lane_factor and lane_solve,
// with the same bits.
template <int N>
struct FactorOfLane {
  real l[N][N];

  DEVICE_METHOD void load(const real* H) {
    SquareOfLane<N> whole;
    whole.load(H);
    UNROLLED for (int i = 0; i < N; ++i) {
      UNROLLED for (int j = 0; j <= i; ++j) l[i][j] = whole.word[i * N + j];
    }
  }
  DEVICE_METHOD void factor() {
    UNROLLED for (int k = 0; k < N; ++k) {
      real d = l[k][k];
      UNROLLED for (int j = 0; j < k; ++j) d = fma_(-l[k][j], l[k][j], d);
      l[k][k] = sqrt_(select(d <= 0, REAL_MAX, d));  // see mem_factor
      const real inverse = R(1.0) / l[k][k];
      UNROLLED for (int i = k + 1; i < N; ++i) {
        UNROLLED for (int j = 0; j < k; ++j) l[i][k] = fma_(-l[i][j], l[k][j], l[i][k]);
        l[i][k] *= inverse;
      }
    }
  }
  // Zero above the diagonal.
  DEVICE_METHOD void put(real* L) const {
    SquareOfLane<N> whole;
    UNROLLED for (int i = 0; i < N; ++i) {
      UNROLLED for (int j = 0; j < N; ++j) whole.word[i * N + j] = j <= i ? l[i][j] : R(0.0);
    }
    whole.put(L);
  }
  DEVICE_METHOD void solve(real* x) const {
    real y[N];
    UNROLLED for (int i = 0; i < N; ++i) y[i] = x[i];
    UNROLLED for (int k = 0; k < N; ++k) {
      y[k] = y[k] / l[k][k];
      UNROLLED for (int i = k + 1; i < N; ++i) y[i] = fma_(-l[i][k], y[k], y[i]);
    }
    UNROLLED for (int k = N - 1; k >= 0; --k) {
      y[k] = y[k] / l[k][k];
      UNROLLED for (int i = 0; i < k; ++i) y[i] = fma_(-l[k][i], y[k], y[i]);
    }
    UNROLLED for (int i = 0; i < N; ++i) x[i] = y[i];
  }
};
#endif

#ifndef TILE
// lu_solve of a block of N dofs in the registers of one lane; A is not changed.
template <int N>
DEVICE void lane_lu_solve(real* x, const real* A) {
  real a[N][N], y[N];
  UNROLLED for (int i = 0; i < N; ++i) {
    y[i] = x[i];
    UNROLLED for (int j = 0; j < N; ++j) a[i][j] = A[i * N + j];
  }
  UNROLLED for (int k = 0; k < N - 1; ++k) {
    const real inverse = reciprocal_(a[k][k]);
    UNROLLED for (int i = k + 1; i < N; ++i) {
      const real factor = a[i][k] * inverse;
      UNROLLED for (int j = k + 1; j < N; ++j) a[i][j] = fma_(-factor, a[k][j], a[i][j]);
      y[i] = fma_(-factor, y[k], y[i]);
    }
  }
  UNROLLED for (int k = N - 1; k >= 0; --k) {
    y[k] = divide_(y[k], a[k][k]);
    UNROLLED for (int i = 0; i < k; ++i) y[i] = fma_(-a[i][k], y[k], y[i]);
  }
  UNROLLED for (int i = 0; i < N; ++i) x[i] = y[i];
}
#endif
