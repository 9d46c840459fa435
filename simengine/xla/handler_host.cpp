// XLA's custom call on a CPU: copies the state into the engine's memory, runs the programs of all shards, and copies the
// new state and derived fields out.
//
// The engine's memory is a `Memory`, which Python makes, fills with addresses and keeps alive. A call takes a free one of
// its kind, so that calls which run at the same time do not share scratch.

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

// So much work of chosen worlds is worth a thread, since to wake one takes time; or so many worlds, as long as it is not
// known how long they take.
static constexpr std::chrono::microseconds WORK_OF_A_THREAD{30};
static constexpr int64_t WORLDS_OF_A_THREAD = 4;
static constexpr std::chrono::microseconds AWAKE{50};  // after which a thread that waits for others sleeps

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

static void note_time_of_world(int64_t kind, std::chrono::nanoseconds time) {
  std::lock_guard<std::mutex> lock(guard);
  auto [found, fresh] = times_of_worlds.try_emplace(kind, time);
  if (time < found->second) found->second = time;
}

// Number of threads for a call, `most` at most.
//
// chosen: number of worlds that it works on, or negative for all of them
static int64_t threads_for(int64_t kind, int64_t most, int64_t chosen) {
  std::lock_guard<std::mutex> lock(guard);
  if (chosen < 0) return paces[kind].threads(most);
  auto found = times_of_worlds.find(kind);
  if (found == times_of_worlds.end()) return std::min(most, (chosen + WORLDS_OF_A_THREAD - 1) / WORLDS_OF_A_THREAD);
  return std::min(most, 1 + int64_t(chosen * found->second / std::chrono::nanoseconds(WORK_OF_A_THREAD)));
}

static std::chrono::nanoseconds expected_duration(int64_t kind) {
  std::lock_guard<std::mutex> lock(guard);
  return paces[kind].least_duration();
}

static void note_duration(int64_t kind, int64_t threads, int64_t chosen, std::chrono::nanoseconds lasted) {
  if (chosen >= 0) return note_time_of_world(kind, lasted * threads / chosen);
  std::lock_guard<std::mutex> lock(guard);
  paces[kind].note(threads, lasted);
}

// Time that calls of steps have taken [ns], copies included.
static std::atomic<int64_t> time_of_steps{0};

extern "C" int64_t simengine_time_of_steps() { return time_of_steps; }

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

static void copy(char* to, int64_t to_stride, const char* from, int64_t from_stride, const Field& field) {
  if (to_stride == field.bytes && from_stride == field.bytes) {
    std::memcpy(to, from, field.rows * field.bytes);
    return;
  }
  for (int64_t i = 0; i < field.rows; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, field.bytes);
}

