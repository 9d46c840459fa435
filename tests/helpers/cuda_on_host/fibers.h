// The threads of a CUDA block as fibers of one thread of the host. A fiber runs until its thread comes to a collective
// or a barrier, and then another one does: so races show as results that depend on the order in which fibers run.
//
//     (1) A collective is carried out once all threads of its mask have come to it, each with the same mask and kind.
//     (2) What the others contribute is copied for each thread at that moment.
//     (3) A barrier opens once all threads of the block have come to it.
//     (4) Whatever breaks these rules, or leaves all fibers waiting, ends the launch with a message.
//     (5) Shared memory holds a given byte everywhere before each block begins.
//
// Fibers take turns millions of times in a test, so this file is optimised, whatever kernels are compiled with.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>

#pragma GCC push_options
#pragma GCC optimize("O2")

#define MOST_THREADS 1024
#define SHARED_BYTES (1 << 20)
#define WARP_THREADS 32

struct Place {
  unsigned x, y, z;
};
static Place threadIdx, blockIdx, blockDim, gridDim;
alignas(16) static char shared_memory[SHARED_BYTES];

enum Order { FORWARD, BACKWARD, RANDOM };
enum Waits { READY, AT_COLLECTIVE, AT_BARRIER, GONE };

struct Fiber {
  Context context;
  Place place;
  Waits waits;
  int kind;                       // of the collective or barrier
  unsigned mask;                  // of the collective
  uint64_t given;                 // what the thread contributes
  uint64_t all[WARP_THREADS];     // what the threads of its warp contributed
};
static Fiber fibers[MOST_THREADS];
static Context scheduler;
static int threads, current;
static Order order;
static uint64_t random_state;
static void (*thread_body)();
static char fault[256];  // empty while there is none

static void pause_fiber() { go_from(&fibers[current].context, &scheduler); }

// Note why the launch ends. It does once the fiber pauses.
static void note(const char* what) {
  if (*fault) return;
  snprintf(fault, sizeof(fault), "thread %u of group %u in block %u: %s", threadIdx.x, threadIdx.y, blockIdx.x, what);
}
static void blame(const char* what) {
  note(what);
  pause_fiber();
}

// Wait until all threads of a mask have come to the same collective; `all` then has what they gave.
static void meet(int kind, unsigned mask, uint64_t given) {
  const int first = current & ~(WARP_THREADS - 1), own = current - first;
  Fiber* warp = fibers + first;
  if (!(mask >> own & 1u)) blame("a collective whose mask lacks its own thread");
  warp[own].waits = AT_COLLECTIVE;
  warp[own].kind = kind;
  warp[own].mask = mask;
  warp[own].given = given;
  bool complete = true;
  for (int i = 0; i < WARP_THREADS; ++i) {
    if (!(mask >> i & 1u)) continue;
    if (first + i >= threads) blame("a mask with threads beyond the block");
    if (warp[i].waits == GONE) blame("a mask with a thread that has returned");
    if (warp[i].waits != AT_COLLECTIVE) {
      complete = false;
    } else if (warp[i].mask != mask) {
      blame("a collective with another mask than a thread in it has");
    } else if (warp[i].kind != kind) {
      blame("a collective of another kind than a thread of its mask waits at");
    }
  }
  for (int i = 0; complete && i < WARP_THREADS; ++i) {
    if (!(mask >> i & 1u)) continue;
    for (int k = 0; k < WARP_THREADS; ++k) warp[i].all[k] = mask >> k & 1u ? warp[k].given : ~uint64_t(0);
    warp[i].waits = READY;
  }
  pause_fiber();
}

// Wait for all threads of the block; all[0] then has the bits that any of them gave.
static void meet_block(int kind, uint64_t given) {
  fibers[current].waits = AT_BARRIER;
  fibers[current].kind = kind;
  fibers[current].given = given;
  pause_fiber();
}

static void open_barrier() {
  uint64_t any = 0;
  for (int i = 0; i < threads; ++i) {
    if (fibers[i].waits == GONE) return note("a barrier that a thread of the block has returned before");
    if (fibers[i].waits != AT_BARRIER) return note("a barrier while threads wait at a collective");
    if (fibers[i].kind != fibers[0].kind) return note("barriers of different kinds");
    any |= fibers[i].given;
  }
  for (int i = 0; i < threads; ++i) {
    fibers[i].all[0] = any;
    fibers[i].waits = READY;
  }
}

static void run_fiber() {
  thread_body();
  fibers[current].waits = GONE;
  pause_fiber();
}

static void make_fibers() {
  static char* stacks = memory_of_stacks(MOST_THREADS);
  for (int i = 0; i < threads; ++i) {
    begin_with(&fibers[i].context, stacks + size_t(i) * STACK_BYTES, run_fiber);
    fibers[i].place = {unsigned(i) % blockDim.x, unsigned(i) / blockDim.x, 0};
    fibers[i].waits = READY;
  }
}

// Numbers of the fibers that can run, in the order in which they do; returns how many there are.
static int ready_fibers(int* list) {
  int number = 0;
  for (int k = 0; k < threads; ++k) {
    const int i = order == BACKWARD ? threads - 1 - k : k;
    if (fibers[i].waits == READY) list[number++] = i;
  }
  for (int k = number - 1; order == RANDOM && k > 0; --k) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    const int other = int((random_state >> 33) % unsigned(k + 1)), here = list[k];
    list[k] = list[other];
    list[other] = here;
  }
  return number;
}

static void run_block() {
  int list[MOST_THREADS], number;
  make_fibers();
  while (!*fault) {
    number = ready_fibers(list);
    for (int k = 0; k < number && !*fault; ++k) {
      current = list[k];
      threadIdx = fibers[current].place;
      go_from(&scheduler, &fibers[current].context);
    }
    if (number) continue;
    bool gone = true, barrier = false;
    for (int i = 0; i < threads; ++i) {
      gone &= fibers[i].waits == GONE;
      barrier |= fibers[i].waits == AT_BARRIER;
    }
    if (gone) return;
    if (barrier) open_barrier();
    else snprintf(fault, sizeof(fault), "block %u: threads wait for others at a collective for ever", blockIdx.x);
  }
}

// Run a launch; returns a message, which is empty if there was no fault.
static const char* run_grid(int blocks, int x, int y, int shared_bytes, int chosen_order, int byte, void (*body)()) {
  *fault = 0;
  thread_body = body;
  order = Order(chosen_order);
  random_state = 1;
  threads = x * y;
  blockDim = {unsigned(x), unsigned(y), 1};
  gridDim = {unsigned(blocks), 1, 1};
  if (threads > MOST_THREADS || shared_bytes > SHARED_BYTES) return "a block with too many threads or too much memory";
  for (int b = 0; b < blocks && !*fault; ++b) {
    blockIdx = {unsigned(order == BACKWARD ? blocks - 1 - b : b), 0, 0};
    memset(shared_memory, byte, size_t(shared_bytes));
    run_block();
  }
  return fault;
}

#pragma GCC pop_options
