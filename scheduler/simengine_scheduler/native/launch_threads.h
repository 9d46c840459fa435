// Launch threads: they make the driver's calls, while the issuer finds out what comes next.
//
//     issuer --launches, records, waits--> queue of thread 0 --> driver    streams 0, N, 2N, ...
//                                          queue of thread 1 --> driver    streams 1, N + 1, ...
//
// Invariants
//   1. A stream belongs to one thread, so what is put on it stays in order.
//   2. A stream is made to wait for an event only once the event's record has been made, maybe by another thread. An entry
//      only waits for entries that were queued before it, so threads cannot block each other in a circle.
//   3. An event is recorded anew only once all waits for its earlier record have been made.
//   4. A thread that has had nothing to do for a while sleeps. Then its queue is empty, and the issuer makes its calls.
//   5. After a failure nothing more is called. The failure of the earliest call counts.
//   6. The issuer settles before it returns to its caller: nothing is queued then, so arguments may change.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

#include "driver_calls.h"

namespace issue {

class LaunchThreads {
  public:
    LaunchThreads(const Driver& driver, int32_t count) : driver_(driver) {
        for (int32_t i = 0; i < count; ++i) workers_.emplace_back();
    }

    ~LaunchThreads() {
        for (Worker& own : workers_) {
            if (!own.thread.joinable()) continue;
            {
                std::lock_guard<std::mutex> lock(own.mutex);
                own.stops = true;
            }
            own.changed.notify_one();
            own.thread.join();
        }
    }

    // Begins to make calls of a run, with nothing queued.
    void begin() {
        status_ = 0;
        if (driver_.get_context) driver_.get_context(&context_);
        for (Worker& own : workers_) wake(own);
    }

    // Puts a call on a stream, given its number among the streams and its handle. `at` and `number` say which call it is if
    // it fails.
    void launch(int32_t stream, int64_t handle, const Call& call, int64_t at, int32_t number) {
        put(stream, {Entry::LAUNCH, number, at, handle, 0, nullptr, 0, call});
    }

    void record(int32_t stream, int64_t handle, int64_t event, int64_t at, int32_t number) {
        Event& own = events_[event];
        for (const auto& [worker, entry] : own.waits) await(*worker, entry);
        own.waits.clear();
        own.worker = put(stream, {Entry::RECORD, number, at, handle, event, nullptr, 0, {}});
        own.entry = own.worker ? own.worker->pushed.load(std::memory_order_relaxed) : 0;
    }

    void wait(int32_t stream, int64_t handle, int64_t event, int64_t at, int32_t number) {
        Event& own = events_[event];
        const Worker* before = has_made(own) || own.worker == &of(stream) ? nullptr : own.worker;
        Worker* worker = put(stream, {Entry::WAIT, number, at, handle, event, before, own.entry, {}});
        if (worker) own.waits.push_back({worker, worker->pushed.load(std::memory_order_relaxed)});
    }

    // Whether the latest record of an event has been made.
    bool has_recorded(int64_t event) const {
        const auto known = events_.find(event);
        return known == events_.end() || has_made(known->second);
    }

    // Leaves the driver to the threads for a moment, as long as something is queued: it serves one caller at a time.
    void rest() const {
        const auto is_busy = [](const Worker& own) { return own.made.load(std::memory_order_relaxed) != own.pushed; };
        if (std::none_of(workers_.begin(), workers_.end(), is_busy)) return;
        for (int times = 0; times < RESTS;) pause(times);
    }

    // Waits until nothing is queued. Returns whether all has gone well since the run began.
    bool settle() {
        for (const Worker& own : workers_) await(own, own.pushed.load(std::memory_order_relaxed));
        return status_ == 0;
    }

    // What the driver returned to the earliest call that failed, or 0; and once all has settled, which call that was.
    int status() const { return status_; }
    int64_t failed_at() const { return failed_at_; }
    int32_t failed_number() const { return failed_number_; }

  private:
    static constexpr uint64_t ROOM = 1024;  // entries of a queue
    static constexpr int PAUSES = 4096;     // of a thread that waits, until it lets others have its processor
    static constexpr int RESTS = 16;        // of the issuer before it asks the driver while threads are at work
    static constexpr auto PATIENCE = std::chrono::milliseconds(2);  // until a thread sleeps that has nothing to do

    struct Worker;

    struct Entry {
        enum Kind : int32_t { LAUNCH, RECORD, WAIT } kind;
        int32_t number;
        int64_t at, stream, event;
        const Worker* before;  // whose entries must have been made up to a number, or null
        uint64_t entry;        // this number
        Call call;
    };

