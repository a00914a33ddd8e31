#pragma once
// Python objects that a program holds without looking into them, and Python functions that it calls.
#include <Python.h>

#include <memory>
#include <span>
#include <string>

#include "fast/convert.h"
#include "flexor/value.h"

namespace flexor::python {

// Framework of the run that is under way on this thread: what foreign code gets its tensors as.
extern thread_local Framework current_framework;

// A reference to a Python object that may be dropped from any thread.
class Held {
public:
    explicit Held(PyObject* object) : object_(object) { Py_INCREF(object); }
    ~Held();
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    PyObject* get() const { return object_; }

private:
    PyObject* object_;
};

// Calls a Python object from any thread. Its exception stays set on the thread, and the run that the diagnostic ends
// hands it on; `name` says who was called.
Expected<Value> call_object(PyObject* callable, const std::string& name, std::span<const Value> arguments);

Value foreign_from_object(PyObject* object);
// The object of such a value, borrowed; null for a foreign value that is not from Python.
PyObject* object_of_foreign(const Value& value);

}  // namespace flexor::python
