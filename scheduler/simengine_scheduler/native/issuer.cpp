// The functions of the issuer that Python calls, through ctypes. Addresses and handles are integers of 64 bits.
#include "graphs.h"
#include "issuer.h"
#include "pieces.h"
#include "plans.h"
#include "programs.h"

using issue::Graphs;
using issue::Issuer;
using issue::Pieces;
using issue::Plan;
using issue::Programs;

namespace {

// An outcome, once threads have made all calls: Python may then change what they were given.
int32_t settled(Issuer* issuer, int32_t outcome) { return issuer->settle() ? outcome : issue::FAILED; }

// Writes where programs are: the turn, its entry and count, how many calls were issued, how many turns have arrived, and how
// many waits have passed; then, as far as there is room, the turns that have arrived and the entries that they awaited at.
void write(const Programs& programs, int64_t* out, int64_t room) {
    out[0] = programs.turn;
    out[1] = programs.entry;
    out[2] = programs.count;
    out[3] = programs.issued;
    out[4] = static_cast<int64_t>(programs.arrived.size());
    out[5] = programs.passed;
    int64_t* found = out + 6;
    for (size_t i = 0; i < programs.arrived.size() && 2 * static_cast<int64_t>(i) + 1 < room; ++i) {
        found[2 * i] = programs.arrived[i];
        found[2 * i + 1] = programs.at(programs.arrived[i]);
    }
}

}  // namespace

extern "C" {

// The functions stand in the order in which `Driver` has them. So many threads make the driver's calls, or 0.
Issuer* issuer_make(const int64_t* functions, int32_t streams, int32_t window, int32_t policy, int32_t polling,
                    int32_t chains, int32_t threads) {
    issue::Driver driver;
    driver.launch = reinterpret_cast<decltype(driver.launch)>(functions[0]);
    driver.record = reinterpret_cast<decltype(driver.record)>(functions[1]);
    driver.wait = reinterpret_cast<decltype(driver.wait)>(functions[2]);
    driver.query = reinterpret_cast<decltype(driver.query)>(functions[3]);
    driver.launch_graph = reinterpret_cast<decltype(driver.launch_graph)>(functions[4]);
    driver.get_context = reinterpret_cast<decltype(driver.get_context)>(functions[5]);
    driver.set_context = reinterpret_cast<decltype(driver.set_context)>(functions[6]);
    return new Issuer(driver, streams, window, policy, polling != 0, chains != 0, threads);
}

void issuer_free(Issuer* issuer) { delete issuer; }

// Sets what segments conflict with: number of the segment, how many others, and these.
void issuer_set_conflicts(Issuer* issuer, const int32_t* words, int64_t count) {
    for (const int32_t* end = words + count; words < end; words += 2 + words[1])
        issuer->hazards.set_conflicts(words[0], words + 2, words[1]);
}

// Adds combinations: how many segments are read and written, these, and those.
void issuer_add_combinations(Issuer* issuer, const int32_t* words, int64_t count) {
    for (const int32_t* end = words + count; words < end; words += 2 + words[0] + words[1])
        issuer->hazards.add_combination(words + 2, words[0], words + 2 + words[0], words[1]);
}

// Defines calls, each by 11 words: number, function, grid, block, shared memory, arguments, combination.
void issuer_define(Issuer* issuer, const int64_t* words, int64_t count) {
    for (int64_t i = 0; i < count; ++i, words += 11) {
        if (words[0] >= static_cast<int64_t>(issuer->calls.size())) issuer->calls.resize(words[0] + 1);
        issue::Call& call = issuer->calls[words[0]];
        call.function = words[1];
        for (int k = 0; k < 7; ++k) call.size[k] = static_cast<unsigned>(words[2 + k]);
        call.arguments = words[9];
        call.combination = static_cast<int32_t>(words[10]);
    }
}

// Forgets calls and combinations. No plan that was made before may be issued.
void issuer_forget(Issuer* issuer) {
    issuer->calls.clear();
    issuer->graphs.clear();
    issuer->hazards.forget_combinations();
}

int32_t issuer_begin(Issuer* issuer, const int64_t* handles, int64_t fork, const int64_t* events, int64_t num_events,
                     int32_t logs) {
    return settled(issuer, issuer->begin(handles, fork, events, num_events, logs != 0) ? issue::DONE : issue::FAILED);
}

int32_t issuer_join(Issuer* issuer, const int64_t* events) {
    return settled(issuer, issuer->join(events) ? issue::DONE : issue::FAILED);
}

// Says which calls of the run will be awaited that have not been issued, by position.
void issuer_will_await(Issuer* issuer, const int64_t* positions, int64_t count) {
    for (int64_t i = 0; i < count; ++i) issuer->will_await(positions[i]);
}

int32_t issuer_issue(Issuer* issuer, const int32_t* numbers, int64_t count, int64_t* done) {
    return settled(issuer, issuer->issue(numbers, count, done));
}

int32_t issuer_issued(Issuer* issuer) { return settled(issuer, issuer->issued() ? issue::DONE : issue::FAILED); }

int32_t issuer_complete(Issuer* issuer, int64_t position) {
    const int32_t answer = issuer->progress() ? issuer->complete(position) : -1;
    return issuer->settle() ? answer : -1;
}

// Finds out which of some calls have ended, by position, or by place if they are issued as pieces. Writes a 1 for each that
// has, and a 0 for others. Of one stream, calls behind one that goes on are not looked at. Returns 0, or -1 for an error.
int32_t issuer_ended(Issuer* issuer, const Pieces* pieces, const int64_t* calls, int64_t count, uint8_t* out) {
    if (!issuer->progress()) return -1;
    std::vector<int64_t> goes_on;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t position = pieces ? pieces->position_of(calls[i]) : calls[i];
        const int64_t stream = issuer->stream_of(position);
        out[i] = 0;
        if (std::find(goes_on.begin(), goes_on.end(), stream) != goes_on.end()) continue;
        const int answer = issuer->complete(position);
        if (answer < 0) return -1;
        out[i] = answer == 1;
        if (!answer) goes_on.push_back(stream);
    }
    return issuer->settle() ? 0 : -1;
}

