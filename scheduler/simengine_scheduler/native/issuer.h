// The issuer: takes numbers of calls, finds what each must come after, and makes the driver's calls.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "hazards.h"
#include "launcher.h"
#include "marks.h"
#include "polling.h"
#include "streams.h"

namespace issue {

struct Plan;  // of lists; see plans.h

class Issuer : public Launcher {
  public:
    static constexpr int64_t MANY = 24;  // launches that follow each other, from which on threads gain

    // With `polling` a call is issued as polling.h has it, with or without chains. Otherwise streams wait for others.
    Issuer(const Driver& driver, int32_t streams, int32_t window, int32_t policy, bool polling, bool chains = false,
           int32_t threads = 0, int64_t many = MANY)
        : Launcher(driver, streams, threads, many), window_(window), polling_(polling), policy_(policy), polled_(chains),
          tracks_(streams, policy) {}

    Hazards hazards;
    int64_t asked() const { return tracks_.asked; }
    int64_t needed() const { return tracks_.needed; }
    bool polls() const { return polling_; }

    // Begins a run on these streams. What the first of them holds comes before the run: the others wait for event
    // `fork`, which is recorded on it, before they are used.
    bool begin(const int64_t* handles, int64_t fork, const int64_t* events, int64_t num_events, bool logs) {
        follows_plan_ = false;
        tracks_.begin(0);
        marks_.begin(streams_);
        ahead_.clear();
        taken_ = 0;
        awaited_.clear();
        first_ = next_;
        hazards.begin(first_);
        flying_.clear();
        in_flight_ = kept_from_ = 0;
        polled_.begin(streams_);
        return begin_launches(handles, fork, events, num_events, logs);
    }

    // Lets the first stream wait for the others, once all calls have been issued. `events` has one for each stream.
    bool join(const int64_t* events) {
        for (int32_t stream = 1; stream < streams_; ++stream) {
            if (!used_[stream] || has_joined(stream)) continue;
            const int64_t* last = follows_plan_ ? nullptr : event_behind(stream);
            if (!last && !record(events[stream], stream)) return false;
            if (!wait(0, last ? *last : events[stream])) return false;
        }
        return true;
    }

    // Lets the host learn early of the end of a call that it will await, by its position in the run. Call it before the
    // call is issued.
    void will_await(int64_t position) { awaited_.push_back(position); }

    // Issues calls and graphs as soon as the window can take them. `done` is how many have been issued already.
    Outcome issue(const int32_t* numbers, int64_t count, int64_t* done) {
        if (!polling_) expect(count - *done);
        while (*done < count) {
            if (polling_) {
                if (Outcome outcome = admit(numbers[*done]); outcome != DONE) return outcome;
                ++*done;
                continue;
            }
            if (taken_ == ahead_.size()) look_ahead(numbers + *done, std::min<int64_t>(count - *done, AHEAD));
            for (; taken_ < ahead_.size(); ++*done)
                if (Outcome outcome = issue_next(); outcome != DONE) return outcome;
        }
        return DONE;
    }

    // Calls of the run before this position have ended and are forgotten.
    int64_t kept_from() const { return kept_from_; }

    // How many calls have been issued and are not known to have ended.
    int64_t in_flight() const { return in_flight_; }

    // The position of the next call in its run.
    int64_t next_position() const { return next_ - first_; }

    // The stream of a call in flight, or a number of its own where streams do not tell which calls have ended.
    int64_t stream_of(int64_t position) {
        if (polling_ || !hazards.is_live(first_ + position)) return streams_ + position;
        return tracks_.at(position).stream;
    }

    // With polling: looks once at each stream, and issues what has become ready.
    bool progress() { return !polling_ || (observe() && issue_ready()); }

    // With polling: goes on until all calls have been issued.
    Outcome drain() {
        while (polled_.has_unissued())
            if (!progress()) return FAILED;
        return DONE;
    }

    // Notes that the call was launched that the issuer is at. Call it after a call without a function was launched.
    bool issued() {
        if (polling_) {
            const int64_t event = take_event();
            polled_.issued(at, stream_, event);
            return record(event, stream_);
        }
        marks_.launched(stream_, at);
        flying_.push_back(at);
        ++in_flight_;
        const bool marked = ahead_[taken_++].marked;
        return !(marked || marks_.unmarked(stream_) >= MARK_EVERY) || mark(stream_);
    }

