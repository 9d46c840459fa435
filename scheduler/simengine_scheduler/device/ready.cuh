// A set of ready tasks in place of tickets in program order: any ready call of the window may start, as in ACS-HW.
//
//   worker    looks through the tasks of its class that have tickets left, a task a lane, from the first one on; takes a
//             ticket of the first that is admitted and whose upstream tasks have ended; runs the tiles; counts them
//
// A block holds no ticket that waits, so blocks never wait for a task while another is ready. A look costs more than
// with tickets: it reads the counters of all tasks that might run. Tasks wait for whole tasks, not for tiles.
//
// Why there is no deadlock. Let T be the first task in program order that has not ended. The window admits it, and its
// upstream tasks have ended, as in protocol.cuh. So T is ready. If it has tickets left, each block of its class that
// runs no tiles finds it. Otherwise blocks run its tiles. So T ends, and by induction every task does.
#pragma once

#include "protocol.cuh"

// Where a block is in the tasks of its class.
struct Search {
  int first;  // the tasks before it have no tickets left
  int known;  // the tasks before it are known to be admitted, and what is upstream of them can be read
};

DEVICE int tickets_of(const Task& task) { return (task.tiles + task.run - 1) / task.run; }

// The first upstream task of an admitted task that has not ended, or -1.
DEVICE int not_ended(const List& list, int t) {
  const int count = list.upstream_count[t];
  const int* upstream = list.upstream + size_t(t) * list.window;
  for (int i = 0; i < count; ++i)
    if (look(list.remaining + size_t(upstream[i]) * STRIDE) != 0) return upstream[i];
  return -1;
}

// Tries to take a ticket of a ready task, and lets the search begin behind tasks without tickets.
DEVICE bool try_to_take(const List& list, Search& search, Ticket& ticket) {
  bool left = false;  // whether a task before the next ones has tickets left
  for (int from = search.first; from < list.num_tickets; from += LANE_COUNT) {
    const int at = from + lane();
    const int t = at < list.num_tickets ? list.tickets[at].task : list.num_tasks;
    const bool own = t < list.num_tasks && look(list.taken + size_t(t) * STRIDE) < tickets_of(list.tasks[t]);
    const unsigned with_tickets = ballot(own);
    unsigned ready = ballot(own && t < search.known && not_ended(list, t) < 0);
    for (; ready; ready &= ready - 1) {
      const int task = from_lane(t, lowest(ready));
      const int number = from_lane(lane() == 0 ? take(list.taken + size_t(task) * STRIDE) : 0, 0);
      if (number >= tickets_of(list.tasks[task])) continue;  // other blocks were faster
      ticket = Ticket{task, number * list.tasks[task].run};
      return true;
    }
    if (!left) search.first = with_tickets ? from + lowest(with_tickets) : from + LANE_COUNT;
    left = left || with_tickets;
    if (!all_lanes(t < search.known)) return false;  // the next ones are not admitted
  }
  return false;
}

// Names what the first task with tickets waits for. One lane calls it.
DEVICE void give_up(const List& list, const Search& search) {
  const int t = list.tickets[search.first].task;
  const int other = t < search.known ? not_ended(list, t) : WAITS_FOR_WINDOW;
  if (t >= search.known || other >= 0) stop_all(list, t, 0, other);
}

// Waits for a ready task and takes one of its tickets. False if the class has none left, or all blocks stop. All lanes
// of the first warp of the block call it.
DEVICE bool take_ready(const List& list, Search& search, Ticket& ticket) {
  long long began = 0;
  int rest = SHORTEST_PAUSE;
  for (unsigned looks = 1;; ++looks) {
    if (search.known < list.num_tasks) {
      const int admitted = from_lane(look(list.admitted), 0);
      if (admitted > search.known) acquire();
      search.known = admitted;
    }
    if (try_to_take(list, search, ticket)) {
      acquire();
      return true;
    }
    if (search.first >= list.num_tickets) return false;
    pause(rest);
    rest = 2 * rest < list.longest_pause ? 2 * rest : list.longest_pause;
    if (looks % 32) continue;
    bool stopped = false;
    if (lane() == 0) {
      const long long t = now();
      if (!began) began = t;
      if (t - began > list.limit) give_up(list, search);
      stopped = look(list.stop);
    }
    if (ballot(stopped)) return false;
  }
}
