// The functions of Python's interface that compiled code uses. They are declared here, because few machines have Python's
// headers, and have had these signatures since Python 3.9.
#pragma once
#include <cstddef>

extern "C" {

typedef struct _object PyObject;
typedef struct _ts PyThreadState;

PyObject* PyObject_GetAttr(PyObject* object, PyObject* name);
int PyObject_HasAttr(PyObject* object, PyObject* name);
PyObject* PyObject_Type(PyObject* object);
PyObject* PyObject_VectorcallMethod(PyObject* name, PyObject* const* arguments, size_t count, PyObject* keywords);
int PyObject_IsTrue(PyObject* object);
PyObject* PyUnicode_InternFromString(const char* text);
ptrdiff_t PyList_Size(PyObject* list);
PyObject* PyList_GetItem(PyObject* list, ptrdiff_t index);  // borrowed, as that of a tuple
PyObject* PyIter_Next(PyObject* iterator);
PyObject* PyDict_GetItemWithError(PyObject* dictionary, PyObject* key);  // borrowed
int PyDict_SetItem(PyObject* dictionary, PyObject* key, PyObject* value);
PyObject* PyLong_FromLongLong(long long value);
int PyList_Append(PyObject* list, PyObject* item);
int PyList_SetSlice(PyObject* list, ptrdiff_t from, ptrdiff_t to, PyObject* items);
PyObject* PySequence_Tuple(PyObject* sequence);
ptrdiff_t PyTuple_Size(PyObject* tuple);
PyObject* PyTuple_GetItem(PyObject* tuple, ptrdiff_t index);
long long PyLong_AsLongLong(PyObject* number);
PyObject* PyErr_Occurred(void);
void PyErr_SetString(PyObject* type, const char* text);
extern PyObject* PyExc_TypeError;
extern PyObject _Py_NoneStruct;
PyThreadState* PyEval_SaveThread(void);
void PyEval_RestoreThread(PyThreadState* state);
void Py_IncRef(PyObject* object);
void Py_DecRef(PyObject* object);

}  // extern "C"

namespace issue {

// A reference that is given back at the end of its scope.
class Owned {
  public:
    explicit Owned(PyObject* object) : object_(object) {}
    ~Owned() {
        if (object_) Py_DecRef(object_);
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    PyObject* get() const { return object_; }
    explicit operator bool() const { return object_ != nullptr; }

  private:
    PyObject* object_;
};

}  // namespace issue
