// The feed: pulls calls from emitters, one of each in turn. The rules are those of `Feeder` in core/emission.py.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "python_calls.h"

namespace issue {

class Feed {
  public:
    enum Stop { NOTHING = 0, RAISED = 1, OTHER = 2 };  // NOTHING: no emitter has a call. OTHER: see `item`.
    enum Await { WAITS, GOES_ON, ASKS };  // what a source does that awaits a call. ASKS: Python finds out.

    // The caller keeps all objects alive that the feed is given. References of its own would hide cycles from Python.
    Feed(PyObject* call, PyObject* idle, PyObject* await)
        : call_(call), idle_(idle), await_(await), name_(PyUnicode_InternFromString("call")) {}
    ~Feed() {
        if (item) Py_DecRef(item);
        if (name_) Py_DecRef(name_);
    }

    PyObject* item = nullptr;  // what the source whose turn it is has yielded, if it is for Python to deal with
    int64_t idle = 0;          // sources at the end of the turns that had no call
    std::vector<int32_t> from; // the source of each call since this was cleared

    // Forgets all sources.
    void clear() {
        sources_.clear();
        turns_.clear();
        from.clear();
        idle = 0;
    }

    // Adds a source: an iterator, and a dictionary of the numbers under which it yielded each call last.
    void add(PyObject* items, PyObject* latest) {
        turns_.push_back(static_cast<int32_t>(sources_.size()));
        sources_.push_back({items, latest});
    }

    // The source whose turn it is; -1 if there is none.
    int32_t turn() const { return turns_.empty() ? -1 : turns_.front(); }
    int64_t turns() const { return static_cast<int64_t>(turns_.size()); }
    void leave() { turns_.pop_front(); }
    void join(int32_t source) { turns_.push_back(source); }

    // Appends calls to a list until it has `most` or all sources are idle. They are numbered from `*seq` on, which becomes the
    // number of the following one. `waits` says what a source does that awaits a call, given the numbers of both.
    template <class Waits>
    Stop take(PyObject* calls, int64_t most, int64_t* seq, Waits waits) {
        for (int64_t count = PyList_Size(calls); count < most && idle < turns();) {
            const int32_t source = turns_.front();
            Owned next(PyIter_Next(sources_[source].items));
            if (!next) {
                if (PyErr_Occurred()) return RAISED;
                turns_.pop_front();
                continue;
            }
            Owned type(PyObject_Type(next.get()));
            if (type.get() == call_) {
                Owned number(PyLong_FromLongLong(*seq));
                if (!number || PyDict_SetItem(sources_[source].latest, next.get(), number.get())) return RAISED;
                if (PyList_Append(calls, next.get())) return RAISED;
                from.push_back(source);
                ++*seq;
                ++count;
                idle = 0;
            } else if (type.get() == idle_) {
                ++idle;
            } else {
                Await does = ASKS;
                if (type.get() == await_ && !await(next.get(), waits, &does)) return RAISED;
                if (does == GOES_ON) continue;
                if (does == WAITS) {
                    turns_.pop_front();
                    continue;
                }
                if (item) Py_DecRef(item);
                item = next.get();
                Py_IncRef(item);
                return OTHER;
            }
            turns_.pop_front();
            turns_.push_back(source);
        }
        return NOTHING;
    }

  private:
    // Asks what the source does whose turn it is, which has yielded an await. Of a call that it has not yielded, Python finds
    // out. Returns false if Python has an error.
    template <class Waits>
    bool await(PyObject* item, Waits waits, Await* does) {
        Owned call(PyObject_GetAttr(item, name_));
        if (!call) return false;
        PyObject* number = PyDict_GetItemWithError(sources_[turns_.front()].latest, call.get());
        if (!number) return PyErr_Occurred() == nullptr;
        *does = waits(PyLong_AsLongLong(number), turns_.front());
        return true;
    }

    struct Source {
        PyObject *items, *latest;
    };

    PyObject *call_, *idle_, *await_;  // types
    PyObject* name_;                   // of the attribute of an await that is the call
    std::vector<Source> sources_;
    std::deque<int32_t> turns_;
};

}  // namespace issue
