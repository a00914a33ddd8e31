#include "fast/guards.h"

#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "fast/dict_version.h"
#include "fast/references.h"

namespace flexor::python {

namespace {

// kCode, kDefaults: attributes of a function, which are looked at without a look-up by name.
enum class Kind : std::uint8_t {
    kItem,
    kAttribute,
    kCode,
    kDefaults,
    kKeywordDefaults,
    kElement,
    kLength,
    kKeys,
    kCell,
    kContext,
    kCall,
    kOrder,
    kType
};

struct Guard {
    Kind kind;
    PyObject* holder;
    PyObject* key;       // None where the kind has none
    PyObject* expected;  // `missing` where there is nothing
};

// Guards of one dict.
struct Group {
    explicit Group(PyObject* dict) : version(dict) {}
    DictVersion version;
    std::uint64_t held = 0;  // the version in which all of them held; 0: none yet
    std::vector<Guard> guards;
};

struct Guards {
    PyObject_HEAD PyObject* missing;
    References* references;  // all that the guards point to
    std::vector<Group>* groups;
    std::vector<Guard>* others;
    std::uint64_t held;  // DictVersion::of_all() in which all groups held
};

PyTypeObject* guards_type = nullptr;

// Its length is that of the dict that it is.
bool is_plain_dict(PyObject* object) { return PyDict_CheckExact(object) || Py_IS_TYPE(object, &PyODict_Type); }

// A new reference to the dict of a class.
PyObject* dict_of_class(PyObject* cls) {
#if PY_VERSION_HEX < 0x030C0000
    PyObject* dict = reinterpret_cast<PyTypeObject*>(cls)->tp_dict;
    Py_XINCREF(dict);
    return dict;
#else
    return PyType_GetDict(reinterpret_cast<PyTypeObject*>(cls));
#endif
}

// A new reference to what stands under a key, or to `missing`.
PyObject* item_of(PyObject* holder, PyObject* key, PyObject* missing) {
    if (!PyDict_Check(holder)) return PyObject_CallMethod(holder, "get", "OO", key, missing);
    PyObject* found = PyDict_GetItemWithError(holder, key);
    if (found == nullptr && PyErr_Occurred()) return nullptr;
    if (found == nullptr) found = missing;
    Py_INCREF(found);
    return found;
}

PyObject* attribute_of(PyObject* holder, PyObject* name, PyObject* missing) {
    PyObject* found = PyObject_GetAttr(holder, name);
    if (found != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    Py_INCREF(missing);
    return missing;
}

PyObject* element_of(PyObject* holder, PyObject* index, PyObject* missing) {
    const Py_ssize_t at = PyLong_AsSsize_t(index);
    if (at == -1 && PyErr_Occurred()) return nullptr;
    const Py_ssize_t length = PySequence_Size(holder);
    if (length < 0) return nullptr;
    if (at >= length) {
        Py_INCREF(missing);
        return missing;
    }
    return PySequence_GetItem(holder, at);
}

int has_keys(PyObject* holder, PyObject* expected) {
    if (!PyDict_CheckExact(holder)) {
        PyObject* keys = PySequence_Tuple(holder);
        const int same = keys != nullptr ? is_same(keys, expected) : -1;
        Py_XDECREF(keys);
        return same;
    }
    if (PyDict_GET_SIZE(holder) != PyTuple_GET_SIZE(expected)) return 0;
    PyObject *key, *value;
    Py_ssize_t position = 0, i = 0;
    while (PyDict_Next(holder, &position, &key, &value) != 0) {
        const int same = i < PyTuple_GET_SIZE(expected) ? is_same(key, PyTuple_GET_ITEM(expected, i++)) : 0;
        if (same != 1) return same;
    }
    return 1;
}

int compare_and_drop(PyObject* found, PyObject* expected) {
    if (found == nullptr) return -1;
    const int same = is_same(found, expected);
    Py_DECREF(found);
    return same;
}

int is_same_or_none(PyObject* found, PyObject* expected) {
    return is_same(found != nullptr ? found : Py_None, expected);
}

// 1, 0, or -1 with a Python error set.
int holds(const Guard& guard, PyObject* missing) {
    switch (guard.kind) {
        case Kind::kItem: return compare_and_drop(item_of(guard.holder, guard.key, missing), guard.expected);
        case Kind::kAttribute: return compare_and_drop(attribute_of(guard.holder, guard.key, missing), guard.expected);
        case Kind::kCode: return is_same(PyFunction_GET_CODE(guard.holder), guard.expected);
        case Kind::kDefaults: return is_same_or_none(PyFunction_GET_DEFAULTS(guard.holder), guard.expected);
        case Kind::kKeywordDefaults: return is_same_or_none(PyFunction_GET_KW_DEFAULTS(guard.holder), guard.expected);
        case Kind::kElement: return compare_and_drop(element_of(guard.holder, guard.key, missing), guard.expected);
        case Kind::kLength: {
            const Py_ssize_t length = PyObject_Size(guard.holder);
            return length < 0 ? -1 : (length == PyLong_AsSsize_t(guard.expected) ? 1 : 0);
        }
        case Kind::kKeys: return has_keys(guard.holder, guard.expected);
        case Kind::kCell: {
            PyObject* found = PyCell_Get(guard.holder);
            return found == nullptr ? 0 : compare_and_drop(found, guard.expected);
        }
        case Kind::kContext: {
            PyObject* found = nullptr;
            if (PyContextVar_Get(guard.holder, guard.key, &found) != 0) return -1;
            return compare_and_drop(found, guard.expected);
        }
        case Kind::kCall: {
            PyObject* found = PyObject_CallNoArgs(guard.holder);
            if (found == nullptr) return -1;
            const int same = PyObject_RichCompareBool(found, guard.expected, Py_EQ);
            Py_DECREF(found);
            return same;
        }
        case Kind::kOrder: return reinterpret_cast<PyTypeObject*>(guard.holder)->tp_mro == guard.expected ? 1 : 0;
        case Kind::kType: return reinterpret_cast<PyObject*>(Py_TYPE(guard.holder)) == guard.expected ? 1 : 0;
    }
    return 0;
}

bool all_hold(const std::vector<Guard>& guards, PyObject* missing) {
    for (const Guard& guard : guards) {
        const int answer = holds(guard, missing);
        if (answer < 0) PyErr_Clear();
        if (answer != 1) return false;
    }
    return true;
}

// Whether all groups hold; `known` becomes false if the version of one is not.
bool groups_hold(std::vector<Group>& groups, PyObject* missing, bool& known) {
    for (Group& group : groups) {
        const std::uint64_t version = group.version.current();
        if (version != 0 && version == group.held) continue;
        if (!all_hold(group.guards, missing)) return false;
        group.held = version;
        known = known && version != 0;
    }
    return true;
}

std::optional<Kind> kind_named(std::string_view name) {
    constexpr std::pair<std::string_view, Kind> kKinds[] = {
        {"item", Kind::kItem},       {"class", Kind::kItem},      {"attribute", Kind::kAttribute},
        {"element", Kind::kElement}, {"length", Kind::kLength},   {"keys", Kind::kKeys},
        {"cell", Kind::kCell},       {"context", Kind::kContext}, {"call", Kind::kCall},
        {"order", Kind::kOrder},     {"type", Kind::kType}};
    for (const auto& [text, kind] : kKinds) {
        if (text == name) return kind;
    }
    return std::nullopt;
}

// The kind of a guard of an attribute.
Kind kind_of_attribute(PyObject* holder, PyObject* name) {
    if (!PyFunction_Check(holder) || !PyUnicode_Check(name)) return Kind::kAttribute;
    if (PyUnicode_CompareWithASCIIString(name, "__code__") == 0) return Kind::kCode;
    if (PyUnicode_CompareWithASCIIString(name, "__defaults__") == 0) return Kind::kDefaults;
    if (PyUnicode_CompareWithASCIIString(name, "__kwdefaults__") == 0) return Kind::kKeywordDefaults;
    return Kind::kAttribute;
}

// The guards of a dict that its version speaks for.
bool is_of_dict(const Guard& guard) {
    switch (guard.kind) {
        case Kind::kItem: return PyDict_Check(guard.holder);
        case Kind::kLength: return is_plain_dict(guard.holder);
        case Kind::kKeys: return PyDict_CheckExact(guard.holder);  // an OrderedDict changes its order alone
        default: return false;
    }
}

void add(Guards& self, const Guard& guard) {
    for (PyObject* object : {guard.holder, guard.key, guard.expected}) self.references->keep(object);
    if (!is_of_dict(guard)) {
        self.others->push_back(guard);
        return;
    }
    for (Group& group : *self.groups) {
        if (group.version.dict() == guard.holder) return group.guards.push_back(guard);
    }
    self.groups->emplace_back(guard.holder).guards.push_back(guard);
}

// Guards(list of (kind, holder, key, expected), missing)
PyObject* guards_new(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject *list, *missing;
    if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &list, &missing)) return nullptr;
    PyObject* object = type->tp_alloc(type, 0);
    if (object == nullptr) return nullptr;
    auto* self = reinterpret_cast<Guards*>(object);
    Py_INCREF(missing);
    self->missing = missing;
    self->references = new References;
    self->groups = new std::vector<Group>;
    self->others = new std::vector<Guard>;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
        const char* name;
        PyObject *holder, *key, *expected;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "sOOO", &name, &holder, &key, &expected)) {
            Py_DECREF(object);
            return nullptr;
        }
        const std::optional<Kind> kind = kind_named(name);
        if (!kind) {
            PyErr_Format(PyExc_ValueError, "there is no guard of the kind %s", name);
            Py_DECREF(object);
            return nullptr;
        }
        if (std::string_view(name) != "class") {
            add(*self, {*kind == Kind::kAttribute ? kind_of_attribute(holder, key) : *kind, holder, key, expected});
            continue;
        }
        PyObject* dict = dict_of_class(holder);
        if (dict == nullptr) {
            Py_DECREF(object);
            return nullptr;
        }
        add(*self, {*kind, dict, key, expected});
        Py_DECREF(dict);
    }
    return object;
}

