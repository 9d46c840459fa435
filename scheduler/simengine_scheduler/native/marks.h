// Marks: events behind calls on streams. The end of a mark is the end of all calls before it on its stream.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace issue {

struct Mark {
    int64_t position;  // of the call that it stands behind
    int64_t event;
};

class Marks {
  public:
    // Forgets all calls.
    void begin(int32_t streams) {
        tracks_.resize(streams);
        for (Track& own : tracks_) {
            own.calls.clear();
            own.marks.clear();
        }
    }

    // Notes that a call was launched on a stream. Positions grow.
    void launched(int32_t stream, int64_t position) { tracks_[stream].calls.push_back(position); }

    // How many calls on a stream have been launched since its last mark.
    int64_t unmarked(int32_t stream) const {
        const Track& own = tracks_[stream];
        if (own.marks.empty()) return static_cast<int64_t>(own.calls.size());
        return own.calls.end() - std::upper_bound(own.calls.begin(), own.calls.end(), own.marks.back().position);
    }

    // Notes an event behind the calls of a stream that have been launched.
    void add(int32_t stream, int64_t event) { tracks_[stream].marks.push_back({tracks_[stream].calls.back(), event}); }

    // The first mark behind a call on its stream; null if there is none yet.
    const Mark* behind(int32_t stream, int64_t position) const {
        const std::deque<Mark>& marks = tracks_[stream].marks;
        const auto before = [](const Mark& mark, int64_t position) { return mark.position < position; };
        const auto found = std::lower_bound(marks.begin(), marks.end(), position, before);
        return found == marks.end() ? nullptr : &*found;
    }

    // The last mark of a stream, or null.
    const Mark* last(int32_t stream) const {
        const std::deque<Mark>& marks = tracks_[stream].marks;
        return marks.empty() ? nullptr : &marks.back();
    }

    // Whether all calls of a stream are known to have ended.
    bool none(int32_t stream) const { return tracks_[stream].calls.empty(); }

    // Forgets the calls of a stream up to a mark, and the marks. Tells `ended` of each call, and `free` of each event.
    template <class Ended, class Free>
    void end(int32_t stream, int64_t position, Ended ended, Free free) {
        Track& own = tracks_[stream];
        for (; !own.calls.empty() && own.calls.front() <= position; own.calls.pop_front()) ended(own.calls.front());
        for (; !own.marks.empty() && own.marks.front().position <= position; own.marks.pop_front())
            free(own.marks.front().event);
    }

  private:
    struct Track {
        std::deque<int64_t> calls;  // that are not known to have ended
        std::deque<Mark> marks;     // of these
    };

    std::vector<Track> tracks_;  // by stream
};

}  // namespace issue
