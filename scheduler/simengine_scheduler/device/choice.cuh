// What a worker runs next: it takes tickets of calls in the window and waits for those that it holds (protocol.cuh).
#pragma once

#include "protocol.cuh"

#define SLOTS_A_LANE (MOST_SLOTS / LANE_COUNT)
// What a block may do with a slot, best first.
#define RUN 0u            // run the ticket that it holds
#define TAKE 1u           // take a ticket of a call that is ready
#define RESERVE 2u        // take a ticket of a call that waits, because the block holds none
#define NOTHING 3u
#define KIND_SHIFT 30

// What a block remembers. The first warp has it; a lane has the tickets of its slots.
struct Block {
  int index;                   // of the block among those of its class
  int tickets[SLOTS_A_LANE];   // by slot lane() + i * LANE_COUNT: the ticket that the block holds, or -1
  int held;                    // how many tickets it holds
  int prepared;                // slot of the ticket whose task is in shared memory, or -1
  int vain;                    // looks since it has found something to do
  Bits open;                   // slots that were open when it looked last
  Bits lasting;                // slots that were open whenever it looked, for up to PATIENCE looks
  int rest;                    // until the next look [ns]
  long long waiting;           // since when, or 0
};

// A task in shared memory, because waits empty the first-level cache. Its arguments follow elsewhere.
struct Prepared {
  Task task;
  int index;   // of the task
  int number;  // of the call
  int body;    // number of its body in the program of the workers
};

// A ticket that may run, of the task that is prepared.
struct Work {
  int slot, first, end;
};

DEVICE Block new_block(int index) {
  Block block;
  block.index = index;
  for (int i = 0; i < SLOTS_A_LANE; ++i) block.tickets[i] = -1;
  block.held = block.vain = 0;
  block.prepared = -1;
  block.open = block.lasting = 0;
  block.rest = SHORTEST_PAUSE;
  block.waiting = 0;
  return block;
}

DEVICE int slot_of(int i) { return lane() + i * LANE_COUNT; }

// The bits of all slots for which x holds, where a lane says it of slot lane() + i * LANE_COUNT.
DEVICE Bits ballot_of_slots(bool x, int i) { return Bits(ballot(x)) << (i * LANE_COUNT); }

DEVICE int copy_for(const Block& block) { return block.index % COPIES; }

// The ticket that a block holds of a call in a slot.
DEVICE int ticket_in(const Block& block, int slot) {
  int ticket = -1;
  for (int i = 0; i < SLOTS_A_LANE; ++i)
    if (slot_of(i) == slot) ticket = block.tickets[i];
  return from_lane(ticket, slot % LANE_COUNT);
}

DEVICE void hold(Block& block, int slot, int ticket) {
  for (int i = 0; i < SLOTS_A_LANE; ++i)
    if (slot_of(i) == slot) block.tickets[i] = ticket;
  block.held += ticket < 0 ? -1 : 1;
}

// ---------------------------------------------------------------------------------------------------- tiles of a call

DEVICE int part_of(const Task& task, int tile) { return task.strided ? tile % task.size : tile / task.size; }

// Number of tiles in a part of a task.
DEVICE int tiles_in(const Task& task, int part) {
  if (task.strided) return (task.tiles - part + task.size - 1) / task.size;
  const int left = task.tiles - part * task.size;
  return left < task.size ? left : task.size;
}

// Whether all tiles of an upstream task have ended that share a part with tiles first .. end - 1 of this one.
DEVICE bool parts_ended(const List& list, const Task& task, int first, int end, const Task& before, int execution) {
  int from = part_of(task, first), to = part_of(task, end - 1);
  if (task.strided && end - first >= task.size) from = 0, to = task.parts - 1;
  const int parts = from <= to ? to - from + 1 : to + task.parts - from + 1;  // strided runs may wrap around
  bool ended = true;
  for (int i = lane(); i < parts; i += LANE_COUNT) {
    const int part = (from + i) % task.parts;
    const unsigned wanted = unsigned(execution) * unsigned(tiles_in(before, part));  // both wrap around together
    ended = int(unsigned(look(list.ended + before.first_part + part)) - wanted) >= 0 && ended;
  }
  return all_lanes(ended);
}

// Tiles of a ticket: the first of a ticket and the end of its tiles.
DEVICE int first_of(const List& list, const Task& task, int ticket) {
  const int grid = list.grids[list.own_class];
  return ticket * ((task.tiles + grid - 1) / grid);
}
DEVICE int end_of(const List& list, const Task& task, int ticket) {
  const int end = first_of(list, task, ticket + 1);
  return task.tiles < end ? task.tiles : end;
}

// Number of tiles of a task that have work, which only the device may know.
DEVICE int tiles_at_work(const Task& task) {
  if (!task.count) return task.tiles;
  const int tiles = (*static_cast<const volatile int*>(task.count) + task.units - 1) / task.units;
  return tiles < task.tiles ? tiles : task.tiles;
}

// --------------------------------------------------------------------------------------------------------- a look

