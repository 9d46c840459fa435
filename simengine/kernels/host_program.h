// Runs a program, the calls of whole steps on the host, without a word to Python: see
// simengine/backends/host_program.py.

#include <cstdint>

struct Op {
  void (*run)(const uint64_t* slots);  // null: behind this there must be room for what was counted
  const uint64_t* slots;               // arguments
  const int32_t* counts;               // what the call is over, or null; what must have room
  int64_t number;                      // what the call is over where counts are null; how many counts must have room
  int64_t room;
};

// Runs ops from number `at` on and notes what each call was over; those over nothing are left out. Returns the number
// of the op that lacks room, or n.
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
