// Issues random programs on a driver whose streams are threads, and compares their results with those of program order.
// The issuer makes the driver's calls itself, or up to three launch threads do.
// Then lists of which counts choose the calls, where the host reads what the threads have counted, and runs of calls that
// come again, which are launched together.
// The test builds it with sanitizers: a missing wait is a race of two threads. Prints the number of programs.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "issuer.h"
#include "pieces.h"
#include "plans.h"
#include "programs.h"

namespace {

struct Event {
    std::mutex mutex;
    std::condition_variable changed;
    int64_t recorded = 0, done = 0;

    int64_t record() {
        std::lock_guard<std::mutex> lock(mutex);
        return ++recorded;
    }
    int64_t latest() {
        std::lock_guard<std::mutex> lock(mutex);
        return recorded;
    }
    void finish(int64_t version) {
        std::lock_guard<std::mutex> lock(mutex);
        done = version;
        changed.notify_all();
    }
    void wait(int64_t version) {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return done >= version; });
    }
    bool is_done() {
        std::lock_guard<std::mutex> lock(mutex);
        return done >= recorded;
    }
};

class Stream {
  public:
    Stream() : thread_([this] { work(); }) {}
    ~Stream() {
        put(nullptr);
        thread_.join();
    }
    void put(std::function<void()> task) {
        std::lock_guard<std::mutex> lock(mutex_);
        tasks_.push_back(std::move(task));
        changed_.notify_one();
    }

