// Learning: which runs of calls come again so often that a graph of them would have paid.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "issuer.h"

namespace issue {

constexpr int64_t LAUNCH = 2, GRAPH = 1;  // what a call costs, and a graph of any number of calls

// Calls that followed each other.
struct Run {
    uint64_t key = 0;
    std::vector<int32_t> numbers;
    int32_t piece = -1;  // number of its graph, or -1
    int64_t saved = 0;   // what a graph would have saved
    int64_t factor = 1;  // how many times its price a graph must save
    bool asked = false;
};

class Learning {
  public:
    // A graph costs as much to build as `base` launches of graphs, and as `each` more for every call in it.
    Learning(const Issuer& issuer, int64_t base, int64_t each) : issuer_(issuer), base_(base), each_(each) {}

    std::vector<uint64_t> wanted;  // keys of runs whose graphs are asked for

    // Counts what was paid for a graph of some calls, and what it has saved when it is launched.
    void built(size_t size) { spent_ += price(size); }
    void launched(size_t size) { gained_ += LAUNCH * static_cast<int64_t>(size) - GRAPH; }

    Run& at(uint64_t key) { return runs_.at(key); }

    // Notes what would cost less as a piece: calls of an emitter as a whole, those that keep following each other, and
    // those that often come by themselves. `costs` has what each costs to launch; in a piece, the first one.
    void learn(const std::vector<int32_t>& calls, const std::vector<int64_t>& costs) {
        if (runs_.size() >= MOST_RUNS) forget_idle();
        const size_t size = calls.size();
        behind_.resize(issuer_.calls.size());
        const bool is_new = behind_[calls.front()].times == 0;
        auto saved = [&](size_t from, size_t to) {
            return std::accumulate(costs.begin() + from, costs.begin() + to, -GRAPH);
        };
        for (size_t from = 0, to; from < size; from = to) {
            const bool often = ++behind_[calls[from]].times > base_ + each_;
            for (to = from + 1; to < size && keeps_following(calls[to - 1], calls[to]); ++to) {}
            if (to - from == 1 && often && saved(from, to) > 0) note(calls, from, to, base_ + each_);
            if (1 < to - from && to - from < size && saved(from, to) > 0) note(calls, from, to, saved(from, to));
        }
        if (size > 1 && !is_new) note(calls, 0, size, saved(0, size));
    }

    // Notes that the graph of a run is no more. It must save twice as much as before, before another one is asked for.
    void dropped(Run& run) {
        run.piece = -1;
        run.saved = 0;
        run.asked = false;
        run.factor = std::min<int64_t>(2 * run.factor, 1 << 20);
    }

    void forget() {
        runs_.clear();
        wanted.clear();
        behind_.clear();
    }

  private:
    static constexpr size_t MOST_RUNS = 4096;  // that are known
    static constexpr int64_t FIRST = 64;       // graphs of one call whose price is not held against the next

    // Behind which call another one comes, how often in a row it was that one, and how often it began something to
    // learn.
    struct Behind {
        int32_t call = -1, in_a_row = 0, times = 0;
    };

    // Whether a call has come behind another each time lately, and a graph can hold both.
    bool keeps_following(int32_t before, int32_t number) {
        if (!issuer_.calls[before].function || !issuer_.calls[number].function) return false;
        Behind& known = behind_[number];
        if (known.call != before) known = {before, 0, known.times};
        return ++known.in_a_row > 1;
    }

    // Notes what a graph of some of the calls would have saved.
    void note(const std::vector<int32_t>& calls, size_t from, size_t to, int64_t saved) {
        Run* found = find(calls, from, to);
        if (!found) return;
        found->saved += saved;
        if (found->asked || found->saved < found->factor * dearness() * price(to - from)) return;
        found->asked = true;
        wanted.push_back(found->key);
    }

    int64_t price(size_t size) const { return base_ + each_ * static_cast<int64_t>(size); }

    // How many times its price a graph must promise to save: more as long as those that were built have not paid.
    int64_t dearness() const { return spent_ > gained_ + FIRST * base_ ? 4 : 1; }

    // Finds the run of some of the calls, or adds it. Returns null where a graph cannot hold them.
    Run* find(const std::vector<int32_t>& calls, size_t from, size_t to) {
        const auto first = calls.begin() + from, last = calls.begin() + to;
        uint64_t key = to - from;
        for (auto number = first; number != last; ++number) {
            if (!issuer_.calls[*number].function) return nullptr;
            key = (key ^ static_cast<uint64_t>(*number)) * 0x9E3779B97F4A7C15u;
            key ^= key >> 29;
        }
        Run& own = runs_[key];
        if (own.numbers.empty()) {
            own.key = key;
            own.numbers.assign(first, last);
        }
        return std::equal(own.numbers.begin(), own.numbers.end(), first, last) ? &own : nullptr;
    }

    // Forgets runs without a graph.
    void forget_idle() {
        wanted.clear();
        for (auto each = runs_.begin(); each != runs_.end();)
            each = each->second.piece < 0 ? runs_.erase(each) : std::next(each);
    }

    const Issuer& issuer_;
    int64_t base_, each_;
    int64_t spent_ = 0, gained_ = 0;          // by graphs that were built
    std::unordered_map<uint64_t, Run> runs_;  // by key
    std::vector<Behind> behind_;              // by number of the call
};

}  // namespace issue
