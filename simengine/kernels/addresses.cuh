// Addresses in few instructions: of fields of the model's table, of the entries of worlds, and of what is used often.
#pragma once

// The words of the entries before the one of this number. Neither is negative; the whole product of two unsigned
// numbers of 32 bits is one instruction on the GPU.
DEVICE size_t words_before(int number, int words) { return size_t(unsigned(number)) * unsigned(words); }

// A field of the model's table. On the GPU it adds field and index as integers of 32 bits and widens the sum, where
// `base + at`, then `[i]`, takes two additions of 64 bits, of two instructions each.
#if SIMENGINE_GPU
template <typename T>
struct Table {
  const T* base;
  int at;
  DEVICE_METHOD T operator[](int i) const { return base[at + i]; }
  DEVICE_METHOD const T* operator+(int i) const { return base + (at + i); }
  DEVICE_METHOD operator const T*() const { return base + at; }
};
template <typename T>
DEVICE Table<T> table_at(const T* base, int at) {
  return {base, at};
}
#else
template <typename T>
using Table = const T*;
template <typename T>
DEVICE Table<T> table_at(const T* base, int at) {
  return base + at;
}
#endif

// The same address, but kept in a register: the compiler otherwise takes the sum apart and adds its terms again at
// every use.
#if SIMENGINE_GPU
DEVICE const real* settled_global(const real* p) {
  size_t address = __cvta_generic_to_global(p);
  asm("" : "+l"(address));
  return static_cast<const real*>(__cvta_global_to_generic(address));
}
DEVICE real* settled_shared(real* p) {
  unsigned address = __cvta_generic_to_shared(p);
  asm("" : "+r"(address));
  return static_cast<real*>(__cvta_shared_to_generic(address));
}
#else
DEVICE const real* settled_global(const real* p) { return p; }
DEVICE real* settled_shared(real* p) { return p; }
#endif
