#include "fast/jit.h"

#include <structmember.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fast/guards.h"
#include "fast/plan.h"
#include "fast/program.h"
#include "fast/torch.h"

namespace flexor::python {

namespace {

struct Entry {
    Py_ssize_t positional = 0;     // values of a call without keywords in front of them
    PyObject* keywords = nullptr;  // tuple of names in the order of the call, or None
    std::unique_ptr<ArgumentPlan> arguments;
    std::unique_ptr<LivePlan> live;
    std::unique_ptr<PackedPlan> packed;
    std::vector<PyObject*> guards;
    Caller* caller = nullptr;
    Session* session = nullptr;
    std::size_t inputs = 0;
    std::vector<Py_ssize_t> results;  // outputs of the run that stand in the result, in order
    bool is_tuple = false;            // of these results; else there is one
    bool gives_scalars = false;       // arrays without axes become NumPy's scalars
    PyObject* open = nullptr;         // opens objects among the arguments (Inputs::open); None: there are none
    PyObject* finish = nullptr;       // makes every other result; None: `results` tells
    PyObject* token = nullptr;        // what `_recover` and `_remove` know the entry by
    References references;
};

struct Jit {
    PyObject_HEAD vectorcallfunc vectorcall;
    std::vector<std::shared_ptr<Entry>>* entries;
    unsigned long long calls;
    int python_depth;  // calls that Python runs at the moment, on any thread
};

struct MethodNames {
    PyObject* call = nullptr;
    PyObject* recover = nullptr;
} method_names;

bool has_form(const Entry& entry, Py_ssize_t positional, PyObject* keywords) {
    if (entry.positional != positional) return false;
    const Py_ssize_t named = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
    if (entry.keywords == Py_None || named == 0) return entry.keywords == Py_None && named == 0;
    if (entry.keywords == keywords) return true;
    if (PyTuple_GET_SIZE(entry.keywords) != named) return false;
    for (Py_ssize_t i = 0; i < named; ++i) {
        PyObject *a = PyTuple_GET_ITEM(entry.keywords, i), *b = PyTuple_GET_ITEM(keywords, i);
        if (a != b && PyUnicode_Compare(a, b) != 0) return false;
    }
    return true;
}

bool guards_of_entry_hold(const Entry& entry) {
    return std::all_of(entry.guards.begin(), entry.guards.end(), guards_hold);
}

PyObject* result_object(const Entry& entry, const Value& value, Framework framework, GivenTensors* given = nullptr) {
    PyObject* object = object_from_value(value, framework, given);
    return object != nullptr && entry.gives_scalars ? scalar_of_array(object) : object;
}

// A tuple of outputs as the run gives them, in this order; without `order` all of them.
PyObject* tuple_of_results(const Entry& entry, const std::vector<Value>& values, Framework framework,
                           const std::vector<Py_ssize_t>* order) {
    const std::size_t count = order != nullptr ? order->size() : values.size();
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
    GivenTensors made;
    GivenTensors* given = count > 1 ? &made : nullptr;
    for (std::size_t i = 0; tuple != nullptr && i < count; ++i) {
        // An output that stands in several places is one object.
        const std::size_t earlier =
            order != nullptr
                ? static_cast<std::size_t>(std::find(order->begin(), order->end(), (*order)[i]) - order->begin())
                : i;
        const Value& value = values[order != nullptr ? static_cast<std::size_t>((*order)[i]) : i];
        PyObject* item = earlier < i        ? Py_NewRef(PyTuple_GET_ITEM(tuple, static_cast<Py_ssize_t>(earlier)))
                         : order != nullptr ? result_object(entry, value, framework, given)
                                            : object_from_value(value, framework, given);
        if (item == nullptr) {
            Py_DECREF(tuple);
            return nullptr;
        }
        PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
    }
    return tuple;
}

PyObject* make_result(const Entry& entry, const std::vector<Value>& values, const Inputs& inputs) {
    if (entry.finish == Py_None) {
        if (entry.is_tuple) return tuple_of_results(entry, values, inputs.framework, &entry.results);
        return result_object(entry, values[static_cast<std::size_t>(entry.results[0])], inputs.framework);
    }
    PyObject* outputs = tuple_of_results(entry, values, inputs.framework, nullptr);
    PyObject* given = outputs != nullptr ? tuple_of(inputs.objects()) : nullptr;
    PyObject* held = given != nullptr ? tuple_of(inputs.containers) : nullptr;
    PyObject* none = held != nullptr ? PyTuple_New(0) : nullptr;
    PyObject* found = inputs.found != nullptr ? inputs.found : none;
    // finish(outputs, inputs, containers, objects of the run, objects found)
    PyObject* arguments[] = {outputs, given, held, none, found};
    PyObject* made = none != nullptr ? PyObject_Vectorcall(entry.finish, arguments, 5, nullptr) : nullptr;
    Py_XDECREF(outputs), Py_XDECREF(given), Py_XDECREF(held), Py_XDECREF(none);
    return made;
}

// self._call(*arguments, **keywords)
PyObject* call_slowly(PyObject* self, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords) {
    const Py_ssize_t named = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
    std::vector<PyObject*> all{self};
    all.insert(all.end(), arguments, arguments + positional + named);
    return PyObject_VectorcallMethod(method_names.call, all.data(), static_cast<std::size_t>(positional + 1), keywords);
}

// self._recover(token, exception, arguments, keywords, has_ended), of the exception that is set.
PyObject* recover(PyObject* self, const Entry& entry, PyObject* const* arguments, Py_ssize_t positional,
                  PyObject* keywords, bool has_ended) {
    PyObject *type, *exception, *trace;
    PyErr_Fetch(&type, &exception, &trace);
    PyErr_NormalizeException(&type, &exception, &trace);
    if (trace != nullptr) PyException_SetTraceback(exception, trace);
    PyObject* given = tuple_of({arguments, static_cast<std::size_t>(positional)});
    PyObject* named = PyDict_New();
    bool ok = given != nullptr && named != nullptr;
    for (Py_ssize_t i = 0; ok && keywords != nullptr && i < PyTuple_GET_SIZE(keywords); ++i)
        ok = PyDict_SetItem(named, PyTuple_GET_ITEM(keywords, i), arguments[positional + i]) == 0;
    PyObject* result = ok ? PyObject_CallMethodObjArgs(self, method_names.recover, entry.token, exception, given, named,
                                                       has_ended ? Py_True : Py_False, nullptr)
                          : nullptr;
    Py_XDECREF(given), Py_XDECREF(named), Py_XDECREF(type), Py_XDECREF(exception), Py_XDECREF(trace);
    return result;
}

PyObject* jit_vectorcall(PyObject* object, PyObject* const* arguments, size_t flags, PyObject* keywords) {
    auto* self = reinterpret_cast<Jit*>(object);
    const Py_ssize_t positional = PyVectorcall_NARGS(flags);
    ++self->calls;
    if (self->entries == nullptr || self->entries->empty() || self->python_depth > 0)
        return call_slowly(object, arguments, positional, keywords);
    for (std::size_t i = 0; i < self->entries->size(); ++i) {
        if (!has_form(*(*self->entries)[i], positional, keywords)) continue;
        const std::shared_ptr<Entry> entry = (*self->entries)[i];  // what runs may remove it
        Inputs inputs(entry->caller->program, entry->inputs);
        if (!entry->arguments->match(arguments, inputs) || !guards_of_entry_hold(*entry) ||
            (entry->open != Py_None && !inputs.open(entry->open)) || !entry->live->fetch(inputs) ||
            !entry->packed->are_current())
            continue;
        if (inputs.framework == Framework::kTorch && !torch_is_plain()) break;
        std::vector<Value> results;
        const bool ended =
            run_program(*entry->session, entry->caller->program, inputs.values(), inputs.framework, results);
        if (ended) {
            PyObject* result = make_result(*entry, results, inputs);
            if (result != nullptr) return result;
        }
        return recover(object, *entry, arguments, positional, keywords, ended);
    }
    return call_slowly(object, arguments, positional, keywords);
}

// ---------------------------------------------------------------- the Python object

PyObject* jit_new(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* object = type->tp_alloc(type, 0);
    if (object == nullptr) return nullptr;
    inherit_vectorcall(type);
    auto* self = reinterpret_cast<Jit*>(object);
    self->vectorcall = jit_vectorcall;
    self->entries = new std::vector<std::shared_ptr<Entry>>;
    return object;
}

// Everything that an entry holds, from the arguments of `_add`.
std::shared_ptr<Entry> parse_entry(PyObject* args) {
    PyObject *keywords, *steps, *live, *packed, *guards, *module, *results, *open, *finish, *token, *session;
    Py_ssize_t positional, inputs;
    int is_tuple, gives_scalars;
    if (!PyArg_ParseTuple(args, "nOO!O!O!O!OnO!ppOOOO", &positional, &keywords, &PyList_Type, &steps, &PyList_Type,
                          &live, &PyList_Type, &packed, &PyList_Type, &guards, &module, &inputs, &PyTuple_Type,
                          &results, &is_tuple, &gives_scalars, &open, &finish, &token, &session))
        return nullptr;
    if (!is_caller(module) || !is_runner(session) || !(keywords == Py_None || PyTuple_Check(keywords))) {
        PyErr_SetString(PyExc_TypeError, "an entry needs a Module, a Session and the names of its keywords");
        return nullptr;
    }
    auto entry = std::make_shared<Entry>();
    References& held = entry->references;
    entry->arguments = ArgumentPlan::parse(steps, held);
    entry->live = entry->arguments != nullptr ? LivePlan::parse(live, held) : nullptr;
    entry->packed = entry->live != nullptr ? PackedPlan::parse(packed, held) : nullptr;
    if (entry->packed == nullptr) return nullptr;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(guards); ++i) {
        PyObject* set = PyList_GET_ITEM(guards, i);
        if (!is_guards(set)) {
            PyErr_SetString(PyExc_TypeError, "the guards of an entry are Guards");
            return nullptr;
        }
        entry->guards.push_back(held.keep(set));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); ++i)
        entry->results.push_back(PyLong_AsSsize_t(PyTuple_GET_ITEM(results, i)));
    if (PyErr_Occurred()) return nullptr;
    entry->positional = positional;
    entry->keywords = held.keep(keywords);
    entry->caller = reinterpret_cast<Caller*>(held.keep(module));
    entry->session = reinterpret_cast<Runner*>(held.keep(session))->session;
    entry->inputs = static_cast<std::size_t>(inputs);
    entry->is_tuple = is_tuple != 0;
    entry->gives_scalars = gives_scalars != 0;
    entry->open = held.keep(open);
    entry->finish = held.keep(finish);
    entry->token = held.keep(token);
    return entry;
}

