// Groups of lanes on the host: HOST_LANES threads that meet wherever lanes of the GPU do. With several, a sanitizer sees
// what lanes share without a meeting between, and a meeting that some lanes miss never ends.
#pragma once

#if !defined(HOST_LANES)
#define HOST_LANES 1
#endif
#define LANE_COUNT HOST_LANES

struct LaneGroup {
  std::atomic<int> arrived{0}, meetings{0};
  unsigned long long values[HOST_LANES];
};

static thread_local LaneGroup* lane_group = nullptr;
static thread_local int own_lane = 0;

DEVICE int lane() { return own_lane; }

DEVICE void lanes_sync() {
#if HOST_LANES > 1
  const int meeting = lane_group->meetings.load();
  if (lane_group->arrived.fetch_add(1) == HOST_LANES - 1) {
    lane_group->arrived.store(0);
    lane_group->meetings.fetch_add(1);
  } else {
    while (lane_group->meetings.load() == meeting) std::this_thread::yield();
  }
#endif
}

// Calls what(lane, value) for the values of all lanes.
template <typename T, typename What>
DEVICE void of_all_lanes(T x, What what) {
#if HOST_LANES > 1
  lane_group->values[own_lane] = static_cast<unsigned long long>(x);
  lanes_sync();
  for (int i = 0; i < HOST_LANES; ++i) what(i, static_cast<T>(lane_group->values[i]));
  lanes_sync();
#else
  what(0, x);
#endif
}

DEVICE unsigned ballot(bool x) {
  unsigned bits = 0;
  of_all_lanes(x, [&](int i, bool value) { bits |= unsigned(value) << i; });
  return bits;
}

DEVICE bool all_lanes(bool x) { return ballot(!x) == 0; }

DEVICE unsigned least(unsigned x) {
  unsigned found = x;
  of_all_lanes(x, [&](int, unsigned value) { found = value < found ? value : found; });
  return found;
}

DEVICE unsigned alike(int x) {
  unsigned bits = 0;
  of_all_lanes(x, [&](int i, int value) { bits |= unsigned(value == x) << i; });
  return bits;
}

template <typename T>
DEVICE T from_lane(T x, int lane) {
  T found = x;
  of_all_lanes(x, [&](int i, T value) {
    if (i == lane) found = value;
  });
  return found;
}
