// What kernels on the host need of the standard library: functions of C, and numbers as types. They are declared here,
// because the library's own headers take a third of the time in which a small kernel compiles.
#pragma once
#define HOST_MATH

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#ifdef __GLIBC__
#define FUNCTION_OF_ONE(name)              \
  extern "C" double name(double) noexcept; \
  extern "C" float name##f(float) noexcept;
#define FUNCTION_OF_TWO(name)                      \
  extern "C" double name(double, double) noexcept; \
  extern "C" float name##f(float, float) noexcept;
FUNCTION_OF_ONE(asin)
FUNCTION_OF_ONE(cos)
FUNCTION_OF_ONE(expm1)
FUNCTION_OF_ONE(fabs)
FUNCTION_OF_ONE(floor)
FUNCTION_OF_ONE(sin)
FUNCTION_OF_ONE(sqrt)
FUNCTION_OF_TWO(atan2)
FUNCTION_OF_TWO(pow)
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
#undef FUNCTION_OF_ONE
#undef FUNCTION_OF_TWO
#else
#include <cmath>
#endif

// A number as a type.
template <int N>
struct Number {
  static constexpr int value = N;
};

// The numbers J as a type, and those from 0 to N - 1.
template <int... J>
struct Places {};
template <int N, int... J>
struct PlacesBelow : PlacesBelow<N - 1, N - 1, J...> {};
template <int... J>
struct PlacesBelow<0, J...> : Places<J...> {};
