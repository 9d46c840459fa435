// The window on the device: one group of lanes checks hazards and admits calls, blocks of workers run their tiles.
//
//                    hazards                entry: upstream slots as bits          any call that waits for nothing
//   calls in order ---------> window -----> slot 0 | slot 1 | ... | slot 63 -----> blocks of its resource class
//                               ^                                                    |
//                               +------- finished ----- done: a bit a slot <---------+  last ticket of the call
//
// A call has tickets, which are runs of tiles. A block takes tickets of any call in the window, and runs those whose
// call waits for nothing. Upstream lists are words of one bit a slot. A call that has ended sets its bit in `done`, which
// clears it in all upstream lists at once: a call waits for `upstream & ~done`.
//
//   1. The window alone writes entries. It fills a free slot with the next call in program order, then opens it.
//   2. Each ticket of a call is taken once, by an addition to `next` of its slot. The sum holds the call's number, so a
//      block that looked at an earlier call of the slot notices.
//   3. A block runs a ticket only if, after it took the ticket, all bits of `upstream` were seen in `done` (or parts of
//      tiles were seen complete). While a ticket of it is held, an entry changes only by losing bits of slots that were
//      freed.
//   4. The last ticket sets the bit of its slot in `done`, then in `finished`. The window frees a slot only after that,
//      and clears both bits before it fills the slot again.
//   5. A block that holds tickets goes on looking. It takes more of them only of calls that it sees ready.
//
// Why there is no deadlock. Let T be the first call in program order that has not ended. Calls before it have ended, so
// the window finds a slot for T (by 4), and T waits for nothing. A ticket of T that a block holds is run as soon as the
// block looks again: all that it may run before are tickets of ready calls, which end. Any other ticket of T is open to
// every block of the class, however many tickets the block holds (by 5), and one of them takes it. So T ends, and by
// induction every call does. One resident block of each class beside the window is enough. Grids fit on the device
// together (occupancy.py). In one stream, each class starts once all blocks of the class before it run. Lists of one
// process run one after another, so that no two lists wait for resources that the other holds. A block that is not
// resident holds no ticket.
//
// Why a bit is never taken for that of another call. A block learns of call T by the window's release, and the window
// cleared the bits of T's upstream slots in `done` before they were filled. So if the block sees a bit set, the upstream
// call has ended, or a later one in its slot has, which was admitted because the upstream call had ended.
//
// If a body does not end, the block that waits longer than `limit` reports what it waits for. Then all blocks stop.
//
// A merged list has one class. Its first block that runs is the window, and becomes a worker once it has admitted all
// calls. Two resident blocks are then enough, and no kernel waits for another.
//
// The code is built for CUDA with 32 lanes, and for the host with one lane per thread, where sanitizers can check it.
#pragma once

#include "portable.cuh"

typedef unsigned long long Bits;

#define MOST_SLOTS 64
#define MOST_CLASSES 14
#define COPIES 8            // of what waiting blocks read, because reads of one address are served one after another
#define ENTRY_WORDS 4
#define KINDS 4             // bits of a slot: touched, written, and both without tiled uses
#define WAITS_FOR_SLOT -2   // in place of a call's number
#define SHORTEST_PAUSE 20   // between two reads [ns]
#define OPENED_TOGETHER 4
#define PATIENCE 8          // looks in vain after which a block takes tickets that others would take first
#define STRIDE 32           // ints between two counters, so that each has a cache line of its own

// 32 segments of a task: which of them it touches and writes, and with which of them that is a hazard. The alignment
// lets a lane read a word in three loads.
struct alignas(16) Word {
  int at;
  unsigned touched, written, touched_whole, written_whole;
  unsigned against_written, against_touched;              // hazards with what a slot writes or touches
  unsigned against_written_whole, against_touched_whole;  // the same without tiled uses of one segment
};

struct Task {
  int body, of_class;
  int arguments, num_arguments;  // first 8-byte word among all arguments, and how many
  int tiles, run, tickets;       // number of tiles, tiles of one ticket, and tickets
  int first_word, num_words;
  int first_part, parts;  // counters of ended tiles by part; 0 parts if no task waits for tiles
  int strided, size;      // the part of a tile is tile % size if strided, else tile / size
  int units;              // units of work in a tile
  const int* count;       // number of units, if only the device knows it, or null
};

// What waiting blocks read of a slot.
struct alignas(32) Entry {
  Bits upstream;  // slots of the calls that the call waits for
  Bits tiled;     // those of them of which tiles of the same part are enough
  Bits tickets;   // number of the call << 32 | its tickets
  Bits task;      // its task << 32 | the block that is to take its first ticket, in the order of blocks
};
static_assert(sizeof(Entry) == ENTRY_WORDS * sizeof(Bits), "the window writes an entry word by word");

// What waiting blocks read of all slots, a cache line.
struct alignas(128) Board {
  Bits done;                // slots whose call has ended
  Bits closed;              // whether the window has admitted all calls
  Bits open[MOST_CLASSES];  // by class: slots that have tickets left
};

// What the host reads once a wait has taken too long.
struct Status {
  int stopped, task, tile, waits_for;
};

struct List {
  const Task* tasks;
  const Word* words;
  const unsigned long long* arguments;
  Board* boards;    // COPIES
  Entry* entries;   // [copy][slot]
  Bits* next;       // by class and slot, STRIDE ints apart: number of the call << 32 | next ticket
  int* remaining;   // by slot, STRIDE apart: tickets that have not ended
  Bits* finished;   // what the window reads of `done`
  int* ended;       // by part: tiles that have ended
  int* stop;
  int* has_window;  // merged lists: whether some block is the window
  Status* status;   // in memory of the host
  int* slots;       // by task: its slot, for those who look at the list later
  Bits* upstream;   // by task: the slots of the tasks upstream of it
  int* retired;     // by task: 1 + the task admitted first after the window had seen it end, or 0
  long long* times;     // by task: start and end [ns], or null
  long long* checked;   // time of the window to admit tasks [ns]
  long long* compared;  // the part of it that compares words with slots [ns], or null
  long long limit;      // longest wait [s]
  int num_tasks, num_words, window;
  int own_class, grid;  // the class of a worker, and its blocks
  int longest_pause;    // between two reads [ns]
  int most_words;       // words of the task with the most
};

DEVICE Bits bit(int slot) { return 1ull << slot; }
DEVICE Bits pair(unsigned high, unsigned low) { return Bits(high) << 32 | low; }
DEVICE unsigned high(Bits x) { return unsigned(x >> 32); }
DEVICE unsigned low(Bits x) { return unsigned(x); }

DEVICE Bits* next_of(const List& list, int of_class, int slot) {
  return list.next + (size_t(of_class) * list.window + slot) * (STRIDE / 2);
}
DEVICE int* remaining_of(const List& list, int slot) { return list.remaining + size_t(slot) * STRIDE; }
DEVICE Entry* entry_of(const List& list, int copy, int slot) { return list.entries + size_t(copy) * list.window + slot; }

DEVICE void stop_all(const List& list, int task, int tile, int waits_for) {
  if (!first_to(list.stop)) return;
  list.status->task = task;
  list.status->tile = tile;
  list.status->waits_for = waits_for;
  system_fence();
  list.status->stopped = 1;
  system_fence();
}
