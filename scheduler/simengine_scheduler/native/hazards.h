// Hazards: which calls in flight a call must come after. The rules are those of core/hazards.py.
//
// Of each segment the table has the call that wrote it last, and the calls that have read it since. A call looks at these
// entries for every segment that conflicts with one of its own. Calls that are no longer in flight are passed over.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace issue {

using Seq = int64_t;  // number of a call in program order; numbers grow as long as a table lives

// What calls of one kind touch. Calls with the same reads and writes share a combination.
struct Combination {
    std::vector<int32_t> reads, writes;            // an update is a write
    std::vector<int32_t> against_reads, against_writes;  // the segments that conflict with those, each once
    int64_t version = -1;                          // of the conflicts that these lists were made with
};

class Hazards {
  public:
    // Sets what a segment conflicts with. A new segment has the next number.
    void set_conflicts(int32_t segment, const int32_t* others, int32_t count) {
        if (segment == static_cast<int32_t>(conflicts_.size())) {
            conflicts_.emplace_back();
            writer_.push_back(-1);
            readers_.emplace_back();
        } else {
            ++version_;  // combinations that have it are expanded again
        }
        conflicts_[segment].assign(others, others + count);
    }

    int32_t add_combination(const int32_t* reads, int64_t num_reads, const int32_t* writes, int64_t num_writes) {
        Combination made;
        made.writes.assign(writes, writes + num_writes);
        for (int64_t i = 0; i < num_reads; ++i)
            if (std::find(writes, writes + num_writes, reads[i]) == writes + num_writes) made.reads.push_back(reads[i]);
        combinations_.push_back(std::move(made));
        return static_cast<int32_t>(combinations_.size()) - 1;
    }

    void forget_combinations() { combinations_.clear(); }

    // Forgets all calls. The next call has this number, which must be beyond all that came before.
    void begin(Seq first) {
        base_ = first;
        alive_.clear();
        marked_.clear();
    }

    bool is_live(Seq seq) const { return seq >= base_ && alive_[seq - base_]; }
    void remove(Seq seq) { alive_[seq - base_] = 0; }

    // Lets calls before `first` be forgotten, none of which is in flight.
    void forget_before(Seq first) {
        alive_.erase(alive_.begin(), alive_.begin() + (first - base_));
        marked_.erase(marked_.begin(), marked_.begin() + (first - base_));
        base_ = first;
    }

    // Adds the next call. Returns the calls in flight that it must come after, each once. A call is left out where a
    // later one of them has waited for it because it wrote the same segment.
    const std::vector<Seq>& add(Seq seq, int32_t number) {
        Combination& own = combinations_[number];
        if (own.version != version_) expand(own);
        upstream_.clear();
        for (int32_t segment : own.against_reads) note(writer_[segment], seq);
        for (int32_t segment : own.against_writes) {
            note(writer_[segment], seq);
            for (Seq reader : readers_[segment]) note(reader, seq);
        }
        for (int32_t segment : own.writes) {
            writer_[segment] = seq;
            readers_[segment].clear();
        }
        for (int32_t segment : own.reads) {
            std::vector<Seq>& readers = readers_[segment];
            if (readers.size() >= 16 && readers.size() == readers.capacity()) {
                readers.erase(std::remove_if(readers.begin(), readers.end(), [&](Seq r) { return !is_live(r); }),
                              readers.end());
                readers.reserve(2 * readers.size() + 16);
            }
            readers.push_back(seq);
        }
        alive_.push_back(1);
        marked_.push_back(-1);
        return upstream_;
    }

  private:
    void note(Seq other, Seq seq) {
        if (!is_live(other) || marked_[other - base_] == seq) return;
        marked_[other - base_] = seq;
        upstream_.push_back(other);
    }

    void expand(Combination& own) {
        own.against_writes = conflicting(own.writes);
        own.against_reads = conflicting(own.reads);
        own.version = version_;
        auto covered = [&](int32_t segment) {
            return std::binary_search(own.against_writes.begin(), own.against_writes.end(), segment);
        };
        own.against_reads.erase(std::remove_if(own.against_reads.begin(), own.against_reads.end(), covered),
                                own.against_reads.end());
    }

    std::vector<int32_t> conflicting(const std::vector<int32_t>& segments) const {
        std::vector<int32_t> found;
        for (int32_t segment : segments)
            found.insert(found.end(), conflicts_[segment].begin(), conflicts_[segment].end());
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    int64_t version_ = 0;
    std::vector<std::vector<int32_t>> conflicts_;  // of each segment, itself included
    std::vector<Combination> combinations_;
    std::vector<Seq> writer_;                 // of each segment
    std::vector<std::vector<Seq>> readers_;   // of each segment, since it was written last
    Seq base_ = 0;
    std::vector<uint8_t> alive_;              // of each call from base_ on
    std::vector<Seq> marked_;                 // of each call from base_ on: the call that found it last
    std::vector<Seq> upstream_;
};

}  // namespace issue
