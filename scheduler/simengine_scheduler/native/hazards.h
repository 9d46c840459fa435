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
    size_t first;                    // place of its segments among those of all: the ones that it reads
    int32_t num_reads, num_writes;   // and behind them those that it writes; an update is a write
    int32_t came = -1;               // version of the conflicts when a call with it came
    int32_t against = -1;            // number of its lists, if there are some
};

// The segments that conflict with those of a combination, each once.
struct Against {
    int32_t version;  // of the conflicts
    std::vector<int32_t> reads, writes;
};

class Hazards {
  public:
    // Sets what a segment conflicts with. A new segment has the next number.
    void set_conflicts(int32_t segment, const int32_t* others, int32_t count) {
        if (segment == static_cast<int32_t>(writer_.size())) {
            writer_.push_back(-1);
            readers_.emplace_back();
            conflicts_.push_back({});
        } else {
            ++version_;  // combinations that have it are expanded again
        }
        if (count == 1) return;  // the segment itself
        if (count > conflicts_[segment].count) {
            if (unused_ > 1000 && 2 * unused_ > others_.size()) pack();
            unused_ += conflicts_[segment].count;
            conflicts_[segment].first = others_.size();
            others_.resize(others_.size() + count);
        }
        conflicts_[segment].count = count;
        std::copy(others, others + count, others_.begin() + conflicts_[segment].first);
    }

    int32_t add_combination(const int32_t* reads, int64_t num_reads, const int32_t* writes, int64_t num_writes) {
        combinations_.emplace_back();
        Combination& made = combinations_.back();
        made.first = segments_.size();
        for (int64_t i = 0; i < num_reads; ++i)
            if (std::find(writes, writes + num_writes, reads[i]) == writes + num_writes) segments_.push_back(reads[i]);
        made.num_reads = static_cast<int32_t>(segments_.size() - made.first);
        made.num_writes = static_cast<int32_t>(num_writes);
        segments_.insert(segments_.end(), writes, writes + num_writes);
        return static_cast<int32_t>(combinations_.size()) - 1;
    }

    int32_t segments() const { return static_cast<int32_t>(writer_.size()); }

    // Calls a function for each segment that a combination reads, and another for each that it writes.
    template <class Read, class Write>
    void each_segment(int32_t number, Read read, Write write) const {
        for (const int32_t& segment : reads_of(combinations_[number])) read(segment);
        for (const int32_t& segment : writes_of(combinations_[number])) write(segment);
    }

    // Calls a function for each segment that conflicts with what a combination reads, and another for each that conflicts
    // with what it writes. A segment may come several times.
    template <class Read, class Write>
    void each_conflict(int32_t number, Read read, Write write) const {
        const Combination& own = combinations_[number];
        if (own.against >= 0 && against_[own.against].version == version_) {
            for (int32_t segment : against_[own.against].reads) read(segment);
            for (int32_t segment : against_[own.against].writes) write(segment);
            return;
        }
        each_segment(
            number,
            [&](const int32_t& segment) {
                for (int32_t other : conflicts_of(segment)) read(other);
            },
            [&](const int32_t& segment) {
                for (int32_t other : conflicts_of(segment)) write(other);
            });
    }

    // Whether a call must come after an earlier one.
    bool conflict(int32_t before, int32_t after) const {
        bool found = false;
        each_conflict(
            after,
            [&](int32_t segment) { found |= has(writes_of(combinations_[before]), segment); },
            [&](int32_t segment) {
                found |= has(writes_of(combinations_[before]), segment) || has(reads_of(combinations_[before]), segment);
            });
        return found;
    }

    // Whether a call with a combination must come after one in flight.
    bool has_upstream(int32_t number) const {
        bool found = false;
        const auto written = [&](int32_t segment) { found = found || is_live(writer_[segment]); };
        each_conflict(number, written, [&](int32_t segment) {
            written(segment);
            for (Seq reader : readers_[segment]) found = found || is_live(reader);
        });
        return found;
    }

