// The window on the device: one group of lanes checks hazards and admits tasks, blocks of workers run their tiles.
//
//   window    for each task in program order: finds a free slot, checks hazards against all slots, writes down the
//             tasks there that conflict as upstream, then increases `admitted`
//   worker    takes tickets of its resource class, which are runs of tiles in program order; waits until the task is
//             admitted and its upstream tasks have ended, whole or tile by tile; runs the tiles; counts them
//
// Why there is no deadlock. Let T be the first task in program order that has not ended. Its upstream tasks come before
// it, so they have ended. The window admits T, because a slot is freed when its task ends, and the tasks before T have
// ended. Tickets of a class are taken in program order, and every earlier ticket of T's class belongs to a task that
// has ended. A resident block of that class therefore holds T's next ticket or is free to take it, and has nothing to
// wait for. So T ends, and by induction every task does. The argument needs a resident block of each class beside the
// window. A block that is not resident holds no ticket. Lists of one process run one after another, so that no two lists
// wait for resources that the other holds.
//
// Why each class gets a resident block. In one stream, a class starts once all blocks of the class before it have begun
// or ended. Grids fit on the device together if blocks land as planned (occupancy.py), but other kernels may have been
// in their way. So a block takes no ticket before a block of each class has begun. If that takes too long, all but the
// first block of each class end, some sooner than others, until there is room (`stays`). In the end the window and one
// block of each class that has begun are left, beside which another block fits.
//
// If a body does not end, or the count of a task is lost, the block that waits longer than `limit` reports what it
// waits for. Then all blocks stop, because every wait reads `stop`.
//
// A merged list has one class. Its first block that runs is the window, and becomes a worker once it has admitted all
// tasks. Two resident blocks are then enough, and no kernel waits for another.
//
// With a set of ready tasks (ready.cuh), blocks take tickets of any task that may run instead. Of a list whose waits
// the host knows (known.cuh), no window finds them, and blocks take tickets of chains of tasks.
//
// The code is built for CUDA with 32 lanes, and for the host with one lane per thread, where sanitizers can check it.
#pragma once

#include "portable.cuh"

#define TILED 0x40000000    // flag of an upstream task: wait only for its tiles of the same part
#define KINDS 4             // bits of a slot: touched, written, and both without tiled uses
#define WAITS_FOR_WINDOW -1  // in place of a task's number
#define WAITS_FOR_SLOT -2
#define SHORTEST_PAUSE 20  // between two reads [ns]
#define ADMITTED_TOGETHER 4
#define STRIDE 32          // ints between two counters, so that each has a cache line of its own

// 32 segments of a task: which of them it touches and writes, and with which of them that is a hazard. The alignment
// lets a lane read a word in three loads.
struct alignas(16) Word {
  int at;
  unsigned touched, written, touched_whole, written_whole;
  unsigned against_written, against_touched;              // hazards with what a slot writes or touches
  unsigned against_written_whole, against_touched_whole;  // the same without tiled uses of one segment
};

struct Task {
  int body;
  int arguments, num_arguments;  // first 8-byte word among all arguments, and how many
  int tiles, run;                // number of tiles, and tiles of one ticket
  int first_word, num_words;
  int first_part, parts;  // counters of ended tiles by part; 0 parts if no task waits for tiles
  int strided, size;      // the part of a tile is tile % size if strided, else tile / size
  int units;              // units of work in a tile
  const int* count;       // number of units, if only the device knows it, or null
};

struct Ticket {
  int task, first;
};

// What the host reads once a wait has taken too long.
struct Status {
  int stopped, task, tile, waits_for;
};

struct List {
  const Task* tasks;
  const Word* words;
  const unsigned long long* arguments;
  const Ticket* tickets;  // of this class; with a set of ready tasks one for each task; `Start`s if waits are known
  const unsigned long long* records;  // of calls, if their waits are known; else null
  int* admitted;          // number of tasks whose upstream is known
  int* next;              // next ticket of this class
  int* taken;             // by task, STRIDE apart: tickets that were taken, with a set of ready tasks; else null
  int* remaining;         // by task, STRIDE apart: tickets that have not ended
  int* ended;             // by part: tiles that have ended
  int* upstream_count;    // by task
  int* upstream;          // by task, as many as there are slots
  int* retired;           // by task: the task admitted first after the window had seen it end
  int* stop;
  int* has_window;        // merged lists: whether some block is the window
  int* begun;             // blocks of this class that have begun
  int* gathered;          // classes of which a block has begun
  Status* status;         // in memory of the host
  long long* times;       // by task: start and end [ns], or null
  long long* checked;     // time of the window to admit tasks [ns]
  long long* compared;    // the part of it that compares words with slots [ns], or null
  long long limit;        // longest wait [ns]
  int num_tasks, num_tickets, num_words, window;
  int longest_pause;  // between two reads [ns]
  int most_words;     // words of the task with the most
  int num_classes;
  int record_words;  // of the longest record of this class
};

