// Functions of vectors of numbers, with the bits of XLA's kernels on a CPU, for `lanes_host.cpp`.

#include <cmath>
#include <initializer_list>

namespace lanes {

typedef float Float __attribute__((vector_size(64)));
typedef int32_t Int __attribute__((vector_size(64)));
typedef uint32_t Word __attribute__((vector_size(64)));
typedef double Double __attribute__((vector_size(64)));
typedef int64_t Wide __attribute__((vector_size(64)));
typedef int32_t Half __attribute__((vector_size(32)));
typedef float HalfFloat __attribute__((vector_size(32)));

template <class Real>
static inline Real root(Real x) {
  for (size_t i = 0; i < sizeof x / sizeof x[0]; ++i) x[i] = std::sqrt(x[i]);
  return x;
}

template <class Real>
static inline Real lower(Real x) {
  for (size_t i = 0; i < sizeof x / sizeof x[0]; ++i) x[i] = std::floor(x[i]);
  return x;
}

// Sine and cosine are those of the C library, as in XLA's kernels.
template <class Real>
static inline Real sine(Real x) {
  for (size_t i = 0; i < sizeof x / sizeof x[0]; ++i) x[i] = std::sin(x[i]);
  return x;
}

template <class Real>
static inline Real cosine(Real x) {
  for (size_t i = 0; i < sizeof x / sizeof x[0]; ++i) x[i] = std::cos(x[i]);
  return x;
}

// x * y + z, rounded once where the processor can. XLA's compiler makes that of products and sums there.
static inline Float fused(Float x, Float y, Float z) {
#if defined(__FMA__) || defined(__aarch64__)
  for (size_t i = 0; i < sizeof x / sizeof x[0]; ++i) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
  return z;
#else
  return x * y + z;
#endif
}

static inline Float all(float x) { return Float{} + x; }

// A polynomial with the last coefficients, whose value up to there is `sum`.
static inline Float polynomial(Float x, Float sum, std::initializer_list<float> coefficients) {
  for (float coefficient : coefficients) sum = fused(sum, x, all(coefficient));
  return sum;
}

// The exponential of Cephes' `expf`, as XLA computes it.
static inline Float exponential(Float x) {
  x = x < -87.8f ? all(-87.8f) : x;
  x = x > 88.8f ? all(88.8f) : x;
  Float power = lower(fused(x, all(1.44269504088896341f), all(0.5f)));
  power = power < -127.0f ? all(-127.0f) : power;
  power = power > 127.0f ? all(127.0f) : power;
  x = fused(all(-0.693359375f), power, x);
  x = fused(all(2.12194440e-4f), power, x);
  Float sum = polynomial(x, all(1.9875691500e-4f),
                         {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 0.5f});
  sum = 1.0f + fused(sum, x * x, x);
  const Int whole = __builtin_convertvector(power == power ? power : Float{}, Int);
  return sum * Float((whole + 127) << 23);
}

// The logarithm of Cephes' `logf`, as XLA computes it, of numbers that are not negative.
static inline Float logarithm(Float given) {
  Float x = given > 1.17549435e-38f ? given : all(1.17549435e-38f);
  const Int bits = Int(x);
  x = Float((bits & 0x007fffff) | 0x3f000000);  // from 1/2 to 1
  const Int small = x < 0.707106769f;
  const Float power = __builtin_convertvector((bits >> 23) - 127, Float) + 1.0f - Float(Int(all(1.0f)) & small);
  x = x - 1.0f + Float(Int(x) & small);
  const Float square = x * x, cube = square * x;
  const Float first = polynomial(x, all(0.0703768358f), {-0.115146101f, 0.116769984f});
  const Float second = polynomial(x, all(-0.12420141f), {0.142493233f, -0.166680574f});
  const Float third = polynomial(x, all(0.200007141f), {-0.24999994f, 0.333333313f});
  const Float sum = fused(fused(fused(first, cube, second), cube, third), cube, power * -2.12194442e-4f);
  const Float found = fused(power, all(0.693359375f), fused(square, all(-0.5f), x) + sum);
  return given == 0.0f ? all(-INFINITY) : given == INFINITY ? given : given >= 0.0f ? found : all(NAN);
}

// The logarithm of 1 + x for x from -1 to 0, as XLA computes it.
static inline Float logarithm_of_next(Float x) {
  const Float above = polynomial(
      x, all(4.527e-05f), {0.498541027f, 6.57873249f, 29.9119186f, 60.9496689f, 57.112963f, 20.0395527f});
  const Float below = polynomial(
      x, all(1.0f), {15.0629091f, 83.0475693f, 221.762405f, 309.098724f, 216.427887f, 60.11866f});
  const Float square = x * x, rest = x * square * (above / below);
  return x > -0.414213568f ? x + fused(square, all(-0.5f), rest) : logarithm(x + 1.0f);
}

// The inverse of the error function, with Giles' polynomials, as XLA computes it.
static inline Float inverse_error(Float x) {
  const Float w = -logarithm_of_next(x * -x);
  const Int small = w < 5.0f;
  const Float y = small ? w - 2.5f : root(w) - 3.0f;
  static constexpr float NEAR[] = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,  -4.39150654e-06f, 0.00021858087f,
                                   -0.00125372503f, -0.00417768164f, 0.246640727f,     1.50140941f};
  static constexpr float FAR[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                                  -0.0076224613f,   0.00943887047f,  1.00167406f,    2.83297682f};
  Float sum = small ? all(NEAR[0]) : all(FAR[0]);
  for (int k = 1; k < 9; ++k) sum = fused(sum, y, small ? all(NEAR[k]) : all(FAR[k]));
  return x * ((x == 1.0f) | (x == -1.0f) ? all(INFINITY) : sum);
}

}  // namespace lanes
