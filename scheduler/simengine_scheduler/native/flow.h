// The flow: takes calls from emitters and issues them, batch after batch, without Python between one and the next.
//
//     emitters --feed--> calls --intake--> numbers --pieces--> graphs and single calls --issuer--> driver
//         ^                                                                                |
//         +---------------- those go on whose awaited call has ended <---------------------+
//
// The rules are those of `run_emitters` in executors/streams_compiled.py, and on one stream those of `run_compiled` in
// executors/serial_compiled.py. Python's lock is held, but not while calls are issued, nor while all emitters wait.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "feed.h"
#include "intake.h"
#include "pieces.h"

namespace issue {

class Flow {
  public:
    // Why the flow halts. RAISED: Python has an error. WRONG: the intake did not take a call. OTHER: the feed has an item
    // that is no call. FOREIGN: the next call has no function. FAILED: a function of the driver failed. CHANGED: a buffer
    // has moved, or a scalar has changed. FULL: more calls are known than the limit. AGAIN: nothing has happened for long.
    enum Halt { ENDED, RAISED, WRONG, OTHER, FOREIGN, FAILED, CHANGED, FULL, AGAIN, GOES_ON };

    // `taken` is an empty list for calls that were not issued yet, and `buffers` has the attribute `changes`. The caller
    // keeps all objects alive.
    Flow(Feed& feed, Intake& intake, Issuer& issuer, PyObject* taken, PyObject* buffers)
        : intake(intake), feed_(feed), issuer_(issuer), taken_(taken), buffers_(buffers),
          changes_name_(PyUnicode_InternFromString("changes")) {}
    ~Flow() { Py_DecRef(changes_name_); }

    Intake& intake;
    int64_t following = 0;  // the number of the next call, counted from the first of the run
    int64_t awaits = 0;     // how often emitters have waited for a call, or found it ended
    int64_t changes = 0;    // what `changes` was when the caller last looked at arguments
    int64_t limit = 0;      // how many calls may be known
    int32_t last = -1;      // number of the last call that was issued

    // Begins a run of emitters, after the issuer and pieces have begun one: lists of their iterators, and of dictionaries for
    // the numbers under which each yielded its calls. With `events`, one for each emitter, calls go to one stream in order,
    // and an event is recorded behind a call that its emitter awaits.
    void begin(PyObject* items, PyObject* latest, Pieces* pieces, int64_t handle, const int64_t* events) {
        const ptrdiff_t count = PyList_Size(items);
        feed_.clear();
        for (ptrdiff_t i = 0; i < count; ++i) feed_.add(PyList_GetItem(items, i), PyList_GetItem(latest, i));
        pieces_ = pieces;
        if (pieces_) pieces_->expect(count);
        handle_ = handle;
        in_order_ = events != nullptr;
        events_.assign(events, events + (events ? count : 0));
        waiting_.clear();
        following = awaits = issued_ = 0;
        last = -1;
        stage_ = TAKE;
        took_ = false;
    }

    // Forgets the emitters.
    void end() { feed_.clear(); }

    // Goes on until all emitters have ended, or the caller has to do something.
    Halt run() {
        for (Halt halt = GOES_ON;;) {
            switch (stage_) {
                case TAKE: halt = take(); break;
                case PREPARE: halt = prepare(); break;
                case ISSUE: halt = issue(); break;
                case LOOK: halt = look(); break;
            }
            if (halt != GOES_ON) return halt;
        }
    }

    // The same, until threads have made all calls, too. They may need Python's lock.
    Halt run_settled() {
        const Halt halt = run();
        Unlocked unlocked;
        return issuer_.settle() ? halt : FAILED;
    }

    // Goes on behind a call that the caller has launched.
    void advance() { ++done_; }

