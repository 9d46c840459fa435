// Programs: lists of which counts choose the calls. They take turns, call by call, as emitters do.
//
//     program:  call  call  await  call  counted  counted  call        a counted entry has a call for each count,
//                        └ until the call has ended, others go on      and none if the count is 0
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "issuer.h"
#include "pieces.h"

namespace issue {

struct Entry {
    enum Kind : int32_t { CALL, COUNTED, AWAIT };
    int32_t kind;
    int32_t what;          // number of the call, number of the table, or the entry of this program that is awaited
    const int32_t* count;  // of a counted entry: where its count is, in memory that kernels write
    int32_t* seen;         // of a counted entry: where the count that was found is written, or null
    const int64_t* rooms;  // of an awaiting entry: how many rooms there are, and for each the address of its counts,
                           // their number, and the address of the room for their sum; or null
    bool is_awaited = false;  // whether a later entry awaits it
};

using Program = std::vector<Entry>;

// How running ended. MISSING: a counted entry has no call for its count yet. ARRIVED: awaited calls have ended.
enum Pause { ENDED, FOREIGN_CALL, FAILED_CALL, MISSING, ARRIVED };

class Programs {
  public:
    explicit Programs(Issuer& issuer) : issuer_(issuer) {}

    std::vector<Program> programs;
    std::vector<std::vector<int32_t>> tables;  // for each count the number of a call, or -1
    std::vector<int32_t> arrived;              // turns of the run whose awaited call has ended
    int32_t turn = 0;                          // the one whose call is issued, or missing
    int32_t entry = 0, count = 0;              // where it is, and the count of a counted entry
    int64_t issued = 0;                        // calls of the run
    int64_t passed = 0;                        // waits of the run after which Python had nothing to do

    Issuer* issuer() const { return &issuer_; }

    int32_t add(const int64_t* words, int64_t entries) {
        Program made;
        for (int64_t i = 0; i < entries; ++i, words += 5)
            made.push_back({static_cast<int32_t>(words[0]), static_cast<int32_t>(words[1]),
                            reinterpret_cast<const int32_t*>(words[2]), reinterpret_cast<int32_t*>(words[3]),
                            reinterpret_cast<const int64_t*>(words[4])});
        for (const Entry& entry : made)
            if (entry.kind == Entry::AWAIT) made[entry.what].is_awaited = true;
        programs.push_back(std::move(made));
        return static_cast<int32_t>(programs.size()) - 1;
    }

    int32_t add_table() {
        tables.emplace_back();
        return static_cast<int32_t>(tables.size()) - 1;
    }

    void set(int32_t table, int32_t first, int32_t end, int32_t number) {
        std::vector<int32_t>& numbers = tables[table];
        if (end > static_cast<int32_t>(numbers.size())) numbers.resize(end, -1);
        std::fill(numbers.begin() + first, numbers.begin() + end, number);
    }

    void forget() {
        programs.clear();
        tables.clear();
    }

    // Begins a run. With `events`, one for each program, calls go to one stream in order. Without, they go to the streams of
    // the issuer, which has begun a run of its own, as pieces if there are some, which have begun one as well.
    void begin(const int32_t* chosen, int64_t number, int64_t handle, const int64_t* events, Pieces* pieces) {
        cursors_.clear();
        turns_.clear();
        blocked_.clear();
        arrived.clear();
        handle_ = handle;
        in_order_ = events != nullptr;
        one_by_one_ = in_order_ || issuer_.polls();
        if ((pieces_ = pieces)) pieces_->expect(number);
        issued = passed = done_ = units_ = 0;
        for (int64_t i = 0; i < number; ++i) {
            cursors_.push_back({&programs[chosen[i]], 0, events ? events[i] : 0, {}});
            cursors_.back().positions.assign(programs[chosen[i]].size(), -1);
            turns_.push_back(static_cast<int32_t>(i));
        }
    }

    Pause run() { return one_by_one_ ? run_calls() : run_batches(); }

