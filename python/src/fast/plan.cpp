#include "fast/plan.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "fast/guards.h"
#include "fast/torch.h"

namespace flexor::python {

namespace {

std::optional<DType> dtype_named(std::string_view name) {
    for (int i = 0; i < kDTypeCount; ++i) {
        if (dtype_framework_name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
    }
    PyErr_SetString(PyExc_ValueError, "an unknown dtype");
    return std::nullopt;
}

// Refuses with a Python error.
std::nullptr_t unknown(const char* what, const char* name) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "an unknown %s: %s", what, name);
    return nullptr;
}

bool is_number_class(PyObject* cls) {
    return cls == reinterpret_cast<PyObject*>(&PyLong_Type) || cls == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
           cls == reinterpret_cast<PyObject*>(&PyBool_Type);
}

bool has_class(PyObject* object, PyObject* cls) { return reinterpret_cast<PyObject*>(Py_TYPE(object)) == cls; }

Device device_numbered(int number) {
    return number < 0 ? Device{} : Device{DeviceKind::kCuda, static_cast<std::int8_t>(number)};
}

bool is_true(int answer) {
    if (answer < 0) PyErr_Clear();
    return answer == 1;
}

// Appends an object that is not among these yet.
bool is_first(PyObject* object, std::vector<PyObject*>& objects) {
    if (std::find(objects.begin(), objects.end(), object) != objects.end()) return false;
    objects.push_back(object);
    return true;
}

}  // namespace

PyObject* tuple_of(std::span<PyObject* const> borrowed) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(borrowed.size()));
    for (std::size_t i = 0; tuple != nullptr && i < borrowed.size(); ++i) {
        Py_INCREF(borrowed[i]);
        PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), borrowed[i]);
    }
    return tuple;
}

// ---------------------------------------------------------------- inputs

Inputs::Inputs(const Program& program, std::size_t most)
    : program_(program), values_(inline_values_), objects_(inline_objects_) {
    if (most <= kInline) return;
    many_values_.resize(most);
    many_objects_.resize(most);
    values_ = many_values_.data();
    objects_ = many_objects_.data();
}

bool Inputs::add(PyObject* object) {
    if (!read_argument(program_, ParameterKind::kOther, object, values_[count_], framework)) {
        PyErr_Clear();
        return false;
    }
    objects_[count_++] = object;
    return true;
}

bool Inputs::add_owned(PyObject* object) {
    owned_.keep(object);
    Py_DECREF(object);
    return add(object);
}

bool Inputs::open(PyObject* opener) {
    PyObject* given = tuple_of(roots);
    PyObject* held = given != nullptr ? tuple_of(containers) : nullptr;
    PyObject* arguments[] = {given, held};
    PyObject* opened = held != nullptr ? PyObject_Vectorcall(opener, arguments, 2, nullptr) : nullptr;
    Py_XDECREF(given), Py_XDECREF(held);
    const bool ok = opened != nullptr && PyTuple_Check(opened) && PyTuple_GET_SIZE(opened) == 2 &&
                    PyTuple_Check(PyTuple_GET_ITEM(opened, 1));
    if (ok) {
        owned_.keep(opened);
        found = PyTuple_GET_ITEM(opened, 0);
        leaves = PyTuple_GET_ITEM(opened, 1);
    }
    Py_XDECREF(opened);
    PyErr_Clear();
    return ok;
}

// ---------------------------------------------------------------- arguments

std::unique_ptr<ArgumentPlan> ArgumentPlan::parse(PyObject* steps, References& references) {
    auto plan = std::make_unique<ArgumentPlan>();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(steps); ++i) {
        const char* name;
        PyObject* first;
        PyObject *second = nullptr, *third = nullptr;
        int device = -1;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(steps, i), "sO|OOi", &name, &first, &second, &third, &device))
            return nullptr;
        const std::string_view kind = name;
        Step step{};
        if (kind == "from" && second != nullptr) {
            step = {Kind::kFrom, references.keep(second), PyLong_AsSsize_t(first)};
        } else if (kind == "number" && is_number_class(first)) {
            step = {Kind::kNumber, references.keep(first)};
        } else if (kind == "tensor" && third != nullptr) {
            const char* dtype_text = PyUnicode_AsUTF8(second);
            const std::optional<DType> dtype = dtype_text != nullptr ? dtype_named(dtype_text) : std::nullopt;
            if (!dtype) return nullptr;
            step = {Kind::kTensor, references.keep(first), PyLong_AsSsize_t(third), *dtype, device_numbered(device)};
        } else if (kind == "again") {
            step = {Kind::kAgain, nullptr, PyLong_AsSsize_t(first)};
        } else if (kind == "value" || kind == "equal" || kind == "same") {
            step = {kind == "value"   ? Kind::kValue
                    : kind == "equal" ? Kind::kEqual
                                      : Kind::kSame,
                    references.keep(first)};
        } else if ((kind == "tuple" || kind == "list") && second != nullptr) {
            step = {Kind::kSequence, references.keep(first), PyLong_AsSsize_t(second)};
        } else if (kind == "object") {
            step = {Kind::kObject, references.keep(first)};
        } else if (kind == "dict" && PyTuple_Check(first)) {
            step = {Kind::kDict, references.keep(first)};
        } else {
            return unknown("step", name);
        }
        if (PyErr_Occurred()) return nullptr;
        plan->steps_.push_back(step);
    }
    return plan;
}

