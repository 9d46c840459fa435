// Plans of lists that are run again and again: the issuer finds hazards, streams and waits once.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "issuer.h"

namespace issue {

// One entry of a plan: a wait, a launch or a record on a stream.
struct Step {
    enum { WAIT, LAUNCH, RECORD } kind;
    int32_t stream;
    int64_t what;  // wait and record: number of the event; launch: position of the call
    int64_t call;  // launch: number of the call; wait: position of the call that is waited for
};

struct Plan {
    std::vector<Step> steps;
    int64_t calls = 0, events = 0, asked = 0, needed = 0;
};

// Plans lists that take turns, call by call, as if no call ended meanwhile.
inline Plan* Issuer::plan(const int32_t* const* lists, const int64_t* lengths, int64_t count) {
    Streams tracks(streams_, policy_);
    Plan* made = new Plan;
    std::vector<int64_t> event_of;  // of each call: the number of its event, or -1 if no other stream waits for it
    hazards.begin(next_);
    Seq first = next_;
    std::vector<int64_t> turns(count);  // lists that have calls left
    for (int64_t i = 0; i < count; ++i) turns[i] = i;
    for (int64_t round = 0; !turns.empty(); ++round) {
        turns.erase(std::remove_if(turns.begin(), turns.end(), [&](int64_t l) { return lengths[l] <= round; }),
                    turns.end());
        for (int64_t list : turns) {
            const int32_t number = lists[list][round];
            const int64_t position = next_ - first;
            const auto& upstream = hazards.add(next_++, calls[number].combination);
            positions_.clear();
            for (Seq other : upstream) positions_.push_back(other - first);
            const int32_t stream = tracks.choose(positions_);
            for (Seq other : tracks.waits(positions_, stream)) {
                if (event_of[other] < 0) event_of[other] = made->events++;
                made->steps.push_back({Step::WAIT, stream, event_of[other], other});
            }
            made->steps.push_back({Step::LAUNCH, stream, position, number});
            tracks.put(position, stream);
            event_of.push_back(-1);
        }
    }
    made->calls = next_ - first;
    made->asked = tracks.asked;
    made->needed = tracks.needed;
    std::vector<Step> marked;  // with a record behind each call that others wait for
    for (const Step& step : made->steps) {
        marked.push_back(step);
        if (step.kind == Step::LAUNCH && event_of[step.what] >= 0)
            marked.push_back({Step::RECORD, step.stream, event_of[step.what], 0});
    }
    made->steps.swap(marked);
    return made;
}

// Issues a plan, after `begin` with as many events as the plan has. `done` is how many steps have been made already.
inline Outcome Issuer::issue_plan(const Plan& plan, int64_t* done) {
    follows_plan_ = true;
    expect(plan.calls);
    for (; *done < static_cast<int64_t>(plan.steps.size()); ++*done) {
        const Step& step = plan.steps[*done];
        stream_ = step.stream;
        if (step.kind == Step::WAIT) {
            if (!use(stream_) || !wait(stream_, free_[step.what])) return FAILED;
            note(WAITED, step.call, stream_);
        } else if (step.kind == Step::RECORD) {
            if (!record(free_[step.what], stream_)) return FAILED;
        } else {
            at = step.what;
            number = static_cast<int32_t>(step.call);
            if (!use(stream_)) return FAILED;
            note(ISSUED, at, stream_);
            const Call& call = calls[step.call];
            if (!call.function) return FOREIGN;
            if (!launch(call, stream_)) return FAILED;
        }
    }
    return DONE;
}

}  // namespace issue