int32_t issuer_drain(Issuer* issuer) { return settled(issuer, issuer->drain()); }

int32_t issuer_serial(Issuer* issuer, const int32_t* numbers, int64_t count, int64_t* done, int64_t handle) {
    return issuer->serial(numbers, count, done, handle);
}

// Writes where the issuer is: position, stream handle of the latest call, status, waits asked for and made, and the number
// of that call.
void issuer_state(const Issuer* issuer, int64_t* out) {
    out[0] = issuer->at;
    out[1] = issuer->current();
    out[2] = issuer->status;
    out[3] = issuer->asked();
    out[4] = issuer->needed();
    out[5] = issuer->named();
}

int64_t issuer_log(const Issuer* issuer, const int64_t** entries) {
    *entries = issuer->log.data();
    return static_cast<int64_t>(issuer->log.size());
}

Plan* issuer_plan(Issuer* issuer, const int32_t* const* lists, const int64_t* lengths, int64_t count, int64_t* out) {
    Plan* plan = issuer->plan(lists, lengths, count);
    out[0] = plan->calls;
    out[1] = plan->events;
    out[2] = plan->asked;
    out[3] = plan->needed;
    return plan;
}

int32_t issuer_issue_plan(Issuer* issuer, const Plan* plan, int64_t* done) {
    return settled(issuer, issuer->issue_plan(*plan, done));
}

void issuer_free_plan(Plan* plan) { delete plan; }

// Checks calls as `check_only` does, without issuing them. Returns how many entries `found` needs and
// writes as many as there is room for; `sizes` and `found` may be null.
int64_t issuer_check(Issuer* issuer, const int32_t* numbers, int64_t count, int64_t window, int32_t* sizes,
                     int64_t* found, int64_t room) {
    std::vector<int64_t> all;
    issuer->check_only(numbers, count, window, sizes, found ? &all : nullptr);
    for (size_t i = 0; i < all.size() && static_cast<int64_t>(i) < room; ++i) found[i] = all[i];
    return static_cast<int64_t>(all.size());
}

// A graph costs as much to build as `base` launches of graphs, and as `each` more for every call in it.
Pieces* pieces_make(Issuer* issuer, int64_t base, int64_t each) { return new Pieces(*issuer, base, each); }

void pieces_free(Pieces* pieces) { delete pieces; }

void pieces_begin(Pieces* pieces) { pieces->begin(); }

// Divides a batch of calls, given the emitter of each, or lists that take turns. Returns what it costs to launch them, where
// a graph costs 1 and a call by itself costs 2.
int64_t pieces_divide(Pieces* pieces, const int32_t* numbers, const int32_t* emitters, int64_t count) {
    return pieces->divide(numbers, emitters, count);
}

int64_t pieces_divide_lists(Pieces* pieces, const int32_t* const* lists, const int64_t* lengths, int64_t count) {
    return pieces->divide_lists(lists, lengths, count);
}

// Issues what was divided. `done` is how many pieces and single calls of it have been issued.
int32_t pieces_issue(Pieces* pieces, int64_t* done) { return settled(pieces->issuer(), pieces->issue(done)); }

int64_t pieces_position(const Pieces* pieces, int64_t place) { return pieces->position_of(place); }

int64_t pieces_launched(const Pieces* pieces) { return pieces->launched; }

// How many runs ask for a graph.
int64_t pieces_wanted(const Pieces* pieces) { return static_cast<int64_t>(pieces->learning.wanted.size()); }

