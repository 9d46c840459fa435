// The worker of executor `device` for lists whose waits are known, with a thread of the host for each thread of a
// block. It is built from worker.cu, as WORKER, and runs a list of one class with one block.
#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

using std::min;

#define __device__
#define __forceinline__ inline
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static

constexpr int THREADS = 64;
struct Dim {
  unsigned x;
};
static thread_local Dim threadIdx, blockIdx, blockDim, gridDim;
static std::barrier<> block(THREADS);
static void __syncthreads() { block.arrive_and_wait(); }
alignas(16) static unsigned long long arguments[1 << 16];  // the shared memory of the block

typedef void (*Body)(const unsigned long long* arguments, int tile, char* memory);
static const Body* bodies_of_class;

#define KNOWN
#define BLOCKS 1
static void run_body(int body, const unsigned long long* arguments, int tile, char* memory) {
  if (threadIdx.x == 0) bodies_of_class[body](arguments, tile, memory);
}
#define RUN_BODY run_body

#include WORKER

extern "C" void run_list(const List* lists, const int*, int, const Body* const* bodies, int, int, int, int) {
  bodies_of_class = bodies[0];
  std::vector<std::thread> threads;
  for (unsigned lane = 0; lane < THREADS; ++lane)
    threads.emplace_back([=] {
      threadIdx.x = lane;
      worker(lists[0], 2);
    });
  for (std::thread& thread : threads) thread.join();
}
