// Lists whose waits the host has worked out, once for all runs: no window, and blocks go on from call to call.
//
//   worker    takes tickets of chains of calls; for each call of the chain waits for calls of other chains, runs the
//             tiles, and tells those who wait for them; meanwhile fetches the record of the call that follows
//
// A record has all that a block needs of a call (records.py). Between two calls of a chain nobody is told anything: the
// same block runs the same tiles, and sees what it wrote. chains.py says why there is no deadlock.
#pragma once

#include "protocol.cuh"

// The header of a record. Its waits and the arguments follow.
struct Step {
  Task task;
  int call;
  int num_waits;
  int tells;             // 1 if calls of other chains wait for its end, plus 2 if they wait by parts
  int next, next_words;  // the record of the call that follows in the chain, and its words; no words if none follows
  int unused;
};

// A call of another chain, and the counter of its first part, if it is waited for by parts.
struct Need {
  int call, first_part;
  int tiles, size;  // size is negative if strided
};

// A ticket: where the record of the first call of a chain is, and the first tile.
struct Start {
  int at, words, first, call;
};

#define WORDS_OF(x) int(sizeof(x) / 8)

DEVICE const Need* needs_of(const Step& step) { return reinterpret_cast<const Need*>(&step + 1); }
DEVICE const unsigned long long* arguments_of(const Step& step) {
  return reinterpret_cast<const unsigned long long*>(needs_of(step) + step.num_waits);
}
DEVICE int last_of(const Step& step, int first) {
  const int end = first + step.task.run;
  return end < step.task.tiles ? end : step.task.tiles;
}

// Number of tiles of a needed call in a part.
DEVICE int tiles_in_part(const Need& need, int part) {
  if (need.size < 0) return (need.tiles - part - need.size - 1) / -need.size;
  const int left = need.tiles - part * need.size;
  return left < need.size ? left : need.size;
}

// Waits until tiles first .. end - 1 of a call may run. All lanes of the first warp of the block call it, and share the
// counters among them.
DEVICE bool wait_for_needs(const List& list, const Step& step, int first, int end) {
  const Need* const needs = needs_of(step);
  const Task& task = step.task;
  int from = 0, parts = 1;
  if (task.parts > 0) {
    from = part_of(task, first);
    const int to = part_of(task, end - 1);
    const bool all = task.strided && end - first >= task.size;
    parts = all ? task.parts : from <= to ? to - from + 1 : to + task.parts - from + 1;  // strided runs may wrap around
  }
  bool ok = true;
  for (int i = lane(); i < step.num_waits * parts; i += LANE_COUNT) {
    const Need need = needs[i / parts];
    const int other = need.call & ~TILED;
    if (need.call & TILED) {
      const int part = (from + i % parts) % task.parts;
      const int* place = list.ended + need.first_part + part;
      ok = wait_for(list, place, tiles_in_part(need, part), false, step.call, first, other) && ok;
    } else if (i % parts == 0) {
      ok = wait_for(list, list.remaining + size_t(other) * STRIDE, 0, true, step.call, first, other) && ok;
    }
  }
  if (step.num_waits > 0) acquire();
  return all_lanes(ok);
}

// Tells those who wait for it that tiles have ended. One lane calls it after all of them have.
DEVICE void tell_ended(const List& list, const Step& step, int first, int end, long long began) {
  const Task& task = step.task;
  if (list.times) {
    earliest(list.times + 2 * step.call, began);
    latest(list.times + 2 * step.call + 1, now());
  }
  if (!step.tells) return;
  release();
  for (int tile = first; (step.tells & 2) && tile < end;) {
    const int part = part_of(task, tile);
    const int next = task.strided ? tile + 1 : (part + 1) * task.size;
    const int last = next < end ? next : end;
    add(list.ended + task.first_part + part, last - tile);
    tile = last;
  }
  if (step.tells & 1) add(list.remaining + size_t(step.call) * STRIDE, -1);
}