    // Whether a call is known to be complete, or is found to be so: 1, 0, or -1 for an error.
    int complete(int64_t position) {
        if (!hazards.is_live(first_ + position)) return 1;
        if (polling_) return 0;
        const int32_t stream = tracks_.at(position).stream;
        if (!marks_.behind(stream, position) && !mark(stream)) return -1;
        const Mark behind = *marks_.behind(stream, position);
        const int answer = query(behind.event);
        if (answer == 1) retire(stream, behind.position);
        return answer;
    }

    Plan* plan(const int32_t* const* lists, const int64_t* lengths, int64_t count);
    Outcome issue_plan(const Plan& plan, int64_t* done);

    // Checks calls in a window that is full, whose oldest call ends when the next comes. Writes how many calls each
    // must come after to `sizes`, and these calls, by position, to `found`; either may be null.
    void check_only(const int32_t* numbers, int64_t count, int64_t window, int32_t* sizes,
                    std::vector<int64_t>* found) {
        hazards.begin(next_);
        for (int64_t i = 0; i < count; ++i) {
            if (i >= window) hazards.remove(next_ + i - window);
            const auto& upstream = hazards.add(next_ + i, calls[numbers[i]].combination);
            if (sizes) sizes[i] = static_cast<int32_t>(upstream.size());
            if (found)
                for (Seq other : upstream) found->push_back(other - next_);
        }
        next_ += count;
    }

  private:
    const std::vector<Seq>& positions(const std::vector<Seq>& upstream) {
        positions_.clear();
        for (Seq other : upstream) positions_.push_back(other - first_);
        return positions_;
    }

    // Finds hazards, streams and waits of some calls, before the first of them is issued. So it is known which of them
    // need an event behind them.
    void look_ahead(const int32_t* numbers, int64_t count) {
        forget_ended();
        ahead_.clear();
        waits_.clear();
        taken_ = 0;
        ahead_from_ = next_ - first_;
        for (int64_t i = 0; i < count; ++i) {
            const auto& upstream = hazards.add(next_++, call_of(numbers[i]).combination);
            const int32_t stream = tracks_.choose(positions(upstream));
            for (Seq other : tracks_.waits(positions_, stream)) {
                waits_.push_back(other);
                if (other >= ahead_from_) ahead_[other - ahead_from_].marked = true;
            }
            tracks_.put(ahead_from_ + i, stream);
            ahead_.push_back({numbers[i], stream, waits_.size(), false});
        }
        const auto is_ahead = [&](int64_t position) { return position < ahead_from_ + count; };
        for (int64_t position : awaited_)
            if (is_ahead(position)) ahead_[position - ahead_from_].marked = true;
        awaited_.erase(std::remove_if(awaited_.begin(), awaited_.end(), is_ahead), awaited_.end());
    }

    // Issues the next of the calls that were looked at.
    Outcome issue_next() {
        const Ahead& own = ahead_[taken_];
        at = ahead_from_ + static_cast<int64_t>(taken_);
        number = own.which;
        if (!taken_ && !mark_earlier()) return FAILED;
        if (!make_room()) return FAILED;
        stream_ = own.stream;
        if (!use(stream_)) return FAILED;
        for (size_t i = taken_ ? ahead_[taken_ - 1].waits_end : 0; i < own.waits_end; ++i) {
            const int64_t other = waits_[i];
            if (!hazards.is_live(first_ + other)) continue;
            const Mark* behind = marks_.behind(tracks_.at(other).stream, other);
            if (!wait(stream_, behind->event)) return FAILED;
            note(WAITED, other, stream_);
        }
        note(ISSUED, at, stream_);
        const Call& call = call_of(number);
        if (!is_own(call)) return FOREIGN;
        return launch(call, stream_) && issued() ? DONE : FAILED;
    }

    // Marks calls that were issued before, and that calls which were looked at must wait for, while they are still the
    // last of their streams.
    bool mark_earlier() {
        for (int64_t other : waits_) {
            if (other >= ahead_from_ || !hazards.is_live(first_ + other)) continue;
            const int32_t stream = tracks_.at(other).stream;
            if (!marks_.behind(stream, other) && !mark(stream)) return false;
        }
        return true;
    }

    // Whether all calls of a stream have ended, or the first stream waits for them in any case.
    bool has_joined(int32_t stream) const {
        if (follows_plan_) return false;
        return polling_ ? !polled_.last_of(stream) : marks_.none(stream) || tracks_.is_behind(0, stream);
    }

    // The event behind the last call of a stream; null if none is there.
    const int64_t* event_behind(int32_t stream) const {
        if (polling_) return &polled_.last_of(stream)->event;
        return marks_.unmarked(stream) ? nullptr : &marks_.last(stream)->event;
    }