    // Goes on behind a call that was issued by the caller.
    bool advance() {
        if (one_by_one_) return advance_call();
        ++done_;
        return true;
    }

    // Lets the programs go on whose awaited calls have ended.
    void resume() {
        for (int32_t each : arrived) {
            ++cursors_[each].at;
            turns_.push_back(each);
        }
        arrived.clear();
    }

    int32_t at(int32_t which) const { return cursors_[which].at; }

  private:
    enum { NONE = -1, AWAITING = -2, UNKNOWN = -3 };
    static constexpr int32_t POLL_EVERY = 16;
    static constexpr size_t BATCH = 64;   // calls that are issued together,
    static constexpr size_t PIECES = 512;  // and where they may be pieces

    struct Cursor {
        const Program* program;
        int32_t at;
        int64_t event;                   // behind its awaited call, if all calls go to one stream
        std::vector<int64_t> positions;  // of its calls in the run
    };

    // Issues the calls of all programs up to their waits, and so on.
    Pause run_batches() {
        for (;;) {
            if (done_ == units_) {
                if (gather() && numbers_.empty()) return MISSING;
                units_ = prepare();
                done_ = 0;
            }
            const Outcome outcome = pieces_ ? pieces_->issue(&done_) : issuer_.issue(numbers_.data(), units_, &done_);
            if (outcome == FAILED) return FAILED_CALL;
            if (outcome == FOREIGN) return FOREIGN_CALL;
            if (blocked_.empty()) {
                if (turns_.empty()) return ENDED;
                continue;
            }
            if (!poll()) return FAILED_CALL;
            if (!arrived.empty()) return ARRIVED;
        }
    }

    // Prepares the batch. Returns how many pieces and single calls it has.
    int64_t prepare() {
        const int64_t count = static_cast<int64_t>(numbers_.size());
        if (pieces_) {
            pieces_->divide(numbers_.data(), emitters_.data(), count, ends_.data());
            return pieces_->units();
        }
        for (int64_t i = 0; i < count; ++i)
            if (ends_[i]) issuer_.will_await(issuer_.next_position() + i);
        return count;
    }

    // Takes calls until all programs wait or have ended, or there are many. Returns whether one has a count without a call.
    bool gather() {
        numbers_.clear();
        emitters_.clear();
        ends_.clear();
        while (!turns_.empty() && numbers_.size() < (pieces_ ? PIECES : BATCH)) {
            turn = turns_.front();
            Cursor& own = cursors_[turn];
            const int32_t number = following(own);
            entry = own.at;
            if (number == UNKNOWN) return true;
            turns_.pop_front();
            if (number == AWAITING) blocked_.push_back(turn);
            if (number < 0) continue;
            numbers_.push_back(number);
            emitters_.push_back(turn);
            ends_.push_back((*own.program)[own.at].is_awaited);
            own.positions[own.at++] = issued++;
            turns_.push_back(turn);
        }
        return false;
    }

    // Issues call by call, on one stream or with polling.
    Pause run_calls() {
        for (int32_t since = 0;;) {
            while (!turns_.empty()) {
                turn = turns_.front();
                Cursor& own = cursors_[turn];
                int32_t number = following(own);
                if (number == NONE) {
                    turns_.pop_front();
                    continue;
                }
                if (number == AWAITING) {
                    turns_.pop_front();
                    blocked_.push_back(turn);
                    continue;
                }
                entry = own.at;
                if (number == UNKNOWN) return MISSING;
                int64_t none = 0;
                Outcome outcome = in_order_ ? issuer_.launch_on(number, handle_) : issuer_.issue(&number, 1, &none);
                if (outcome == FAILED) return FAILED_CALL;
                if (outcome == FOREIGN) return FOREIGN_CALL;
                if (!advance_call()) return FAILED_CALL;
                if (!blocked_.empty() && ++since >= POLL_EVERY) {
                    since = 0;
                    if (!poll()) return FAILED_CALL;
                    if (!arrived.empty()) return ARRIVED;
                }
            }
            if (blocked_.empty()) return ENDED;
            if (!poll()) return FAILED_CALL;
            if (!arrived.empty()) return ARRIVED;
        }
    }

