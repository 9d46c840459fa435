// The protocol of executor `device` with threads for blocks, so that it runs without a GPU and under sanitizers.
#include <vector>

#include "protocol.cuh"

typedef void (*Body)(const unsigned long long* arguments, int tile, char* memory);

static void work(const List& list, const Body* bodies, int bytes) {
  std::vector<char> memory(bytes + 1);
  for (;;) {
    const int taken = take(list.next);
    if (taken >= list.num_tickets) return;
    const Ticket ticket = list.tickets[taken];
    const Task& task = list.tasks[ticket.task];
    const int end = task.tiles < ticket.first + task.run ? task.tiles : ticket.first + task.run;
    if (!wait_for_upstream(list, task, ticket.task, ticket.first, end)) return;
    const long long began = list.times ? now() : 0;
    const int with_work = end < tiles_at_work(task) ? end : tiles_at_work(task);
    for (int tile = ticket.first; tile < with_work; ++tile)
      bodies[task.body](list.arguments + task.arguments, tile, memory.data());
    note_ended(list, task, ticket.task, ticket.first, end, began);
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
        work(lists[c], bodies[c], bytes);
      });
  for (std::thread& thread : threads) thread.join();
}