    // Records an event behind what a stream has.
    bool mark(int32_t stream) {
        const int64_t event = take_event();
        marks_.add(stream, event);
        return record(event, stream);
    }

    // Waits until the window can take a call: for the oldest call in flight.
    bool make_room() {
        while (in_flight_ >= window_) {
            int64_t oldest = flying_.front();
            int answer = 0;
            while (hazards.is_live(first_ + oldest) && (answer = complete(oldest)) == 0) {}
            if (answer < 0) return false;
            flying_.pop_front();
        }
        return true;
    }

    // With polling: takes a call into the window.
    Outcome admit(int32_t own) {
        forget_ended();
        const int64_t position = at = next_ - first_;
        number = own;
        while (static_cast<int32_t>(polled_.size()) >= window_)
            if (!progress()) return FAILED;
        const bool launches = is_own(call_of(own));
        polled_.add(position, own, launches, positions(hazards.add(next_, call_of(own).combination)));
        ++next_;
        if (launches) {
            if (!issue_ready()) return FAILED;
            at = position;  // calls that came before may have been issued now
            number = own;
            return DONE;
        }
        while (polled_.place_of(position) == Polling::NONE)  // the caller launches it, once it may be issued
            if (!progress()) return FAILED;
        return start(position, polled_.place_of(position)) ? FOREIGN : FAILED;
    }

    // With polling: begins to issue a call.
    bool start(int64_t position, int32_t stream) {
        at = position;
        number = polled_.number_of(position);
        stream_ = stream;
        if (!use(stream)) return false;
        note(ISSUED, position, stream);
        return true;
    }

    // With polling: issues calls that may be issued, the oldest first.
    bool issue_ready() {
        int32_t stream;
        for (int64_t position; (position = polled_.next(&stream)) != Polling::NONE;)
            if (!start(position, stream) || !launch(call_of(number), stream) || !issued()) return false;
        return true;
    }

    // With polling: looks once at each stream, and notes calls that have ended.
    bool observe() {
        for (int32_t stream = 0; stream < streams_; ++stream)
            while (const Polling::Running* first = polled_.first_of(stream)) {
                const int answer = query(first->event);
                if (answer < 0) return false;
                if (!answer) break;
                hazards.remove(first_ + first->position);
                free_.push_back(first->event);
                note(OBSERVED, first->position, stream);
                polled_.ended(stream);
            }
        return true;
    }

    // Keeps the memory of a long run small.
    void forget_ended() {
        if (next_ - first_ - kept_from_ < 65536) return;
        if (polling_) {
            kept_from_ = polled_.oldest(next_ - first_);
            hazards.forget_before(first_ + kept_from_);
            return;
        }
        while (!flying_.empty() && !hazards.is_live(first_ + flying_.front())) flying_.pop_front();
        kept_from_ = flying_.empty() ? next_ - first_ : flying_.front();
        hazards.forget_before(first_ + kept_from_);
        tracks_.forget_before(kept_from_);
    }

    // Removes the calls of a stream from the window, up to one that was found to have ended.
    void retire(int32_t stream, int64_t last) {
        const auto ended = [&](int64_t position) {
            hazards.remove(first_ + position);
            tracks_.ended(position);
            note(OBSERVED, position, stream);
            --in_flight_;
        };
        marks_.end(stream, last, ended, [&](int64_t event) { free_.push_back(event); });
    }

    static constexpr int64_t AHEAD = 32;     // calls that are looked at together
    static constexpr int64_t MARK_EVERY = 4;  // calls of a stream, so that a full window need not wait for many

    // A call that was looked at.
    struct Ahead {
        int32_t which, stream;
        size_t waits_end;  // behind the last of its waits; they begin where those of the call before it end
        bool marked;       // whether an event must be recorded behind it
    };

    int32_t window_;
    bool polling_;
    int32_t policy_;
    Polling polled_;
    Streams tracks_;
    Marks marks_;
    std::vector<Ahead> ahead_;          // calls that were looked at,
    size_t taken_ = 0;                  // how many of them have been issued,
    int64_t ahead_from_ = 0;            // and the position of the first
    std::vector<int64_t> waits_;        // of these: positions of calls on other streams
    std::vector<int64_t> awaited_;      // positions of calls that the host awaits
    Seq first_ = 0, next_ = 0;          // numbers of calls: the first of the run, and the following one
    bool follows_plan_ = false;         // whether calls of the run were issued by a plan
    std::deque<int64_t> flying_;        // positions of calls that may be in flight, oldest first
    int64_t in_flight_ = 0;
    int64_t kept_from_ = 0;             // calls before this position are forgotten
    std::vector<Seq> positions_;
};

}  // namespace issue
