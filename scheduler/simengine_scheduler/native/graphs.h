// Graphs of calls: what the driver builds of a run of calls, ordered by the hazards among them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "issuer.h"

namespace issue {

// CUDA_KERNEL_NODE_PARAMS of version 2.
struct NodeParameters {
    int64_t function;
    unsigned size[7];  // grid, block, shared memory
    int64_t arguments, extra, kernel, context;
};
static_assert(sizeof(NodeParameters) == 72, "as CUDA has it");

// Functions of the CUDA driver, or of another library with the same signatures. Each returns 0, or an error.
struct GraphDriver {
    int (*create)(int64_t* graph, unsigned flags);
    int (*add)(int64_t* node, int64_t graph, const int64_t* before, size_t count, const NodeParameters* parameters);
    int (*instantiate)(int64_t* executable, int64_t graph, unsigned long long flags);
    int (*destroy)(int64_t graph);
};

class Graphs {
  public:
    Graphs(Issuer& issuer, const GraphDriver& driver) : issuer_(issuer), driver_(driver) {}

    // Builds an executable graph of calls in program order, with their arguments as they are. Returns 0 if the driver
    // refuses. Call it between runs.
    int64_t build(const std::vector<int32_t>& numbers) {
        int64_t graph = 0, executable = 0;
        if (driver_.create(&graph, 0)) return 0;
        const bool made = add_nodes(graph, numbers) && driver_.instantiate(&executable, graph, 0) == 0;
        driver_.destroy(graph);
        return made ? executable : 0;
    }

  private:
    bool add_nodes(int64_t graph, const std::vector<int32_t>& numbers) {
        find_waits(numbers);
        nodes_.assign(numbers.size(), 0);
        for (size_t i = 0; i < numbers.size(); ++i) {
            const Call& call = issuer_.calls[numbers[i]];
            before_.clear();
            for (int64_t other : waits_[i]) before_.push_back(nodes_[other]);
            NodeParameters own = {call.function, {}, call.arguments, 0, 0, 0};
            std::copy(call.size, call.size + 7, own.size);
            if (driver_.add(&nodes_[i], graph, before_.empty() ? nullptr : before_.data(), before_.size(), &own))
                return false;
        }
        return true;
    }

    // Finds for each call those that it must come directly after, without those that others of them come after.
    void find_waits(const std::vector<int32_t>& numbers) {
        const size_t size = numbers.size();
        sizes_.resize(size);
        found_.clear();
        const int64_t count = static_cast<int64_t>(size);
        issuer_.check_only(numbers.data(), count, count + 1, sizes_.data(), &found_);
        waits_.assign(size, {});
        behind_.assign(size, std::vector<bool>(size));
        size_t from = 0;
        for (size_t i = 0; i < size; ++i) {
            std::vector<int64_t> upstream(found_.begin() + from, found_.begin() + from + sizes_[i]);
            from += sizes_[i];
            std::sort(upstream.rbegin(), upstream.rend());
            for (int64_t other : upstream) {
                if (behind_[i][other]) continue;
                waits_[i].push_back(other);
                behind_[i][other] = true;
                for (int64_t each = 0; each < other; ++each)
                    if (behind_[other][each]) behind_[i][each] = true;
            }
        }
    }

    Issuer& issuer_;
    GraphDriver driver_;
    std::vector<int32_t> sizes_;                // how many calls each must come after,
    std::vector<int64_t> found_;                // and which, call after call
    std::vector<std::vector<int64_t>> waits_;   // of each call
    std::vector<std::vector<bool>> behind_;     // [i][k]: call i comes after call k
    std::vector<int64_t> nodes_, before_;
};

}  // namespace issue