// _add(positional, keywords, steps, live, packed, guards, module, inputs, results, is_tuple, gives_scalars, open, finish,
//      token, session)
PyObject* jit_add(PyObject* object, PyObject* args) {
    std::shared_ptr<Entry> entry = parse_entry(args);
    if (entry == nullptr) return nullptr;
    auto& entries = *reinterpret_cast<Jit*>(object)->entries;
    entries.insert(entries.begin(), std::move(entry));
    Py_RETURN_NONE;
}

// _remove(token): the entries of one translation, or of all for None.
PyObject* jit_remove(PyObject* object, PyObject* token) {
    auto& entries = *reinterpret_cast<Jit*>(object)->entries;
    std::vector<std::shared_ptr<Entry>> kept, removed;  // what goes runs code of Python's when it goes
    for (const auto& entry : entries) (token != Py_None && entry->token != token ? kept : removed).push_back(entry);
    entries.swap(kept);
    kept.clear();
    removed.clear();
    Py_RETURN_NONE;
}

PyObject* jit_enter_python(PyObject* object, PyObject*) {
    ++reinterpret_cast<Jit*>(object)->python_depth;
    Py_RETURN_NONE;
}

PyObject* jit_leave_python(PyObject* object, PyObject*) {
    --reinterpret_cast<Jit*>(object)->python_depth;
    Py_RETURN_NONE;
}