bool ArgumentPlan::match(PyObject* const* arguments, Inputs& inputs) const {
    const Step* step = steps_.data();
    const Step* end = step + steps_.size();
    while (step != end) {
        PyObject* object = step->number >= 0 ? arguments[step->number] : step->object;  // a kFrom
        ++step;
        if (!match_one(object, step, inputs)) return false;
    }
    return true;
}

bool ArgumentPlan::match_one(PyObject* object, const Step*& next, Inputs& inputs) const {
    const Step& step = *next++;
    switch (step.kind) {
        case Kind::kNumber: return has_class(object, step.object) && inputs.add(object);
        case Kind::kTensor: {
            if (!has_class(object, step.object)) return false;
            const auto before = inputs.objects();
            if (std::find(before.begin(), before.end(), object) != before.end()) return false;
            if (!inputs.add(object) || !inputs.values().back().is_tensor()) return false;
            const Tensor& tensor = inputs.values().back().tensor();
            return tensor.dtype() == step.dtype && tensor.rank() == step.number && tensor.device() == step.device;
        }
        case Kind::kAgain: return object == inputs.objects()[static_cast<std::size_t>(step.number)];
        case Kind::kValue: return is_true(is_same(object, step.object));
        case Kind::kEqual:
            return Py_TYPE(object) == Py_TYPE(step.object) &&
                   is_true(PyObject_RichCompareBool(object, step.object, Py_EQ));
        case Kind::kSame: return object == step.object;
        case Kind::kSequence:
            if (!has_class(object, step.object)) return false;
            if (PyList_Check(object) && !is_first(object, inputs.containers)) return false;
            // Both are exact or subclasses of tuple: their items lie in the object. An item's steps run no Python code
            // that could change a list, but for comparisons of the user's own classes.
            for (Py_ssize_t i = 0; i < step.number; ++i) {
                if (PySequence_Fast_GET_SIZE(object) != step.number) return false;
                if (!match_one(PySequence_Fast_GET_ITEM(object, i), next, inputs)) return false;
            }
            return PySequence_Fast_GET_SIZE(object) == step.number;
        case Kind::kDict: {
            if (!PyDict_CheckExact(object) || PyDict_GET_SIZE(object) != PyTuple_GET_SIZE(step.object)) return false;
            if (!is_first(object, inputs.containers)) return false;
            PyObject *key, *value;
            Py_ssize_t position = 0, i = 0;
            while (PyDict_Next(object, &position, &key, &value) != 0) {
                if (i == PyTuple_GET_SIZE(step.object)) return false;
                if (!is_true(is_same(key, PyTuple_GET_ITEM(step.object, i++)))) return false;
                if (!match_one(value, next, inputs)) return false;
            }
            return i == PyTuple_GET_SIZE(step.object);
        }
        case Kind::kObject: return has_class(object, step.object) && is_first(object, inputs.roots);
        case Kind::kFrom: break;  // stands only in front of an argument
    }
    return false;
}

// ---------------------------------------------------------------- live

bool Place::parse(const char* name, PyObject* holder, PyObject* key, References& references, Place& out) {
    constexpr std::pair<std::string_view, Kind> kKinds[] = {{"item", Kind::kItem},     {"element", Kind::kElement},
                                                            {"cell", Kind::kCell},     {"attribute", Kind::kAttribute},
                                                            {"object", Kind::kObject}, {"argument", Kind::kArgument}};
    const auto* found =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& k) { return k.first == name; });
    if (found == std::end(kKinds)) {
        unknown("place", name);
        return false;
    }
    out = {found->second, references.keep(holder), references.keep(key)};
    return true;
}

