// Polling: the window of ACS-SW (arXiv 2401.12377), whose calls are issued once the host has seen all ended that they
// must come after. A stream then has one call in flight.
//
// With chains, a call may also be issued behind the last call of a stream if it must come after that one, and if all
// that it must come after and that has not ended is on that stream. So the host need not see the end of each call.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace issue {

class Polling {
  public:
    explicit Polling(bool chains) : chains_(chains) {}

    static constexpr int32_t NONE = -1;

    // A call that was issued and is not known to have ended.
    struct Running {
        int64_t position;
        int64_t event;
    };

    void begin(int32_t streams) {
        calls_.clear();
        unissued_.clear();
        running_.resize(streams);
        for (auto& own : running_) own.clear();
    }

    // How many calls the window holds.
    size_t size() const { return calls_.size(); }

    // Whether calls are left that have not been issued.
    bool has_unissued() const { return !unissued_.empty(); }

    // The position of the oldest call in the window; `next` if there is none.
    int64_t oldest(int64_t next) const { return calls_.empty() ? next : calls_.begin()->first; }

    // Takes a call into the window, with the positions of those in it that it must come after.
    void add(int64_t position, int32_t number, bool is_own, const std::vector<int64_t>& upstream) {
        calls_[position] = {number, NONE, is_own, upstream, {}};
        for (int64_t other : upstream) calls_[other].downstream.push_back(position);
        unissued_.push_back(position);
    }

    int32_t number_of(int64_t position) const { return calls_.at(position).number; }

    // The stream on which a call may be issued; NONE: on no one yet.
    int32_t place_of(int64_t position) const {
        const Call& call = calls_.at(position);
        if (call.upstream.empty()) {
            for (size_t stream = 0; stream < running_.size(); ++stream)
                if (running_[stream].empty()) return static_cast<int32_t>(stream);
            return NONE;
        }
        if (!chains_) return NONE;
        const int32_t stream = calls_.at(call.upstream.front()).stream;
        bool follows = false;
        for (int64_t other : call.upstream) {
            if (stream == NONE || calls_.at(other).stream != stream) return NONE;
            follows |= running_[stream].back().position == other;
        }
        return follows ? stream : NONE;
    }

    // The oldest call that may be issued and that the issuer launches itself, and its stream; NONE if there is none.
    int64_t next(int32_t* stream) const {
        for (int64_t position : unissued_)
            if (calls_.at(position).is_own && (*stream = place_of(position)) != NONE) return position;
        return NONE;
    }

    // Notes that a call is issued to a stream, with an event behind it.
    void issued(int64_t position, int32_t stream, int64_t event) {
        calls_[position].stream = stream;
        running_[stream].push_back({position, event});
        unissued_.erase(std::find(unissued_.begin(), unissued_.end(), position));
    }

    // The call of a stream that ends next; null if there is none.
    const Running* first_of(int32_t stream) const {
        return running_[stream].empty() ? nullptr : &running_[stream].front();
    }

    const Running* last_of(int32_t stream) const {
        return running_[stream].empty() ? nullptr : &running_[stream].back();
    }

    // Notes that the first call of a stream has ended.
    void ended(int32_t stream) {
        const auto found = calls_.find(running_[stream].front().position);
        for (int64_t other : found->second.downstream) {
            std::vector<int64_t>& upstream = calls_[other].upstream;
            upstream.erase(std::find(upstream.begin(), upstream.end(), found->first));
        }
        calls_.erase(found);
        running_[stream].pop_front();
    }

  private:
    struct Call {
        int32_t number = 0, stream = NONE;
        bool is_own = false;               // whether the issuer launches it itself
        std::vector<int64_t> upstream;     // positions of calls that it must come after and that have not ended
        std::vector<int64_t> downstream;   // and of those that must come after it
    };

    bool chains_;
    std::map<int64_t, Call> calls_;         // of the window, by position
    std::deque<int64_t> unissued_;          // of them, in program order
    std::vector<std::deque<Running>> running_;  // by stream, in its order
};

}  // namespace issue