DEVICE void stop_all(const List& list, int task, int tile, int waits_for) {
  if (!first_to(list.stop)) return;
  list.status->task = task;
  list.status->tile = tile;
  list.status->waits_for = waits_for;
  system_fence();
  list.status->stopped = 1;
  system_fence();
}

// Waits until `place` holds at least `wanted` (exactly that if `exactly`). False if all blocks stop. The caller
// acquires.
DEVICE bool wait_for(const List& list, const int* place, int wanted, bool exactly, int task, int tile, int waits_for) {
  long long began = 0;
  int rest = SHORTEST_PAUSE;
  for (unsigned looks = 1;; ++looks) {
    const int x = look(place);
    if (exactly ? x == wanted : x >= wanted) return true;
    // all waiting blocks read few addresses, so each must read more seldom the more blocks there are
    pause(rest);
    rest = 2 * rest < list.longest_pause ? 2 * rest : list.longest_pause;
    if (looks % 32) continue;
    if (look(list.stop)) return false;
    const long long t = now();
    if (!began) began = t;
    if (t - began > list.limit) stop_all(list, task, tile, waits_for);
  }
}

// ------------------------------------------------------------------------------------------------------- the window

// Bits of a slot: [word][kind][slot]. Each lane reads one slot, so that lanes read neighbouring addresses.
DEVICE unsigned* bits_of(const List& list, unsigned* bits, const Word& word, int slot) {
  return bits + size_t(word.at) * KINDS * list.window + slot;
}

DEVICE void keep(const List& list, unsigned* bits, const Word& word, int slot, bool present) {
  unsigned* at = bits_of(list, bits, word, slot);
  at[0] = present ? word.touched : 0;
  at[list.window] = present ? word.written : 0;
  at[2 * list.window] = present ? word.touched_whole : 0;
  at[3 * list.window] = present ? word.written_whole : 0;
}

// Frees, before task t is admitted, the slots of tasks that have ended.
DEVICE void retire(const List& list, unsigned* bits, int* slot_task, int t) {
  for (int slot = lane(); slot < list.window; slot += LANE_COUNT) {
    const int other = slot_task[slot];
    if (other < 0 || look(list.remaining + size_t(other) * STRIDE) != 0) continue;
    const Task& task = list.tasks[other];
    for (int i = 0; i < task.num_words; ++i) keep(list, bits, list.words[task.first_word + i], slot, false);
    slot_task[slot] = -1;
    list.retired[other] = t;
  }
  lanes_sync();
}

DEVICE int free_slot(const List& list, const int* slot_task) {
  for (int base = 0; base < list.window; base += LANE_COUNT) {
    const int slot = base + lane();
    const unsigned found = ballot(slot < list.window && slot_task[slot] < 0);
    if (found) return base + lowest(found);
  }
  return -1;
}

// Waits for a free slot and returns it, or -1 if all blocks stop.
DEVICE int claim_slot(const List& list, unsigned* bits, int* slot_task, int t) {
  long long began = 0;
  for (;;) {
    const int slot = free_slot(list, slot_task);
    if (slot >= 0) return slot;
    retire(list, bits, slot_task, t);
    bool stopped = false;
    if (lane() == 0) {
      const long long time = now();
      if (!began) began = time;
      if (time - began > list.limit) stop_all(list, t, -1, WAITS_FOR_SLOT);
      stopped = look(list.stop);
    }
    if (ballot(stopped)) return -1;
    pause(SHORTEST_PAUSE);
  }
}

// Hazard of a task with the one in a slot: 0 none, 1 between tiles of one part only, 2 between whole tasks.
DEVICE int hazard(const List& list, unsigned* bits, const Word* words, int num_words, int slot) {
  unsigned any = 0, whole = 0;
  for (int i = 0; i < num_words; ++i) {
    const Word& word = words[i];
    const unsigned* at = bits_of(list, bits, word, slot);
    const unsigned touched = at[0], written = at[list.window];
    any |= (word.against_written & written) | (word.against_touched & touched);
    whole |= (word.against_written_whole & written) | (word.against_touched_whole & touched);
    whole |= (word.touched & at[3 * list.window]) | (word.written & at[2 * list.window]);
  }
  return !any ? 0 : whole ? 2 : 1;
}