PyObject* Place::object() const {
    switch (kind) {
        case Kind::kItem: {
            if (!PyDict_CheckExact(holder)) return PyObject_GetItem(holder, key);
            PyObject* found = PyDict_GetItemWithError(holder, key);
            Py_XINCREF(found);
            return found;
        }
        case Kind::kElement: return PyObject_GetItem(holder, key);
        case Kind::kCell: return PyCell_Get(holder);
        case Kind::kAttribute: return PyObject_GetAttr(holder, key);
        case Kind::kObject:
        case Kind::kArgument: break;
    }
    Py_INCREF(holder);
    return holder;
}

std::unique_ptr<LivePlan> LivePlan::parse(PyObject* places, References& references) {
    auto plan = std::make_unique<LivePlan>();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(places); ++i) {
        const char* kind;
        PyObject *holder, *key, *cls, *sizes;
        const char* dtype;
        int device;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(places, i), "sOOOzOi", &kind, &holder, &key, &cls, &dtype, &sizes,
                              &device))
            return nullptr;
        Input input{};
        input.device = device_numbered(device);
        if (!Place::parse(kind, holder, key, references, input.place)) return nullptr;
        input.cls = references.keep(cls);
        const bool is_leaf = input.place.kind == Place::Kind::kArgument;
        if (is_leaf) input.leaf = PyLong_AsSsize_t(key);
        if (PyErr_Occurred()) return nullptr;
        if (dtype != nullptr) {
            input.dtype = dtype_named(dtype);
            if (!input.dtype || !(is_leaf ? PyLong_Check(sizes) : PyTuple_Check(sizes)))
                return unknown("dtype or shape", dtype);
            if (is_leaf) input.rank = PyLong_AsSize_t(sizes);
            for (Py_ssize_t axis = 0; !is_leaf && axis < PyTuple_GET_SIZE(sizes); ++axis)
                input.sizes.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, axis)));
            if (PyErr_Occurred()) return nullptr;
        }
        plan->inputs_.push_back(std::move(input));
    }
    return plan;
}

bool LivePlan::fetch(Inputs& inputs) const {
    for (const Input& input : inputs_) {
        const bool is_leaf = input.place.kind == Place::Kind::kArgument;
        if (is_leaf && (inputs.leaves == nullptr || input.leaf >= PyTuple_GET_SIZE(inputs.leaves))) return false;
        PyObject* object = is_leaf ? PyTuple_GET_ITEM(inputs.leaves, input.leaf) : input.place.object();
        if (object == nullptr) {
            PyErr_Clear();
            return false;
        }
        const bool is_of_class = has_class(object, input.cls);
        if (!(is_leaf ? inputs.add(object) : inputs.add_owned(object)) || !is_of_class) return false;
        if (!input.dtype) continue;
        const Value& value = inputs.values().back();
        if (!value.is_tensor() || value.tensor().dtype() != *input.dtype || value.tensor().device() != input.device)
            return false;
        const auto sizes = value.tensor().sizes();
        if (is_leaf ? sizes.size() != input.rank
                    : !std::equal(sizes.begin(), sizes.end(), input.sizes.begin(), input.sizes.end()))
            return false;
    }
    return true;
}

// ---------------------------------------------------------------- packed weights

std::unique_ptr<PackedPlan> PackedPlan::parse(PyObject* weights, References& references) {
    auto plan = std::make_unique<PackedPlan>();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(weights); ++i) {
        const char* kind;
        PyObject *holder, *key, *tensor, *version;
        unsigned long long address;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(weights, i), "sOOOKO", &kind, &holder, &key, &tensor, &address, &version))
            return nullptr;
        Weight weight{};
        if (!Place::parse(kind, holder, key, references, weight.place)) return nullptr;
        weight.tensor = references.keep(tensor);
        weight.address = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address));
        if (version != Py_None) weight.version = PyLong_AsLongLong(version);
        if (PyErr_Occurred()) return nullptr;
        plan->weights_.push_back(weight);
    }
    return plan;
}

bool PackedPlan::are_current() const {
    if (weights_.empty()) return true;
    const bool records = says_true(torch.is_grad_enabled);
    for (const Weight& weight : weights_) {
        PyObject* found = weight.place.object();
        if (found == nullptr) PyErr_Clear();
        Py_XDECREF(found);  // the tensor is kept; of another object only the address is compared
        if (found != weight.tensor || data_of(found) != weight.address) return false;
        if (weight.version >= 0 && version_of(found) != weight.version) return false;
        if (records && is_torch_tensor(found) && ask_truth(torch.requires_grad, found) != 0) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

}  // namespace flexor::python
