// The window's own memory: what is in each slot, and which slots a call must wait for (protocol.cuh).
#pragma once

#include "protocol.cuh"

// In shared memory, but for the last numbers, which are the same in all lanes.
struct Desk {
  Word* staged;      // words of two calls
  Bits* upstream;    // by slot, as in its entry
  Bits* tiled;
  int* number;       // by slot: number of the call
  int* task;
  int* parts;
  int* script;       // by slot: the list that the call is of, or -1
  int* position;     // by slot: the position of the call in the rounds of its list
  int* opening;      // slots that are filled and not yet open
  int* open_class;   // their classes
  unsigned* base;    // by class: the block that is to take the next ticket
  int* player;       // lists that are played: script, next line, position, and lines that are left
  unsigned* bits;    // [word][kind][slot]: neighbouring lanes read neighbouring addresses
  Bits occupied;     // slots in use
  Bits told;         // slots of which the host wants to know when the call has ended
  int num_opening, num_players, turn;
};

// A call as it is admitted.
struct Arrival {
  int task, script, position, execution;
  Bits before, before_tiled;
  int first_word, num_words, parts, of_class, tickets;
};

DEVICE Desk desk_in(const List& list, void* memory) {
  Desk desk;
  desk.staged = static_cast<Word*>(memory);
  desk.upstream = reinterpret_cast<Bits*>(desk.staged + 2 * list.most_words);
  desk.tiled = desk.upstream + list.window;
  int* numbers = reinterpret_cast<int*>(desk.tiled + list.window);
  int** const by_slot[] = {&desk.number, &desk.task, &desk.parts, &desk.script, &desk.position};
  for (int** array : by_slot) *array = numbers, numbers += list.window;
  desk.opening = numbers;
  desk.open_class = desk.opening + OPENED_TOGETHER;
  desk.base = reinterpret_cast<unsigned*>(desk.open_class + OPENED_TOGETHER);
  desk.player = reinterpret_cast<int*>(desk.base + MOST_CLASSES);
  desk.bits = reinterpret_cast<unsigned*>(desk.player + 4 * MOST_PLAYED);
  desk.occupied = desk.told = 0;
  desk.num_opening = desk.num_players = desk.turn = 0;
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

// Hazard of a call with the one in a slot: 0 none, 1 between tiles of one part only, 2 between whole calls.
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

// The same for a call of a list, which knows it; 3 if the call in the slot is too far back, so that it must have ended.
DEVICE int known_hazard(const Desk& desk, const Arrival& call, int slot) {
  if (desk.script[slot] != call.script) return 0;
  const int back = int(unsigned(call.position) - unsigned(desk.position[slot])) - 1;
  if (back >= REACH) return 3;
  return !(call.before & bit(back)) ? 0 : call.before_tiled & bit(back) ? 1 : 2;
}

// Finds the slots upstream of a call. False if some call must have ended first.
DEVICE bool find_upstream(const List& list, const Desk& desk, const Word* words, const Arrival& call, Bits& upstream,
                          Bits& tiled) {
  upstream = tiled = 0;
  bool too_far = false;
  for (int base = 0; base < list.window; base += LANE_COUNT) {
    const int at = base + lane();
    int found = 0;
    if (at < list.window && desk.occupied & bit(at))
      found = call.script >= 0 ? known_hazard(desk, call, at) : hazard(list, desk, words, call.num_words, at);
    upstream |= Bits(ballot(found != 0)) << base;
    tiled |= Bits(ballot(found == 1 && call.parts > 0 && desk.parts[at] == call.parts)) << base;
    too_far = ballot(found == 3) || too_far;
  }
  return !too_far;
}

// ------------------------------------------------------------------------------------------------- slots that fill

// Puts a call into a slot, which is not open yet.
DEVICE void fill(const List& list, Desk& desk, const Word* words, const Arrival& call, int number, int slot,
                 Bits upstream, Bits tiled) {
  if (call.script < 0)
    for (int i = lane(); i < call.num_words; i += LANE_COUNT) keep(list, desk, words[i], slot, true);
  const unsigned base = desk.base[call.of_class];
  lanes_sync();
  for (int i = lane(); i < COPIES * ENTRY_WORDS; i += LANE_COUNT) {
    const int word = i % ENTRY_WORDS;
    const Bits x = word == 0   ? upstream
                   : word == 1 ? tiled
                   : word == 2 ? pair(number, call.tickets)
                   : word == 3 ? pair(call.task, base)
                               : Bits(unsigned(call.execution));
    publish(reinterpret_cast<Bits*>(entry_of(list, i / ENTRY_WORDS, slot)) + word, x);
  }
  if (lane() == 0) {
    publish(remaining_of(list, slot), call.tickets);
    desk.upstream[slot] = upstream;
    desk.tiled[slot] = tiled;
    desk.number[slot] = number;
    desk.task[slot] = call.task;
    desk.parts[slot] = call.parts;
    desk.script[slot] = call.script;
    desk.position[slot] = call.position;
    desk.base[call.of_class] = base + call.tickets;
    desk.opening[desk.num_opening] = slot;
    desk.open_class[desk.num_opening] = call.of_class;
    if (list.slots && number < list.num_recorded) {
      list.slots[number] = slot;
      list.upstream[number] = upstream;
    }
  }
  desk.occupied |= bit(slot);
  ++desk.num_opening;
}

// Opens the slots that were filled since it was called last.
DEVICE void open_slots(const List& list, Desk& desk) {
  if (!desk.num_opening) return;
  lanes_sync();
  release();
  for (int i = lane(); i < desk.num_opening * COPIES; i += LANE_COUNT) {
    const int slot = desk.opening[i / COPIES], of_class = desk.open_class[i / COPIES], copy = i % COPIES;
    if (copy == 0) publish(next_of(list, of_class, slot), pair(desk.number[slot], 0));
    set_bits(&list.boards[copy].open[of_class], bit(slot));
  }
  desk.num_opening = 0;
  lanes_sync();
}

// ------------------------------------------------------------------------------------------------- slots that free up

DEVICE void tell(const List& list, int number) { tell_host(list.notices + number % NOTICES, number + 1); }

// Frees, before call `number` is admitted, the slots of calls that have ended.
DEVICE void retire(const List& list, Desk& desk, int number) {
  const Bits ended = from_lane(look(list.finished), 0) & desk.occupied;
  if (!ended) return;
  acquire();
  if (ended & desk.told) system_fence();
  for (int slot = lane(); slot < list.window; slot += LANE_COUNT) {
    if (ended & bit(slot)) {
      if (desk.script[slot] < 0) {
        const Task& task = list.tasks[desk.task[slot]];
        for (int i = 0; i < task.num_words; ++i) keep(list, desk, list.words[task.first_word + i], slot, false);
      }
      if (desk.told & bit(slot)) tell(list, desk.number[slot]);
      if (list.slots && desk.number[slot] < list.num_recorded) list.retired[desk.number[slot]] = number + 1;
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
  desk.told &= ~ended;
  lanes_sync();
}

DEVICE int free_slot(const List& list, const Desk& desk) {
  const int slot = lowest(~desk.occupied);
  return slot < list.window ? slot : -1;
}
