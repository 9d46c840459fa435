// The window on the device: one group of lanes checks hazards and admits tasks, blocks of workers run their tiles.
//
//   window    for each task in program order: a free slot, the hazards against all slots, their tasks written down as
//             upstream, then `admitted` grows
//   worker    takes tickets of its resource class, which are runs of tiles in program order; waits until the task is
//             admitted and what is upstream of it has ended, whole or tile by tile; runs the tiles; counts them
//
// Freedom from deadlock. Of the tasks that have not ended take the first in program order, T. All that is upstream of T
// comes before it and has ended. The window admits T: slots are freed as their tasks end, and the tasks before T have.
// Tickets of a class are handed out in program order and every earlier ticket of T's class belongs to a task that has
// ended, so a resident block of that class holds T's next ticket or is free to take it, and nothing that it waits for
// is left. So T ends, and by induction every task does. It takes a resident block of each class beside the window:
// grids fit on the device together (occupancy.py), each class is started by the one before it, in one
// stream, once all blocks of that run, and lists of one process run one after another, so that no two hold what both
// lack. A block that is not resident holds no ticket. Should a body fail to end all the same, or the count of a task be
// lost, whoever waits longer than `limit` says for what, and everybody stops: every wait looks at `stop`.
//
// Merged, a list has one class, whose first block to run is the window, whichever that is, and a worker once it has
// admitted all. Two blocks that are resident are then enough, and no kernel waits for another one.
//
// Built for CUDA with 32 lanes, and for the host with one lane a thread, where the sanitizers look on.
#pragma once

#include "portable.cuh"

#define TILED 0x40000000    // an upstream task of which only the tiles of the same part are waited for
#define KINDS 4             // of bits kept for a slot: touched, written, and those of them that are not tiled
#define WAITS_FOR_WINDOW -1  // instead of a task
#define WAITS_FOR_SLOT -2
#define SHORTEST_PAUSE 20  // between looks [ns]
#define ADMITTED_TOGETHER 4
#define STRIDE 32          // ints between the counters of tasks, each in a line of its own

// 32 segments of a task: which of them it touches and writes, and against which of them that is a hazard. Aligned, so
// that a lane reads it in three portions.
struct alignas(16) Word {
  int at;
  unsigned touched, written, touched_whole, written_whole;
  unsigned against_written, against_touched;              // any hazard: what of a slot's bits it is with
  unsigned against_written_whole, against_touched_whole;  // the same, but for tiled uses of one segment
};

struct Task {
  int body;
  int arguments, num_arguments;  // 8-byte words, and where they start among all arguments
  int tiles, run;                // tiles, and how many of them a ticket is for
  int first_word, num_words;
  int first_part, parts;  // counters of ended tiles by part; no parts where nobody waits for tiles
  int strided, size;      // a tile's part: tile % size if strided, else tile / size
  int units;              // in a tile
  const int* count;       // units that there are, where only the device knows; or null
};

struct Ticket {
  int task, first;
};

// What the host reads once somebody has waited too long.
struct Status {
  int stopped, task, tile, waits_for;
};

struct List {
  const Task* tasks;
  const Word* words;
  const unsigned long long* arguments;
  const Ticket* tickets;  // of this class
  int* admitted;          // tasks whose upstream is known
  int* next;              // this class's next ticket
  int* remaining;         // by task, STRIDE apart: tickets that have not ended
  int* ended;             // by part: tiles that have
  int* upstream_count;    // by task
  int* upstream;          // by task, as many as there are slots
  int* retired;           // by task: the one admitted first after it was seen to have ended
  int* stop;
  int* has_window;        // whether a block is the window, where a worker's is
  Status* status;         // in the host's memory
  long long* times;       // by task: start and end [ns], or null
  long long* checked;     // what the window spent on admitting tasks [ns]
  long long* compared;    // and of that on comparing their words with the slots [ns], or null
  long long limit;        // of a wait [ns]
  int num_tasks, num_tickets, num_words, window;
  int longest_pause;  // between looks [ns]
  int most_words;     // of a task
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

// Waits until place holds `wanted` or more (or, `exactly`, just that); false if everybody stops. To be acquired.
DEVICE bool wait_for(const List& list, const int* place, int wanted, bool exactly, int task, int tile, int waits_for) {
  long long began = 0;
  int rest = SHORTEST_PAUSE;
  for (unsigned looks = 1;; ++looks) {
    const int x = look(place);
    if (exactly ? x == wanted : x >= wanted) return true;
    // all that wait look at few places: the more they are, the less often each may look
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

// Bits of a slot: [word][kind][slot], so that the lanes, a slot each, read neighbours.
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

// Frees the slots of tasks that have ended before task t is admitted.
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

// A slot for a task, waiting for one to become free; -1 if everybody stops.
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

// Hazards of a task against the one in a slot: 0 none, 1 between tiles of one part only, 2 of the whole.
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

// What the window needs of a task.
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

// Writes down what is upstream of task t; the number of them. `compared` grows by the cycles from when the task's words
// are there until it is known which slots are upstream.
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

// Tells the workers that tasks before t are admitted.
DEVICE void admit(const List& list, int t) {
  lanes_sync();
  if (lane() != 0) return;
  release();
  publish(list.admitted, t);
}

// Says what the window's time went to: in cycles, since a check is too short for the clock, and as long as those were.
DEVICE void note_times(const List& list, long long spent, long long whole, long long compared, long long cycles_whole) {
  *list.checked = spent;
  if (list.compared) *list.compared = static_cast<long long>(double(compared) * double(whole) / double(cycles_whole));
}

// Admits all tasks in program order. `memory` is the block's: words of two tasks, bits of the slots, two numbers a slot.
// What the next task needs is on its way while one is checked, and tasks are admitted a few at a time, since a release
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

DEVICE int part_of(const Task& task, int tile) { return task.strided ? tile % task.size : tile / task.size; }

// Tiles in a part of a task.
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
  const int parts = from <= to ? to - from + 1 : to + task.parts - from + 1;  // strided runs may pass the last part
  for (int i = lane(); i < parts; i += LANE_COUNT) {
    const int part = (from + i) % task.parts;
    ok = wait_for(list, list.ended + before.first_part + part, tiles_in(before, part), false, t, first, other) && ok;
  }
  return ok;
}

// Waits, with all lanes of the block's first warp, until tiles first .. end - 1 of a task may run.
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

// Notes that tiles have ended; called by one lane after all have.
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

// Tiles of a task that have work, where only the device knows.
DEVICE int tiles_at_work(const Task& task) {
  if (!task.count) return task.tiles;
  const int tiles = (*static_cast<const volatile int*>(task.count) + task.units - 1) / task.units;
  return tiles < task.tiles ? tiles : task.tiles;
}
