// Pieces: runs of calls that come again and again, each of which is launched as one kept graph.
//
//     calls of a batch, by emitter    a b c d            one launch, if there is a graph of them,
//                                     a b | e | c d      or one for each part that has a graph, and for each call between
//
// Invariants
//   1. A piece stands where its first call stands, so its later calls overtake calls of other emitters. This is done only
//      in a batch in which no calls of different emitters conflict. Other batches are issued call by call.
//   2. To the window a piece is one call, which touches all that its calls touch.
//   3. Calls of an emitter may change places up to a wait, if none of them overtakes one that it must come after (held.h).
//   4. A graph is asked for once it would have saved as much as it costs to build. So lists of which nothing comes again lose
//      little. A graph of one call pays, too, since the driver launches it in less time than the call.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "apart.h"
#include "held.h"
#include "issuer.h"
#include "learning.h"

namespace issue {

class Pieces {
  public:
    Pieces(Issuer& issuer, int64_t base, int64_t each) : learning(issuer, base, each), issuer_(issuer) {}

    Learning learning;
    int64_t launched = 0;  // pieces of the present run

    Issuer* issuer() const { return &issuer_; }

    // Begins a run, after the issuer has begun one.
    void begin() {
        units_of_.clear();
        launched = forgotten_ = emitters_of_run_ = 0;
    }

    // Says how many emitters the run has. Until then they are those that have come.
    void expect(int64_t emitters) { emitters_of_run_ = emitters; }

    // Divides lists that take turns, call by call, as `divide` does.
    int64_t divide_lists(const int32_t* const* lists, const int64_t* lengths, int64_t count) {
        numbers_.clear();
        emitters_.clear();
        const int64_t longest = count ? *std::max_element(lengths, lengths + count) : 0;
        for (int64_t round = 0; round < longest; ++round)
            for (int64_t list = 0; list < count; ++list)
                if (round < lengths[list]) {
                    numbers_.push_back(lists[list][round]);
                    emitters_.push_back(static_cast<int32_t>(list));
                }
        return divide(numbers_.data(), emitters_.data(), static_cast<int64_t>(numbers_.size()));
    }

    // Divides a batch of calls, given the emitter of each. Returns what it costs to launch them, where a graph costs 1 and a
    // call by itself costs 2.
    // A piece does not go beyond a call at whose place `ends` is not 0, such as one that is awaited; null: none is.
    int64_t divide(const int32_t* numbers, const int32_t* emitters, int64_t count, const uint8_t* ends = nullptr) {
        forget_ended();
        units_.clear();
        costs_ = 0;
        first_.assign(count, -1);
        piece_.resize(std::max(piece_.size(), first_.size()));
        order_.resize(count);
        std::iota(order_.begin(), order_.end(), 0);
        if (apart_.are_apart(issuer_, numbers, emitters, count))
            divide_emitters(numbers, emitters, count, ends);
        else
            costs_ = LAUNCH * count;
        place_units(numbers, count, ends);
        return costs_;
    }

    // How many pieces and single calls the batch has.
    int64_t units() const { return static_cast<int64_t>(units_.size()); }

    // Issues the units of the batch from `*done` on.
    Outcome issue(int64_t* done) {
        const int64_t from = *done;
        const Outcome outcome = issuer_.issue(units_.data(), units(), done);
        for (int64_t i = from; i < *done; ++i) {
            if (units_[i] >= 0) continue;
            Piece& own = pieces_[-1 - units_[i]];
            own.used = ++clock_;
            learning.launched(own.numbers.size());
            ++launched;
        }
        return outcome;
    }

    // The position, as the issuer counts, of a call of the run by its place; -1 if the issuer has forgotten it.
    int64_t position_of(int64_t place) const { return place < forgotten_ ? -1 : units_of_[place - forgotten_]; }

