// The protocol of executor `device` with threads for blocks, so that it runs without a GPU and under sanitizers.
#include <condition_variable>
#include <mutex>
#include <vector>

#include "known.cuh"
#include "ready.cuh"

typedef void (*Body)(const unsigned long long* arguments, int tile, char* memory);

// Takes the next ticket of any ready task, or the next one in program order, and waits until its tiles may run.
static bool next_ticket(const List& list, Search& search, Ticket& ticket) {
  if (list.taken) return take_ready(list, search, ticket);
  const int taken = take(list.next);
  if (taken >= list.num_tickets) return false;
  ticket = list.tickets[taken];
  const Task& task = list.tasks[ticket.task];
  const int end = task.tiles < ticket.first + task.run ? task.tiles : ticket.first + task.run;
  return wait_for_upstream(list, task, ticket.task, ticket.first, end);
}

// Takes chains of calls whose waits are known, and runs them.
static void work_by_records(const List& list, const Body* bodies, char* memory) {
  for (int taken = take(list.next); taken < list.num_tickets; taken = take(list.next)) {
    const Start start = reinterpret_cast<const Start*>(list.tickets)[taken];
    for (int at = start.at, words = start.words; words > 0;) {
      const Step& step = *reinterpret_cast<const Step*>(list.records + at);
      const int end = last_of(step, start.first);
      if (!wait_for_needs(list, step, start.first, end)) return;
      const long long began = list.times ? now() : 0;
      const int with_work = end < tiles_at_work(step.task) ? end : tiles_at_work(step.task);
      for (int tile = start.first; tile < with_work; ++tile) bodies[step.task.body](arguments_of(step), tile, memory);
      tell_ended(list, step, start.first, end, began);
      at = step.next, words = step.next_words;
    }
  }
}

static void work(const List& list, const Body* bodies, int bytes) {
  std::vector<char> memory(bytes + 1);
  if (list.record_words > 0) return work_by_records(list, bodies, memory.data());
  Search search = {0, 0};
  for (Ticket ticket; next_ticket(list, search, ticket);) {
    const Task& task = list.tasks[ticket.task];
    const int end = task.tiles < ticket.first + task.run ? task.tiles : ticket.first + task.run;
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

// Places for blocks. A block that finds none waits for another to end, as on a device that is full.
struct Room {
  std::mutex mutex;
  std::condition_variable left;
  int places;

  void enter() {
    std::unique_lock<std::mutex> lock(mutex);
    left.wait(lock, [this] { return places > 0; });
    --places;
  }
  void leave() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      ++places;
    }
    left.notify_one();
  }
};

// Runs a list to its end, with `grids[c]` threads for class c, whose list is `lists[c]`, and at most `places` of them
// at a time. Threads begin one after another, so that a class begins after all threads of the class before it. The
// window has a thread of its own, with `window_bytes` of memory, unless the list is merged. There is none where these
// are 0 bytes.
extern "C" void run_list(const List* lists, const int* grids, int num_classes, const Body* const* bodies, int bytes,
                         int window_bytes, int merged, int places) {
  std::vector<std::thread> threads;
  Room room;
  room.places = places;
  const auto begin = [&](auto block) {
    room.enter();
    threads.emplace_back([&room, block] {
      block();
      room.leave();
    });
  };
  if (!merged && window_bytes > 0) begin([=] { be_window(lists[0], window_bytes); });
  for (int c = 0; c < num_classes; ++c)
    for (int i = 0; i < grids[c]; ++i)
      begin([=] {
        if (merged && window_bytes > 0 && first_to(lists[c].has_window)) be_window(lists[c], window_bytes);
        if (stays(lists[c])) work(lists[c], bodies[c], bytes);
      });
  for (std::thread& thread : threads) thread.join();
}
