// Streams: which one a call joins, and which waits between them are needed. The rules are those of core/policies.py and
// planning/clocks.py.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "hazards.h"

namespace issue {

enum Policy { FOLLOW, LEAST_LOADED, ROUND_ROBIN };

// Where a call was issued, and at what time.
struct Place {
    int32_t stream;
    int32_t time;
};

class Streams {
  public:
    Streams(int32_t count, int32_t policy) : count_(count), policy_(policy) { begin(0); }

    int64_t asked = 0, needed = 0;  // waits for other streams that hazards ask for, and those of them that are made

    // Forgets all calls. The next one has number `first`.
    void begin(Seq first) {
        base_ = first;
        time_ = 0;
        issued_ = asked = needed = 0;
        places_.clear();
        seen_at_.clear();
        seen_.assign(count_ * count_, -1);
        load_.assign(count_, 0);
        tail_.assign(count_, -1);
    }

    Place& at(Seq seq) { return places_[seq - base_]; }
    void ended(Seq seq) { --load_[at(seq).stream]; }

    void forget_before(Seq first) {
        places_.erase(places_.begin(), places_.begin() + (first - base_));
        seen_at_.erase(seen_at_.begin(), seen_at_.begin() + (first - base_) * count_);
        base_ = first;
    }

    // Whether a stream waits for the last call of another one.
    bool is_behind(int32_t stream, int32_t other) const {
        const Seq last = tail_[other];
        return last < base_ || seen_[stream * count_ + other] >= places_[last - base_].time;
    }

    int32_t choose(const std::vector<Seq>& upstream) const {
        if (policy_ == ROUND_ROBIN) return static_cast<int32_t>(issued_ % count_);
        Seq newest = -1;
        if (policy_ == FOLLOW) {
            Seq last = -1;
            for (Seq seq : upstream) {
                newest = std::max(newest, seq);
                if (seq > last && tail_[places_[seq - base_].stream] == seq) last = seq;
            }
            if (last >= 0) return places_[last - base_].stream;
        }
        const auto least = std::min_element(load_.begin(), load_.end());
        if (newest >= 0 && load_[places_[newest - base_].stream] <= *least + 1) return places_[newest - base_].stream;
        return static_cast<int32_t>(least - load_.begin());
    }

    // Returns those of some upstream calls that a stream must be made to wait for, and notes that it waits.
    const std::vector<Seq>& waits(const std::vector<Seq>& upstream, int32_t stream) {
        found_.clear();
        int32_t* seen = &seen_[stream * count_];
        for (Seq seq : upstream) {
            const Place& place = at(seq);
            if (place.stream == stream) continue;
            ++asked;
            if (place.time > seen[place.stream]) found_.push_back(seq);
        }
        if (found_.size() > 1)
            std::sort(found_.begin(), found_.end(), [&](Seq a, Seq b) { return at(a).time > at(b).time; });
        size_t kept = 0;
        for (Seq seq : found_) {
            const Place& place = at(seq);
            if (place.time <= seen[place.stream]) continue;
            const int32_t* other = &seen_at_[(seq - base_) * count_];
            for (int32_t s = 0; s < count_; ++s) seen[s] = std::max(seen[s], other[s]);
            seen[place.stream] = place.time;
            found_[kept++] = seq;
        }
        found_.resize(kept);
        needed += static_cast<int64_t>(kept);
        return found_;
    }

    // Notes that the next call is issued to a stream.
    void put(Seq seq, int32_t stream) {
        places_.push_back({stream, time_++});
        seen_at_.insert(seen_at_.end(), seen_.begin() + stream * count_, seen_.begin() + (stream + 1) * count_);
        tail_[stream] = seq;
        ++load_[stream];
        ++issued_;
    }

  private:
    int32_t count_, policy_;
    Seq base_ = 0;
    int32_t time_ = 0;
    int64_t issued_ = 0;
    std::vector<Place> places_;      // of each call from base_ on
    std::vector<int32_t> seen_at_;   // of each call, what its stream was behind when it was issued
    std::vector<int32_t> seen_;      // [s][t]: time of the latest call on t that stream s is behind
    std::vector<int32_t> load_;      // calls of each stream that are not known to be complete
    std::vector<Seq> tail_;          // the call of each stream that was issued last
    std::vector<Seq> found_;
};

}  // namespace issue