// The run that asks first: its key, and how many calls it has, whose numbers are at the address that is written.
int64_t pieces_first_wanted(Pieces* pieces, uint64_t* key, const int32_t** numbers) {
    *key = pieces->learning.wanted.front();
    *numbers = pieces->learning.at(*key).numbers.data();
    return static_cast<int64_t>(pieces->learning.at(*key).numbers.size());
}

// Answers the run that asks first with a graph, or with 0 if there is none. Returns the number of the piece, or -1.
int32_t pieces_answer(Pieces* pieces, int64_t graph) {
    const uint64_t key = pieces->learning.wanted.front();
    pieces->learning.wanted.erase(pieces->learning.wanted.begin());
    return graph ? pieces->add(key, graph) : -1;
}

// The functions stand in the order in which `GraphDriver` has them.
Graphs* graphs_make(Issuer* issuer, const int64_t* functions) {
    issue::GraphDriver driver;
    driver.create = reinterpret_cast<decltype(driver.create)>(functions[0]);
    driver.add = reinterpret_cast<decltype(driver.add)>(functions[1]);
    driver.instantiate = reinterpret_cast<decltype(driver.instantiate)>(functions[2]);
    driver.destroy = reinterpret_cast<decltype(driver.destroy)>(functions[3]);
    return new Graphs(*issuer, driver);
}

void graphs_free(Graphs* graphs) { delete graphs; }

// Builds a graph of the run that asks first. Returns 0 if the driver refuses.
int64_t graphs_build(Graphs* graphs, Pieces* pieces) {
    return graphs->build(pieces->learning.at(pieces->learning.wanted.front()).numbers);
}

void pieces_drop(Pieces* pieces, int32_t piece) { pieces->drop(piece); }

int32_t pieces_oldest(const Pieces* pieces) { return pieces->oldest(); }

void pieces_forget(Pieces* pieces) { pieces->forget(); }

Programs* programs_make(Issuer* issuer) { return new Programs(*issuer); }

void programs_free(Programs* programs) { delete programs; }

// Adds a program of entries by 5 words each: kind, number, and addresses of the count, of where it is written, and of
// rooms. Returns its number.
int32_t programs_add(Programs* programs, const int64_t* words, int64_t entries) { return programs->add(words, entries); }

int32_t programs_add_table(Programs* programs) { return programs->add_table(); }

// Sets the call for counts from `first` up to `end`, which is not among them.
void programs_set(Programs* programs, int32_t table, int32_t first, int32_t end, int32_t number) {
    programs->set(table, first, end, number);
}

void programs_forget(Programs* programs) { programs->forget(); }

void programs_begin(Programs* programs, const int32_t* chosen, int64_t number, int64_t handle, const int64_t* events,
                    Pieces* pieces) {
    programs->begin(chosen, number, handle, events, pieces);
}

// Runs until all programs have ended, or Python has to do something. Writes what `write` does.
int32_t programs_run(Programs* programs, int64_t* out, int64_t room) {
    const int32_t pause = settled(programs->issuer(), programs->run());
    write(*programs, out, room);
    return pause;
}

// The whole of a run that Python need not look at: begins a run of the issuer and of the pieces, runs programs, and joins
// the streams if all programs have ended, but with polling, where calls may still wait. Writes waits asked for and made,
// and then what `programs_run` writes and returns, or returns -1 if the driver refused to begin or to join.
int32_t programs_run_whole(Programs* programs, Issuer* issuer, Pieces* pieces, const int64_t* handles, int64_t fork,
                           const int64_t* events, int64_t num_events, const int64_t* joins, const int32_t* chosen,
                           int64_t number, int64_t* out, int64_t room) {
    if (!issuer->begin(handles, fork, events, num_events, false)) return -1;
    if (pieces) pieces->begin();
    programs->begin(chosen, number, 0, nullptr, pieces);
    int32_t pause = programs->run();
    const bool joins_streams = pause == issue::ENDED && !issuer->polls(), is_joined = !joins_streams || issuer->join(joins);
    pause = settled(issuer, pause);
    if (!is_joined) return -1;
    write(*programs, out + 2, room - 2);
    out[0] = issuer->asked();
    out[1] = issuer->needed();
    return pause;
}

int32_t programs_advance(Programs* programs) {
    return settled(programs->issuer(), programs->advance() ? issue::DONE : issue::FAILED);
}

void programs_resume(Programs* programs) { programs->resume(); }

// Enables the first `on` of some nodes of an executable graph, and disables the others, with the driver's
// cuGraphNodeSetEnabled. Returns its status.
int32_t nodes_switch(int64_t function, int64_t graph, const int64_t* nodes, int64_t on, int64_t count) {
    auto enable = reinterpret_cast<int (*)(int64_t, int64_t, unsigned)>(function);
    for (int64_t i = 0; i < count; ++i)
        if (int status = enable(graph, nodes[i], i < on)) return status;
    return 0;
}

}  // extern "C"