int jit_traverse(PyObject* object, visitproc visit, void* arg) {
    auto* self = reinterpret_cast<Jit*>(object);
    if (self->entries != nullptr) {
        for (const auto& entry : *self->entries) {
            // An entry that a call holds as well is not this object's alone to give up.
            if (entry.use_count() > 1) continue;
            const int done = entry->references.traverse(visit, arg);
            if (done != 0) return done;
        }
    }
    Py_VISIT(Py_TYPE(object));
    return 0;
}

int jit_clear(PyObject* object) {
    delete std::exchange(reinterpret_cast<Jit*>(object)->entries, nullptr);
    return 0;
}

void jit_dealloc(PyObject* object) {
    PyObject_GC_UnTrack(object);
    jit_clear(object);
    PyTypeObject* type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyMethodDef jit_methods[] = {{"_add", jit_add, METH_VARARGS, nullptr},
                             {"_remove", jit_remove, METH_O, nullptr},
                             {"_enter_python", jit_enter_python, METH_NOARGS, nullptr},
                             {"_leave_python", jit_leave_python, METH_NOARGS, nullptr},
                             {nullptr, nullptr, 0, nullptr}};
PyMemberDef jit_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Jit, vectorcall), READONLY, nullptr},
                             {"_calls", T_ULONGLONG, offsetof(Jit, calls), READONLY, nullptr},
                             {nullptr, 0, 0, 0, nullptr}};
PyType_Slot jit_slots[] = {{Py_tp_new, reinterpret_cast<void*>(jit_new)},
                           {Py_tp_dealloc, reinterpret_cast<void*>(jit_dealloc)},
                           {Py_tp_traverse, reinterpret_cast<void*>(jit_traverse)},
                           {Py_tp_clear, reinterpret_cast<void*>(jit_clear)},
                           {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                           {Py_tp_methods, jit_methods},
                           {Py_tp_members, jit_members},
                           {0, nullptr}};
PyType_Spec jit_spec = {"flexor._flexor_fast.JitBase", sizeof(Jit), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                        jit_slots};

}  // namespace

bool initialise_jit(PyObject* module) {
    method_names.call = PyUnicode_InternFromString("_call");
    method_names.recover = PyUnicode_InternFromString("_recover");
    PyObject* type = PyType_FromSpec(&jit_spec);
    return type != nullptr && PyModule_AddObject(module, "JitBase", type) == 0;
}

}  // namespace flexor::python