PyObject* guards_call(PyObject* self, PyObject*, PyObject*) { return PyBool_FromLong(guards_hold(self) ? 1 : 0); }

int guards_traverse(PyObject* object, visitproc visit, void* arg) {
    auto* self = reinterpret_cast<Guards*>(object);
    Py_VISIT(self->missing);
    Py_VISIT(Py_TYPE(object));
    return self->references != nullptr ? self->references->traverse(visit, arg) : 0;
}

int guards_clear(PyObject* object) {
    auto* self = reinterpret_cast<Guards*>(object);
    // The versions first: they speak of dicts that the references keep alive.
    delete std::exchange(self->groups, nullptr);
    delete std::exchange(self->others, nullptr);
    Py_CLEAR(self->missing);
    delete std::exchange(self->references, nullptr);
    return 0;
}

void guards_dealloc(PyObject* object) {
    PyObject_GC_UnTrack(object);
    guards_clear(object);
    PyTypeObject* type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyType_Slot guards_slots[] = {{Py_tp_new, reinterpret_cast<void*>(guards_new)},
                              {Py_tp_call, reinterpret_cast<void*>(guards_call)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(guards_dealloc)},
                              {Py_tp_traverse, reinterpret_cast<void*>(guards_traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(guards_clear)},
                              {0, nullptr}};
PyType_Spec guards_spec = {"flexor._flexor_fast.Guards", sizeof(Guards), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                           guards_slots};

int same_float(double found, double expected) {
    if (std::isnan(expected)) return std::isnan(found) ? 1 : 0;
    return std::memcmp(&found, &expected, sizeof(double)) == 0 ? 1 : 0;
}

}  // namespace

int is_same(PyObject* found, PyObject* expected) {
    if (found == expected) return 1;
    if (Py_TYPE(found) != Py_TYPE(expected)) return 0;
    if (PyFloat_Check(expected)) return same_float(PyFloat_AS_DOUBLE(found), PyFloat_AS_DOUBLE(expected));
    if (PyComplex_Check(expected)) {
        const Py_complex a = PyComplex_AsCComplex(found), b = PyComplex_AsCComplex(expected);
        return same_float(a.real, b.real) & same_float(a.imag, b.imag);
    }
    if (PyLong_Check(expected) || PyUnicode_Check(expected) || PyBytes_Check(expected))
        return PyObject_RichCompareBool(found, expected, Py_EQ);
    if (!PyTuple_CheckExact(expected) || PyTuple_GET_SIZE(found) != PyTuple_GET_SIZE(expected)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(expected); ++i) {
        const int same = is_same(PyTuple_GET_ITEM(found, i), PyTuple_GET_ITEM(expected, i));
        if (same != 1) return same;
    }
    return 1;
}

bool is_guards(PyObject* object) { return Py_IS_TYPE(object, guards_type); }

bool guards_hold(PyObject* guards) {
    auto& self = *reinterpret_cast<Guards*>(guards);
    if (self.groups == nullptr) return false;
    const std::uint64_t all = DictVersion::of_all();
    if (all == 0 || all != self.held) {
        bool known = true;
        if (!groups_hold(*self.groups, self.missing, known)) return false;
        self.held = known ? all : 0;
    }
    return all_hold(*self.others, self.missing);
}

bool initialise_guards(PyObject* module) {
    guards_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&guards_spec));
    if (guards_type == nullptr) return false;
    Py_INCREF(guards_type);
    return PyModule_AddObject(module, "Guards", reinterpret_cast<PyObject*>(guards_type)) == 0;
}

}  // namespace flexor::python