    // A thread and its queue. Entries are numbered from 1 on.
    struct Worker {
        std::vector<Entry> queue{ROOM};
        alignas(64) std::atomic<uint64_t> pushed{0};
        alignas(64) std::atomic<uint64_t> made{0};
        alignas(64) std::atomic<bool> awake{false};
        std::mutex mutex;
        std::condition_variable changed;
        bool is_called = false, stops = false;
        int64_t context = 0;  // that is current in the thread
        std::thread thread;
    };

    // The latest record of an event, null if the issuer made it, and the waits for it.
    struct Event {
        const Worker* worker = nullptr;
        uint64_t entry = 0;
        std::vector<std::pair<const Worker*, uint64_t>> waits;
    };

    static void pause(int& times) {
        if (++times % PAUSES == 0) return std::this_thread::yield();
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }

    static void await(const Worker& own, uint64_t entry) {
        for (int times = 0; own.made.load(std::memory_order_acquire) < entry;) pause(times);
    }

    static bool has_made(const Event& own) {
        return !own.worker || own.worker->made.load(std::memory_order_acquire) >= own.entry;
    }

    Worker& of(int32_t stream) { return workers_[stream % workers_.size()]; }

    void wake(Worker& own) {
        if (own.awake) return;
        if (!own.thread.joinable()) {
            try {
                own.thread = std::thread([this, &own] { work(own); });
            } catch (const std::system_error&) {  // there are too many: the issuer goes on by itself
            }
            return;
        }
        {
            std::lock_guard<std::mutex> lock(own.mutex);
            own.is_called = true;
        }
        own.changed.notify_one();
    }

    // Queues an entry, and returns the thread; or makes it at once if the thread sleeps, and returns null.
    Worker* put(int32_t stream, const Entry& entry) {
        Worker& own = of(stream);
        const uint64_t pushed = own.pushed.load(std::memory_order_relaxed);
        if (!own.awake && own.made.load(std::memory_order_acquire) == pushed) {
            make(entry);
            return nullptr;
        }
        if (pushed >= ROOM) await(own, pushed - ROOM + 1);
        own.queue[pushed % ROOM] = entry;
        own.pushed = pushed + 1;  // before it is looked whether the thread is awake, which looks at this before it sleeps
        wake(own);
        return &own;
    }

    void work(Worker& own) {
        own.awake = true;
        for (uint64_t next = own.made;;) {
            if (!has_more(own, next)) {
                if (!sleep(own, next)) return;
                continue;
            }
            if (own.context != context_) driver_.set_context(own.context = context_);
            make(own.queue[next % ROOM]);
            own.made.store(++next, std::memory_order_release);
        }
    }

    // Waits for a while until there is an entry. Returns whether there is one.
    static bool has_more(const Worker& own, uint64_t next) {
        if (own.pushed.load(std::memory_order_acquire) != next) return true;
        const auto began = std::chrono::steady_clock::now();
        for (int times = 0; own.pushed.load(std::memory_order_acquire) == next;) {
            pause(times);
            if (times % 64 == 0 && std::chrono::steady_clock::now() - began > PATIENCE) return false;
        }
        return true;
    }

    // Sleeps until it is called. Returns false at the end.
    static bool sleep(Worker& own, uint64_t next) {
        std::unique_lock<std::mutex> lock(own.mutex);
        own.awake = false;
        if (own.pushed == next) own.changed.wait(lock, [&] { return own.is_called || own.stops; });
        own.is_called = false;
        own.awake = true;
        return !own.stops;
    }

    // Makes the driver's call.
    void make(const Entry& own) {
        if (own.before) await(*own.before, own.entry);
        if (status_) return;
        const Call& call = own.call;
        const unsigned* s = call.size;
        int answer = 0;
        if (own.kind == Entry::WAIT)
            answer = driver_.wait(own.stream, own.event, 0);
        else if (own.kind == Entry::RECORD)
            answer = driver_.record(own.event, own.stream);
        else if (call.graph)
            answer = driver_.launch_graph(call.graph, own.stream);
        else
            answer = driver_.launch(call.function, s[0], s[1], s[2], s[3], s[4], s[5], s[6], own.stream, call.arguments, 0);
        if (!answer) return;
        std::lock_guard<std::mutex> lock(failing_);
        if (status_ && failed_at_ <= own.at) return;
        failed_at_ = own.at;
        failed_number_ = own.number;
        status_ = answer;
    }

    const Driver driver_;
    std::deque<Worker> workers_;
    std::unordered_map<int64_t, Event> events_;
    int64_t context_ = 0;  // of the run
    std::atomic<int> status_{0};
    std::mutex failing_;
    int64_t failed_at_ = 0;
    int32_t failed_number_ = 0;
};

}  // namespace issue
