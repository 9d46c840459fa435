// The driver's functions with their times: launch, record, wait, query, and launch of a graph.
#include <chrono>
#include <cstdint>

namespace {

enum { LAUNCH, RECORD, WAIT, QUERY, GRAPH, NUMBER };

int (*launch)(int64_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, int64_t, int64_t, int64_t);
int (*record)(int64_t, int64_t);
int (*wait)(int64_t, int64_t, unsigned);
int (*query)(int64_t);
int (*launch_graph)(int64_t, int64_t);

double spent[NUMBER];  // seconds
int64_t times[NUMBER];

template <class Call>
int timed(int which, Call call) {
    const auto began = std::chrono::steady_clock::now();
    const int status = call();
    spent[which] += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    ++times[which];
    return status;
}

}  // namespace

extern "C" {

void timed_set(const int64_t* functions) {
    launch = reinterpret_cast<decltype(launch)>(functions[LAUNCH]);
    record = reinterpret_cast<decltype(record)>(functions[RECORD]);
    wait = reinterpret_cast<decltype(wait)>(functions[WAIT]);
    query = reinterpret_cast<decltype(query)>(functions[QUERY]);
    launch_graph = reinterpret_cast<decltype(launch_graph)>(functions[GRAPH]);
}

// Writes what was spent since the last time, and how often each function was called.
void timed_take(double* seconds, int64_t* calls) {
    for (int i = 0; i < NUMBER; ++i) {
        seconds[i] = spent[i];
        calls[i] = times[i];
        spent[i] = 0;
        times[i] = 0;
    }
}

int timed_launch(int64_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                 unsigned shared, int64_t stream, int64_t arguments, int64_t extra) {
    return timed(LAUNCH, [&] { return launch(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra); });
}
int timed_record(int64_t event, int64_t stream) {
    return timed(RECORD, [&] { return record(event, stream); });
}
int timed_wait(int64_t stream, int64_t event, unsigned flags) {
    return timed(WAIT, [&] { return wait(stream, event, flags); });
}
int timed_query(int64_t event) {
    return timed(QUERY, [&] { return query(event); });
}
int timed_graph(int64_t graph, int64_t stream) {
    return timed(GRAPH, [&] { return launch_graph(graph, stream); });
}

}  // extern "C"
