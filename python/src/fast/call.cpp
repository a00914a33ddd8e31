// The call path of the package: CallerBase (a Module bound to a Session) and RunnerBase (a Session), in the plain C API
// because a call must cost less than two microseconds. One build per interpreter version; everything else lives in the
// stable-ABI module.
#include <Python.h>
#include <structmember.h>

#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "fast/convert.h"
#include "fast/foreign.h"
#include "fast/guards.h"
#include "fast/jit.h"
#include "fast/program.h"
#include "flexor/session.h"
#include "interpreter.h"

namespace flexor::python {

namespace {

bool convert(const Program& program, PyObject* const* arguments, Py_ssize_t count, Value* values,
             Framework& framework) {
    const auto known = static_cast<Py_ssize_t>(program.kinds.size());
    for (Py_ssize_t i = 0; i < count; ++i) {
        const auto kind =
            i < known ? static_cast<ParameterKind>(program.kinds[static_cast<std::size_t>(i)]) : ParameterKind::kOther;
        if (!read_argument(program, kind, arguments[i], values[i], framework)) return false;
    }
    return true;
}

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
    if (!convert(program, arguments, count, values, framework)) return nullptr;
    std::vector<Value> results;
    if (!run_program(session, program, {values, static_cast<std::size_t>(count)}, framework, results)) return nullptr;
    if (results.size() == 1) return object_from_value(results[0], framework);
    GivenTensors given;
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(results.size()));
    for (std::size_t i = 0; tuple != nullptr && i < results.size(); ++i) {
        PyObject* item = object_from_value(results[i], framework, &given);
        if (item == nullptr) {
            Py_DECREF(tuple);
            return nullptr;
        }
        PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
    }
    return tuple;
}

// The buffers of `out`: an array or tensor, or a list or tuple of them. False with a Python error set.
bool read_outputs(PyObject* given, std::vector<Value>& outputs) {
    const bool several = PyTuple_CheckExact(given) || PyList_CheckExact(given);
    const struct Owned {
        PyObject* tuple;
        ~Owned() { Py_XDECREF(tuple); }
    } objects{several ? PySequence_Tuple(given) : PyTuple_Pack(1, given)};
    if (objects.tuple == nullptr) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(objects.tuple); ++i) {
        PyObject* const object = PyTuple_GET_ITEM(objects.tuple, i);
        Framework framework = Framework::kNone;
        Value& value = outputs.emplace_back();
        if (!value_from_object(object, value, framework)) return false;
        if (!value.is_tensor()) {
            raise_diagnostic(Diagnostic(DiagnosticId{404})
                                 .operand("out")
                                 .found(std::string("a value of type ") + Py_TYPE(object)->tp_name)
                                 .expected("an array or tensor for each output"));
            return false;
        }
        if (!protect(value)) return false;
    }
    return true;
}

// The same into the buffers of `out`, which is returned.
PyObject* run_into(Session& session, Program& program, std::span<PyObject*> arguments, PyObject* out) {
    std::vector<Value> values(arguments.size()), outputs;
    Framework framework = Framework::kNone;
    if (!convert(program, arguments.data(), static_cast<Py_ssize_t>(arguments.size()), values.data(), framework) ||
        !read_outputs(out, outputs) || !run_program_into(session, program, values, framework, outputs))
        return nullptr;
    Py_INCREF(out);
    return out;
}

