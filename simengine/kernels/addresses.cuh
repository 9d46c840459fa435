// Address computations with few instructions: of fields of the model table, of the entries of worlds, and of pointers
// that are used often.
#pragma once

// Number of words of the entries before entry `number`. Neither argument is negative, and the 64-bit product of two
// unsigned 32-bit integers is a single instruction on the GPU.
DEVICE size_t words_before(int number, int words) { return size_t(unsigned(number)) * unsigned(words); }

// A field of the model table. On the GPU it adds the field's offset and the index as 32-bit integers and widens the
// sum. `base + at`, then `[i]`, would take two 64-bit additions, which are two instructions each.
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
#elif defined(TILE)
template <typename T>
struct TableOf {
  typedef const T* Pointer;
};
template <>
struct TableOf<real> {
  typedef Part Pointer;
};
template <typename T>
using Table = typename TableOf<T>::Pointer;
DEVICE const int* table_at(const int* base, int at) { return base + at; }
DEVICE Part table_at(const Numbers& all, int at) { return all + at; }
#else
template <typename T>
using Table = const T*;
template <typename T>
DEVICE Table<T> table_at(const T* base, int at) {
  return base + at;
}
#endif

// Real numbers of the model's header, and the whole table of them.
#ifdef TILE
typedef Shared HeaderTable;
#else
typedef const real* HeaderTable;
typedef const real* Numbers;
#endif

// The same address, forced into a register. Otherwise the compiler repeats the additions that it consists of at every
// use.
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
DEVICE const REAL* settled_global(const REAL* p) { return p; }
DEVICE real* settled_shared(real* p) { return p; }
#endif
