// The window: admits calls in the order in which the host names them (protocol.cuh).
#pragma once

#include "feed.cuh"

// How the window spends its time. A check is too short for the clock and is measured in cycles.
struct Spent {
  long long began, first_cycle, waited, compared;
};

// Reports a call that waits for another one, as no call has ended for too long. A block that holds a ticket reports it
// too, but not while it runs the body that does not end.
DEVICE void report_stuck(const List& list, const Desk& desk) {
  for (int slot = lane(); slot < list.window; slot += LANE_COUNT) {
    const Bits upstream = desk.upstream[slot] & desk.occupied;
    if (desk.occupied & bit(slot) && upstream) stop_all(list, desk.task[slot], -1, desk.task[lowest(upstream)]);
  }
}

// Frees slots, while there is nothing else to do. False if all blocks stop.
DEVICE bool look_after(const List& list, Desk& desk, int number, long long& since) {
  const Bits before = desk.occupied;
  retire(list, desk, number);
  const long long time = from_lane(now(), 0);
  if (!since || desk.occupied != before) since = time;
  if (time - since > list.limit) report_stuck(list, desk);
  lanes_sync();
  return !from_lane(look(list.stop), 0);
}

// Whether all blocks stop. Stops them if the window has waited since `began` for room for a task.
DEVICE bool stopped(const List& list, long long& began, int task) {
  bool stop = false;
  if (lane() == 0) {
    const long long time = now();
    if (!began) began = time;
    if (time - began > list.limit) stop_all(list, task, -1, WAITS_FOR_SLOT);
    stop = look(list.stop);
  }
  return ballot(stop) != 0;
}

// Waits for calls, and returns the next ones; none at the end, or if the window leaves or all blocks stop.
DEVICE Batch next_batch(const List& list, Desk& desk, Feed& feed, Spent& spent) {
  long long quiet = 0;
  const long long since = now();
  for (;;) {
    follow(list, desk, feed);
    if (feed.used == feed.known && !feed.ended) {
      open_slots(list, desk);
      read_ring(list, feed);
      follow(list, desk, feed);
    }
    if (has_calls(feed)) break;
    stop_playing(list, desk);
    if (desk.num_players) {
      spent.waited += now() - since;
      return batch_of_lists(list, desk);
    }
    if (!look_after(list, desk, feed.number, quiet)) return Batch{};
    if (feed.ended ? !desk.told : leaves(list, desk, feed)) return Batch{};
  }
  spent.waited += now() - since;
  return batch_of_calls(list, feed);
}

DEVICE Arrival arrival_of(const Batch& batch, int i) {
  const Arrival& own = batch.call;
  return Arrival{from_lane(own.task, i),       from_lane(own.script, i),     from_lane(own.position, i),
                 from_lane(own.execution, i),  from_lane(own.before, i),     from_lane(own.before_tiled, i),
                 from_lane(own.first_word, i), from_lane(own.num_words, i),  from_lane(own.parts, i),
                 from_lane(own.of_class, i),   from_lane(own.tickets, i)};
}

// Waits until a slot is free and all calls have ended that the call cannot name, then puts the call there. False if all
// blocks stop.
DEVICE bool admit(const List& list, Desk& desk, const Word* words, const Arrival& call, int number, Spent& spent) {
  long long began = 0, full = 0;
  for (;;) {
    const int slot = free_slot(list, desk);
    if (slot >= 0 && full) spent.waited += now() - full, full = 0;
    Bits upstream, tiled;
    const long long start = list.compared ? cycles() : 0;
    if (slot >= 0 && find_upstream(list, desk, words, call, upstream, tiled)) {
      if (list.compared) spent.compared += cycles() - start;
      lanes_sync();
      fill(list, desk, words, call, number, slot, upstream, tiled);
      return true;
    }
    if (!full) full = now();
    open_slots(list, desk);
    retire(list, desk, number);
    if (stopped(list, began, call.task)) return false;
    pause(SHORTEST_PAUSE);
  }
}

DEVICE void stage(const List& list, const Arrival& call, Word* staged, int from) {
  for (int i = from + lane(); i < call.num_words; i += LANE_COUNT) staged[i] = list.words[call.first_word + i];
}

// Admits the calls of a batch. Words of the next call are loaded while one is checked.
DEVICE bool admit_all(const List& list, Desk& desk, Feed& feed, const Batch& batch, Spent& spent) {
  const bool compares = from_lane(batch.call.script, 0) < 0;
  Arrival call = arrival_of(batch, 0);
  if (compares) stage(list, call, desk.staged, 0);
  for (int i = 0; i < batch.count; ++i) {
    lanes_sync();
    const Word* words = desk.staged + (i % 2) * list.most_words;
    Word* following = desk.staged + ((i + 1) % 2) * list.most_words;
    const Arrival next = arrival_of(batch, i + 1 < batch.count ? i + 1 : i);
    Word held;
    if (compares && lane() < next.num_words) held = list.words[next.first_word + lane()];
    if (!admit(list, desk, words, call, feed.number, spent)) return false;
    feed.number = (feed.number + 1) & ((1 << NUMBER_BITS) - 1);
    if (i == 0 || desk.num_opening == OPENED_TOGETHER) open_slots(list, desk);
    if (compares) {
      if (lane() < next.num_words) following[lane()] = held;
      stage(list, next, following, LANE_COUNT);
    }
    call = next;
  }
  lanes_sync();
  return true;
}

// Tells the workers that no more calls come, and the host and the next window how far this one got.
DEVICE void close(const List& list, Desk& desk, const Feed& feed, const Spent& spent) {
  open_slots(list, desk);
  release();
  for (int copy = lane(); copy < COPIES; copy += LANE_COUNT) publish(&list.boards[copy].closed, Bits(1));
  if (lane() != 0) return;
  list.place->position = int(feed.position + feed.used);
  list.place->number = feed.ended ? 0 : feed.number;
  tell_host(&list.status->read, int(feed.position + feed.used));
  if (list.slots) {
    const long long whole = now() - spent.began, all_cycles = cycles() - spent.first_cycle;
    *list.checked += whole - spent.waited;
    *list.compared += static_cast<long long>(double(spent.compared) * double(whole) / double(all_cycles));
  }
  if (feed.ended) return;
  system_fence();
  tell_host(&list.status->gone, 2);
}

// Admits calls until the host has ended the list or names none for a while. If it `stays`, all calls have ended when it
// returns; otherwise it returns to work.
DEVICE void run_window(const List& list, void* memory, bool stays) {
  if (from_lane(look(&list.status->stopped), 0)) {  // the list before was given up, and its rest is not to be run
    if (lane() == 0) publish(list.stop, 1);
    return;
  }
  Desk desk = desk_in(list, memory);
  Feed feed = new_feed(list);
  Spent spent{now(), cycles(), 0, 0};
  for (;;) {
    const Batch batch = next_batch(list, desk, feed, spent);
    if (!batch.count) break;
    if (!admit_all(list, desk, feed, batch, spent)) return;
  }
  if (from_lane(look(list.stop), 0)) return;
  close(list, desk, feed, spent);
  long long quiet = 0;
  while (stays && desk.occupied && look_after(list, desk, feed.number, quiet)) pause(SHORTEST_PAUSE);
}
