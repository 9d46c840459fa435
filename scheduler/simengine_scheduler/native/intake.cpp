// The functions of the feed and the intake that Python calls, through ctypes, while it holds its lock.
#include "feed.h"
#include "flow.h"
#include "intake.h"

using issue::Feed;
using issue::Flow;
using issue::Intake;
using issue::Issuer;
using issue::Pieces;

extern "C" {

Intake* intake_make(Issuer* issuer, PyObject* conflicts, PyObject* by_number) {
    return new Intake(*issuer, conflicts == &_Py_NoneStruct ? nullptr : conflicts, by_number);
}

void intake_free(Intake* intake) { delete intake; }

void intake_forget(Intake* intake) { intake->forget(); }

// Writes the numbers of calls. If a call names a segment that the table lacks, its place and the segment are in `wrong`.
int32_t intake_numbers(Intake* intake, PyObject* calls, int64_t count, int32_t* numbers, int64_t* wrong) {
    const int32_t answer = intake->numbers(calls, count, numbers);
    wrong[0] = intake->place;
    wrong[1] = intake->wrong;
    return answer;
}

Feed* feed_make(PyObject* call, PyObject* idle, PyObject* await) { return new Feed(call, idle, await); }

void feed_free(Feed* feed) { delete feed; }

void feed_add(Feed* feed, PyObject* items, PyObject* latest) { feed->add(items, latest); }

// Appends calls to a list, as `Feed::take` does. The state is the number of the following call, the source whose turn it is,
// how many sources have turns, how many of them are idle, the first call that was not issued, for how many awaits there is
// room, how many were found, and these: the number of the call, and the source that waits for it. A source that awaits a call
// which was not issued has to wait, as long as there is room to say so. Of others Python finds out.
int32_t feed_take(Feed* feed, PyObject* calls, int64_t most, int64_t* state) {
    feed->idle = state[3];
    int64_t* found = state + 7;
    const auto waits = [&](int64_t call, int32_t source) {
        if (call < state[4] || found == state + 7 + 2 * state[5]) return Feed::ASKS;
        *found++ = call;
        *found++ = source;
        return Feed::WAITS;
    };
    const int32_t stop = feed->take(calls, most, state, waits);
    state[6] = (found - state - 7) / 2;
    state[1] = feed->turn();
    state[2] = feed->turns();
    state[3] = feed->idle;
    return stop;
}

// Writes the sources of the calls that were taken since this was asked last, which are so many.
void feed_from(Feed* feed, int32_t* sources, int64_t count) {
    std::copy(feed->from.begin(), feed->from.begin() + count, sources);
    feed->from.clear();
}

// Returns the item that is no call.
PyObject* feed_item(Feed* feed) {
    Py_IncRef(feed->item);
    return feed->item;
}

// Takes the turn from the source that has it.
void feed_leave(Feed* feed) { feed->leave(); }

void feed_join(Feed* feed, int32_t source) { feed->join(source); }

Flow* flow_make(Feed* feed, Intake* intake, Issuer* issuer, PyObject* taken, PyObject* buffers) {
    return new Flow(*feed, *intake, *issuer, taken, buffers);
}

void flow_free(Flow* flow) { delete flow; }

// Begins a run of emitters, given the iterator of each and a dictionary for the numbers of its calls. With `events`, one for
// each, calls go to the stream `handle` in order.
void flow_begin(Flow* flow, PyObject* items, PyObject* latest, Pieces* pieces, int64_t handle, const int64_t* events) {
    flow->begin(items, latest, pieces, handle, events);
}

void flow_end(Flow* flow) { flow->end(); }

// Goes on as `Flow::run` does. The state is `changes` and `limit`, which are read, and then what is written: how many calls
// were taken, how many awaits there were, the last call that was issued, and the call and segment that the intake did not
// take.
int32_t flow_run(Flow* flow, int64_t* state) {
    flow->changes = state[0];
    flow->limit = state[1];
    const int32_t halt = flow->run_settled();
    state[2] = flow->following;
    state[3] = flow->awaits;
    state[4] = flow->last;
    state[5] = flow->intake.place;
    state[6] = flow->intake.wrong;
    return halt;
}

void flow_advance(Flow* flow) { flow->advance(); }

}  // extern "C"
