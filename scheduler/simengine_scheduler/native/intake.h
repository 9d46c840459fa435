// The intake: takes calls as Python has them, gives each a number, and defines new ones to an issuer.
//
//     KernelCall --address--> number                               known, and none of its buffers has moved
//                --reads, writes, updates--> segments -----+
//                --launch.node()--> function, shape -------+--> issuer
//
// The rules are those of `Numbering` in executors/numbering.py. Python's lock is held.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "issuer.h"
#include "python_calls.h"

namespace issue {

// The numbers of objects, by address.
class Addresses {
  public:
    Addresses() { clear(); }

    void clear() {
        slots_.assign(256, {nullptr, -1});
        count_ = 0;
    }

    // The number of an object, or -1.
    int32_t find(const void* object) const { return slots_[place(object)].number; }

    void add(const void* object, int32_t number) {
        if (2 * ++count_ > slots_.size()) {
            std::vector<Slot> former(2 * slots_.size(), {nullptr, -1});
            former.swap(slots_);
            for (const Slot& slot : former)
                if (slot.object) slots_[place(slot.object)] = slot;
        }
        slots_[place(object)] = {object, number};
    }

  private:
    struct Slot {
        const void* object;
        int32_t number;
    };

    size_t place(const void* object) const {
        const uint64_t mixed = (reinterpret_cast<uint64_t>(object) >> 4) * 0x9E3779B97F4A7C15u;
        size_t at = (mixed >> 24) & (slots_.size() - 1);
        while (slots_[at].object && slots_[at].object != object) at = (at + 1) & (slots_.size() - 1);
        return at;
    }

    std::vector<Slot> slots_;
    size_t count_ = 0;
};

class Intake {
  public:
    enum Answer { TAKEN = 0, RAISED = 1, WRONG = 2 };  // RAISED: Python has an error. WRONG: `wrong` is no segment.

    // `conflicts` is the list of a `Segments` table, or null where hazards are not looked for. The calls are put into
    // `by_number`, each at the place of its number. The caller keeps both lists alive: references from here would hide cycles
    // from Python.
    Intake(Issuer& issuer, PyObject* conflicts, PyObject* by_number)
        : issuer_(issuer), conflicts_(conflicts), by_number_(by_number) {
        for (size_t i = 0; i < NAMES; ++i) names_[i] = PyUnicode_InternFromString(TEXTS[i]);
    }

    ~Intake() {
        forget();
        for (PyObject* name : names_) Py_DecRef(name);
        for (const auto& each : kinds_) Py_DecRef(each.first);
    }

    // How many calls are known.
    int64_t known() const { return static_cast<int64_t>(known_.size()); }

    int64_t wrong = 0;  // segment that the table lacks
    int64_t place = 0;  // among the calls, of the one that was not taken

    void forget() {
        for (Known& known : known_) let_go(known);
        known_.clear();
        numbers_.clear();
    }

    // Writes the numbers of calls, which are defined to the issuer.
    Answer numbers(PyObject* calls, int64_t count, int32_t* out) {
        asked_ = nullptr;
        if (conflicts_ && !take_conflicts()) return RAISED;
        for (int64_t i = 0; i < count; ++i) {
            PyObject* call = PyList_GetItem(calls, i);
            place = i;
            const int32_t number = numbers_.find(call);
            if (number >= 0) {
                bool moved = false;
                if (known_[number].buffers && !has_moved(known_[number], &moved)) return RAISED;
                out[i] = number;
                if (!moved) continue;
            }
            if (Answer answer = define(call, number, out + i); answer != TAKEN) return answer;
        }
        return TAKEN;
    }

  private:
    enum Name { LAUNCH, READS, WRITES, UPDATES, NODE, IN_GRAPHS, BUFFERS, MOVES, NAMES };
    static constexpr const char* TEXTS[] = {"launch", "reads", "writes", "updates", "node", "in_graphs", "buffers", "moves"};
    static constexpr int32_t WORDS = 9;  // of a node: function, grid, block, shared memory, arguments

    struct Known {
        PyObject* buffers = nullptr;  // a reference of its own
        int64_t moves = 0;
    };