    void forget_combinations() {
        combinations_.clear();
        against_.clear();
        segments_.clear();
    }

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
        const Span reads = reads_of(own), writes = writes_of(own);
        upstream_.clear();
        if (own.against >= 0 && against_[own.against].version == version_) {
            const Against& against = against_[own.against];
            for (int32_t segment : against.reads) note(writer_[segment], seq);
            for (int32_t segment : against.writes) note_all(segment, seq);
        } else {
            for (const int32_t& segment : reads)
                for (int32_t other : conflicts_of(segment)) note(writer_[other], seq);
            for (const int32_t& segment : writes)
                for (int32_t other : conflicts_of(segment)) note_all(other, seq);
            // Most calls that vary come once, for which lists would cost more than they save.
            if (own.came == version_) expand(own);
            own.came = version_;
        }
        for (int32_t segment : writes) {
            writer_[segment] = seq;
            readers_[segment].clear();
        }
        for (int32_t segment : reads) {
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
    // Where the segments are that a segment conflicts with, itself included. None: it conflicts with itself only.
    struct Conflicts {
        size_t first = 0;
        int32_t count = 0;
    };

    void note(Seq other, Seq seq) {
        if (!is_live(other) || marked_[other - base_] == seq) return;
        marked_[other - base_] = seq;
        upstream_.push_back(other);
    }

    // Notes a call that wrote a segment last, and those that have read it since.
    void note_all(int32_t segment, Seq seq) {
        note(writer_[segment], seq);
        for (Seq reader : readers_[segment]) note(reader, seq);
    }

    // Some segments in a row.
    struct Span {
        const int32_t *first, *last;
        const int32_t* begin() const { return first; }
        const int32_t* end() const { return last; }
    };

    static bool has(const Span& segments, int32_t segment) {
        return std::find(segments.begin(), segments.end(), segment) != segments.end();
    }

    Span reads_of(const Combination& own) const {
        return {segments_.data() + own.first, segments_.data() + own.first + own.num_reads};
    }
    Span writes_of(const Combination& own) const {
        return {reads_of(own).last, reads_of(own).last + own.num_writes};
    }
    Span conflicts_of(const int32_t& segment) const {
        const Conflicts& found = conflicts_[segment];
        if (!found.count) return {&segment, &segment + 1};
        return {others_.data() + found.first, others_.data() + found.first + found.count};
    }

    // Leaves out the places of conflicts that have moved.
    void pack() {
        std::vector<int32_t> kept;
        for (Conflicts& own : conflicts_) {
            const auto from = others_.begin() + own.first;
            own.first = kept.size();
            kept.insert(kept.end(), from, from + own.count);
        }
        others_.swap(kept);
        unused_ = 0;
    }

    void expand(Combination& own) {
        if (own.against < 0) {
            own.against = static_cast<int32_t>(against_.size());
            against_.emplace_back();
        }
        Against& made = against_[own.against];
        made = {version_, conflicting(reads_of(own)), conflicting(writes_of(own))};
        auto covered = [&](int32_t segment) {
            return std::binary_search(made.writes.begin(), made.writes.end(), segment);
        };
        made.reads.erase(std::remove_if(made.reads.begin(), made.reads.end(), covered), made.reads.end());
    }

    std::vector<int32_t> conflicting(const Span& segments) const {
        std::vector<int32_t> found;
        for (const int32_t& segment : segments)
            for (int32_t other : conflicts_of(segment)) found.push_back(other);
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    int32_t version_ = 0;
    std::vector<Conflicts> conflicts_;        // of each segment
    std::vector<int32_t> others_;             // with which they conflict
    size_t unused_ = 0;                       // of these
    std::vector<Seq> writer_;                 // of each segment: the call that wrote it last
    std::vector<std::vector<Seq>> readers_;   // and those that have read it since
    std::vector<Combination> combinations_;
    std::vector<Against> against_;
    std::vector<int32_t> segments_;           // of all combinations
    Seq base_ = 0;
    std::vector<uint8_t> alive_;              // of each call from base_ on
    std::vector<Seq> marked_;                 // of each call from base_ on: the call that found it last
    std::vector<Seq> upstream_;
};

}  // namespace issue
