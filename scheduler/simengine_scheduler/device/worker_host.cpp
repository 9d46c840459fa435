// The protocol of executor `device` with threads for blocks, so that it runs without a GPU and under sanitizers.
#include <vector>

#include "choice.cuh"
#include "window.cuh"

#define MOST_ARGUMENTS 1024

typedef void (*Body)(const unsigned long long* arguments, int tile, char* memory);

static void work(const List& list, const Body* bodies, int bytes, int index) {
  std::vector<char> memory(bytes + 1);
  std::vector<unsigned long long> arguments(MOST_ARGUMENTS);
  Block block = new_block(index);
  Work work;
  while (next_work(list, block, arguments.data(), work)) {
    const Task& task = list.tasks[work.task];
    const long long began = list.times ? now() : 0;
    const int with_work = work.end < tiles_at_work(task) ? work.end : tiles_at_work(task);
    for (int tile = work.first; tile < with_work; ++tile) bodies[work.body](arguments.data(), tile, memory.data());
    end_ticket(list, work, began);
  }
}

static void be_window(const List& list, int bytes, bool stays) {
  std::vector<Word> memory(bytes / sizeof(Word) + 1);
  run_window(list, memory.data(), stays);
}

struct Session {
  std::vector<std::thread> threads;
  std::atomic<int> running{0};

  template <typename Run>
  void start(Run run) {
    ++running;
    threads.emplace_back([this, run] {
      run();
      --running;
    });
  }
};

// Starts a window and workers: grids[c] threads for class c, whose list is `lists[c]`. The window has a thread of its
// own, with `window_bytes` of memory, unless the list is merged.
extern "C" Session* start_session(const List* lists, const int* grids, int num_classes, const Body* const* bodies,
                                  int bytes, int window_bytes, int merged) {
  Session* session = new Session;
  const List of_window = lists[0];
  if (!merged) session->start([=] { be_window(of_window, window_bytes, true); });
  for (int c = 0; c < num_classes; ++c)
    for (int i = 0; i < grids[c]; ++i) {
      const List list = lists[c];
      const Body* const own = bodies[c];
      session->start([=] {
        if (merged && first_to(list.has_window)) be_window(list, window_bytes, false);
        work(list, own, bytes, i);
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