  private:
    void work() {
        for (;;) {
            std::unique_lock<std::mutex> lock(mutex_);
            changed_.wait(lock, [&] { return !tasks_.empty(); });
            std::function<void()> task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            if (!task) return;
            task();
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    std::thread thread_;
};

// What a call does: it reads some cells, and multiplies and adds to others.
struct Body {
    std::vector<int32_t> reads, writes;
    uint64_t addend = 0;
    std::vector<uint64_t>* cells = nullptr;
    int32_t* count = nullptr;  // which it writes, if it counts

    void run() const {
        if (count) *count = static_cast<int32_t>((*cells)[reads[0]] >> 5) & 3;
        uint64_t sum = addend;
        for (int32_t cell : reads) sum = sum * 1099511628211u + (*cells)[cell];
        for (int32_t cell : writes) (*cells)[cell] = (*cells)[cell] * 31 + sum;
    }
};

template <class T>
T* as(int64_t handle) { return reinterpret_cast<T*>(handle); }
template <class T>
int64_t handle_of(T* object) { return reinterpret_cast<int64_t>(object); }

constexpr int64_t REFUSED = 5;  // a function that the driver refuses to launch
constexpr int REFUSAL = 7;

int launch(int64_t function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, int64_t stream,
           int64_t arguments, int64_t) {
    const Body* body = as<Body>(arguments);
    if (function == REFUSED) return REFUSAL;
    as<Stream>(stream)->put([body] { body->run(); });
    return 0;
}
int record(int64_t event, int64_t stream) {
    Event* own = as<Event>(event);
    int64_t version = own->record();
    as<Stream>(stream)->put([own, version] { own->finish(version); });
    return 0;
}
int wait(int64_t stream, int64_t event, unsigned) {
    Event* own = as<Event>(event);
    int64_t version = own->latest();
    as<Stream>(stream)->put([own, version] { own->wait(version); });
    return 0;
}
// A graph is the bodies of its calls, which run in order.
int launch_graph(int64_t graph, int64_t stream) {
    const auto* bodies = as<std::vector<const Body*>>(graph);
    as<Stream>(stream)->put([bodies] {
        for (const Body* body : *bodies) body->run();
    });
    return 0;
}
int query(int64_t event) { return as<Event>(event)->is_done() ? 0 : issue::NOT_READY; }

// Joins the streams, and reads all memory behind them on the first one.
void join(issue::Issuer& issuer, Stream& first, const std::vector<uint64_t>& memory, std::deque<Event>& joins, int streams) {
    while (static_cast<int>(joins.size()) < streams) joins.emplace_back();
    std::vector<int64_t> handles;
    for (Event& event : joins) handles.push_back(handle_of(&event));
    if (!issuer.join(handles.data()) || !issuer.settle()) std::abort();
    first.put([&memory] {
        volatile uint64_t sum = 0;
        for (uint64_t cell : memory) sum = sum + cell;
    });
}

// Answers calls that ask for graphs.
using Graphs = std::deque<std::vector<const Body*>>;
void build(issue::Issuer& issuer, issue::Pieces& pieces, Graphs& graphs) {
    while (!pieces.learning.wanted.empty()) {
        const uint64_t key = pieces.learning.wanted.front();
        pieces.learning.wanted.erase(pieces.learning.wanted.begin());
        graphs.emplace_back();
        for (int32_t number : pieces.learning.at(key).numbers)
            graphs.back().push_back(as<Body>(issuer.calls[number].arguments));
        pieces.add(key, handle_of(&graphs.back()));
    }
}

// Emitters of random parts of their calls, on cells of their own but for some calls, which come again in each run. They are
// issued in batches, and some calls are awaited.
void pieces(std::mt19937& draw) {
    auto below = [&](int n) { return static_cast<int>(draw() % n); };
    const int chains = 1 + below(5), length = 8, streams = 1 + below(8), window = 1 + below(40), runs = 6;
    const int width = 1 + below(4), cells = chains * width;  // of a chain, and of all
    std::vector<uint64_t> memory(cells + 1, 1), expected(cells + 1, 1);
    issue::Issuer issuer({launch, record, wait, query, launch_graph}, streams, window, below(3), false, false, below(4),
                         1 + below(8));
    issue::Pieces pieces(issuer, 0, 0);
    for (int32_t s = 0; s <= cells; ++s) issuer.hazards.set_conflicts(s, &s, 1);
    std::deque<Body> bodies;
    std::vector<uint8_t> is_awaited;
    std::vector<bool> ends_batch;  // of each round
    for (int k = 0; k < length; ++k) ends_batch.push_back(k == length - 1 || below(3) == 0);
    const bool meet = below(3) == 0;
    for (int32_t chain = 0; chain < chains; ++chain)
        for (int k = 0; k < length; ++k) {
            Body body{{}, {chain * width + below(width)}, static_cast<uint64_t>(7 * k + chain), &memory};
            for (int others = below(3); others > 0; --others) body.reads.push_back(chain * width + below(width));
            if (meet && below(8) == 0) body.reads.push_back(cells);
            if (meet && below(8) == 0) body.writes.push_back(cells);
            bodies.push_back(body);
            is_awaited.push_back(below(6) == 0);
            issue::Call call;
            call.function = 1;
            call.arguments = handle_of(&bodies.back());
            call.combination = issuer.hazards.add_combination(body.reads.data(), body.reads.size(), body.writes.data(),
                                                              body.writes.size());
            issuer.calls.push_back(call);
        }
    std::vector<std::unique_ptr<Event>> events;
    std::vector<int64_t> free_events;
    for (int i = 0; i < window; ++i) {
        events.push_back(std::make_unique<Event>());
        free_events.push_back(handle_of(events.back().get()));
    }
    Event fork;
    std::deque<Event> joins;
    Graphs graphs;
    for (int run = 0; run < runs; ++run) {
        std::vector<std::vector<int32_t>> lists;
        for (int32_t chain = 0; chain < chains; ++chain) {
            lists.emplace_back();
            for (int k = below(2); k < length - 3 * below(2); ++k) lists.back().push_back(chain * length + k);
        }
        std::vector<int32_t> numbers, emitters;
        std::vector<uint8_t> ends;
        std::vector<size_t> batches;
        for (int k = 0; k < length; ++k) {
            for (int32_t chain = 0; chain < chains; ++chain)
                if (k < static_cast<int>(lists[chain].size())) {
                    numbers.push_back(lists[chain][k]);
                    emitters.push_back(chain);
                    ends.push_back(is_awaited[numbers.back()]);
                }
            if (ends_batch[k]) batches.push_back(numbers.size());
        }
        for (int32_t number : numbers) {
            Body copy = bodies[number];
            copy.cells = &expected;
            copy.run();
        }
        std::vector<std::unique_ptr<Stream>> workers;
        std::vector<int64_t> handles;
        for (int s = 0; s < streams; ++s) {
            workers.push_back(std::make_unique<Stream>());
            handles.push_back(handle_of(workers.back().get()));
        }
        if (!issuer.begin(handles.data(), handle_of(&fork), free_events.data(), window, false)) std::abort();
        pieces.begin();
        size_t from = 0;
        for (size_t to : batches) {
            int64_t done = 0;
            pieces.divide(&numbers[from], &emitters[from], static_cast<int64_t>(to - from), &ends[from]);
            if (pieces.issue(&done) != issue::DONE) std::abort();
            for (size_t i = from; i < to; ++i) {
                if (ends[i])  // goes on only with what the awaited call has written
                    while (issuer.complete(pieces.position_of(i)) == 0) {}
                while (pieces.position_of(i) >= 0 && below(4) == 0 && issuer.complete(pieces.position_of(i)) == 0) {}
            }
            from = to;
        }
        join(issuer, *workers[0], memory, joins, streams);
        workers.clear();  // ends all threads, once they are idle
        build(issuer, pieces, graphs);
    }
    if (memory != expected) {
        std::puts("results of pieces differ from those of program order");
        std::exit(1);
    }
}

void program(std::mt19937& draw) {
    auto below = [&](int n) { return static_cast<int>(draw() % n); };
    const int cells = 1 + below(12), count = below(120), streams = 1 + below(4);
    const int window = below(4) ? 1 + below(12) : 1 + below(256);
    std::vector<uint64_t> memory(cells, 1), expected(cells, 1);
    issue::Issuer issuer({launch, record, wait, query}, streams, window, below(3), below(2) == 1, below(2) == 1, below(4),
                         1 + below(40));
    for (int32_t s = 0; s < cells; ++s) issuer.hazards.set_conflicts(s, &s, 1);
    std::vector<std::unique_ptr<Body>> bodies;
    std::vector<int32_t> numbers, lists[2];
    for (int i = 0; i < count; ++i) {
        auto body = std::make_unique<Body>();
        for (int k = below(3); k > 0; --k) body->reads.push_back(below(cells));
        for (int k = below(3); k > 0; --k) body->writes.push_back(below(cells));
        body->addend = i;
        body->cells = &memory;
        issue::Call call;
        call.function = 1;
        call.arguments = handle_of(body.get());
        call.combination = issuer.hazards.add_combination(body->reads.data(), body->reads.size(), body->writes.data(),
                                                          body->writes.size());
        issuer.calls.push_back(call);
        numbers.push_back(i);
        lists[i % 2].push_back(i);  // two lists that take turns have the same order
        bodies.push_back(std::move(body));
    }
    std::vector<std::unique_ptr<Event>> events;
    std::vector<int64_t> free_events;
    for (int i = 0; i < std::max(window, count); ++i) {
        events.push_back(std::make_unique<Event>());
        free_events.push_back(handle_of(events.back().get()));
    }
    Event fork;
    std::deque<Event> joins;
    {
        std::vector<std::unique_ptr<Stream>> workers;
        std::vector<int64_t> handles;
        for (int s = 0; s < streams; ++s) {
            workers.push_back(std::make_unique<Stream>());
            handles.push_back(handle_of(workers.back().get()));
        }
        int64_t done = 0;
        if (!issuer.begin(handles.data(), handle_of(&fork), free_events.data(), window, true)) std::abort();
        if (issuer.issue(numbers.data(), count, &done) != issue::DONE) std::abort();
        if (issuer.drain() != issue::DONE) std::abort();
        join(issuer, *workers[0], memory, joins, streams);
    }  // ends all threads, once they are idle
    {
        std::vector<std::unique_ptr<Stream>> workers;
        std::vector<int64_t> handles;
        for (int s = 0; s < streams; ++s) {
            workers.push_back(std::make_unique<Stream>());
            handles.push_back(handle_of(workers.back().get()));
        }
        const int32_t* both[] = {lists[0].data(), lists[1].data()};
        const int64_t lengths[] = {static_cast<int64_t>(lists[0].size()), static_cast<int64_t>(lists[1].size())};
        std::unique_ptr<issue::Plan> plan(issuer.plan(both, lengths, 2));
        int64_t done = 0;
        if (!issuer.begin(handles.data(), handle_of(&fork), free_events.data(), plan->events, false)) std::abort();
        if (issuer.issue_plan(*plan, &done) != issue::DONE) std::abort();
        join(issuer, *workers[0], memory, joins, streams);
    }
    for (int round = 0; round < 2; ++round)
        for (auto& body : bodies) {
            Body copy = *body;
            copy.cells = &expected;
            copy.run();
        }
    if (memory != expected) {
        std::puts("results differ from those of program order");
        std::exit(1);
    }
}

// Lists of their own cells: count, one call or none between, an await, a call by the count, and a last one.
void counted(std::mt19937& draw) {
    auto below = [&](int n) { return static_cast<int>(draw() % n); };
    const int lists = 1 + below(8), streams = 1 + below(16), window = 4 + below(4) * below(80), rounds = 4;
    const bool in_order = below(4) == 0, polling = !in_order && below(2) == 0;
    std::vector<uint64_t> memory(lists, 1), expected(lists, 1);
    std::vector<int32_t> counts(lists, 0), expected_counts(lists, 0);
    const int32_t threads = in_order ? 0 : below(4);
    issue::Issuer issuer({launch, record, wait, query, launch_graph}, streams, window, below(3), polling, below(2) == 1,
                         threads, 1 + below(8));
    issue::Programs programs(issuer);
    issue::Pieces pieces(issuer, 0, 0);
    const bool has_pieces = !in_order && !polling && below(2);
    Graphs graphs;
    std::deque<Body> bodies;
    auto define = [&](int32_t list, bool counts_it, uint64_t addend) {
        bodies.push_back({{list}, {}, addend, &memory, counts_it ? &counts[list] : nullptr});
        if (!counts_it) bodies.back().writes = {list};
        issue::Call call;
        call.function = 1;
        call.arguments = handle_of(&bodies.back());
        const int32_t touched[] = {2 * list, 2 * list + 1};  // the cell and the count
        call.combination = counts_it ? issuer.hazards.add_combination(touched, 1, touched + 1, 1)
                                     : issuer.hazards.add_combination(touched + 1, 1, touched, 1);
        issuer.calls.push_back(call);
        return static_cast<int64_t>(issuer.calls.size()) - 1;
    };
    std::vector<int32_t> chosen;
    std::vector<int> between(lists), tables(lists);
    std::vector<std::vector<int64_t>> rooms(lists);
    std::vector<int32_t> seen(lists);
    const int32_t room = 2;
    for (int32_t s = 0; s < 2 * lists; ++s) issuer.hazards.set_conflicts(s, &s, 1);
    for (int32_t list = 0; list < lists; ++list) {
        between[list] = below(3);
        tables[list] = programs.add_table();
        for (int32_t k = 1; k < 4; ++k) programs.set(tables[list], k, k + 1, static_cast<int32_t>(define(list, false, 100 + k)));
        // every second list goes on by itself if its count is at most 2
        rooms[list] = {1, handle_of(&counts[list]), 1, handle_of(&room)};
        std::vector<int64_t> words = {issue::Entry::CALL, define(list, true, 0), 0, 0, 0};
        for (int k = 0; k < between[list]; ++k)
            words.insert(words.end(), {issue::Entry::CALL, define(list, false, 7 + k), 0, 0, 0});
        words.insert(words.end(), {issue::Entry::AWAIT, 0, 0, 0, list % 2 ? handle_of(rooms[list].data()) : 0});
        words.insert(words.end(), {issue::Entry::COUNTED, tables[list], handle_of(&counts[list]), handle_of(&seen[list]), 0});
        words.insert(words.end(), {issue::Entry::CALL, define(list, false, 3), 0, 0, 0});
        chosen.push_back(programs.add(words.data(), words.size() / 5));
    }
    std::vector<std::unique_ptr<Event>> events;
    std::vector<int64_t> free_events;
    for (int i = 0; i < std::max(window, lists); ++i) {
        events.push_back(std::make_unique<Event>());
        free_events.push_back(handle_of(events.back().get()));
    }
    Event fork;
    std::deque<Event> joins;
    for (int round = 0; round < rounds; ++round) {
        std::vector<std::unique_ptr<Stream>> workers;
        std::vector<int64_t> handles;
        for (int s = 0; s < streams; ++s) {
            workers.push_back(std::make_unique<Stream>());
            handles.push_back(handle_of(workers.back().get()));
        }
        if (!issuer.begin(handles.data(), handle_of(&fork), free_events.data(), window, round == 1)) std::abort();
        pieces.begin();
        programs.begin(chosen.data(), lists, handles[0], in_order ? free_events.data() : nullptr,
                       has_pieces ? &pieces : nullptr);
        for (issue::Pause pause; (pause = programs.run()) != issue::ENDED; programs.resume())
            if (pause != issue::ARRIVED) std::abort();
        if (issuer.drain() != issue::DONE || !issuer.settle()) std::abort();
        if (!in_order) join(issuer, *workers[0], memory, joins, streams);
        build(issuer, pieces, graphs);
    }
    for (int round = 0; round < rounds; ++round)
        for (int32_t list = 0; list < lists; ++list) {
            auto work = [&](uint64_t addend) { Body{{list}, {list}, addend, &expected}.run(); };
            Body{{list}, {}, 0, &expected, &expected_counts[list]}.run();
            for (int k = 0; k < between[list]; ++k) work(7 + k);
            if (expected_counts[list]) work(100 + expected_counts[list]);
            work(3);
        }
    for (int32_t list = 0; list < lists; ++list)
        if (seen[list] != static_cast<int32_t>(counts[list])) std::abort();
    if (memory != expected || counts != expected_counts) {
        std::puts("results of counted lists differ from those of program order");
        std::exit(1);
    }
}

// A driver that refuses calls: the earliest of them is named, and the issuer goes on with the next run.
void refused(std::mt19937& draw) {
    auto below = [&](int n) { return static_cast<int>(draw() % n); };
    const int count = 60, cells = 1 + below(8), streams = 1 + below(6), threads = below(4), runs = 6;
    std::vector<uint64_t> memory(cells, 1);
    issue::Issuer issuer({launch, record, wait, query}, streams, count, 0, false, false, threads, 1 + below(80));
    for (int32_t s = 0; s < cells; ++s) issuer.hazards.set_conflicts(s, &s, 1);
    std::deque<Body> bodies;
    std::deque<Event> events(count), joins;
    std::vector<int64_t> free_events;
    for (Event& event : events) free_events.push_back(handle_of(&event));
    std::vector<int32_t> numbers;
    for (int i = 0; i < count; ++i) {
        bodies.push_back({{}, {below(cells)}, static_cast<uint64_t>(i), &memory});
        issue::Call call;
        call.function = 1;
        call.arguments = handle_of(&bodies.back());
        call.combination = issuer.hazards.add_combination(nullptr, 0, bodies.back().writes.data(), 1);
        issuer.calls.push_back(call);
        numbers.push_back(i);
    }
    Event fork;
    for (int run = 0; run < runs; ++run) {
        const int at = below(count), next = std::min(at + 1 + below(9), count - 1);
        const bool refuses = run % 2;
        for (int i : {at, next}) issuer.calls[i].function = refuses ? REFUSED : 1;
        std::vector<std::unique_ptr<Stream>> workers;
        std::vector<int64_t> handles;
        for (int s = 0; s < streams; ++s) {
            workers.push_back(std::make_unique<Stream>());
            handles.push_back(handle_of(workers.back().get()));
        }
        int64_t done = 0;
        if (!issuer.begin(handles.data(), handle_of(&fork), free_events.data(), count, false)) std::abort();
        issue::Outcome outcome = issuer.issue(numbers.data(), count, &done);
        if (!issuer.settle()) outcome = issue::FAILED;
        if (outcome != (refuses ? issue::FAILED : issue::DONE)) std::abort();
        if (refuses && (issuer.status != REFUSAL || (issuer.named() != at && issuer.named() != next))) std::abort();
        if (refuses && threads < 2 && issuer.named() != at) std::abort();  // several threads may meet a later one first
        if (!refuses) join(issuer, *workers[0], memory, joins, streams);
        for (int i : {at, next}) issuer.calls[i].function = 1;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int programs = argc > 1 ? std::atoi(argv[1]) : 100;
    std::mt19937 draw(argc > 2 ? std::atoi(argv[2]) : 0);
    for (int i = 0; i < programs; ++i) {
        program(draw);
        counted(draw);
        pieces(draw);
        refused(draw);
    }
    std::printf("%d\n", programs);
    return 0;
}
