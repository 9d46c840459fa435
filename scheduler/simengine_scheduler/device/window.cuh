// The window: finds hazards between calls in program order, and opens slots to the workers (protocol.cuh).
#pragma once

#include "protocol.cuh"

// What the window alone reads and writes, in shared memory.
struct Desk {
  Word* staged;      // words of two tasks
  Bits* upstream;    // by slot, as in its entry
  Bits* tiled;
  int* task;         // by slot
  int* parts;        // by slot
  int* opening;      // slots of the tasks that are admitted and not yet open
  unsigned* base;    // by class: the block that is to take the next ticket
  unsigned* bits;    // [word][kind][slot]: neighbouring lanes read neighbouring addresses
  Bits occupied;     // slots in use; the same in all lanes, as are the following
  int num_opening;
};

DEVICE Desk desk_in(const List& list, void* memory) {
  Desk desk;
  desk.staged = static_cast<Word*>(memory);
  desk.upstream = reinterpret_cast<Bits*>(desk.staged + 2 * list.most_words);
  desk.tiled = desk.upstream + list.window;
  desk.task = reinterpret_cast<int*>(desk.tiled + list.window);
  desk.parts = desk.task + list.window;
  desk.opening = desk.parts + list.window;
  desk.base = reinterpret_cast<unsigned*>(desk.opening + OPENED_TOGETHER);
  desk.bits = desk.base + MOST_CLASSES;
  desk.occupied = 0;
  desk.num_opening = 0;
  for (int i = lane(); i < list.num_words * KINDS * list.window; i += LANE_COUNT) desk.bits[i] = 0;
  for (int i = lane(); i < MOST_CLASSES; i += LANE_COUNT) desk.base[i] = 0;
  lanes_sync();
  return desk;
}

DEVICE void keep(const List& list, const Desk& desk, const Word& word, int slot, bool present) {
  unsigned* at = desk.bits + size_t(word.at) * KINDS * list.window + slot;
  at[0] = present ? word.touched : 0;
  at[list.window] = present ? word.written : 0;
  at[2 * list.window] = present ? word.touched_whole : 0;
  at[3 * list.window] = present ? word.written_whole : 0;
}

// ------------------------------------------------------------------------------------------------- slots that free up

// Frees, before task t is admitted, the slots of calls that have ended.
DEVICE void retire(const List& list, Desk& desk, int t) {
  const Bits ended = from_lane(look(list.finished), 0) & desk.occupied;
  if (!ended) return;
  acquire();
  for (int slot = lane(); slot < list.window; slot += LANE_COUNT) {
    if (ended & bit(slot)) {
      const Task& task = list.tasks[desk.task[slot]];
      for (int i = 0; i < task.num_words; ++i) keep(list, desk, list.words[task.first_word + i], slot, false);
      list.retired[desk.task[slot]] = t + 1;
    } else if (desk.occupied & bit(slot) && desk.upstream[slot] & ended) {
      desk.upstream[slot] &= ~ended;
      desk.tiled[slot] &= ~ended;
      for (int copy = 0; copy < COPIES; ++copy) {
        Entry* entry = entry_of(list, copy, slot);
        publish(&entry->upstream, desk.upstream[slot]);
        publish(&entry->tiled, desk.tiled[slot]);
      }
    }
  }
  for (int copy = lane(); copy < COPIES; copy += LANE_COUNT) clear_bits(&list.boards[copy].done, ended);
  if (lane() == 0) clear_bits(list.finished, ended);
  desk.occupied &= ~ended;
  lanes_sync();
}

DEVICE int free_slot(const List& list, const Desk& desk) {
  const int slot = lowest(~desk.occupied);
  return slot < list.window ? slot : -1;
}