    // Goes on behind a call of the present turn that was issued. A call that the caller has launched is noted first.
    bool advance_call() {
        Cursor& own = cursors_[turn];
        own.positions[own.at] = in_order_ ? issued : issuer_.at;
        if (in_order_ && (*own.program)[own.at].is_awaited && !issuer_.record_on(own.event, handle_)) return false;
        ++own.at;
        ++issued;
        turns_.pop_front();
        turns_.push_back(turn);
        return true;
    }

    // The number of the next call, passing over entries without one.
    int32_t following(Cursor& own) {
        for (; own.at < static_cast<int32_t>(own.program->size()); ++own.at) {
            const Entry& next = (*own.program)[own.at];
            if (next.kind == Entry::CALL) return next.what;
            if (next.kind == Entry::AWAIT) return AWAITING;
            int32_t found = *static_cast<const volatile int32_t*>(next.count);
            if (next.seen) *next.seen = found;
            if (found == 0) continue;
            const std::vector<int32_t>& numbers = tables[next.what];
            count = found;
            if (found < 0 || found >= static_cast<int32_t>(numbers.size()) || numbers[found] < 0) return UNKNOWN;
            return numbers[found];
        }
        return NONE;
    }

    // Whether what was counted has room, so that a program goes on by itself once its awaited call has ended.
    static bool has_room(const Entry& entry) {
        if (!entry.rooms) return false;
        const int64_t* words = entry.rooms + 1;
        for (int64_t i = 0; i < entry.rooms[0]; ++i, words += 3) {
            const volatile int32_t* counts = reinterpret_cast<const int32_t*>(words[0]);
            int64_t sum = 0;
            for (int64_t k = 0; k < words[1]; ++k) sum += counts[k];
            if (sum > *reinterpret_cast<const int32_t*>(words[2])) return false;
        }
        return true;
    }

    // Finds awaited calls that have ended, and lets programs go on whose counts have room. Of one stream, calls behind
    // one that goes on are not looked at.
    bool poll() {
        if (!in_order_ && !issuer_.progress()) return false;
        goes_on_.clear();
        size_t kept = 0;
        for (size_t i = 0; i < blocked_.size(); ++i) {
            Cursor& own = cursors_[blocked_[i]];
            int64_t awaited = own.positions[(*own.program)[own.at].what];
            if (pieces_) awaited = pieces_->position_of(awaited);
            const int64_t stream = in_order_ ? 0 : issuer_.stream_of(awaited);
            int answer = 0;
            if (std::find(goes_on_.begin(), goes_on_.end(), stream) == goes_on_.end()) {
                answer = in_order_ ? issuer_.query(own.event) : issuer_.complete(awaited);
                if (answer < 0) return false;
                if (!answer) goes_on_.push_back(stream);
            }
            if (!answer) {
                blocked_[kept++] = blocked_[i];
            } else if (has_room((*own.program)[own.at])) {
                ++own.at;
                ++passed;
                turns_.push_back(blocked_[i]);
            } else {
                arrived.push_back(blocked_[i]);
            }
        }
        blocked_.resize(kept);
        return true;
    }

    Issuer& issuer_;
    std::vector<Cursor> cursors_;    // of the run, by turn
    std::deque<int32_t> turns_;      // those that may go on
    std::vector<int32_t> blocked_;   // those that await a call, in the order of its issue
    std::vector<int64_t> goes_on_;   // streams
    int64_t handle_ = 0;
    bool in_order_ = false, one_by_one_ = false;
    Pieces* pieces_ = nullptr;
    std::vector<int32_t> numbers_, emitters_;  // of the calls of the present batch
    std::vector<uint8_t> ends_;                // whether they are awaited
    int64_t units_ = 0, done_ = 0;             // pieces and single calls of it, and how many of them were issued
};

}  // namespace issue
