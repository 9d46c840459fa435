// The engine's memory behind custom calls on a CPU.
//
// It is a `Memory`, which Python makes, fills with addresses and keeps alive. A call takes a free one of its kind, so that
// calls which run at the same time do not share scratch.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// An array of the engine: `rows` rows of `bytes` bytes, `stride` bytes apart.
struct Field {
  char* data;
  int64_t rows, bytes, stride;
};

struct Program {
  const void* ops;
  int64_t number;  // of ops
  int32_t* over;
  int64_t repeats;
  int64_t (*run)(const void* ops, int64_t number, int64_t at, int32_t* over);
};

struct Shard {
  Program* programs;
  int64_t number;
  int64_t begin, end;  // its worlds
};

struct Memory {
  const Field* inputs;
  int64_t num_inputs;
  const Field* outputs;
  int64_t num_outputs;
  Shard* shards;
  int64_t num_shards;
  int64_t index;  // by which Python knows it
  const Field* cleared;  // arrays that a call sets to zero first
  int64_t num_cleared;
  int32_t* chosen;  // lists of the worlds of each shard that a call works on, or null if it works on all
  int32_t* num_chosen;
};

// Python makes a memory of a kind; null if it could not. Its text says why.
using Make = const Memory* (*)(int64_t kind, char* why, int64_t room);
// Python grows the arena of an op that did not fit, and updates the addresses in the shard's programs; 0 for success.
using Grow = int64_t (*)(int64_t kind, int64_t index, int64_t shard, int64_t program, int64_t at, char* why, int64_t room);

static Make make_memory = nullptr;
static Grow grow_arena = nullptr;
static std::mutex guard;
static std::unordered_map<int64_t, std::vector<const Memory*>> idle;
static std::unordered_map<int64_t, int64_t> running;  // number of calls, by kind
static std::condition_variable stopped;
static bool closed = false;

// Numbers of threads of calls that work on all worlds, by kind.
static std::unordered_map<int64_t, Pace> paces;

// Shortest time that a chosen world of a call took on one thread, by kind.
static std::unordered_map<int64_t, std::chrono::nanoseconds> times_of_worlds;

extern "C" void simengine_set_callbacks(Make make, Grow grow) {
  make_memory = make;
  grow_arena = grow;
}

static void give_back(int64_t kind, const Memory* memory) {
  std::lock_guard<std::mutex> lock(guard);
  idle[kind].push_back(memory);
}

// A call of a kind has ended.
static void leave(int64_t kind) {
  std::lock_guard<std::mutex> lock(guard);
  if (--running[kind] == 0) running.erase(kind);
  stopped.notify_all();
}

// Add a memory of a kind that was made in advance.
extern "C" void simengine_add(int64_t kind, const Memory* memory) { give_back(kind, memory); }

// Forget the memories of a kind, which Python is about to release, once no call uses them.
extern "C" void simengine_forget(int64_t kind) {
  std::unique_lock<std::mutex> lock(guard);
  stopped.wait(lock, [&] { return running.find(kind) == running.end(); });
  idle.erase(kind);
  paces.erase(kind);
  times_of_worlds.erase(kind);
}

// Wait for the calls that run, and let later ones fail. Python calls this before its interpreter ends. A thread that
// asks the interpreter for memory afterwards would never come back, and XLA would wait for it for ever.
extern "C" void simengine_close() {
  std::unique_lock<std::mutex> lock(guard);
  closed = true;
  stopped.wait(lock, [&] { return running.empty(); });
}

static const Memory* take(int64_t kind, std::string& why) {
  {
    std::lock_guard<std::mutex> lock(guard);
    ++running[kind];
    if (closed) {
      why = "simengine makes no more steps, because Python is ending";
      return nullptr;
    }
    auto found = idle.find(kind);
    if (found != idle.end() && !found->second.empty()) {
      const Memory* memory = found->second.back();
      found->second.pop_back();
      return memory;
    }
  }
  char text[512] = "";
  const Memory* memory = make_memory(kind, text, sizeof text);
  if (memory == nullptr) why = text;
  return memory;
}