    // Takes the graph of a run. Returns the number of the piece.
    int32_t add(uint64_t key, int64_t graph) {
        Run& run = learning.at(key);
        learning.built(run.numbers.size());
        std::vector<int32_t> reads, writes;
        for (int32_t number : run.numbers)
            issuer_.hazards.each_segment(
                issuer_.calls[number].combination, [&](int32_t segment) { reads.push_back(segment); },
                [&](int32_t segment) { writes.push_back(segment); });
        for (std::vector<int32_t>* each : {&reads, &writes}) {
            std::sort(each->begin(), each->end());
            each->erase(std::unique(each->begin(), each->end()), each->end());
        }
        Piece made;
        made.key = key;
        made.numbers = run.numbers;
        Call call;
        call.graph = graph;
        call.last = run.numbers.back();
        call.combination =
            issuer_.hazards.add_combination(reads.data(), reads.size(), writes.data(), writes.size());
        made.used = ++clock_;
        if (free_.empty()) {
            free_.push_back(static_cast<int32_t>(pieces_.size()));
            pieces_.emplace_back();
            issuer_.graphs.emplace_back();
        }
        run.piece = free_.back();
        free_.pop_back();
        pieces_[run.piece] = std::move(made);
        issuer_.graphs[run.piece] = call;
        std::vector<int32_t>& others = starts_[run.numbers.front()];
        auto shorter = [&](int32_t other) { return pieces_[other].numbers.size() < run.numbers.size(); };
        others.insert(std::find_if(others.begin(), others.end(), shorter), run.piece);
        return run.piece;
    }

    // Forgets the graph of a piece.
    void drop(int32_t piece) {
        Run& run = learning.at(pieces_[piece].key);
        std::vector<int32_t>& others = starts_[run.numbers.front()];
        others.erase(std::find(others.begin(), others.end(), piece));
        learning.dropped(run);
        pieces_[piece] = {};
        issuer_.graphs[piece] = {};
        free_.push_back(piece);
    }

    // The piece that was launched longest ago; NONE if there is none.
    int32_t oldest() const {
        int32_t found = NONE;
        for (size_t i = 0; i < pieces_.size(); ++i)
            if (issuer_.graphs[i].graph && (found == NONE || pieces_[i].used < pieces_[found].used))
                found = static_cast<int32_t>(i);
        return found;
    }

    // Forgets everything, as the issuer has forgotten all calls and graphs.
    void forget() {
        learning.forget();
        pieces_.clear();
        free_.clear();
        starts_.clear();
        units_.clear();
    }

  private:
    static constexpr int32_t NONE = -1;

    struct Piece {
        uint64_t key = 0;
        std::vector<int32_t> numbers;
        int64_t used = 0;  // when it was launched last
    };

    // Divides the calls of each emitter by itself, up to each call that is awaited.
    void divide_emitters(const int32_t* numbers, const int32_t* emitters, int64_t count, const uint8_t* ends) {
        for (std::vector<int64_t>& places : by_emitter_) places.clear();
        for (int64_t i = 0; i < count; ++i) {
            if (emitters[i] >= static_cast<int32_t>(by_emitter_.size())) by_emitter_.resize(emitters[i] + 1);
            emitters_of_run_ = std::max(emitters_of_run_, int64_t{emitters[i]} + 1);
            by_emitter_[emitters[i]].push_back(i);
        }
        const bool may_be_held = emitters_of_run_ <= Held::FEW && (ends || issuer_.in_flight());
        if (may_be_held) held_.begin(issuer_);
        for (const std::vector<int64_t>& places : by_emitter_)
            for (size_t from = 0, to; from < places.size(); from = to) {
                for (to = from + 1; to < places.size() && !(ends && ends[places[to - 1]]); ++to) {}
                size_t front = to - from;
                if (may_be_held) {
                    sorted_.assign(places.begin() + from, places.begin() + to);
                    front = held_.sort(issuer_, numbers, sorted_);
                    for (size_t i = from; i < to; ++i) order_[places[i]] = sorted_[i - from];
                }
                cut(numbers, places.data() + from, front);
                if (front < to - from) cut(numbers, places.data() + from + front, to - from - front);
            }
    }

