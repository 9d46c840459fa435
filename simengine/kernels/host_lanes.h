// Run the lanes of a kernel on the host: by a plain call, or with one thread per lane.

#if LANES == 1
static void run_lanes(void (*body)(const uint64_t*, real*), const uint64_t* slots, int words) {
  alignas(64) static thread_local real small[16384];
  if (words <= 16384) {
    body(slots, small);
  } else {
    real* large = new real[words + 4];
    body(slots, large + (4 - (reinterpret_cast<uintptr_t>(large) / sizeof(real)) % 4) % 4);
    delete[] large;
  }
}
#else
#include <thread>
#include <vector>
thread_local int lane_id, lane_phase;
pthread_barrier_t lane_barrier[2];
real lane_slot[LANES];
double lane_slot_any[LANES];
int lane_slot_int[LANES], lane_slot_key[LANES];

static void run_lanes(void (*body)(const uint64_t*, real*), const uint64_t* slots, int words) {
  std::vector<real> scratch(words);
  std::vector<std::thread> lanes;
  for (pthread_barrier_t& barrier : lane_barrier) pthread_barrier_init(&barrier, nullptr, LANES);
  for (int i = 0; i < LANES; ++i) {
    lanes.emplace_back([=, &scratch] {
      lane_id = i;
      body(slots, scratch.data());
    });
  }
  for (std::thread& lane : lanes) lane.join();
  for (pthread_barrier_t& barrier : lane_barrier) pthread_barrier_destroy(&barrier);
}
#endif