// What a block finds when it looks around.
struct Choice {
  unsigned what;  // the best that it may do, for the call that comes first in program order
  int slot;
  Bits by_parts;  // slots of which it holds tickets that wait for single parts at most
};

// Whether a block is among those that are to take the tickets of a call. Without this, all blocks would try to.
DEVICE bool is_its_turn(const List& list, const Block& block, unsigned first_block, unsigned tickets) {
  const unsigned grid = list.grids[list.own_class];
  return (block.index + grid - first_block % grid) % grid < tickets;
}

// Looks at slots of which the block holds tickets, and at those that were open at its last look: they are read at the
// same time as what the board says now.
DEVICE Choice look_around(const List& list, Block& block, Bits& done) {
  const Board& board = list.boards[copy_for(block)];
  Bits upstream[SLOTS_A_LANE], tiled[SLOTS_A_LANE], tickets[SLOTS_A_LANE], task[SLOTS_A_LANE];
  done = look(&board.done);
  const Bits open = from_lane(look(&board.open[list.own_class]), 0), known = open & block.open;
  for (int i = 0; i < SLOTS_A_LANE; ++i) {
    if (slot_of(i) >= list.window || (block.tickets[i] < 0 && !(block.open & bit(slot_of(i))))) continue;
    const Entry* entry = entry_of(list, copy_for(block), slot_of(i));
    upstream[i] = look(&entry->upstream);
    tiled[i] = look(&entry->tiled);
    tickets[i] = look(&entry->tickets);
    task[i] = look(&entry->task);
  }
  done = from_lane(done, 0);
  const bool helps = block.vain % PATIENCE == PATIENCE - 1;
  unsigned best = NOTHING << KIND_SHIFT;
  int of_best = 0;
  Choice choice;
  choice.by_parts = 0;
  for (int i = 0; i < SLOTS_A_LANE; ++i) {
    const int slot = slot_of(i);
    const bool holds = slot < list.window && block.tickets[i] >= 0;
    bool partly = false;
    if (holds || (slot < list.window && known & bit(slot))) {
      const bool ready = !(upstream[i] & ~done);
      unsigned what = NOTHING;
      if (holds) {
        if (ready) what = RUN;
        partly = !ready && !(upstream[i] & ~tiled[i] & ~done);
      } else {
        const bool wanted =
            is_its_turn(list, block, low(task[i]), low(tickets[i])) || (helps && block.lasting & bit(slot));
        if (wanted && ready) what = TAKE;
        if (wanted && !ready && block.held == 0) what = RESERVE;
      }
      const unsigned key = what << KIND_SHIFT | high(tickets[i]);
      if (what != NOTHING && key < best) best = key, of_best = slot;
    }
    choice.by_parts |= ballot_of_slots(partly, i);
  }
  block.open = open;
  block.lasting = block.vain % PATIENCE == 0 ? open : block.lasting & open;
  const unsigned key = least(best);
  choice.what = key >> KIND_SHIFT;
  choice.slot = from_lane(of_best, lowest(ballot(best == key)));
  return choice;
}

// Of the tickets that the block holds in some slots, one whose tiles wait for no tile, or else slot -1.
DEVICE int ready_by_parts(const List& list, const Block& block, Bits slots, Bits done) {
  for (; slots; slots &= slots - 1) {
    const int slot = lowest(slots);
    const Entry* entry = entry_of(list, copy_for(block), slot);
    const Task& task = list.tasks[from_lane(high(look(&entry->task)), 0)];
    const int ticket = ticket_in(block, slot), first = first_of(list, task, ticket), end = end_of(list, task, ticket);
    bool ended = true;
    for (Bits upstream = from_lane(look(&entry->upstream), 0) & ~done; upstream && ended; upstream &= upstream - 1) {
      const Entry* other = entry_of(list, copy_for(block), lowest(upstream));
      const Task& before = list.tasks[from_lane(high(look(&other->task)), 0)];
      ended = parts_ended(list, task, first, end, before, from_lane(int(low(look(&other->execution))), 0));
    }
    if (ended) return slot;
  }
  return -1;
}

// Takes a ticket of the call in a slot. Returns whether the block now holds one more.
DEVICE bool take_ticket(const List& list, Block& block, int slot) {
  Bits taken = 0;
  if (lane() == 0) taken = take(next_of(list, list.own_class, slot));
  taken = from_lane(taken, 0);
  acquire();
  const Bits tickets = from_lane(look(&entry_of(list, copy_for(block), slot)->tickets), 0);
  if (high(taken) != high(tickets) || low(taken) >= low(tickets)) return false;
  if (low(taken) + 1 == low(tickets))
    for (int copy = lane(); copy < COPIES; copy += LANE_COUNT)
      clear_bits(&list.boards[copy].open[list.own_class], bit(slot));
  hold(block, slot, int(low(taken)));
  return true;
}

// ------------------------------------------------------------------------------------------------------- a ticket

