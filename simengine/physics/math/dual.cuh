// Dual numbers: a value and its derivative in one direction, for forward-mode derivatives of long formulas.
#pragma once

struct Dual {
  real x, d;
};

DEVICE Dual operator+(Dual a, Dual b) { return {a.x + b.x, a.d + b.d}; }
DEVICE Dual operator-(Dual a, Dual b) { return {a.x - b.x, a.d - b.d}; }
DEVICE Dual operator*(Dual a, Dual b) { return {a.x * b.x, a.x * b.d + a.d * b.x}; }
DEVICE Dual operator*(real a, Dual b) { return {a * b.x, a * b.d}; }
DEVICE Dual operator+(real a, Dual b) { return {a + b.x, b.d}; }

DEVICE Dual divide_(Dual a, Dual b) {
  const real x = divide_(a.x, b.x);
  return {x, divide_(a.d - x * b.d, b.x)};
}

// The derivative at zero is set to zero.
DEVICE Dual sqrt_(Dual a) {
  const real root = sqrt_(a.x);
  return {root, root > 0 ? divide_(R(0.5) * a.d, root) : R(0.0)};
}

DEVICE real value_of(real a) { return a; }
DEVICE real value_of(Dual a) { return a.x; }

template <typename T>
DEVICE void cross_of(T* out, const T* a, const T* b) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

template <typename T>
DEVICE T dot_of(const T* a, const T* b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