  private:
    enum Stage { TAKE, PREPARE, ISSUE, LOOK };
    static constexpr int64_t FEW = 32, MANY = 128;  // calls that are taken together: at first and while emitters wait,
    static constexpr int64_t BATCH = 512;           // and where runs of them may be pieces, which a batch would cut
    static constexpr int32_t LOOKS = 4096;          // without an end in sight, until Python may deal with interrupts

    // Gives back Python's lock until the end of its scope.
    struct Unlocked {
        PyThreadState* state = PyEval_SaveThread();
        ~Unlocked() { PyEval_RestoreThread(state); }
    };

    struct Waiting {
        int64_t call;    // that is awaited, counted from the first of the run, or of the batch
        int32_t source;  // that waits for it
    };

    int64_t most() const {
        if (pieces_) return BATCH;
        return waiting_.empty() && following >= FEW ? MANY : FEW;
    }

    Halt take() {
        if (!took_) feed_.idle = 0;
        took_ = true;
        failed_ = false;
        const auto waits = [&](int64_t call, int32_t source) { return wait_for(call, source); };
        const Feed::Stop stop = feed_.take(taken_, most(), &following, waits);
        if (failed_) return FAILED;
        if (stop == Feed::RAISED) return RAISED;
        if (stop == Feed::OTHER) return OTHER;
        took_ = false;
        stage_ = PREPARE;
        return GOES_ON;
    }

    // What an emitter does that awaits a call. If it has to wait, this is put down.
    Feed::Await wait_for(int64_t call, int32_t source) {
        ++awaits;
        if (call < issued_ && in_order_) {
            failed_ |= !issuer_.record_on(events_[source], handle_);
            if (failed_) return Feed::ASKS;
        } else if (call < issued_) {
            const int answer = issuer_.progress() ? issuer_.complete(position_of(call)) : -1;
            failed_ |= answer < 0;
            if (answer) return answer < 0 ? Feed::ASKS : Feed::GOES_ON;
        }
        waiting_.push_back({call, source});
        return Feed::WAITS;
    }

    // Numbers the calls that were taken, and divides them into pieces.
    Halt prepare() {
        const int64_t count = PyList_Size(taken_);
        if (!count) {
            if (!feed_.turns() && waiting_.empty()) return ENDED;
            stage_ = LOOK;
            return GOES_ON;
        }
        if (intake.known() > limit) return FULL;
        bool changed = false;
        if (!has_changed(&changed)) return RAISED;
        if (changed) return CHANGED;
        numbers_.resize(count);
        const Intake::Answer answer = intake.numbers(taken_, count, numbers_.data());
        if (answer != Intake::TAKEN) return answer == Intake::RAISED ? RAISED : WRONG;
        if (PyList_SetSlice(taken_, 0, count, nullptr)) return RAISED;  // the intake keeps them alive
        emitters_.swap(feed_.from);
        feed_.from.clear();
        if (pieces_) pieces_->divide(numbers_.data(), emitters_.data(), count);
        awaited_.clear();
        for (const Waiting& own : waiting_)
            if (own.call >= issued_) awaited_.push_back({own.call - issued_, own.source});
        std::stable_sort(awaited_.begin(), awaited_.end(), is_earlier);
        if (!in_order_)
            for (const Waiting& own : awaited_) issuer_.will_await(position_of(issued_ + own.call));
        done_ = marked_ = 0;
        stage_ = ISSUE;
        return GOES_ON;
    }

    bool has_changed(bool* changed) {
        Owned now(PyObject_GetAttr(buffers_, changes_name_));
        if (!now) return false;
        const int64_t value = PyLong_AsLongLong(now.get());
        *changed = value != changes;
        return value != -1 || !PyErr_Occurred();
    }

    Halt issue() {
        const int64_t count = static_cast<int64_t>(numbers_.size());
        Outcome outcome;
        {
            Unlocked unlocked;
            outcome = in_order_ ? issue_in_order(count)
                      : pieces_ ? pieces_->issue(&done_)
                                : issuer_.issue(numbers_.data(), count, &done_);
        }
        if (outcome != issue::DONE) return outcome == issue::FOREIGN ? FOREIGN : FAILED;
        last = numbers_.back();
        issued_ += count;
        stage_ = LOOK;
        return GOES_ON;
    }

