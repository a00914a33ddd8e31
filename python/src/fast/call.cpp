// The call path of the package: CallerBase (a Module bound to a Session) and RunnerBase (a Session), in the plain C API
// because a call must cost less than two microseconds. One build per interpreter version; everything else lives in the
// stable-ABI module.
#include <Python.h>
#include <structmember.h>

#include <chrono>
#include <memory>
#include <new>
#include <vector>

#include "fast/convert.h"
#include "flexor/session.h"

namespace flexor::python {

namespace {

constexpr double kReleaseAbove = 20e-6;  // runs predicted to take longer let other threads hold the interpreter

bool signalled(void*) {
    const PyGILState_STATE state = PyGILState_Ensure();
    const bool stop = PyErr_CheckSignals() != 0;
    PyGILState_Release(state);
    return stop;
}

// Framework of the run that is under way on this thread: what foreign functions get their tensors as.
thread_local Framework current_framework = Framework::kNumpy;

// What one program needs to be called; owned by the Python object of a Module.
struct Program {
    Module* module = nullptr;
    std::int32_t function = 0;
    bool writes = false;
    double predicted = 1.0;  // seconds of the last run
};

// Converts, runs, converts back. `arguments` are borrowed.
PyObject* run(Session& session, Program& program, PyObject* const* arguments, Py_ssize_t count) {
    constexpr Py_ssize_t kInline = 8;
    Value inline_values[kInline];
    std::vector<Value> many;
    Value* values = inline_values;
    if (count > kInline) {
        many.resize(static_cast<std::size_t>(count));
        values = many.data();
    }
    Framework framework = Framework::kNone;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!value_from_object(arguments[i], values[i], framework)) return nullptr;
        if (program.writes && !protect(arguments[i], values[i])) return nullptr;
    }
    const Framework outer = current_framework;
    if (framework != Framework::kNone) current_framework = framework;
    std::vector<Value> results;
    CallOptions options;
    options.should_stop = signalled;
    const std::span<const Value> span(values, static_cast<std::size_t>(count));
    const bool release = program.predicted > kReleaseAbove;
    const auto begin = std::chrono::steady_clock::now();
    Expected<void> done = [&] {
        if (!release) return session.run_into(*program.module, program.function, span, results, options);
        PyThreadState* state = PyEval_SaveThread();
        Expected<void> inner = session.run_into(*program.module, program.function, span, results, options);
        PyEval_RestoreThread(state);
        return inner;
    }();
    current_framework = outer;
    program.predicted = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (program.writes) {
        for (Py_ssize_t i = 0; i < count; ++i) note_write(arguments[i]);
    }
    if (!done) {
        if (!PyErr_Occurred()) raise_diagnostic(done.error());
        return nullptr;
    }
    if (PyErr_Occurred()) return nullptr;
    if (results.size() == 1) return object_from_value(results[0], framework);
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(results.size()));
    for (std::size_t i = 0; tuple != nullptr && i < results.size(); ++i) {
        PyObject* item = object_from_value(results[i], framework);
        if (item == nullptr) {
            Py_DECREF(tuple);
            return nullptr;
        }
        PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
    }
    return tuple;
}

// Positional arguments from a vectorcall: keyword arguments take the places of their parameters; trailing optional ones
// become none.
bool arrange(PyObject* parameters, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords,
             std::vector<PyObject*>& out) {
    const Py_ssize_t declared = PyTuple_GET_SIZE(parameters);
    out.assign(arguments, arguments + positional);
    const Py_ssize_t named = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
    if (named == 0) return true;
    out.resize(static_cast<std::size_t>(declared > positional ? declared : positional), nullptr);
    for (Py_ssize_t k = 0; k < named; ++k) {
        PyObject* name = PyTuple_GET_ITEM(keywords, k);
        Py_ssize_t at = -1;
        for (Py_ssize_t p = 0; p < declared && at < 0; ++p) {
            if (PyUnicode_Compare(PyTuple_GET_ITEM(parameters, p), name) == 0) at = p;
        }
        if (at < 0 || out[static_cast<std::size_t>(at)] != nullptr) {
            PyErr_Format(PyExc_TypeError, at < 0 ? "the module has no input %R" : "the input %R is given twice", name);
            return false;
        }
        out[static_cast<std::size_t>(at)] = arguments[positional + k];
    }
    while (!out.empty() && out.back() == nullptr) out.pop_back();
    for (PyObject*& o : out) {
        if (o == nullptr) o = Py_None;
    }
    return true;
}

struct Caller {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* native;  // owner of *program.module
    PyObject* session_object;
    PyObject* parameters;  // tuple of names
    Session* session;
    Program program;
};

PyObject* caller_vectorcall(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* keywords) {
    auto* caller = reinterpret_cast<Caller*>(self);
    if (caller->session == nullptr) {
        PyErr_SetString(PyExc_RuntimeError, "the module object was not initialised");
        return nullptr;
    }
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (keywords == nullptr) return run(*caller->session, caller->program, arguments, count);
    std::vector<PyObject*> arranged;
    if (!arrange(caller->parameters, arguments, count, keywords, arranged)) return nullptr;
    return run(*caller->session, caller->program, arranged.data(), static_cast<Py_ssize_t>(arranged.size()));
}

