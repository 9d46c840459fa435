// The shards of a call on a CPU, and the threads that run them.

// So much work of chosen worlds is worth a thread, since to wake one takes time; or so many worlds, as long as it is not
// known how long they take.
static constexpr std::chrono::microseconds WORK_OF_A_THREAD{30};
static constexpr int64_t WORLDS_OF_A_THREAD = 4;
static constexpr std::chrono::microseconds AWAKE{50};  // after which a thread that waits for others sleeps

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

// Run the programs of a shard. Returns whether they ran; `why` says why not.
static bool run_shard(int64_t kind, const Memory& memory, int64_t s, std::string& why) {
  Shard& shard = memory.shards[s];
  for (int64_t p = 0; p < shard.number; ++p) {
    Program& program = shard.programs[p];
    for (int64_t repeat = 0; repeat < program.repeats; ++repeat) {
      for (int64_t at = 0; (at = program.run(program.ops, program.number, at, program.over)) < program.number;) {
        char text[512] = "";
        if (grow_arena(kind, memory.index, s, p, at, text, sizeof text) != 0) {
          why = text;
          return false;
        }
      }
    }
  }
  return true;
}

// The shards of one call. Threads take one shard after another. A thread that starts after the call has returned finds
// none left, and must not look at the memory, which may be gone by then.
struct Work {
  // Runs a shard; returns whether it ran, and says why not.
  using Run = std::function<bool(int64_t shard, std::string& why)>;
  Work(int64_t num_shards, Run run_shard) : num_shards(num_shards), run_shard(std::move(run_shard)) {}

  const int64_t num_shards;
  const Run run_shard;
  std::atomic<int64_t> next{0}, done{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable ended;
  std::string why;

  // Wait until all shards are done, at first without sleeping, since to be woken takes as long as a short shard.
  void wait() {
    const auto until = std::chrono::steady_clock::now() + AWAKE;
    while (done < num_shards && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    std::unique_lock<std::mutex> lock(mutex);
    ended.wait(lock, [this] { return done == num_shards; });
  }

  void run() {
    for (int64_t s; (s = next++) < num_shards;) {
      std::string text;
      const bool ran = failed || run_shard(s, text);
      if (!ran) {
        std::lock_guard<std::mutex> lock(mutex);
        why = text;
        failed = true;
      }
      if (++done == num_shards) {
        std::lock_guard<std::mutex> lock(mutex);
        ended.notify_all();
      }
    }
  }

  // Run all shards on so many threads. A thread that starts late finds no shard left. A call therefore never waits for a
  // thread that has not started.
  static void run_on(int64_t threads, std::chrono::nanoseconds expected, const std::shared_ptr<Work>& work) {
    if (threads > 1) Crew::of_process().help(threads - 1, expected, [work] { work->run(); });
    work->run();
    work->wait();
  }
};

// Most threads that are of use to a call.
static int64_t most_threads(ffi::ThreadPool& pool, const Memory& memory) {
  return std::max<int64_t>(1, std::min({pool.num_threads(), Crew::processors(), memory.num_shards}));
}

// List the worlds of a shard that a mask says. Returns their number.
static int64_t choose(const Memory& memory, int64_t s, const int32_t* mask) {
  const Shard& shard = memory.shards[s];
  int32_t number = 0;
  for (int64_t w = shard.begin; w < shard.end; ++w) {
    if (mask[w]) memory.chosen[shard.begin + number++] = int32_t(w);
  }
  memory.num_chosen[s] = number;
  return number;
}

static void clear(const Memory& memory) {
  for (int64_t i = 0; i < memory.num_cleared; ++i) {
    std::memset(memory.cleared[i].data, 0, memory.cleared[i].rows * memory.cleared[i].bytes);
  }
}
