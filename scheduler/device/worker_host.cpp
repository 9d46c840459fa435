// The device executor's protocol with threads for blocks, so that it runs without a GPU and under the sanitizers.
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

// Runs a list to its end: a thread for the window and `grids[c]` threads for class c, whose list is `lists[c]`.
extern "C" void run_list(const List* lists, const int* grids, int num_classes, const Body* const* bodies, int bytes) {
  std::vector<std::thread> threads;
  const List& list = lists[0];
  threads.emplace_back([&list] {
    std::vector<unsigned> bits(size_t(list.num_words) * KINDS * list.window + 1);
    std::vector<int> slots(2 * list.window);
    int most = 0;
    for (int t = 0; t < list.num_tasks; ++t) most = most < list.tasks[t].num_words ? list.tasks[t].num_words : most;
    std::vector<Word> staged(2 * most + 1);
    run_window(list, bits.data(), slots.data(), staged.data(), most);
  });
  for (int c = 0; c < num_classes; ++c)
    for (int i = 0; i < grids[c]; ++i)
      threads.emplace_back([lists, bodies, bytes, c] { work(lists[c], bodies[c], bytes); });
  for (std::thread& thread : threads) thread.join();
}
