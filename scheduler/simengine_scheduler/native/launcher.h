// The launcher: the driver's calls on the streams of a run, and the log of them. Threads may make these calls.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "driver_calls.h"
#include "launch_threads.h"

namespace issue {

enum Outcome { DONE, FOREIGN, FAILED };  // FOREIGN: the next call has no function
enum Kind { ISSUED, WAITED, OBSERVED };  // entries of the log

class Launcher {
  public:
    // With `threads` above 0, so many threads make the driver's calls on streams, from when at least `many` launches follow
    // each other to the end of the run. `settle` must then follow before anything changes that was issued.
    Launcher(const Driver& driver, int32_t streams, int32_t threads, int64_t many)
        : streams_(streams), handles_(streams), used_(streams), driver_(driver), many_(many),
          threads_(threads > 0 ? std::make_unique<LaunchThreads>(driver, threads) : nullptr) {}

    std::vector<Call> calls;
    std::vector<Call> graphs;  // of several calls, by numbers below 0, from -1 down
    std::vector<int64_t> log;  // triples: kind, position of the call in its run, stream
    int status = 0;            // of the driver's function that failed
    int64_t at = 0;            // position of the call that is issued, or that failed
    int32_t number = 0;        // of the same call, or of a graph

    const Call& call_of(int32_t which) const { return which < 0 ? graphs[-1 - which] : calls[which]; }

    // The number of the call that the issuer was at: of a graph, of its last one.
    int32_t named() const { return number < 0 ? call_of(number).last : number; }

    int64_t current() const { return handles_[stream_]; }  // handle of the stream used last

    // Launches a call on a stream, without a look at hazards.
    Outcome launch_on(int32_t which, int64_t handle) {
        const Call& call = calls[which];
        number = which;
        if (!call.function) return FOREIGN;
        return launch_now(call, handle) ? DONE : FAILED;
    }

    bool record_on(int64_t event, int64_t handle) { return check(driver_.record(event, handle)); }

    // Waits until threads have made all calls. Returns whether none has failed.
    bool settle() { return !is_threaded_ || threads_->settle() || fail(); }

    // Whether an event has completed: 1, 0, or -1 for an error.
    int query(int64_t event) {
        if (is_threaded_) {
            if (threads_->status()) return settle() ? 0 : -1;
            threads_->rest();
            if (!threads_->has_recorded(event)) return 0;
        }
        int answer = driver_.query(event);
        if (answer == NOT_READY) return 0;
        return check(answer) ? 1 : -1;
    }

    // Launches calls on one stream, in order.
    Outcome serial(const int32_t* numbers, int64_t count, int64_t* done, int64_t handle) {
        for (; *done < count; ++*done)
            if (Outcome outcome = launch_on(numbers[*done], handle); outcome != DONE) return outcome;
        return DONE;
    }

  protected:
    // Begins a run on streams. All but the first wait for event `fork`, which is recorded on the first.
    bool begin_launches(const int64_t* handles, int64_t fork, const int64_t* events, int64_t num_events, bool logs) {
        handles_.assign(handles, handles + streams_);
        used_.assign(streams_, false);
        used_[0] = true;
        fork_ = fork;
        free_.assign(events, events + num_events);
        logs_ = logs;
        log.clear();
        at = 0;
        is_threaded_ = false;
        return streams_ == 1 || record(fork, 0);
    }

    bool check(int answer) {
        status = answer;
        return answer == 0;
    }

    void note(Kind kind, int64_t position, int32_t stream) {
        if (logs_) log.insert(log.end(), {kind, position, stream});
    }

    // Whether the issuer launches a call itself.
    static bool is_own(const Call& call) { return call.function || call.graph; }

    // Says that so many launches follow each other now, so that threads may be worth their hand-over.
    void expect(int64_t launches) {
        if (is_threaded_ || !threads_ || launches < many_ || handles_[0] == OF_THREAD) return;
        is_threaded_ = true;
        threads_->begin();
    }

    // Launches a call on a stream of the run.
    bool launch(const Call& call, int32_t stream) {
        if (!is_threaded_) return launch_now(call, handles_[stream]);
        threads_->launch(stream, handles_[stream], call, at, number);
        return goes_well();
    }

    bool record(int64_t event, int32_t stream) {
        if (!is_threaded_) return check(driver_.record(event, handles_[stream]));
        threads_->record(stream, handles_[stream], event, at, number);
        return goes_well();
    }

    bool wait(int32_t stream, int64_t event) {
        if (!is_threaded_) return check(driver_.wait(handles_[stream], event, 0));
        threads_->wait(stream, handles_[stream], event, at, number);
        return goes_well();
    }

    bool use(int32_t stream) {
        if (used_[stream]) return true;
        used_[stream] = true;
        return wait(stream, fork_);
    }

    int64_t take_event() {
        const int64_t event = free_.back();
        free_.pop_back();
        return event;
    }

    int32_t streams_;
    std::vector<int64_t> handles_, free_;  // streams, and events that no call in flight has
    std::vector<bool> used_;
    int64_t fork_ = 0;
    bool logs_ = false;
    int32_t stream_ = 0;  // of the call that is being issued

  private:
    static constexpr int64_t OF_THREAD = 2;  // the handle of CUDA's default stream that each thread has for itself

    bool launch_now(const Call& call, int64_t handle) {
        if (call.graph) return check(driver_.launch_graph(call.graph, handle));
        const unsigned* s = call.size;
        return check(
            driver_.launch(call.function, s[0], s[1], s[2], s[3], s[4], s[5], s[6], handle, call.arguments, 0));
    }

    bool goes_well() { return !threads_->status() || settle(); }

    // Notes which call has failed.
    bool fail() {
        at = threads_->failed_at();
        number = threads_->failed_number();
        return check(threads_->status());
    }

    const Driver driver_;
    const int64_t many_;
    const std::unique_ptr<LaunchThreads> threads_;
    bool is_threaded_ = false;  // whether threads make the present calls of the run
};

}  // namespace issue
