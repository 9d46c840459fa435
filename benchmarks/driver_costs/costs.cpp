// Times calls of CUDA's driver from compiled code: launches of kernels and graphs, and what orders streams.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using Handle = void*;

// CUDA_KERNEL_NODE_PARAMS of version 2.
struct NodeParameters {
    Handle function;
    unsigned grid[3], block[3], shared;
    void** arguments;
    void** extra;
    Handle kernel, context;
};

// In the order in which Python gives their addresses.
struct Driver {
    int (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, void**);
    int (*create_stream)(Handle*, unsigned);
    int (*create_event)(Handle*, unsigned);
    int (*record)(Handle, Handle);
    int (*wait)(Handle, Handle, unsigned);
    int (*query)(Handle);
    int (*synchronize)();
    int (*context)(Handle*);
    int (*set_context)(Handle);
    int (*create_graph)(Handle*, unsigned);
    int (*add_node)(Handle*, Handle, const Handle*, size_t, const NodeParameters*);
    int (*instantiate)(Handle*, Handle, unsigned long long);
    int (*launch_graph)(Handle, Handle);
    int (*set_node)(Handle, Handle, const NodeParameters*);
    int (*write)(Handle, uint64_t, unsigned, unsigned);
};

constexpr int STREAMS = 8, OFTEN = 96, REPEATS = 15, NOT_READY = 600;
using Report = void (*)(const char* what, double median, double least);

struct Graph {
    Handle graph = nullptr, executable = nullptr;
    std::vector<Handle> nodes;
};

class Costs {
  public:
    // `seen` is memory of the host that the device can write.
    Costs(const Driver& driver, Handle kernel, volatile unsigned* seen, Report report)
        : driver_(driver), kernel_(kernel), seen_(seen), report_(report) {
        streams_.resize(STREAMS);
        events_.resize(OFTEN * STREAMS);
        for (Handle& stream : streams_) driver_.create_stream(&stream, 1);
        for (Handle& event : events_) driver_.create_event(&event, 2);
        for (int i = 0; i < OFTEN; ++i) launch(i);
        driver_.synchronize();
    }

    void all() {
        host("launch a kernel", [&](int i) { launch(i); });
        host("launch a kernel and record an event", [&](int i) {
            launch(i);
            record(i);
        });
        host("launch a kernel, record an event, and let another stream wait for it", [&](int i) {
            launch(i);
            record(i);
            driver_.wait(streams_[(i + 1) % STREAMS], events_[i], 0);
        });
        host("query an event", [&](int i) { driver_.query(events_[i]); });
        whole("a kernel, until it has ended", [&] { launch(0); });
        host("launch a kernel and write a number behind it", [&](int i) {
            launch(i);
            driver_.write(streams_[i % STREAMS], reinterpret_cast<uint64_t>(seen_), i, 0);
        });
        written();
        for (int calls : {1, 2, 4, 8, 16, 32}) graphs(calls, 1);
        for (int calls : {4, 16, 64}) graphs(calls, 4);
        in_lists();
        for (int number : {1, 2, 4, 8}) {
            threads("launch a kernel", number, [&](int stream, int) { launch(stream); });
            std::vector<Graph> kept = several(4, 1, 2 * STREAMS);
            threads("launch a graph of 4 calls in a row", number, [&](int stream, int i) {
                driver_.launch_graph(kept[2 * stream + i % 2].executable, streams_[stream]);
            });
        }
    }

  private:
    static double now() {
        return 1e6 * std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }

    void launch(int i) {
        driver_.launch(kernel_, 1, 1, 1, 32, 1, 1, 0, streams_[i % STREAMS], arguments_, nullptr);
    }
    void record(int i) { driver_.record(events_[i], streams_[i % STREAMS]); }

    void found(const std::string& what, std::vector<double> times) {
        std::sort(times.begin(), times.end());
        report_(what.c_str(), times[times.size() / 2], times[0]);
    }

    // The time of the host for one of many calls.
    void host(const std::string& what, const std::function<void(int)>& call) {
        std::vector<double> times;
        for (int repeat = 0; repeat < REPEATS; ++repeat) {
            const double began = now();
            for (int i = 0; i < OFTEN; ++i) call(i);
            times.push_back((now() - began) / OFTEN);
            driver_.synchronize();
        }
        found(what, times);
    }

    // The time from a call on the first stream until the host sees the event behind it.
    void whole(const std::string& what, const std::function<void()>& call) {
        std::vector<double> times;
        for (int repeat = 0; repeat < 20 * REPEATS; ++repeat) {
            const double began = now();
            call();
            record(0);
            while (driver_.query(events_[0]) == NOT_READY) {}
            times.push_back(now() - began);
        }
        found(what, times);
    }

    // The same where the host sees a number that the stream has written to its memory.
    void written() {
        std::vector<double> times;
        for (unsigned repeat = 1; repeat <= 20 * REPEATS; ++repeat) {
            const double began = now();
            launch(0);
            driver_.write(streams_[0], reinterpret_cast<uint64_t>(seen_), OFTEN + repeat, 0);
            while (*seen_ != OFTEN + repeat)
                if (now() - began > 1e5) return;  // this device writes no such numbers
            times.push_back(now() - began);
        }
        found("a kernel, until the number behind it is seen", times);
    }

    NodeParameters parameters(unsigned blocks) {
        return {kernel_, {blocks, 1, 1}, {32, 1, 1}, 0, arguments_, nullptr, nullptr, nullptr};
    }