    // Makes units of the batch, place by place, and notes the unit of each call.
    void place_units(const int32_t* numbers, int64_t count, const uint8_t* ends) {
        const int64_t position = issuer_.next_position();
        const size_t before = units_of_.size();
        units_of_.resize(before + count);
        for (int64_t place = 0; place < count; ++place) {
            int64_t& own = units_of_[before + order_[place]];
            if (first_[place] < 0 || first_[place] == place) {
                own = position + units();
                units_.push_back(first_[place] < 0 ? numbers[order_[place]] : -1 - piece_[place]);
            } else {
                own = units_of_[before + order_[first_[place]]];  // that of the piece's first call
            }
        }
        for (int64_t i = 0; ends && i < count; ++i)
            if (ends[i]) issuer_.will_await(units_of_[before + i]);
    }

    // Makes units of calls of an emitter, given their places in the batch: the longest pieces that are known.
    void cut(const int32_t* numbers, const int64_t* places, size_t size) {
        run_.clear();
        for (size_t i = 0; i < size; ++i) run_.push_back(numbers[order_[places[i]]]);
        cost_.assign(size, 0);
        for (size_t from = 0; from < size;) {
            const int32_t piece = longest(from);
            const size_t to = piece == NONE ? from + 1 : from + pieces_[piece].numbers.size();
            cost_[from] = piece == NONE ? LAUNCH : GRAPH;
            if (piece != NONE) {
                for (size_t i = from; i < to; ++i) first_[places[i]] = places[from];
                piece_[places[from]] = piece;
            }
            from = to;
        }
        const int64_t costs = std::accumulate(cost_.begin(), cost_.end(), int64_t{0});
        costs_ += costs;
        if (costs > GRAPH) learning.learn(run_, cost_);
    }

    // The longest piece that the present run has at a place, or NONE.
    int32_t longest(size_t from) const {
        const auto known = starts_.find(run_[from]);
        if (known == starts_.end()) return NONE;
        for (int32_t piece : known->second) {
            const std::vector<int32_t>& own = pieces_[piece].numbers;
            if (own.size() <= run_.size() - from && std::equal(own.begin(), own.end(), run_.begin() + from)) return piece;
        }
        return NONE;
    }

    // Keeps the memory of a long run small.
    void forget_ended() {
        if (units_of_.size() < 131072 || units_of_.front() >= issuer_.kept_from()) return;
        size_t ended = 0;
        while (ended < units_of_.size() && units_of_[ended] < issuer_.kept_from()) ++ended;
        units_of_.erase(units_of_.begin(), units_of_.begin() + ended);
        forgotten_ += static_cast<int64_t>(ended);
    }

    Issuer& issuer_;
    Apart apart_;
    Held held_;
    std::vector<Piece> pieces_;
    std::vector<int32_t> free_;               // numbers of pieces that were dropped
    int64_t clock_ = 0;
    std::unordered_map<int32_t, std::vector<int32_t>> starts_;  // by number: pieces that begin with it, the longest first
    // of the batch
    std::vector<int32_t> units_;              // numbers of calls, and of graphs
    int64_t costs_ = 0;
    std::vector<int64_t> cost_;               // of each call of the present run, at the first call of a piece
    std::vector<int64_t> order_;              // of each place: which call stands there
    std::vector<int64_t> first_;              // of each place: the place of the first call of its piece, or -1
    std::vector<int32_t> piece_;              // of each place of a call that is the first of a piece
    std::vector<int64_t> sorted_;
    std::vector<std::vector<int64_t>> by_emitter_;
    std::vector<int32_t> run_, numbers_, emitters_;
    // of the run
    std::vector<int64_t> units_of_;           // of each call: the position of its unit
    int64_t forgotten_ = 0;                   // calls that are not there any more
    int64_t emitters_of_run_ = 0;
};

}  // namespace issue
