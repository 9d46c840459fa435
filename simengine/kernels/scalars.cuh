// Scalar functions of the dialect. A tile has its own, in tile.h.
#pragma once

#if defined(TILE)
// in tile.h
#elif REAL_IS_FLOAT
#define R(x) (x##f)
DEVICE real fma_(real a, real b, real c) { return fmaf(a, b, c); }
DEVICE real abs_(real x) { return fabsf(x); }
DEVICE real pow_(real x, real y) { return powf(x, y); }
DEVICE real atan2_(real y, real x) { return atan2f(y, x); }
DEVICE real expm1_(real x) { return expm1f(x); }
DEVICE real floor_(real x) { return floorf(x); }
DEVICE real asin_(real x) { return asinf(x); }
#if SIMENGINE_GPU
// In half turns, range reduction is exact and cheap, and needs no slow path for large arguments. The number of half
// turns is rounded, which matters where they are many: then whole turns are taken off, and what rounding took is added.
DEVICE void sincos_(real x, real* s, real* c) {
  real half_turns = 0.31830988618f * x;
  if (abs_(x) > 64.0f) {
    const real lost = fmaf(1.2841276e-8f, x, fmaf(0.31830988618f, x, -half_turns));
    half_turns = fmaf(-2.0f, rintf(0.5f * half_turns), half_turns) + lost;
  }
  sincospif(half_turns, s, c);
}
#else
DEVICE void sincos_(real x, real* s, real* c) {
  *s = sinf(x);
  *c = cosf(x);
}
#endif
#if SIMENGINE_GPU
// One or two instructions each, accurate to two units in the last place. The exact forms take a branch and at least
// eight instructions. These are written as instructions, not enabled by a compiler flag, so that they round in the same
// way in every kernel.
DEVICE real reciprocal_(real x) {
  real y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE real divide_(real x, real y) { return x * reciprocal_(y); }
DEVICE real reciprocal_sqrt_(real x) { return rsqrtf(x); }
DEVICE real sqrt_(real x) {
  real y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#else
DEVICE real reciprocal_(real x) { return 1.0f / x; }
DEVICE real divide_(real x, real y) { return x / y; }
DEVICE real reciprocal_sqrt_(real x) { return 1.0f / sqrtf(x); }
DEVICE real sqrt_(real x) { return sqrtf(x); }
#endif
#define REAL_EPS 1.1920929e-7f
#define REAL_MAX 3.0e38f
#else
#define R(x) (x)
DEVICE real fma_(real a, real b, real c) { return fma(a, b, c); }
DEVICE real sqrt_(real x) { return sqrt(x); }
DEVICE real abs_(real x) { return fabs(x); }
DEVICE real pow_(real x, real y) { return pow(x, y); }
DEVICE real atan2_(real y, real x) { return atan2(y, x); }
DEVICE real expm1_(real x) { return expm1(x); }
DEVICE real floor_(real x) { return floor(x); }
DEVICE real asin_(real x) { return asin(x); }
#if SIMENGINE_GPU
DEVICE void sincos_(real x, real* s, real* c) {
  real half_turns = 0.31830988618379067154 * x;
  if (abs_(x) > 64.0) {
    const real lost = fma(-1.9678676675182486e-17, x, fma(0.31830988618379067154, x, -half_turns));
    half_turns = fma(-2.0, rint(0.5 * half_turns), half_turns) + lost;
  }
  sincospi(half_turns, s, c);
}
#else
DEVICE void sincos_(real x, real* s, real* c) {
  *s = sin(x);
  *c = cos(x);
}
#endif
DEVICE real reciprocal_(real x) { return 1.0 / x; }
DEVICE real divide_(real x, real y) { return x / y; }
DEVICE real reciprocal_sqrt_(real x) { return 1.0 / sqrt(x); }
#define REAL_EPS 2.220446049250313e-16
#define REAL_MAX 1.7e308
#endif

#ifndef TILE
// a where the condition holds, else b, with both computed; and whether it holds for any world of a tile.
DEVICE real select(bool condition, real a, real b) { return condition ? a : b; }
DEVICE bool any_world(bool condition) { return condition; }
DEVICE bool any_lane(bool condition) { return lane_any(condition); }
#endif

DEVICE real max_(real a, real b) { return select(a > b, a, b); }
DEVICE real min_(real a, real b) { return select(a < b, a, b); }
DEVICE real clamp_(real x, real low, real high) { return max_(low, min_(x, high)); }
#if !defined(TILE) && REAL_IS_FLOAT
// The same in double precision, for the few places where single precision has too few digits.
DEVICE double fma_(double a, double b, double c) { return fma(a, b, c); }
DEVICE double abs_(double x) { return fabs(x); }
#if SIMENGINE_GPU
// Instructions that give 20 bits, and two steps of Newton's method that double them. The exact forms are subroutines.
DEVICE double divide_(double x, double y) {
  double inverse;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(y));
  UNROLLED for (int k = 0; k < 2; ++k) inverse = fma(inverse, fma(-y, inverse, 1.0), inverse);
  return x * inverse;
}
DEVICE double sqrt_(double x) {
  double inverse;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(x));
  UNROLLED for (int k = 0; k < 2; ++k) inverse = fma(0.5 * inverse, fma(-x * inverse, inverse, 1.0), inverse);
  return x > 0 ? x * inverse : 0.0;
}
#else
DEVICE double sqrt_(double x) { return sqrt(x); }
DEVICE double divide_(double x, double y) { return x / y; }
#endif
DEVICE double max_(double a, double b) { return a > b ? a : b; }
DEVICE double min_(double a, double b) { return a < b ? a : b; }
#endif
// True for numbers, false for infinities and NaN.
DEVICE truth finite_(real x) { return abs_(x) <= REAL_MAX; }

#define MJMINVAL R(1e-15)
#define MJMAXVAL R(1e10)

// True for numbers that a state may have: false for larger ones, infinities and NaN.
DEVICE truth bounded_(real x) { return abs_(x) <= MJMAXVAL; }