// What the window needs to know of a task.
struct Brief {
  int first_word, num_words, parts;
};

DEVICE Brief brief_of(const List& list, int t) {
  if (t >= list.num_tasks) return Brief{0, 0, 0};
  const Task& task = list.tasks[t];
  return Brief{task.first_word, task.num_words, task.parts};
}

DEVICE void stage(const List& list, const Brief& task, Word* staged, int from) {
  for (int i = from + lane(); i < task.num_words; i += LANE_COUNT) staged[i] = list.words[task.first_word + i];
}

// Writes down the upstream tasks of task t and returns their number. `compared` grows by the cycles from when the words
// of the task are there until the upstream slots are known.
DEVICE int find_upstream(const List& list, unsigned* bits, const int* slot_task, const int* slot_parts,
                         const Word* words, const Brief& task, int t, long long& compared) {
  int count = 0;
  for (int base = 0; base < list.window; base += LANE_COUNT) {
    const long long began = list.compared ? cycles() : 0;
    const int at = base + lane(), other = at < list.window ? slot_task[at] : -1;
    const int found = other >= 0 ? hazard(list, bits, words, task.num_words, at) : 0;
    const unsigned hits = ballot(found != 0);
    if (list.compared) compared += cycles() - began;
    if (found) {
      const bool tiled = found == 1 && task.parts > 0 && slot_parts[at] == task.parts;
      list.upstream[size_t(t) * list.window + count + population(hits & ((1u << lane()) - 1))] =
          other | (tiled ? TILED : 0);
    }
    count += population(hits);
  }
  return count;
}

// Tells the workers that the tasks before t are admitted.
DEVICE void admit(const List& list, int t) {
  lanes_sync();
  if (lane() != 0) return;
  release();
  publish(list.admitted, t);
}

// Reports how the window spent its time. Parts are measured in cycles, since a check is too short for the clock.
DEVICE void note_times(const List& list, long long spent, long long whole, long long compared, long long cycles_whole) {
  *list.checked = spent;
  if (list.compared) *list.compared = static_cast<long long>(double(compared) * double(whole) / double(cycles_whole));
}

// Admits all tasks in program order. `memory` holds words of two tasks, the bits of the slots, and two numbers of each
// slot. Data of the next task are loaded while one is checked. Tasks are admitted a few at a time, because a release
// takes longer than a check.
DEVICE void run_window(const List& list, void* memory) {
  Word* staged = static_cast<Word*>(memory);
  unsigned* bits = reinterpret_cast<unsigned*>(staged + 2 * list.most_words);
  int* slot_task = reinterpret_cast<int*>(bits + list.num_words * KINDS * list.window);
  int* slot_parts = slot_task + list.window;
  for (int i = lane(); i < list.num_words * KINDS * list.window; i += LANE_COUNT) bits[i] = 0;
  for (int slot = lane(); slot < list.window; slot += LANE_COUNT) slot_task[slot] = -1;
  const long long began = now(), first_cycle = cycles();
  long long waited = 0, compared = 0;
  Brief task = brief_of(list, 0), next = brief_of(list, 1);
  stage(list, task, staged, 0);
  for (int t = 0; t < list.num_tasks; ++t) {
    lanes_sync();
    const Word* words = staged + (t % 2) * list.most_words;
    Word* following = staged + ((t + 1) % 2) * list.most_words;
    Word held;
    if (lane() < next.num_words) held = list.words[next.first_word + lane()];
    const Brief after = brief_of(list, t + 2);
    int slot = free_slot(list, slot_task);
    if (slot < 0) {
      admit(list, t);
      const long long full = now();
      slot = claim_slot(list, bits, slot_task, t);
      if (slot < 0) return;
      waited += now() - full;
    }
    const int count = find_upstream(list, bits, slot_task, slot_parts, words, task, t, compared);
    lanes_sync();
    for (int i = lane(); i < task.num_words; i += LANE_COUNT) keep(list, bits, words[i], slot, true);
    if (lane() == 0) {
      slot_task[slot] = t;
      slot_parts[slot] = task.parts;
      list.upstream_count[t] = count;
    }
    if (t % ADMITTED_TOGETHER == 0 || t + 1 == list.num_tasks) admit(list, t + 1);
    if (lane() < next.num_words) following[lane()] = held;
    stage(list, next, following, LANE_COUNT);
    task = next;
    next = after;
  }
  const long long whole = now() - began;
  if (lane() == 0) note_times(list, whole - waited, whole, compared, cycles() - first_cycle);
}

