// The launcher: the driver's calls on the streams of a run, and the log of them.
#pragma once
#include <cstdint>
#include <vector>

#include "driver_calls.h"

namespace issue {

enum Outcome { DONE, FOREIGN, FAILED };  // FOREIGN: the next call has no function
enum Kind { ISSUED, WAITED, OBSERVED };  // entries of the log

class Launcher {
  public:
    Launcher(const Driver& driver, int32_t streams)
        : driver_(driver), streams_(streams), handles_(streams), used_(streams) {}

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
        return launch(call, handle) ? DONE : FAILED;
    }

    bool record_on(int64_t event, int64_t handle) { return check(driver_.record(event, handle)); }

    // Whether an event has completed: 1, 0, or -1 for an error.
    int query(int64_t event) {
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
        return streams_ == 1 || check(driver_.record(fork, handles[0]));
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

    bool launch(const Call& call, int64_t handle) {
        if (call.graph) return check(driver_.launch_graph(call.graph, handle));
        const unsigned* s = call.size;
        return check(
            driver_.launch(call.function, s[0], s[1], s[2], s[3], s[4], s[5], s[6], handle, call.arguments, 0));
    }

    bool use(int32_t stream) {
        if (used_[stream]) return true;
        used_[stream] = true;
        return check(driver_.wait(handles_[stream], fork_, 0));
    }

    int64_t take_event() {
        const int64_t event = free_.back();
        free_.pop_back();
        return event;
    }

    Driver driver_;
    int32_t streams_;
    std::vector<int64_t> handles_, free_;  // streams, and events that no call in flight has
    std::vector<bool> used_;
    int64_t fork_ = 0;
    bool logs_ = false;
    int32_t stream_ = 0;  // of the call that is being issued
};

}  // namespace issue
