#pragma once
// Letting go of the interpreter and taking it back. While a process ends, CPython before 3.14 ends a thread that takes it back,
// by unwinding its stack: that would end the process in the first function that does not throw. Such a thread waits
// instead, as those of later releases do.
#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace flexor::python {

template <class Take>
auto take_interpreter_by(Take&& take) {
    try {
        return take();
    } catch (abi::__forced_unwind&) {
        for (;;) ::pause();
    }
}

inline void take_interpreter(PyThreadState* state) {
    take_interpreter_by([&] { PyEval_RestoreThread(state); });
}
inline PyGILState_STATE enter_interpreter() {
    return take_interpreter_by([] { return PyGILState_Ensure(); });
}

// Lets other threads hold the interpreter.
struct OtherThreads {
    OtherThreads() : state(PyEval_SaveThread()) {}
    ~OtherThreads() { take_interpreter(state); }
    OtherThreads(const OtherThreads&) = delete;
    OtherThreads& operator=(const OtherThreads&) = delete;
    PyThreadState* state;
};

}  // namespace flexor::python