// ------------------------------------------------------------------------------------------------------ the workers

// Whether a block that has begun stays to work. It does once a block of each class has begun. If this does not happen,
// blocks of this class may be in the way, and all but the first give up their places, an eighth of them at a time. One
// lane of the block calls it. Its patience is a number of looks, which do not count on while another process has the
// device.
DEVICE bool stays(const List& list) {
  if (list.num_classes == 1) return true;
  const int rank = take(list.begun);
  if (rank == 0) {
    add(list.gathered, 1);
    return true;
  }
  const int patience = PATIENCE * (1 + rank % 8);
  int rest = SHORTEST_PAUSE;
  for (int looks = 0; look(list.gathered) < list.num_classes; ++looks) {
    if (looks > patience) return false;
    pause(rest);
    rest = 2 * rest < list.longest_pause ? 2 * rest : list.longest_pause;
  }
  return true;
}

DEVICE int part_of(const Task& task, int tile) { return task.strided ? tile % task.size : tile / task.size; }

// Number of tiles in a part of a task.
DEVICE int tiles_in(const Task& task, int part) {
  if (task.strided) return (task.tiles - part + task.size - 1) / task.size;
  const int left = task.tiles - part * task.size;
  return left < task.size ? left : task.size;
}

// Waits for the tiles of an upstream task that share a part with tiles first .. end - 1 of this one.
DEVICE bool wait_for_parts(const List& list, const Task& task, int t, int first, int end, int other) {
  const Task& before = list.tasks[other];
  bool ok = true;
  int from = part_of(task, first), to = part_of(task, end - 1);
  if (task.strided && end - first >= task.size) from = 0, to = task.parts - 1;
  const int parts = from <= to ? to - from + 1 : to + task.parts - from + 1;  // strided runs may wrap around
  for (int i = lane(); i < parts; i += LANE_COUNT) {
    const int part = (from + i) % task.parts;
    ok = wait_for(list, list.ended + before.first_part + part, tiles_in(before, part), false, t, first, other) && ok;
  }
  return ok;
}

// Waits until tiles first .. end - 1 of a task may run. All lanes of the first warp of the block call it.
DEVICE bool wait_for_upstream(const List& list, const Task& task, int t, int first, int end) {
  bool ok = wait_for(list, list.admitted, t + 1, false, t, first, WAITS_FOR_WINDOW);
  if (!all_lanes(ok)) return false;
  acquire();
  const int count = list.upstream_count[t];
  const int* upstream = list.upstream + size_t(t) * list.window;
  for (int i = lane(); i < count; i += LANE_COUNT) {
    const int other = upstream[i];
    if (!(other & TILED)) ok = wait_for(list, list.remaining + size_t(other) * STRIDE, 0, true, t, first, other) && ok;
  }
  for (int i = 0; i < count; ++i) {
    const int other = upstream[i];
    if (other & TILED) ok = wait_for_parts(list, task, t, first, end, other & ~TILED) && ok;
  }
  acquire();
  return all_lanes(ok);
}

// Counts tiles that have ended. One lane calls it after all of them have.
DEVICE void note_ended(const List& list, const Task& task, int t, int first, int end, long long began) {
  if (list.times) {
    earliest(list.times + 2 * t, began);
    latest(list.times + 2 * t + 1, now());
  }
  release();
  for (int tile = first; task.parts > 0 && tile < end;) {
    const int part = part_of(task, tile);
    const int next = task.strided ? tile + 1 : (part + 1) * task.size;
    const int last = next < end ? next : end;
    add(list.ended + task.first_part + part, last - tile);
    tile = last;
  }
  add(list.remaining + size_t(t) * STRIDE, -1);
}

// Number of tiles of a task that have work, which only the device may know.
DEVICE int tiles_at_work(const Task& task) {
  if (!task.count) return task.tiles;
  const int tiles = (*static_cast<const volatile int*>(task.count) + task.units - 1) / task.units;
  return tiles < task.tiles ? tiles : task.tiles;
}
