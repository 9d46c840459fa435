// Threads that help the one that makes a call of steps on a CPU.
//
// They are the engine's own. A thread of XLA's pool spins for a while after its work, and the kernel may have woken it on
// the processor of the thread that makes the call, which then waits for it. The crew's threads sleep between calls, and
// stay off the processor of the one that makes them.

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#endif

class Crew {
 public:
  // The crew of this process, which is never destroyed: its threads wait for work until the process ends. A fork has none
  // of them, and so a crew of its own.
  static Crew& of_process() {
    static std::mutex guard;
    static Crew* crew = nullptr;
    std::lock_guard<std::mutex> lock(guard);
    if (crew == nullptr || crew->process != process_id()) crew = new Crew;
    return *crew;
  }

  // Number of processors on which the calling thread may run.
  static int64_t processors() {
#ifdef __linux__
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
#endif
    return std::max(1u, std::thread::hardware_concurrency());
  }

  // Let a number of threads run some work, with the caller's modes of arithmetic. A thread may start after the caller has
  // done all of it.
  //
  // expected: how long the work will take, as far as it is known
  void help(int64_t number, std::chrono::nanoseconds expected, const std::function<void()>& work) {
    std::fenv_t modes;
    std::fegetenv(&modes);
    {
      std::lock_guard<std::mutex> lock(guard);
      try {
        while (int64_t(threads.size()) < number) add();
      } catch (const std::system_error&) {  // the process may have no more threads
        number = int64_t(threads.size());
      }
      keep_away(expected);
      for (int64_t i = 0; i < number; ++i) {
        tasks.push_back([=] {
          std::fesetenv(&modes);
          work();
        });
      }
    }
    for (int64_t i = 0; i < number; ++i) posted.notify_one();
  }

 private:
  void add() {
    threads.emplace_back([this] {
#ifdef __linux__
      pthread_setname_np(pthread_self(), "simengine");
#endif
      for (;;) {
        std::function<void()> task;
        {
          std::unique_lock<std::mutex> lock(guard);
          posted.wait(lock, [this] { return !tasks.empty(); });
          task = std::move(tasks.front());
          tasks.pop_front();
        }
        task();
      }
    });
    away = -1;
  }

  // Keep the threads off the caller's processor, if the work lasts much longer than the system calls for that.
  void keep_away(std::chrono::nanoseconds expected) {
#ifdef __linux__
    const int here = sched_getcpu();
    if (here < 0 || here == away || expected < LEAST_OF_A_THREAD * threads.size()) return;
    cpu_set_t others;
    if (sched_getaffinity(0, sizeof others, &others) != 0) return;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) == 0) return;
    for (std::thread& thread : threads) pthread_setaffinity_np(thread.native_handle(), sizeof others, &others);
    away = here;
#endif
  }

  static int64_t process_id() {
#ifdef __linux__
    return getpid();
#else
    return 0;
#endif
  }

  static constexpr std::chrono::microseconds LEAST_OF_A_THREAD{20};
  const int64_t process = process_id();
  std::mutex guard;
  std::condition_variable posted;
  std::deque<std::function<void()>> tasks;
  std::vector<std::thread> threads;
  int away = -1;  // the processor that they are kept off
};