// The shards of one call. Threads take one shard after another. A thread that starts after the call has returned finds
// none left, and must not look at the memory, which may be gone by then.
struct Work {
  const Memory* memory;
  int64_t kind;
  int64_t num_shards;
  std::atomic<int64_t> next{0}, done{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable ended;
  std::string why;

  void run_shard(int64_t s) {
    Shard& shard = memory->shards[s];
    for (int64_t p = 0; p < shard.number; ++p) {
      Program& program = shard.programs[p];
      for (int64_t repeat = 0; repeat < program.repeats; ++repeat) {
        for (int64_t at = 0; (at = program.run(program.ops, program.number, at, program.over)) < program.number;) {
          char text[512] = "";
          if (grow_arena(kind, memory->index, s, p, at, text, sizeof text) != 0) {
            std::lock_guard<std::mutex> lock(mutex);
            why = text;
            failed = true;
            return;
          }
        }
      }
    }
  }

  // Wait until all shards are done, at first without sleeping, since to be woken takes as long as a short shard.
  void wait() {
    const auto until = std::chrono::steady_clock::now() + AWAKE;
    while (done < num_shards && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    std::unique_lock<std::mutex> lock(mutex);
    ended.wait(lock, [this] { return done == num_shards; });
  }

  void run() {
    for (int64_t s; (s = next++) < num_shards;) {
      if (!failed) run_shard(s);
      if (++done == num_shards) {
        std::lock_guard<std::mutex> lock(mutex);
        ended.notify_all();
      }
    }
  }
};

static ffi::Error step_once(ffi::ThreadPool& pool, ffi::RemainingArgs& arguments, ffi::RemainingRets& results,
                            int64_t kind) {
  std::string why;
  const auto called = std::chrono::steady_clock::now();
  const Memory* memory = take(kind, why);
  if (memory == nullptr) return ffi::Error::Internal(why);
  int64_t chosen = -1;  // number of worlds that it works on, if it chooses
  if (memory->chosen) {
    chosen = 0;
    auto given = arguments.get<ffi::AnyBuffer>(memory->num_inputs);
    if (!given.has_value()) return given.error();
    const int32_t* mask = static_cast<const int32_t*>(given->untyped_data());
    for (int64_t s = 0; s < memory->num_shards; ++s) {
      const Shard& shard = memory->shards[s];
      int32_t number = 0;
      for (int64_t w = shard.begin; w < shard.end; ++w) {
        if (mask[w]) memory->chosen[shard.begin + number++] = int32_t(w);
      }
      memory->num_chosen[s] = number;
      chosen += number;
    }
    if (chosen == 0) {
      for (int64_t i = 0; i < memory->num_outputs; ++i) {
        auto wanted = results.get<ffi::AnyBuffer>(i);
        if (!wanted.has_value()) return wanted.error();
        std::memset((*wanted)->untyped_data(), 0, (*wanted)->size_bytes());
      }
      give_back(kind, memory);
      return ffi::Error::Success();
    }
  }
  for (int64_t i = 0; i < memory->num_inputs; ++i) {
    auto given = arguments.get<ffi::AnyBuffer>(i);
    if (!given.has_value()) return given.error();
    const Field& field = memory->inputs[i];
    if (int64_t(given->size_bytes()) != field.rows * field.bytes) {
      give_back(kind, memory);
      return ffi::Error::InvalidArgument("an argument of simengine's step has another size than it was traced with");
    }
    copy(field.data, field.stride, static_cast<const char*>(given->untyped_data()), field.bytes, field);
  }
  for (int64_t i = 0; i < memory->num_cleared; ++i) {
    std::memset(memory->cleared[i].data, 0, memory->cleared[i].rows * memory->cleared[i].bytes);
  }
  auto work = std::make_shared<Work>();
  work->memory = memory;
  work->kind = kind;
  work->num_shards = memory->num_shards;
  // A thread that starts late finds no shard left. The call therefore never waits for a thread that has not started.
  const int64_t most = std::max<int64_t>(1, std::min({pool.num_threads(), Crew::processors(), memory->num_shards}));
  const int64_t threads = threads_for(kind, most, chosen);
  const auto began = std::chrono::steady_clock::now();
  if (threads > 1) Crew::of_process().help(threads - 1, expected_duration(kind), [work] { work->run(); });
  work->run();
  work->wait();
  note_duration(kind, threads, chosen, std::chrono::steady_clock::now() - began);
  for (int64_t i = 0; i < memory->num_outputs && !work->failed; ++i) {
    auto wanted = results.get<ffi::AnyBuffer>(i);
    if (!wanted.has_value()) return wanted.error();
    const Field& field = memory->outputs[i];
    copy(static_cast<char*>((*wanted)->untyped_data()), field.bytes, field.data, field.stride, field);
  }
  give_back(kind, memory);
  if (chosen < 0) time_of_steps += std::chrono::nanoseconds(std::chrono::steady_clock::now() - called).count();
  return work->failed ? ffi::Error::Internal(work->why) : ffi::Error::Success();
}

static ffi::Error step(ffi::ThreadPool pool, ffi::RemainingArgs arguments, ffi::RemainingRets results, int64_t kind) {
  ffi::Error error = step_once(pool, arguments, results, kind);
  leave(kind);
  return error;
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    simengine_step, step,
    ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().RemainingArgs().RemainingRets().Attr<int64_t>("kind"));
