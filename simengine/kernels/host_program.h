// Run a program, which is the list of calls of whole steps on the host, without returning to Python in between; see
// simengine/backends/host_program.py.

#include <cstdint>
#include <cstring>

struct Op {
  void (*run)(const uint64_t* slots);  // null: this op only checks a capacity
  const uint64_t* slots;               // arguments of the call
  const int32_t* counts;               // number of units of the call, or null; counts to check against the capacity
  int64_t number;                      // number of units if counts is null; number of counts to check
  int64_t room;
};

// Run the ops from index `at` on, and store in `over` the number of units of each call; calls without units are
// skipped.
// Returns the index of the op whose check fails, or n.
extern "C" int64_t run_program(const Op* ops, int64_t n, int64_t at, int32_t* over) {
  for (; at < n; ++at) {
    const Op& op = ops[at];
    if (op.run) {
      over[at] = op.counts ? *op.counts : int32_t(op.number);
      if (over[at]) op.run(op.slots);
      continue;
    }
    int64_t need = 0;
    for (int64_t i = 0; i < op.number; ++i) need += op.counts[i];
    if (need > op.room) return at;
  }
  return n;
}

// Run the program until it has run `repeats` times, of which `done` are counted already. Before each run, `size` bytes
// are copied from row `done` of `rows`. The results are those of run_program.
extern "C" int64_t repeat_program(const Op* ops, int64_t n, int64_t at, int32_t* over, int64_t* done, int64_t repeats,
                                  const char* rows, int64_t stride, char* to, int64_t size) {
  for (; *done < repeats; ++*done) {
    if (at == 0 && size) std::memcpy(to, rows + *done * stride, size);
    at = run_program(ops, n, at, over);
    if (at < n) return at;
    at = 0;
  }
  return n;
}
