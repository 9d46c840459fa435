// The window on the device: one group of lanes checks hazards and admits calls, blocks of workers run their tiles.
//
//      host                          entry: upstream slots as bits                any call that waits for nothing
//        |   ring of numbers
//        +----- of calls ------> window -----> slot 0 | slot 1 | ... | slot 63 -----> blocks of its resource class
//        +----- of lists           ^                                                    |
//                                  +------- finished ----- done: a bit a slot <---------+  last ticket of the call
//
// Calls and lists of calls are described once, in tables on the device. The host then writes their numbers to a ring in
// its own memory, before the window starts or while it runs. A call that comes by its number is compared with the calls
// in the window. The calls of a list bring along which of the 64 calls before them, in rounds of the list, they wait
// for; lists that are played together must not conflict.
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
// If no call comes for a while and none is in the window, it leaves, and with it the workers. Other work of the host then
// finds room on the device. The host starts them again when it has the next call.
//
// If a body does not end, the block that waits longer than `limit` reports what it waits for. Then all blocks stop.
//
// A merged list has one class. Its first block that runs is the window, and becomes a worker once all calls are
// admitted. Two resident blocks are then enough, and no kernel waits for another.
//
// The code is built for CUDA with 32 lanes, and for the host with one lane per thread, where sanitizers can check it.
#pragma once

#include "portable.cuh"

typedef unsigned long long Bits;

#define MOST_SLOTS 64
#define MOST_CLASSES 14
#define MOST_PLAYED 64      // lists of which calls are admitted in turn
#define REACH 64            // how far back the calls of a list know what they wait for
#define COPIES 8            // of what waiting blocks read, because reads of one address are served one after another
#define ENTRY_WORDS 5
#define KINDS 4             // bits of a slot: touched, written, and both without tiled uses
#define WAITS_FOR_SLOT -2   // in place of a task
#define SHORTEST_PAUSE 20   // between two reads [ns]
#define OPENED_TOGETHER 4
#define PATIENCE 8          // looks in vain after which a block takes tickets that others would take first
#define STRIDE 32           // ints between two counters, so that each has a cache line of its own
#define NOTICES 1024        // calls that the host may wait for at once
#define LEAVES_AFTER 100000 // time without calls after which the window leaves [ns]

// 32 segments of a task: which of them it touches and writes, and with which of them that is a hazard. The alignment
// lets a lane read a word in three loads.
struct alignas(16) Word {
  int at;
  unsigned touched, written, touched_whole, written_whole;
  unsigned against_written, against_touched;              // hazards with what a slot writes or touches
  unsigned against_written_whole, against_touched_whole;  // the same without tiled uses of one segment
};

// How a call runs. It may run many times.
struct Task {
  int body, of_class;            // number of the body among those of its class
  int arguments, num_arguments;  // first 8-byte word among all arguments, and how many
  int tiles;
  int first_word, num_words;
  int first_part, parts;  // counters of ended tiles by part; 0 parts if no task waits for tiles
  int strided, size;      // the part of a tile is tile % size if strided, else tile / size
  int units;              // units of work in a tile
  const int* count;       // number of units, if only the device knows it, or null
};

// A call of a list. Bit i of `before` is the call i + 1 places before it, in rounds of the list.
struct alignas(16) Line {
  Bits before, tiled;  // what it waits for, and of that the calls of which tiles of the same part are enough
  int task, unused[3];
};

struct Script {
  int first, length;  // its lines
};

// An entry of the ring is (its position + 1) << 32 | what << 28 | number.
enum Entry_of_ring { CALL, PLAY, TELL, END };
#define NUMBER_BITS 28

// What waiting blocks read of a slot.
struct alignas(64) Entry {
  Bits upstream;   // slots of the calls that the call waits for
  Bits tiled;      // those of them of which tiles of the same part are enough
  Bits tickets;    // number of the call << 32 | its tickets
  Bits task;       // its task << 32 | the block that is to take its first ticket, in the order of blocks
  Bits execution;  // how often its task has been admitted
  Bits unused[3];
};

// What waiting blocks read of all slots, a cache line.
struct alignas(128) Board {
  Bits done;                // slots whose call has ended
  Bits closed;              // whether the window has admitted all calls
  Bits open[MOST_CLASSES];  // by class: slots that have tickets left
};

// What the host reads while a list runs, in its own memory. The first four numbers are set once a wait has taken too
// long.
struct Status {
  int stopped, task, tile, waits_for;
  int gone;  // whether the window has left before the end: 1 as long as it may still come back, 2
  int read;  // position in the ring up to which entries may be overwritten
};

// Where the window goes on, if it runs again.
struct Place {
  int position, number;  // of the next entry of the ring, and of the next call since the last end
};

struct List {
  const Task* tasks;
  const Word* words;
  const unsigned long long* arguments;
  const Line* lines;
  const Script* scripts;
  const int* numbers;  // by body of the class: its number in the program of the workers
  const Bits* ring;    // in memory of the host
  Status* status;      // in memory of the host
  int* notices;        // in memory of the host, by number of a call % NOTICES: the number + 1, once the call has ended
  Place* place;
  int* executions;     // by task
  int* played;         // by script: calls admitted
  int* ended;          // by part: tiles that have ended, of all executions
  Board* boards;       // COPIES
  Entry* entries;      // [copy][slot]
  Bits* next;          // by class and slot, STRIDE ints apart: number of the call << 32 | next ticket
  int* remaining;      // by slot, STRIDE apart: tickets that have not ended
  Bits* finished;      // what the window reads of `done`
  int* stop;
  int* has_window;      // merged lists: whether some block is the window
  int* slots;           // by number of the call: its slot; null if the list is not recorded, as are the following
  Bits* upstream;       // by number: the slots of the calls upstream of it
  int* retired;         // by number: 1 + the call admitted first after the window had seen it end, or 0
  long long* times;     // by number: start and end [ns]
  long long* checked;   // time of the window to admit calls [ns]
  long long* compared;  // the part of it that compares calls with slots [ns]
  long long limit;      // longest wait [s]
  int grids[MOST_CLASSES];  // blocks of each class
  int own_class;        // of a worker
  int ring_size;        // a power of two
  int num_words, window;
  int longest_pause;    // between two reads [ns]
  int most_words;       // words of the task with the most
  int num_recorded;     // how many calls may be recorded
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

DEVICE int tickets_of(int tiles, int grid) {
  const int run = (tiles + grid - 1) / grid;
  return (tiles + run - 1) / run;
}

DEVICE void stop_all(const List& list, int task, int tile, int waits_for) {
  if (!first_to(list.stop)) return;
  list.status->task = task;
  list.status->tile = tile;
  list.status->waits_for = waits_for;
  system_fence();
  list.status->stopped = 1;
  system_fence();
}