    // A graph of calls, so many side by side, each behind all of the row before.
    Graph made(int calls, int width) {
        Graph own;
        driver_.create_graph(&own.graph, 0);
        for (int i = 0; i < calls; ++i) {
            const auto row = own.nodes.begin() + i / width * width;
            const std::vector<Handle> before(i < width ? row : row - width, row);
            const NodeParameters given = parameters(1);
            Handle node;
            driver_.add_node(&node, own.graph, before.data(), before.size(), &given);
            own.nodes.push_back(node);
        }
        driver_.instantiate(&own.executable, own.graph, 0);
        for (int k = 0; k < 2; ++k) driver_.launch_graph(own.executable, streams_[0]);
        driver_.synchronize();
        return own;
    }

    std::vector<Graph> several(int calls, int width, int number) {
        std::vector<Graph> kept;
        for (int i = 0; i < number; ++i) kept.push_back(made(calls, width));
        return kept;
    }

    void graphs(int calls, int width) {
        const std::string of = " a graph of " + std::to_string(calls) + " calls, " +
                               (width == 1 ? "in a row" : std::to_string(width) + " side by side");
        std::vector<double> times;
        for (int repeat = 0; repeat < REPEATS; ++repeat) {
            const double began = now();
            made(calls, width);
            times.push_back(now() - began);
        }
        found("build" + of + ", and launch it twice", times);
        std::vector<Graph> kept = several(calls, width, STREAMS);
        auto launch_graph = [&](int i) { driver_.launch_graph(kept[i % STREAMS].executable, streams_[i % STREAMS]); };
        host("launch" + of, launch_graph);
        whole(of.substr(1) + ", until it has ended", [&] { launch_graph(0); });
        host("give another grid to a call of" + of + ", and launch it", [&](int i) {
            const NodeParameters given = parameters(1 + i / STREAMS % 2);
            driver_.set_node(kept[i % STREAMS].executable, kept[i % STREAMS].nodes[0], &given);
            launch_graph(i);
        });
    }

    // What lists do between launches: streams that stay or change, graphs that take turns, and waits of the host.
    void in_lists() {
        auto on = [&](int stream) {
            driver_.launch(kernel_, 1, 1, 1, 32, 1, 1, 0, streams_[stream], arguments_, nullptr);
        };
        host("launch a kernel on the same stream as before", [&](int) { on(0); });
        host("launch a kernel on one of two streams in turn", [&](int i) { on(i % 2); });
        for (int width : {1, 4}) {
            const std::string of = width == 1 ? " of 8 calls in a row" : " of 8 calls, 4 side by side";
            std::vector<Graph> kept = several(8, width, STREAMS);
            auto graph = [&](int which, int stream) {
                driver_.launch_graph(kept[which % STREAMS].executable, streams_[stream % STREAMS]);
            };
            host("launch the same graph" + of + " on the same stream", [&](int) { graph(0, 0); });
            host("launch one of two graphs" + of + " in turn on the same stream", [&](int i) { graph(i % 2, 0); });
            host("launch a graph" + of + " on another stream than the last time",
                 [&](int i) { graph(i, i / STREAMS + i); });
            host("launch a graph" + of + " and a kernel behind it", [&](int i) {
                graph(i, i);
                on(i % STREAMS);
            });
            whole("two graphs" + of + ", the second when the host has seen the end of the first", [&] {
                graph(0, 0);
                record(0);
                while (driver_.query(events_[0]) == NOT_READY) {}
                graph(1, 0);
            });
            whole("two graphs" + of + ", one behind the other", [&] {
                graph(0, 0);
                graph(1, 0);
            });
        }
        whole("two kernels, the second when the host has seen the end of the first", [&] {
            on(0);
            record(0);
            while (driver_.query(events_[0]) == NOT_READY) {}
            on(0);
        });
        whole("two kernels, one behind the other", [&] {
            on(0);
            on(0);
        });
        whole("two kernels, the second on another stream behind an event", [&] {
            on(1);
            driver_.record(events_[1], streams_[1]);
            driver_.wait(streams_[0], events_[1], 0);
            on(0);
        });
    }

    // The time for one of many calls that threads make at once, each on a stream of its own.
    void threads(const std::string& what, int number, const std::function<void(int, int)>& call) {
        Handle context;
        driver_.context(&context);
        std::vector<double> times;
        for (int repeat = 0; repeat < REPEATS; ++repeat) {
            std::atomic<int> ready{0};
            std::vector<double> ends(number);
            std::vector<std::thread> all;
            for (int own = 0; own < number; ++own)
                all.emplace_back([&, own] {
                    driver_.set_context(context);
                    for (++ready; ready <= number;) {}
                    for (int i = 0; i < 4 * OFTEN / number; ++i) call(own, i);
                    ends[own] = now();
                });
            while (ready < number) {}
            const double began = now();
            ++ready;
            for (std::thread& each : all) each.join();
            times.push_back((*std::max_element(ends.begin(), ends.end()) - began) / (4 * OFTEN));
            driver_.synchronize();
        }
        found(what + ", by " + std::to_string(number) + (number == 1 ? " thread" : " threads"), times);
    }

    Driver driver_;
    Handle kernel_;
    volatile unsigned* seen_;
    Report report_;
    std::vector<Handle> streams_, events_;
    void* arguments_[1] = {nullptr};
};

}  // namespace

extern "C" void measure(const void* functions, Handle kernel, void* seen, Report report) {
    Costs(*static_cast<const Driver*>(functions), kernel, static_cast<volatile unsigned*>(seen), report).all();
}