    // What a type of launches has. One that has no such attributes may have launches that do.
    struct Kind {
        bool has_node, has_buffers, in_graphs;
    };

    static void let_go(Known& known) {
        if (known.buffers) Py_DecRef(known.buffers);
        known.buffers = nullptr;
    }

    bool has_moved(const Known& known, bool* moved) {
        int64_t now;
        if (!moves_of(known.buffers, &now)) return false;
        *moved = now != known.moves;
        return true;
    }

    // How often a set of buffers has moved, which is asked once for calls in a row.
    bool moves_of(PyObject* buffers, int64_t* moves) {
        if (buffers != asked_) {
            Owned number(PyObject_GetAttr(buffers, names_[MOVES]));
            if (!number || !integer(number.get(), &asked_moves_)) return false;
            asked_ = buffers;
        }
        *moves = asked_moves_;
        return true;
    }

    static bool integer(PyObject* object, int64_t* value) {
        *value = PyLong_AsLongLong(object);
        return *value != -1 || !PyErr_Occurred();
    }

    // Appends some integers to others.
    template <class T>
    static bool append(PyObject* integers, std::vector<T>* to) {
        Owned tuple(integers ? PySequence_Tuple(integers) : nullptr);  // itself, if it is one
        if (!tuple) return false;
        const ptrdiff_t size = PyTuple_Size(tuple.get());
        for (ptrdiff_t i = 0; i < size; ++i) {
            int64_t value;
            if (!integer(PyTuple_GetItem(tuple.get(), i), &value)) return false;
            to->push_back(static_cast<T>(value));
        }
        return true;
    }

    // Gives the issuer the conflicts of new segments, and of those that conflict with new ones.
    bool take_conflicts() {
        const int64_t first = segments_, count = PyList_Size(conflicts_);
        if (count == first) return true;
        changed_.clear();
        for (; segments_ < count; ++segments_) {
            if (!take_conflicts_of(segments_)) return false;
            for (int32_t other : key_)
                if (other < first) changed_.push_back(other);
        }
        std::sort(changed_.begin(), changed_.end());
        changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
        for (int32_t segment : changed_)
            if (!take_conflicts_of(segment)) return false;
        return true;
    }

    bool take_conflicts_of(int64_t segment) {
        key_.clear();
        if (!append(PyList_GetItem(conflicts_, segment), &key_)) return false;
        issuer_.hazards.set_conflicts(static_cast<int32_t>(segment), key_.data(), static_cast<int32_t>(key_.size()));
        return true;
    }

    // Defines a call under its number, or under a new one if that is -1.
    Answer define(PyObject* call, int32_t number, int32_t* out) {
        int32_t combination = number < 0 ? 0 : issuer_.calls[number].combination;
        if (conflicts_ && number < 0)
            if (Answer answer = combine(call); answer != TAKEN) return answer;
        Owned launch(PyObject_GetAttr(call, names_[LAUNCH]));
        if (!launch) return RAISED;
        Known made;
        words_.assign(WORDS, 0);
        const Kind* kind = kind_of(launch.get());
        if (!kind) return RAISED;
        if (kind->in_graphs && (kind->has_node || PyObject_HasAttr(launch.get(), names_[NODE]))) {
            const bool has_buffers = kind->has_buffers || PyObject_HasAttr(launch.get(), names_[BUFFERS]);
            if (has_buffers && !take_buffers(launch.get(), &made)) return RAISED;
            if (!take_node(launch.get())) {  // once it is known how often its buffers have moved
                let_go(made);
                return RAISED;
            }
        }
        if (number < 0) {
            number = static_cast<int32_t>(known_.size());
            if (PyList_Append(by_number_, call)) return RAISED;
            if (conflicts_) {
                const int32_t* segments = key_.data() + 1;
                combination =
                    issuer_.hazards.add_combination(segments, key_[0], segments + key_[0], key_.size() - 1 - key_[0]);
            }
            known_.emplace_back();
            numbers_.add(call, number);
        }
        std::swap(known_[number], made);
        let_go(made);
        if (number >= static_cast<int32_t>(issuer_.calls.size())) issuer_.calls.resize(number + 1);
        Call& defined = issuer_.calls[number];
        defined.function = words_[0];
        for (int k = 0; k < 7; ++k) defined.size[k] = static_cast<unsigned>(words_[1 + k]);
        defined.arguments = words_[8];
        defined.combination = combination;
        *out = number;
        return TAKEN;
    }

