// How many threads make calls of a kind fastest.

// Found by trying, since to wake a thread can take longer than its share of a short call. Calls take turns with all
// threads, half of them, and so on down to one. The number with the least median is the one until RENEWED calls later,
// when they take turns again. All threads make long calls, for which they are worth waking however busy a processor is
// while calls take turns.
class Pace {
 public:
  // The number for the next call, `most` at most.
  int64_t threads(int64_t most) {
    const int64_t call = calls++ % RENEWED;
    if (call == 0) {
      trials.clear();
      for (int64_t number = most; number > 0; number /= 2) trials.push_back({number, {}});
      best = notes = 0;
      shortest = {};
    }
    if (best) return std::min(best, most);
    return call < FIRST ? most : trials[call % trials.size()].threads;
  }

  // A call with a number of threads has lasted so long.
  void note(int64_t threads, std::chrono::nanoseconds lasted) {
    if (shortest.count() == 0 || lasted < shortest) shortest = lasted;
    if (best) return;
    if (++notes >= FIRST && shortest > LONG) best = trials[0].threads;
    bool enough = true;
    for (Trial& trial : trials) {
      if (trial.threads == threads) trial.times.push_back(lasted);
      enough &= trial.times.size() >= TRIES;
    }
    if (enough && !best) best = least().threads;
  }

  // Shortest duration of a call; zero before the first.
  std::chrono::nanoseconds least_duration() const { return shortest; }

 private:
  struct Trial {
    int64_t threads;
    std::vector<std::chrono::nanoseconds> times;

    std::chrono::nanoseconds median() {
      std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
      return times[times.size() / 2];
    }
  };

  Trial& least() {
    Trial* found = &trials.back();
    for (Trial& trial : trials) {
      if (trial.median() < found->median() * WORTH_OF_THREADS) found = &trial;
    }
    return *found;
  }

  static constexpr int64_t RENEWED = 4000;
  static constexpr size_t TRIES = 9;
  static constexpr int64_t FIRST = 2;  // calls with all threads; the first is slow, whatever its work
  static constexpr std::chrono::microseconds LONG{500};
  static constexpr double WORTH_OF_THREADS = 0.8;  // of the time of fewer threads
  int64_t calls = 0, notes = 0, best = 0;
  std::vector<Trial> trials;
  std::chrono::nanoseconds shortest{0};
};
