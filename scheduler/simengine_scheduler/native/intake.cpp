// The functions of the feed and the intake that Python calls, through ctypes, while it holds its lock.
#include "feed.h"
#include "intake.h"

using issue::Feed;
using issue::Intake;
using issue::Issuer;

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
// room, how many were found, and these: the number of the call, and the source that waits for it.
int32_t feed_take(Feed* feed, PyObject* calls, int64_t most, int64_t* state) {
    feed->idle = state[3];
    const int32_t stop = feed->take(calls, most, state, state[4], static_cast<size_t>(state[5]));
    state[6] = static_cast<int64_t>(feed->awaited.size() / 2);
    std::copy(feed->awaited.begin(), feed->awaited.end(), state + 7);
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

}  // extern "C"
