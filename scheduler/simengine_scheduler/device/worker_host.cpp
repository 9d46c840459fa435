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
    for (int tile = work.first; tile < with_work; ++tile) bodies[task.body](arguments.data(), tile, memory.data());
    end_ticket(list, work, began);
  }
}

static void be_window(const List& list, int bytes) {
  std::vector<Word> memory(bytes / sizeof(Word) + 1);
  run_window(list, memory.data());
}

// Runs a list to its end, with `grids[c]` threads for class c, whose list is `lists[c]`. The window has a thread of its
// own, with `window_bytes` of memory, unless the list is merged.
extern "C" void run_list(const List* lists, const int* grids, int num_classes, const Body* const* bodies, int bytes,
                         int window_bytes, int merged) {
  std::vector<std::thread> threads;
  if (!merged) threads.emplace_back([=] { be_window(lists[0], window_bytes); });
  for (int c = 0; c < num_classes; ++c)
    for (int i = 0; i < grids[c]; ++i)
      threads.emplace_back([=] {
        if (merged && first_to(lists[c].has_window)) be_window(lists[c], window_bytes);
        work(lists[c], bodies[c], bytes, i);
      });
  for (std::thread& thread : threads) thread.join();
}
