// What the protocol needs of a processor: lanes, reads and counts with their memory order, clocks. A group has 32 lanes
// on the GPU. On the host it is one thread.
#pragma once

#if defined(__CUDACC__)
#define DEVICE static __device__ __forceinline__
#define LANE_COUNT 32
DEVICE int lane() { return threadIdx.x & 31; }
DEVICE void lanes_sync() { __syncwarp(); }
DEVICE unsigned ballot(bool x) { return __ballot_sync(0xffffffffu, x); }
DEVICE bool all_lanes(bool x) { return __all_sync(0xffffffffu, x); }
DEVICE int population(unsigned x) { return __popc(x); }
DEVICE int lowest(unsigned x) { return __ffs(x) - 1; }
DEVICE int from_lane(int x, int from) { return __shfl_sync(0xffffffffu, x, from); }
// Reads are relaxed, because an acquiring load empties the L1 cache that running bodies use. Once a read has found what
// it waits for, one fence acquires. In the same way one fence releases before several counts.
DEVICE int look(const int* place) {
  int x;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(place) : "memory");
  return x;
}
DEVICE void acquire() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
DEVICE void release() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
DEVICE void publish(int* place, int x) {
  asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(place), "r"(x) : "memory");
}
DEVICE void add(int* place, int x) {
  asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" ::"l"(place), "r"(x) : "memory");
}
DEVICE int take(int* place) { return atomicAdd(place, 1); }
DEVICE bool first_to(int* place) { return atomicCAS(place, 0, 1) == 0; }
DEVICE void system_fence() { __threadfence_system(); }
DEVICE long long now() {  // [ns]
  long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
DEVICE long long cycles() {  // of this multiprocessor, a finer clock than now()
  long long t;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
  return t;
}
DEVICE void earliest(long long* place, long long t) { atomicMin(place, t); }
DEVICE void latest(long long* place, long long t) { atomicMax(place, t); }
DEVICE void pause(int ns) { __nanosleep(ns); }
// Begins to copy two words from global to shared memory. Both addresses are multiples of 16 bytes.
DEVICE void begin_copy(unsigned long long* to, const unsigned long long* from) {
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(__cvta_generic_to_global(from))
               : "memory");
}
DEVICE void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }  // those that this thread has begun
#define PATIENCE 500  // looks of a block for blocks of other classes
#else
#include <atomic>
#include <chrono>
#include <thread>
#define DEVICE static inline
#define LANE_COUNT 1
DEVICE int lane() { return 0; }
DEVICE void lanes_sync() {}
DEVICE unsigned ballot(bool x) { return x; }
DEVICE bool all_lanes(bool x) { return x; }
DEVICE int population(unsigned x) { return __builtin_popcount(x); }
DEVICE int lowest(unsigned x) { return __builtin_ffs(x) - 1; }
DEVICE int from_lane(int x, int from) { return x; }
template <typename T>
DEVICE std::atomic<T>& atomic_at(T* place) {
  return *reinterpret_cast<std::atomic<T>*>(place);
}
// The thread sanitizer does not know fences, so here every read acquires, and every store and count releases.
DEVICE int look(const int* place) { return atomic_at(const_cast<int*>(place)).load(std::memory_order_acquire); }
DEVICE void acquire() {}
DEVICE void release() {}
DEVICE void publish(int* place, int x) { atomic_at(place).store(x, std::memory_order_release); }
DEVICE void add(int* place, int x) { atomic_at(place).fetch_add(x, std::memory_order_acq_rel); }
DEVICE int take(int* place) { return atomic_at(place).fetch_add(1, std::memory_order_relaxed); }
DEVICE bool first_to(int* place) {
  int none = 0;
  return atomic_at(place).compare_exchange_strong(none, 1, std::memory_order_acq_rel);
}
DEVICE void system_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
DEVICE long long now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }
DEVICE long long cycles() { return now(); }
DEVICE void earliest(long long* place, long long t) {
  long long had = atomic_at(place).load();
  while (t < had && !atomic_at(place).compare_exchange_weak(had, t)) {}
}
DEVICE void latest(long long* place, long long t) {
  long long had = atomic_at(place).load();
  while (t > had && !atomic_at(place).compare_exchange_weak(had, t)) {}
}
DEVICE void pause(int ns) { std::this_thread::yield(); }
DEVICE void begin_copy(unsigned long long* to, const unsigned long long* from) { to[0] = from[0], to[1] = from[1]; }
DEVICE void wait_for_copies() {}
#define PATIENCE 300  // yields, each of which may take long on a busy host
#endif
