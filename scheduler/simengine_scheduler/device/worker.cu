// The kernels of executor `device`: `reset`, `window`, and a worker for each resource class. For a worker the build
// defines THREADS, BLOCKS (how many a multiprocessor must hold) and RUN_BODY(body, arguments, tile, memory), which runs
// a tile. It defines WITH_WINDOW if one block of the worker is the window, ANY_READY if blocks take tickets of any
// ready task, and KNOWN if the host knows what calls wait for.
#include "known.cuh"
#include "ready.cuh"

// The next class of workers starts once all blocks of this kernel run, so that all classes run together in one stream.
// No kernel ends before the one before it in the stream, so that what follows in the stream comes after all of them.
static __device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
static __device__ __forceinline__ void end_after_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#if defined(RUN_BODY)

#if defined(KNOWN)
// Begins to copy a record to shared memory. All threads of the block call it.
static __device__ __forceinline__ void fetch(const List& list, unsigned long long* to, int at, int words) {
  const unsigned long long* const from = list.records + at;
  for (int i = 2 * threadIdx.x; i < words; i += 2 * THREADS) begin_copy(to + i, from + i);
}

// Waits until the record that was fetched is there. All threads of the block call it.
static __device__ __forceinline__ void settle() {
  wait_for_copies();
  __syncthreads();
}

// Runs the tiles of a chain of calls, from a record that is being fetched to the first of two places on. The other
// place is for the record that follows. False if all blocks stop.
static __device__ __forceinline__ bool run_chain(const List& list, unsigned long long* const places, int first,
                                                 unsigned long long* const slots, char* const memory) {
  __shared__ int go;
  for (int place = 0;; place ^= 1) {
    settle();
    const Step& step = *reinterpret_cast<const Step*>(places + place * list.record_words);
    for (int i = threadIdx.x; i < step.task.num_arguments; i += THREADS) slots[i] = arguments_of(step)[i];
    if (step.next_words > 0) fetch(list, places + (place ^ 1) * list.record_words, step.next, step.next_words);
    const int end = last_of(step, first);
    if (threadIdx.x < 32) {
      const bool ok = wait_for_needs(list, step, first, end);
      if (threadIdx.x == 0) go = ok;
    }
    __syncthreads();
    if (!go) return false;
    const long long began = list.times ? now() : 0;
    const int with_work = min(end, tiles_at_work(step.task));
    for (int tile = first; tile < with_work; ++tile) {
      RUN_BODY(step.task.body, slots, tile, memory);
      __syncthreads();
    }
    if (threadIdx.x == 0) tell_ended(list, step, first, last_of(step, first), began);
    if (step.next_words == 0) return true;
  }
}

// The first `argument_words` of shared memory hold the arguments of the call that runs. Two records follow.
static __device__ __forceinline__ void work(const List& list, int argument_words) {
  extern __shared__ __align__(16) unsigned long long arguments[];
  unsigned long long* const places = arguments + argument_words;
  char* const memory = reinterpret_cast<char*>(places + 2 * list.record_words);
  __shared__ int taken;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) taken = take(list.next);
    __syncthreads();
    if (taken >= list.num_tickets) return;
    const Start start = reinterpret_cast<const Start*>(list.tickets)[taken];
    fetch(list, places, start.at, start.words);
    if (!run_chain(list, places, start.first, arguments, memory)) return;
  }
}
#else
static __device__ __forceinline__ void load_arguments(const List& list, const Task& task, unsigned long long* to) {
  for (int i = threadIdx.x; i < task.num_arguments; i += THREADS) to[i] = list.arguments[task.arguments + i];
}

#if defined(ANY_READY)
// Waits for a ticket of a ready task, which is loaded then. All threads of the block call it.
static __device__ __forceinline__ bool next_ticket(const List& list, Search& search, Ticket& ticket,
                                                   unsigned long long* arguments) {
  __shared__ Ticket found;
  __shared__ int go;
  if (threadIdx.x < 32) {
    const bool ok = take_ready(list, search, ticket);
    if (threadIdx.x == 0) go = ok, found = ticket;
  }
  __syncthreads();
  if (!go) return false;
  ticket = found;
  load_arguments(list, list.tasks[ticket.task], arguments);
  __syncthreads();
  return true;
}
#else
// Takes the next ticket, loads its task and waits until that may run. All threads of the block call it.
static __device__ __forceinline__ bool next_ticket(const List& list, Search& search, Ticket& ticket,
                                                   unsigned long long* arguments) {
  __shared__ int taken, go;
  if (threadIdx.x == 0) taken = take(list.next);
  __syncthreads();
  if (taken >= list.num_tickets) return false;
  ticket = list.tickets[taken];
  const Task& task = list.tasks[ticket.task];
  load_arguments(list, task, arguments);
  if (threadIdx.x < 32) {
    const bool ok = wait_for_upstream(list, task, ticket.task, ticket.first, min(task.tiles, ticket.first + task.run));
    if (threadIdx.x == 0) go = ok;
  }
  __syncthreads();
  return go;
}
#endif

// The first `argument_words` of shared memory hold the arguments, because waits may empty the L1 cache.
static __device__ __forceinline__ void work(const List& list, int argument_words) {
  extern __shared__ __align__(16) unsigned long long arguments[];
  char* const memory = reinterpret_cast<char*>(arguments + argument_words);
  Search search = {0, 0};
  for (Ticket ticket; next_ticket(list, search, ticket, arguments);) {
    const Task& task = list.tasks[ticket.task];
    const int end = min(task.tiles, ticket.first + task.run);
    const long long began = list.times ? now() : 0;
    const int with_work = min(end, tiles_at_work(task));
    for (int tile = ticket.first; tile < with_work; ++tile) {
      RUN_BODY(task.body, arguments, tile, memory);
      __syncthreads();
    }
    if (threadIdx.x == 0) note_ended(list, task, ticket.task, ticket.first, end, began);
  }
}
#endif

// Whether this block stays to work. All of its threads call it.
static __device__ __forceinline__ bool stays_as_block(const List& list) {
  __shared__ bool staying;
  if (threadIdx.x == 0) staying = stays(list);
  __syncthreads();
  return staying;
}

#if defined(WITH_WINDOW)
// The first warp of the block that runs first is the window. After that the block is a worker.
static __device__ __forceinline__ void be_window_if_first(const List& list) {
  extern __shared__ __align__(16) unsigned long long arguments[];
  __shared__ bool first;
  if (threadIdx.x == 0) first = first_to(list.has_window);
  __syncthreads();
  if (first && threadIdx.x < 32) run_window(list, arguments);
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    worker(const __grid_constant__ List list, int argument_words) {
  let_next_start();
#if defined(WITH_WINDOW)
  be_window_if_first(list);
#endif
  if (!stays_as_block(list)) return;  // at once, to make room; the first block of the kernel ends last
  work(list, argument_words);
  end_after_previous();
}

#else

// Copies the initial state of a list: the remaining tickets of each task, and zeros.
extern "C" __global__ void reset(int* state, const int* first, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) state[i] = first[i];
}

// With 16 blocks on a multiprocessor a thread may have 128 registers, which image.py assumes.
extern "C" __global__ void __launch_bounds__(32, 16) window(const __grid_constant__ List list) {
  extern __shared__ __align__(16) char memory[];
  let_next_start();
  run_window(list, memory);
}

#endif
