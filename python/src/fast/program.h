#pragma once
// A function of a Module as it is called from Python.
#include <Python.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fast/convert.h"
#include "fast/prediction.h"
#include "flexor/session.h"

namespace flexor::python {

// What one program needs to be called; owned by the Python object of a Module.
struct Program {
    Module* module = nullptr;
    std::int32_t function = 0;
    bool writes = false;
    bool restores = false;  // a run that fails gives back what it has overwritten (CallOptions::restores)
    std::string kinds;      // of the parameters, a ParameterKind each
    Prediction prediction;
};

// The Python object of a Module: a program bound to a Session. Everything is null until `_bind`.
struct Caller {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* native;  // owner of *program.module
    PyObject* session_object;
    PyObject* parameters;  // tuple of names
    Session* session;
    Program program;
};
// The Python object of a Session.
struct Runner {
    PyObject_HEAD PyObject* native;
    Session* session;
};
bool is_runner(PyObject* object);  // the same of a Runner
bool is_caller(PyObject* object);  // whether it is a Caller that `_bind` was called of

// Lets calls of objects of a class that is written in Python take the way of its base. Before 3.12 such classes lose it.
inline void inherit_vectorcall([[maybe_unused]] PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030C0000
    if (type->tp_call == PyVectorcall_Call) type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
#endif
}

// Reads one argument of the program, and marks what it must not write. False with a Python error set.
bool read_argument(const Program& program, ParameterKind kind, PyObject* object, Value& out, Framework& framework);

// Runs with arguments that were read so. Lets other threads hold the interpreter while a run is long. False with a
// Python error set.
bool run_program(Session& session, Program& program, std::span<const Value> arguments, Framework framework,
                 std::vector<Value>& results);
// The same into memory of the caller, one for each output (Session::run_into).
bool run_program_into(Session& session, Program& program, std::span<const Value> arguments, Framework framework,
                      std::span<const Value> outputs);

}  // namespace flexor::python