PyObject* caller_new(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    auto* caller = reinterpret_cast<Caller*>(self);
    caller->vectorcall = caller_vectorcall;
    new (&caller->program) Program();
    return self;
}

// _bind(native, module_address, session_object, session_address, function, writes, parameters)
PyObject* caller_bind(PyObject* self, PyObject* args) {
    auto* caller = reinterpret_cast<Caller*>(self);
    PyObject *native, *session_object, *parameters;
    unsigned long long module_address, session_address;
    int function, writes;
    if (!PyArg_ParseTuple(args, "OKOKipO!", &native, &module_address, &session_object, &session_address, &function,
                          &writes, &PyTuple_Type, &parameters)) {
        return nullptr;
    }
    Py_INCREF(native), Py_INCREF(session_object), Py_INCREF(parameters);
    Py_XSETREF(caller->native, native);
    Py_XSETREF(caller->session_object, session_object);
    Py_XSETREF(caller->parameters, parameters);
    caller->program.module = reinterpret_cast<Module*>(static_cast<std::uintptr_t>(module_address));
    caller->session = reinterpret_cast<Session*>(static_cast<std::uintptr_t>(session_address));
    caller->program.function = function;
    caller->program.writes = writes != 0;
    Py_RETURN_NONE;
}

int caller_traverse(PyObject* self, visitproc visit, void* arg) {
    auto* caller = reinterpret_cast<Caller*>(self);
    Py_VISIT(caller->native);
    Py_VISIT(caller->session_object);
    Py_VISIT(caller->parameters);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

int caller_clear(PyObject* self) {
    auto* caller = reinterpret_cast<Caller*>(self);
    caller->session = nullptr;
    Py_CLEAR(caller->native);
    Py_CLEAR(caller->session_object);
    Py_CLEAR(caller->parameters);
    return 0;
}

void caller_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    caller_clear(self);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef caller_methods[] = {{"_bind", caller_bind, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMemberDef caller_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Caller, vectorcall), READONLY, nullptr},
                                {nullptr, 0, 0, 0, nullptr}};
PyType_Slot caller_slots[] = {{Py_tp_new, reinterpret_cast<void*>(caller_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(caller_dealloc)},
                              {Py_tp_traverse, reinterpret_cast<void*>(caller_traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(caller_clear)},
                              {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                              {Py_tp_methods, caller_methods},
                              {Py_tp_members, caller_members},
                              {0, nullptr}};
PyType_Spec caller_spec = {"flexor._flexor_fast.CallerBase", sizeof(Caller), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                           caller_slots};
PyTypeObject* caller_type = nullptr;

struct Runner {
    PyObject_HEAD PyObject* native;
    Session* session;
};

PyObject* runner_bind(PyObject* self, PyObject* args) {
    auto* runner = reinterpret_cast<Runner*>(self);
    PyObject* native;
    unsigned long long address;
    if (!PyArg_ParseTuple(args, "OK", &native, &address)) return nullptr;
    Py_INCREF(native);
    Py_XSETREF(runner->native, native);
    runner->session = reinterpret_cast<Session*>(static_cast<std::uintptr_t>(address));
    Py_RETURN_NONE;
}

PyObject* runner_run(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
    auto* runner = reinterpret_cast<Runner*>(self);
    if (count < 1 || !PyObject_TypeCheck(arguments[0], caller_type) || runner->session == nullptr) {
        PyErr_SetString(PyExc_TypeError, "Session.run takes a Module and its inputs");
        return nullptr;
    }
    auto* caller = reinterpret_cast<Caller*>(arguments[0]);
    if (caller->program.module == nullptr) {
        PyErr_SetString(PyExc_RuntimeError, "the module object was not initialised");
        return nullptr;
    }
    if (keywords == nullptr) return run(*runner->session, caller->program, arguments + 1, count - 1);
    std::vector<PyObject*> arranged;
    if (!arrange(caller->parameters, arguments + 1, count - 1, keywords, arranged)) return nullptr;
    return run(*runner->session, caller->program, arranged.data(), static_cast<Py_ssize_t>(arranged.size()));
}

int runner_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(reinterpret_cast<Runner*>(self)->native);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

int runner_clear(PyObject* self) {
    reinterpret_cast<Runner*>(self)->session = nullptr;
    Py_CLEAR(reinterpret_cast<Runner*>(self)->native);
    return 0;
}

void runner_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    runner_clear(self);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef runner_methods[] = {
    {"_bind", runner_bind, METH_VARARGS, nullptr},
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(runner_run)), METH_FASTCALL | METH_KEYWORDS,
     "run(module, *inputs, **named_inputs): runs the module; a tensor or a tuple of values"},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot runner_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(runner_dealloc)},
                              {Py_tp_traverse, reinterpret_cast<void*>(runner_traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(runner_clear)},
                              {Py_tp_methods, runner_methods},
                              {0, nullptr}};
PyType_Spec runner_spec = {"flexor._flexor_fast.RunnerBase", sizeof(Runner), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, runner_slots};

// A Python callable as a foreign function of a session.
struct Callable {
    explicit Callable(PyObject* f) : function(f) { Py_INCREF(f); }
    ~Callable() {
        if (!Py_IsInitialized()) return;
        const PyGILState_STATE state = PyGILState_Ensure();
        Py_DECREF(function);
        PyGILState_Release(state);
    }
    Callable(const Callable&) = delete;
    Callable& operator=(const Callable&) = delete;
    PyObject* function;
};

// bind_hook(session_address, name, callable): the exception of the callable is raised from the run.
PyObject* bind_hook(PyObject*, PyObject* args) {
    unsigned long long address;
    const char* name;
    PyObject* function;
    if (!PyArg_ParseTuple(args, "KsO", &address, &name, &function)) return nullptr;
    auto* session = reinterpret_cast<Session*>(static_cast<std::uintptr_t>(address));
    auto callable = std::make_shared<Callable>(function);
    session->bind(name, [callable, hook = std::string(name)](std::span<const Value> arguments) -> Expected<Value> {
        const PyGILState_STATE state = PyGILState_Ensure();
        PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(arguments.size()));
        Framework framework = current_framework;
        bool ok = tuple != nullptr;
        for (std::size_t i = 0; ok && i < arguments.size(); ++i) {
            PyObject* item = object_from_value(arguments[i], framework);
            ok = item != nullptr;
            if (ok) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
        }
        PyObject* result = ok ? PyObject_Call(callable->function, tuple, nullptr) : nullptr;
        Py_XDECREF(tuple);
        Value value;
        ok = result != nullptr && value_from_object(result, value, framework) && protect(result, value);
        Py_XDECREF(result);
        PyGILState_Release(state);
        // A Python error stays set on this thread; the run hands it on.
        if (!ok) return Diagnostic(DiagnosticId{509}).operand(hook).found("an exception in the foreign function");
        return value;
    });
    Py_RETURN_NONE;
}