// Waits for a free slot and returns it, or -1 if all blocks stop.
DEVICE int claim_slot(const List& list, Desk& desk, int t) {
  long long began = 0;
  for (;;) {
    const int slot = free_slot(list, desk);
    if (slot >= 0) return slot;
    retire(list, desk, t);
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

// -------------------------------------------------------------------------------------------------------- hazards

// Hazard of a task with the one in a slot: 0 none, 1 between tiles of one part only, 2 between whole tasks.
DEVICE int hazard(const List& list, const Desk& desk, const Word* words, int num_words, int slot) {
  unsigned any = 0, whole = 0;
  for (int i = 0; i < num_words; ++i) {
    const Word& word = words[i];
    const unsigned* at = desk.bits + size_t(word.at) * KINDS * list.window + slot;
    const unsigned touched = at[0], written = at[list.window];
    any |= (word.against_written & written) | (word.against_touched & touched);
    whole |= (word.against_written_whole & written) | (word.against_touched_whole & touched);
    whole |= (word.touched & at[3 * list.window]) | (word.written & at[2 * list.window]);
  }
  return !any ? 0 : whole ? 2 : 1;
}

// What the window needs to know of a task.
struct Brief {
  int first_word, num_words, parts, of_class, tickets;
};

DEVICE Brief brief_of(const List& list, int t) {
  if (t >= list.num_tasks) return Brief{0, 0, 0, 0, 0};
  const Task& task = list.tasks[t];
  return Brief{task.first_word, task.num_words, task.parts, task.of_class, task.tickets};
}

DEVICE void stage(const List& list, const Brief& task, Word* staged, int from) {
  for (int i = from + lane(); i < task.num_words; i += LANE_COUNT) staged[i] = list.words[task.first_word + i];
}

// Finds the slots upstream of a task. `compared` grows by the cycles from when the words of the task are there until the
// slots are known.
DEVICE void find_upstream(const List& list, const Desk& desk, const Word* words, const Brief& task, Bits& upstream,
                          Bits& tiled, long long& compared) {
  const long long began = list.compared ? cycles() : 0;
  upstream = tiled = 0;
  for (int base = 0; base < list.window; base += LANE_COUNT) {
    const int at = base + lane();
    const bool used = at < list.window && desk.occupied & bit(at);
    const int found = used ? hazard(list, desk, words, task.num_words, at) : 0;
    const bool by_parts = found == 1 && task.parts > 0 && desk.parts[at] == task.parts;
    upstream |= Bits(ballot(found != 0)) << base;
    tiled |= Bits(ballot(by_parts)) << base;
  }
  if (list.compared) compared += cycles() - began;
}

// ------------------------------------------------------------------------------------------------------- admission

// Puts a task into a slot, which is not open yet.
DEVICE void fill(const List& list, Desk& desk, const Word* words, const Brief& task, int t, int slot, Bits upstream,
                 Bits tiled) {
  for (int i = lane(); i < task.num_words; i += LANE_COUNT) keep(list, desk, words[i], slot, true);
  const unsigned base = desk.base[task.of_class];
  lanes_sync();
  for (int i = lane(); i < COPIES * ENTRY_WORDS; i += LANE_COUNT) {
    const int word = i % ENTRY_WORDS;
    const Bits x = word == 0 ? upstream : word == 1 ? tiled : word == 2 ? pair(t, task.tickets) : pair(t, base);
    publish(reinterpret_cast<Bits*>(entry_of(list, i / ENTRY_WORDS, slot)) + word, x);
  }
  if (lane() == 0) {
    publish(remaining_of(list, slot), task.tickets);
    desk.upstream[slot] = upstream;
    desk.tiled[slot] = tiled;
    desk.task[slot] = t;
    desk.parts[slot] = task.parts;
    desk.base[task.of_class] = base + task.tickets;
    desk.opening[desk.num_opening] = slot;
    list.slots[t] = slot;
    list.upstream[t] = upstream;
  }
  desk.occupied |= bit(slot);
  ++desk.num_opening;
}

// Opens the slots that were filled since it was called last.
DEVICE void open_slots(const List& list, Desk& desk) {
  lanes_sync();
  release();
  for (int i = lane(); i < desk.num_opening * COPIES; i += LANE_COUNT) {
    const int slot = desk.opening[i / COPIES], copy = i % COPIES, task = desk.task[slot];
    const int of_class = list.tasks[task].of_class;
    if (copy == 0) publish(next_of(list, of_class, slot), pair(task, 0));
    set_bits(&list.boards[copy].open[of_class], bit(slot));
  }
  desk.num_opening = 0;
  lanes_sync();
}

// Tells the workers that no more calls come.
DEVICE void close(const List& list, Desk& desk) {
  open_slots(list, desk);
  release();
  for (int copy = lane(); copy < COPIES; copy += LANE_COUNT) publish(&list.boards[copy].closed, Bits(1));
}

// Reports how the window spent its time. Parts are measured in cycles, since a check is too short for the clock.
DEVICE void note_times(const List& list, long long spent, long long whole, long long compared, long long cycles_whole) {
  *list.checked = spent;
  if (list.compared) *list.compared = static_cast<long long>(double(compared) * double(whole) / double(cycles_whole));
}

// Admits all tasks in program order. Data of the next task are loaded while one is checked. Slots are opened a few at a
// time, because a release takes longer than a check.
DEVICE void run_window(const List& list, void* memory) {
  Desk desk = desk_in(list, memory);
  const long long began = now(), first_cycle = cycles();
  long long waited = 0, compared = 0;
  Brief task = brief_of(list, 0), next = brief_of(list, 1);
  stage(list, task, desk.staged, 0);
  for (int t = 0; t < list.num_tasks; ++t) {
    lanes_sync();
    const Word* words = desk.staged + (t % 2) * list.most_words;
    Word* following = desk.staged + ((t + 1) % 2) * list.most_words;
    Word held;
    if (lane() < next.num_words) held = list.words[next.first_word + lane()];
    const Brief after = brief_of(list, t + 2);
    int slot = free_slot(list, desk);
    if (slot < 0) {
      open_slots(list, desk);
      const long long full = now();
      slot = claim_slot(list, desk, t);
      if (slot < 0) return;
      waited += now() - full;
    }
    Bits upstream, tiled;
    find_upstream(list, desk, words, task, upstream, tiled, compared);
    lanes_sync();
    fill(list, desk, words, task, t, slot, upstream, tiled);
    if (t == 0 || desk.num_opening == OPENED_TOGETHER) open_slots(list, desk);
    if (lane() < next.num_words) following[lane()] = held;
    stage(list, next, following, LANE_COUNT);
    task = next;
    next = after;
  }
  close(list, desk);
  const long long whole = now() - began;
  if (lane() == 0) note_times(list, whole - waited, whole, compared, cycles() - first_cycle);
}