// Loads the task of the call in a slot and its arguments, unless they are there.
DEVICE void prepare(const List& list, Block& block, int slot, Prepared& prepared, unsigned long long* arguments) {
  if (block.prepared == slot) return;
  const Entry* entry = entry_of(list, copy_for(block), slot);
  const Bits at = look(&entry->task), tickets = look(&entry->tickets);
  const int wanted = from_lane(int(high(at)), 0);
  const bool there = prepared.index == wanted;
  lanes_sync();
  if (lane() == 0) prepared.number = int(high(tickets));
  if (!there) {
    const Task& task = list.tasks[wanted];
    for (int i = lane(); i < task.num_arguments; i += LANE_COUNT) arguments[i] = list.arguments[task.arguments + i];
    if (lane() == 0) {
      prepared.task = task;
      prepared.index = wanted;
      prepared.body = list.numbers[task.body];
    }
  }
  block.prepared = slot;
  lanes_sync();
}

// The ticket that the block holds in a slot, which it holds no more.
DEVICE Work start(const List& list, Block& block, int slot, Prepared& prepared, unsigned long long* arguments) {
  acquire();
  prepare(list, block, slot, prepared, arguments);
  const int ticket = ticket_in(block, slot);
  const Work work{slot, first_of(list, prepared.task, ticket), end_of(list, prepared.task, ticket)};
  hold(block, slot, -1);
  block.prepared = -1;
  block.vain = 0;
  block.rest = SHORTEST_PAUSE;
  block.waiting = 0;
  return work;
}

// Reports that the block has waited too long for a call that it has a ticket of.
DEVICE void give_up(const List& list, const Block& block, Bits done) {
  for (int slot = 0; slot < list.window; ++slot) {
    const int ticket = ticket_in(block, slot);
    if (ticket < 0) continue;
    const Entry* entry = entry_of(list, copy_for(block), slot);
    const Bits upstream = from_lane(look(&entry->upstream) & ~done, 0);
    if (!upstream) continue;
    const int task = int(high(look(&entry->task)));
    const Entry* other = entry_of(list, copy_for(block), lowest(upstream));
    if (lane() == 0) stop_all(list, task, first_of(list, list.tasks[task], ticket), int(high(look(&other->task))));
    return;
  }
}

// Whether no ticket of the class is left, and none will come.
DEVICE bool is_closed(const List& list, const Block& block) {
  const Board& board = list.boards[copy_for(block)];
  if (!from_lane(look(&board.closed), 0)) return false;
  acquire();
  return !from_lane(look(&board.open[list.own_class]), 0);
}

// Waits a while. False if all blocks stop.
DEVICE bool rest(const List& list, Block& block, Bits done) {
  pause(block.rest);
  block.rest = 2 * block.rest < list.longest_pause ? 2 * block.rest : list.longest_pause;
  if (++block.vain % 32) return true;
  if (ballot(look(list.stop) != 0)) return false;
  const long long time = from_lane(now(), 0);
  if (!block.waiting || !block.held) block.waiting = time;
  if (time - block.waiting > list.limit) give_up(list, block, done);
  return true;
}

// Waits until the block has something to run. False if there is nothing left, or all blocks stop. All lanes of the first
// warp of the block call it.
DEVICE bool next_work(const List& list, Block& block, Prepared& prepared, unsigned long long* arguments, Work& work) {
  for (;;) {
    Bits done;
    const Choice choice = look_around(list, block, done);
    int slot = choice.what == RUN ? choice.slot : -1;
    if (slot < 0) slot = ready_by_parts(list, block, choice.by_parts, done);
    if (slot >= 0) {
      work = start(list, block, slot, prepared, arguments);
      return true;
    }
    if ((choice.what == TAKE || choice.what == RESERVE) && take_ticket(list, block, choice.slot)) {
      prepare(list, block, choice.slot, prepared, arguments);
      continue;
    }
    if (!block.held && !block.open && is_closed(list, block)) return false;
    if (!rest(list, block, done)) return false;
  }
}

// Counts a ticket whose tiles have ended. All lanes of the first warp call it, once all threads of the block are done.
DEVICE void end_ticket(const List& list, const Work& work, const Prepared& prepared, long long began) {
  const Task& task = prepared.task;
  if (list.times && lane() == 0 && prepared.number < list.num_recorded) {
    earliest(list.times + 2 * prepared.number, began);
    latest(list.times + 2 * prepared.number + 1, now());
  }
  release();
  if (lane() == 0)
    for (int tile = work.first; task.parts > 0 && tile < work.end;) {
      const int part = part_of(task, tile);
      const int next = task.strided ? tile + 1 : (part + 1) * task.size;
      const int last = next < work.end ? next : work.end;
      add(list.ended + task.first_part + part, last - tile);
      tile = last;
    }
  int left = 0;
  if (tickets_of(task.tiles, list.grids[list.own_class]) > 1 && lane() == 0) left = count_down(remaining_of(list, work.slot));
  if (from_lane(left, 0)) return;
  acquire();
  for (int copy = lane(); copy < COPIES; copy += LANE_COUNT) set_bits(&list.boards[copy].done, bit(work.slot));
  lanes_sync();
  release();
  if (lane() == 0) set_bits(list.finished, bit(work.slot));
}