// explain(session_address, module, *inputs): the text of Session::explain.
PyObject* explain(PyObject*, PyObject* args) {
    const Py_ssize_t count = PyTuple_GET_SIZE(args);
    if (count < 2 || !PyObject_TypeCheck(PyTuple_GET_ITEM(args, 1), caller_type)) {
        PyErr_SetString(PyExc_TypeError, "explain takes a session, a Module and its inputs");
        return nullptr;
    }
    const unsigned long long address = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(args, 0));
    if (PyErr_Occurred()) return nullptr;
    auto* session = reinterpret_cast<Session*>(static_cast<std::uintptr_t>(address));
    auto* caller = reinterpret_cast<Caller*>(PyTuple_GET_ITEM(args, 1));
    std::vector<Value> values(static_cast<std::size_t>(count - 2));
    Framework framework = Framework::kNone;
    for (Py_ssize_t i = 2; i < count; ++i) {
        if (!value_from_object(PyTuple_GET_ITEM(args, i), values[static_cast<std::size_t>(i - 2)], framework))
            return nullptr;
    }
    PyObject* name = PyObject_GetAttrString(reinterpret_cast<PyObject*>(caller), "function");
    const char* function = name != nullptr ? PyUnicode_AsUTF8(name) : nullptr;
    if (function == nullptr) {
        Py_XDECREF(name);
        return nullptr;
    }
    const Expected<std::string> text = session->explain(*caller->program.module, values, function);
    Py_DECREF(name);
    if (!text) {
        if (!PyErr_Occurred()) raise_diagnostic(text.error());
        return nullptr;
    }
    return PyUnicode_FromStringAndSize(text->data(), static_cast<Py_ssize_t>(text->size()));
}

PyMethodDef module_methods[] = {{"explain", explain, METH_VARARGS, nullptr},
                                {"bind_hook", bind_hook, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyModuleDef module_definition = {PyModuleDef_HEAD_INIT,
                                 "flexor._flexor_fast",
                                 "The call path of flexor.",
                                 -1,
                                 module_methods,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr};

}  // namespace

}  // namespace flexor::python

PyMODINIT_FUNC PyInit__flexor_fast() {
    using namespace flexor::python;
    if (!initialise_convert()) return nullptr;
    PyObject* module = PyModule_Create(&module_definition);
    if (module == nullptr) return nullptr;
    caller_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&caller_spec));
    PyObject* runner = PyType_FromSpec(&runner_spec);
    if (caller_type == nullptr || runner == nullptr) return nullptr;
    PyModule_AddObject(module, "CallerBase", reinterpret_cast<PyObject*>(caller_type));
    PyModule_AddObject(module, "RunnerBase", runner);
    return module;
}