// Positional arguments from a vectorcall: keyword arguments take the places of their parameters, and those left out
// before them become none. `buffers` gets the argument `out`, unless a parameter has that name.
bool arrange(PyObject* parameters, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords,
             std::vector<PyObject*>& out, PyObject** buffers = nullptr) {
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
        if (at < 0 && buffers != nullptr && PyUnicode_CompareWithASCIIString(name, "out") == 0) {
            if (arguments[positional + k] != Py_None) *buffers = arguments[positional + k];
            continue;
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

PyObject* caller_vectorcall(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* keywords) {
    auto* caller = reinterpret_cast<Caller*>(self);
    if (caller->session == nullptr) {
        PyErr_SetString(PyExc_RuntimeError, "the module object was not initialised");
        return nullptr;
    }
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (keywords == nullptr) return run(*caller->session, caller->program, arguments, count);
    std::vector<PyObject*> arranged;
    PyObject* buffers = nullptr;
    if (!arrange(caller->parameters, arguments, count, keywords, arranged, &buffers)) return nullptr;
    if (buffers != nullptr) return run_into(*caller->session, caller->program, arranged, buffers);
    return run(*caller->session, caller->program, arranged.data(), static_cast<Py_ssize_t>(arranged.size()));
}

PyObject* caller_new(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    inherit_vectorcall(type);
    auto* caller = reinterpret_cast<Caller*>(self);
    caller->vectorcall = caller_vectorcall;
    new (&caller->program) Program();
    return self;
}

// _bind(native, module_address, session_object, session_address, function, writes, parameters, kinds)
PyObject* caller_bind(PyObject* self, PyObject* args) {
    auto* caller = reinterpret_cast<Caller*>(self);
    PyObject *native, *session_object, *parameters;
    unsigned long long module_address, session_address;
    int function, writes;
    const char* kinds;
    if (!PyArg_ParseTuple(args, "OKOKipO!s", &native, &module_address, &session_object, &session_address, &function,
                          &writes, &PyTuple_Type, &parameters, &kinds)) {
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
    caller->program.kinds = kinds;
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
    reinterpret_cast<Caller*>(self)->program.~Program();
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef caller_methods[] = {{"_bind", caller_bind, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMemberDef caller_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Caller, vectorcall), READONLY, nullptr},
                                {"_restores", T_BOOL, offsetof(Caller, program.restores), 0, nullptr},
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

PyTypeObject* runner_type = nullptr;

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
    if (count < 1 || !is_caller(arguments[0]) || runner->session == nullptr) {
        PyErr_SetString(PyExc_TypeError, "Session.run takes a Module and its inputs");
        return nullptr;
    }
    auto* caller = reinterpret_cast<Caller*>(arguments[0]);
    if (keywords == nullptr) return run(*runner->session, caller->program, arguments + 1, count - 1);
    std::vector<PyObject*> arranged;
    PyObject* buffers = nullptr;
    if (!arrange(caller->parameters, arguments + 1, count - 1, keywords, arranged, &buffers)) return nullptr;
    if (buffers != nullptr) return run_into(*runner->session, caller->program, arranged, buffers);
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
     "run(module, *inputs, out=None, **named_inputs)\n\n"
     "Runs a Module on this session, as calling it does on the default one: "
     "NumPy arrays or torch CPU tensors of the\n"
     "declared dtypes, ranks and sizes, in order or by name, without a copy. "
     "One output comes back bare, several as a\n"
     "tuple, in the framework of the inputs. The docs of flexor.Module say "
     "what is taken, returned and raised."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot runner_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(runner_dealloc)},
                              {Py_tp_traverse, reinterpret_cast<void*>(runner_traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(runner_clear)},
                              {Py_tp_methods, runner_methods},
                              {0, nullptr}};
PyType_Spec runner_spec = {"flexor._flexor_fast.RunnerBase", sizeof(Runner), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, runner_slots};

Session* session_at(unsigned long long address) {
    return reinterpret_cast<Session*>(static_cast<std::uintptr_t>(address));
}

// bind_hook(session_address, name, callable, is_typed): the exception of the callable is raised from the run.
PyObject* bind_hook(PyObject*, PyObject* args) {
    unsigned long long address;
    const char* name;
    PyObject* function;
    int is_typed = 0;
    if (!PyArg_ParseTuple(args, "KsO|p", &address, &name, &function, &is_typed)) return nullptr;
    session_at(address)->bind(
        name,
        [held = std::make_shared<Held>(function), hook = std::string(name)](std::span<const Value> arguments) {
            return call_object(held->get(), hook, arguments);
        },
        is_typed != 0);
    Py_RETURN_NONE;
}

// bind_value(session_address, name, object)
PyObject* bind_value(PyObject*, PyObject* args) {
    unsigned long long address;
    const char* name;
    PyObject* object;
    if (!PyArg_ParseTuple(args, "KsO", &address, &name, &object)) return nullptr;
    Value value;
    Framework framework = Framework::kNone;
    if (!value_from_object(object, value, framework) || !protect(value)) return nullptr;
    session_at(address)->bind_value(name, std::move(value));
    Py_RETURN_NONE;
}

// explain(session_address, module, profile, *inputs, **named_inputs): the text of Session::explain.
PyObject* explain(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    if (count < 3 || !PyObject_TypeCheck(args[1], caller_type)) {
        PyErr_SetString(PyExc_TypeError, "explain takes a session, a Module, a bool and the Module's inputs");
        return nullptr;
    }
    const unsigned long long address = PyLong_AsUnsignedLongLong(args[0]);
    const int profile = PyObject_IsTrue(args[2]);
    if (PyErr_Occurred() || profile < 0) return nullptr;
    auto* caller = reinterpret_cast<Caller*>(args[1]);
    std::vector<PyObject*> arranged;
    if (!arrange(caller->parameters, args + 3, count - 3, keywords, arranged)) return nullptr;
    std::vector<Value> values(arranged.size());
    Framework framework = Framework::kNone;
    if (!convert(caller->program, arranged.data(), static_cast<Py_ssize_t>(arranged.size()), values.data(), framework))
        return nullptr;
    PyObject* name = PyObject_GetAttrString(reinterpret_cast<PyObject*>(caller), "function");
    const char* function = name != nullptr ? PyUnicode_AsUTF8(name) : nullptr;
    if (function == nullptr) {
        Py_XDECREF(name);
        return nullptr;
    }
    ExplainOptions options;
    options.function = function;
    options.profile = profile != 0;
    if (!place_of(values, options.call.device, options.call.stream)) {
        Py_DECREF(name);
        return nullptr;
    }
    const Framework outer = current_framework;
    if (framework != Framework::kNone) current_framework = framework;
    const Expected<Explanation> told = [&] {
        const OtherThreads others;
        return session_at(address)->explain(*caller->program.module, values, options);
    }();
    current_framework = outer;
    Py_DECREF(name);
    if (PyErr_Occurred()) return nullptr;  // of a foreign function
    if (!told) {
        raise_diagnostic(told.error());
        return nullptr;
    }
    return PyUnicode_FromStringAndSize(told->text.data(), static_cast<Py_ssize_t>(told->text.size()));
}

PyMethodDef module_methods[] = {{"explain", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(explain)),
                                 METH_FASTCALL | METH_KEYWORDS, nullptr},
                                {"bind_hook", bind_hook, METH_VARARGS, nullptr},
                                {"bind_value", bind_value, METH_VARARGS, nullptr},
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

bool is_runner(PyObject* object) {
    return PyObject_TypeCheck(object, runner_type) && reinterpret_cast<Runner*>(object)->session != nullptr;
}

bool is_caller(PyObject* object) {
    return PyObject_TypeCheck(object, caller_type) && reinterpret_cast<Caller*>(object)->program.module != nullptr;
}

}  // namespace flexor::python

PyMODINIT_FUNC PyInit__flexor_fast() {
    using namespace flexor::python;
    if (!initialise_convert()) return nullptr;
    PyObject* module = PyModule_Create(&module_definition);
    if (module == nullptr) return nullptr;
    caller_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&caller_spec));
    runner_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&runner_spec));
    if (caller_type == nullptr || runner_type == nullptr) return nullptr;
    PyModule_AddObject(module, "CallerBase", reinterpret_cast<PyObject*>(caller_type));
    PyModule_AddObject(module, "RunnerBase", reinterpret_cast<PyObject*>(runner_type));
    if (!initialise_guards(module) || !initialise_jit(module)) return nullptr;
    return module;
}