    // Issues the batch from `done_` on, with events behind calls that are awaited.
    Outcome issue_in_order(int64_t count) {
        for (;;) {
            for (; marked_ < awaited_.size() && awaited_[marked_].call < done_; ++marked_)
                if (!issuer_.record_on(events_[awaited_[marked_].source], handle_)) return issue::FAILED;
            if (done_ == count) return issue::DONE;
            const int64_t end = marked_ < awaited_.size() ? awaited_[marked_].call + 1 : count;
            if (Outcome outcome = issuer_.serial(numbers_.data(), end, &done_, handle_); outcome != issue::DONE)
                return outcome;
        }
    }

    static bool is_earlier(const Waiting& a, const Waiting& b) { return a.call < b.call; }

    // Lets the emitters go on whose awaited calls have ended. If all emitters wait, it looks until one of them has.
    Halt look() {
        stage_ = TAKE;
        const bool alone = feed_.turns() == 0;
        if (waiting_.empty()) return feed_.idle ? AGAIN : GOES_ON;
        std::stable_sort(waiting_.begin(), waiting_.end(), is_earlier);
        const size_t waited = waiting_.size();
        if (!(alone ? wait_for_an_end() : find_ended())) return FAILED;
        if (waiting_.size() < waited) return GOES_ON;
        if (alone) stage_ = LOOK;
        return alone || feed_.idle ? AGAIN : GOES_ON;
    }

    // Looks again and again until an awaited call has ended, or there were many looks. Other threads of Python may run.
    bool wait_for_an_end() {
        Unlocked unlocked;
        const size_t waited = waiting_.size();
        for (int32_t looks = 0; looks < LOOKS && waiting_.size() == waited; ++looks)
            if (!find_ended()) return false;
        return true;
    }

    // Looks once at the awaited calls. Of one stream, calls behind one that goes on are not looked at.
    bool find_ended() {
        if (!in_order_ && !issuer_.progress()) return false;
        going_on_.clear();
        size_t kept = 0;
        for (const Waiting own : waiting_) {
            const int64_t position = position_of(own.call), stream = in_order_ ? 0 : issuer_.stream_of(position);
            int answer = 0;
            if (std::find(going_on_.begin(), going_on_.end(), stream) == going_on_.end()) {
                answer = in_order_ ? issuer_.query(events_[own.source]) : issuer_.complete(position);
                if (answer < 0) return false;
                if (!answer) going_on_.push_back(stream);
            }
            if (answer)
                feed_.join(own.source);
            else
                waiting_[kept++] = own;
        }
        waiting_.resize(kept);
        return true;
    }

    // The position, as the issuer counts, of a call of the run: that of its piece, if it is in one.
    int64_t position_of(int64_t call) const { return pieces_ ? pieces_->position_of(call) : call; }

    Feed& feed_;
    Issuer& issuer_;
    Pieces* pieces_ = nullptr;
    PyObject *taken_, *buffers_, *changes_name_;
    Stage stage_ = TAKE;
    bool took_ = false;    // whether some calls were taken before the caller had something to do
    bool failed_ = false;  // whether the driver failed while calls were taken
    int64_t issued_ = 0;   // calls of the run
    int64_t done_ = 0;     // pieces and single calls of the batch
    std::vector<Waiting> waiting_;
    std::vector<Waiting> awaited_;  // of the batch
    size_t marked_ = 0;             // of these, on one stream
    bool in_order_ = false;
    int64_t handle_ = 0;            // of the one stream
    std::vector<int64_t> events_;   // of the emitters, on one stream
    std::vector<int32_t> numbers_, emitters_;  // of the batch
    std::vector<int64_t> going_on_;            // streams
};

}  // namespace issue
