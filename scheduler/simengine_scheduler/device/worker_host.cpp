// The protocol of executor `device` with threads for blocks, so that it runs without a GPU and under sanitizers.
#include <memory>
#include <vector>

#include "choice.cuh"
#include "window.cuh"

#define MOST_ARGUMENTS 1024

typedef void (*Body)(const unsigned long long* arguments, int tile, char* memory);

// Memory that the lanes of a block share.
struct Shared {
  LaneGroup group;
  Prepared prepared;
  std::vector<char> memory;
  std::vector<unsigned long long> arguments;
  std::vector<Word> of_window;
};

static void work(const List& list, const Body* bodies, Shared& shared, int index) {
  Block block = new_block(index);
  Work work;
  while (next_work(list, block, shared.prepared, shared.arguments.data(), work)) {
    lanes_sync();
    const Task& task = shared.prepared.task;
    const long long began = list.times ? now() : 0;
    const int with_work = work.end < tiles_at_work(task) ? work.end : tiles_at_work(task);
    for (int tile = work.first; lane() == 0 && tile < with_work; ++tile)
      bodies[shared.prepared.body](shared.arguments.data(), tile, shared.memory.data());
    lanes_sync();
    end_ticket(list, work, shared.prepared, began);
  }
}

// Blocks as groups of threads.
struct Session {
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Shared>> memory;
  std::atomic<int> running{0};

  template <typename Run>
  void start(int bytes, int window_bytes, Run run) {
    memory.push_back(std::make_unique<Shared>());
    Shared& shared = *memory.back();
    shared.prepared.index = -1;
    shared.memory.resize(bytes + 1);
    shared.arguments.resize(MOST_ARGUMENTS);
    shared.of_window.resize(window_bytes / sizeof(Word) + 1);
    running += HOST_LANES;
    for (int i = 0; i < HOST_LANES; ++i)
      threads.emplace_back([this, run, i, &shared] {
        lane_group = &shared.group;
        own_lane = i;
        run(shared);
        --running;
      });
  }
};

// Starts a window and workers: grids[c] blocks for class c, whose list is `lists[c]`. The window has a block of its own,
// with `window_bytes` of memory, unless the list is merged.
extern "C" Session* start_session(const List* lists, const int* grids, int num_classes, const Body* const* bodies,
                                  int bytes, int window_bytes, int merged) {
  Session* session = new Session;
  const List of_window = lists[0];
  if (!merged)
    session->start(0, window_bytes, [=](Shared& shared) { run_window(of_window, shared.of_window.data(), true); });
  for (int c = 0; c < num_classes; ++c)
    for (int i = 0; i < grids[c]; ++i) {
      const List list = lists[c];
      const Body* const own = bodies[c];
      session->start(bytes, merged ? window_bytes : 0, [=](Shared& shared) {
        const bool first = merged && from_lane(lane() == 0 && first_to(list.has_window), 0);
        if (first) run_window(list, shared.of_window.data(), false);
        work(list, own, shared, i);
      });
    }
  return session;
}

extern "C" int is_running(Session* session) { return session->running; }

// Waits until a session has ended.
extern "C" void end_session(Session* session) {
  for (std::thread& thread : session->threads) thread.join();
  delete session;
}
