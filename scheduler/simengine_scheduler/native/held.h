// Held calls: those of a run that must come after what is in flight, directly or behind others that must.
//
//     in flight    a b c d                  as one piece, e f g h begins once d has ended, since g comes after d.
//     a run        e f g h                  as two pieces, e f runs beside a b c d, and g h comes after both
//                      └ after d and f
//
// Another piece is another launch. So a run becomes two only where few emitters leave the host time for it, and where the
// held calls are a shorter chain than the whole run.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "issuer.h"

namespace issue {

class Held {
  public:
    static constexpr int64_t FEW = 4;  // emitters of a run of the executor whose calls may become two pieces

    // Begins a batch.
    void begin(const Issuer& issuer) {
        ++batch_;
        touched_.resize(issuer.hazards.segments());
    }

    // Moves the calls of a run that are not held to its front, if this leaves a shorter chain. Returns how many these are;
    // otherwise all. `run` has the places of its calls in the batch, which stay in order on both sides.
    size_t sort(const Issuer& issuer, const int32_t* numbers, std::vector<int64_t>& run) {
        ++run_;
        held_.clear();
        int32_t whole = 0, rest = 0;
        for (int64_t place : run) {
            const int32_t combination = issuer.calls[numbers[place]].combination;
            const Chains own = look(issuer, combination);
            whole = std::max(whole, own.all);
            rest = std::max(rest, own.held);
            held_.push_back(own.held > 0);
            note(issuer, combination, own);
        }
        if (rest == 0 || rest >= whole) return run.size();
        size_t front = 0;
        sorted_.clear();
        for (size_t i = 0; i < run.size(); ++i)
            if (!held_[i]) sorted_.push_back(run[i]);
        front = sorted_.size();
        for (size_t i = 0; i < run.size(); ++i)
            if (held_[i]) sorted_.push_back(run[i]);
        run = sorted_;
        return front;
    }

  private:
    // The longest chain of calls that ends with a call: of all calls of its run, and of held ones. The latter is 0 if the
    // call is not held itself.
    struct Chains {
        int32_t all = 0, held = 0;

        void extend(const Chains& other) {
            all = std::max(all, other.all);
            held = std::max(held, other.held);
        }
    };

    // What has touched a segment: in earlier runs of the batch, and in the present run.
    struct Touched {
        int64_t batch = 0, run = 0;
        bool is_read = false, is_written = false;  // before the present run
        Chains reader, writer;                     // of the present run
    };

    Touched& at(int32_t segment) {
        Touched& own = touched_[segment];
        if (own.batch != batch_) {
            own = {};
            own.batch = batch_;
        }
        if (own.run != run_) {
            own.is_read |= own.reader.all > 0;
            own.is_written |= own.writer.all > 0;
            own.reader = own.writer = {};
            own.run = run_;
        }
        return own;
    }

    Chains look(const Issuer& issuer, int32_t combination) {
        Chains found;
        bool held = issuer.hazards.has_upstream(combination);
        const auto behind_writer = [&](int32_t segment) {
            const Touched& own = at(segment);
            held |= own.is_written;
            found.extend(own.writer);
        };
        issuer.hazards.each_conflict(combination, behind_writer, [&](int32_t segment) {
            behind_writer(segment);
            held |= at(segment).is_read;
            found.extend(at(segment).reader);
        });
        held |= found.held > 0;
        return {found.all + 1, held ? found.held + 1 : 0};
    }

    void note(const Issuer& issuer, int32_t combination, const Chains& own) {
        issuer.hazards.each_segment(
            combination, [&](int32_t segment) { at(segment).reader.extend(own); },
            [&](int32_t segment) { at(segment).writer.extend(own); });
    }

    int64_t batch_ = 0, run_ = 0;     // the present ones
    std::vector<Touched> touched_;    // by segment
    std::vector<bool> held_;          // of the present run
    std::vector<int64_t> sorted_;
};

}  // namespace issue