    const Kind* kind_of(PyObject* launch) {
        Owned type(PyObject_Type(launch));
        if (type.get() == latest_) return latest_kind_;
        auto found = kinds_.find(type.get());
        if (found == kinds_.end()) {
            auto has = [&](Name name) { return PyObject_HasAttr(type.get(), names_[name]) != 0; };
            Kind kind{has(NODE), has(BUFFERS), true};
            if (has(IN_GRAPHS)) {
                Owned in_graphs(PyObject_GetAttr(type.get(), names_[IN_GRAPHS]));
                const int yes = in_graphs ? PyObject_IsTrue(in_graphs.get()) : -1;
                if (yes < 0) return nullptr;
                kind.in_graphs = yes;
            }
            Py_IncRef(type.get());  // no other type gets its address
            found = kinds_.emplace(type.get(), kind).first;
        }
        latest_ = type.get();
        return latest_kind_ = &found->second;
    }

    bool take_buffers(PyObject* launch, Known* made) {
        made->buffers = PyObject_GetAttr(launch, names_[BUFFERS]);
        if (!made->buffers) return false;
        if (made->buffers != &_Py_NoneStruct) return moves_of(made->buffers, &made->moves);
        Py_DecRef(made->buffers);
        made->buffers = nullptr;
        return true;
    }

    // Puts what `launch.node()` returns into the words.
    bool take_node(PyObject* launch) {
        Owned answer(PyObject_VectorcallMethod(names_[NODE], &launch, 1, nullptr));
        Owned node(answer ? PySequence_Tuple(answer.get()) : nullptr);
        if (!node) return false;
        words_.clear();
        const ptrdiff_t size = PyTuple_Size(node.get());
        for (ptrdiff_t i = 0; i < size; ++i) {
            PyObject* part = PyTuple_GetItem(node.get(), i);
            int64_t value = 0;
            if (i == 1 || i == 2 ? !append(part, &words_) : !integer(part, &value)) return false;
            if (i != 1 && i != 2) words_.push_back(value);
        }
        if (size == 5 && words_.size() == WORDS) return true;
        PyErr_SetString(PyExc_TypeError,
                        "node() of a launch returns function, grid, block, shared memory and arguments, where grid and "
                        "block are three sizes each");
        return false;
    }

    // Puts into `key_` how many segments a call reads, these, and those that it writes. Calls with the same segments share
    // no combination: to look for it would take as long as what it saves.
    Answer combine(PyObject* call) {
        key_.assign(1, 0);
        for (Name name : {READS, WRITES, UPDATES}) {
            Owned segments(PyObject_GetAttr(call, names_[name]));
            if (!segments || !append(segments.get(), &key_)) return RAISED;
            if (name == READS) key_[0] = static_cast<int32_t>(key_.size()) - 1;
        }
        for (size_t i = 1; i < key_.size(); ++i) {
            if (0 <= key_[i] && key_[i] < segments_) continue;
            wrong = key_[i];
            return WRONG;
        }
        return TAKEN;
    }

    Issuer& issuer_;
    PyObject* conflicts_;
    PyObject* by_number_;
    PyObject* names_[NAMES];
    int64_t segments_ = 0;  // whose conflicts the issuer has
    Addresses numbers_;
    std::vector<Known> known_;  // by number
    std::unordered_map<PyObject*, Kind> kinds_;  // by type
    PyObject* latest_ = nullptr;                  // the type that was looked up last
    const Kind* latest_kind_ = nullptr;
    PyObject* asked_ = nullptr;  // the set of buffers that was asked last how often it has moved
    int64_t asked_moves_ = 0;
    std::vector<int64_t> words_;
    std::vector<int32_t> key_, changed_;
};

}  // namespace issue
