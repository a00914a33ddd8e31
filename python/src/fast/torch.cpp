#include "fast/torch.h"

namespace flexor::python {

Torch torch;

namespace {

PyObject* attribute(PyObject* holder, const char* name) {
    PyObject* found = holder != nullptr ? PyObject_GetAttrString(holder, name) : nullptr;
    if (found == nullptr) PyErr_Clear();
    return found;
}

// A new reference to the result of a C function without arguments, called without the interpreter's detours, which cost
// more than most of these functions.
PyObject* call_plainly(PyObject* function) {
    if (PyCFunction_CheckExact(function) && PyCFunction_GET_FLAGS(function) == METH_NOARGS)
        return PyCFunction_GET_FUNCTION(function)(PyCFunction_GET_SELF(function), nullptr);
    return PyObject_CallNoArgs(function);
}

// The same of a descriptor: a look-up by name costs as much as a third of a tensor's conversion.
PyObject* ask(PyObject* descriptor, PyObject* object) {
    if (Py_IS_TYPE(descriptor, &PyGetSetDescr_Type)) {
        const PyGetSetDef* getter = reinterpret_cast<PyGetSetDescrObject*>(descriptor)->d_getset;
        return getter->get(object, getter->closure);
    }
    if (Py_IS_TYPE(descriptor, &PyMethodDescr_Type)) {
        const PyMethodDef* method = reinterpret_cast<PyMethodDescrObject*>(descriptor)->d_method;
        if (method->ml_flags == METH_NOARGS) return method->ml_meth(object, nullptr);
    }
    const descrgetfunc get = Py_TYPE(descriptor)->tp_descr_get;
    if (get == nullptr) {
        PyErr_SetString(PyExc_TypeError, "torch.Tensor has something else than a method or a property");
        return nullptr;
    }
    PyObject* found = get(descriptor, object, reinterpret_cast<PyObject*>(Py_TYPE(object)));
    if (found == nullptr || PyCallable_Check(found) == 0) return found;
    PyObject* answer = PyObject_CallNoArgs(found);
    Py_DECREF(found);
    return answer;
}

// Whether a function without arguments gives 0 or False; so does one that is not there.
bool gives_nothing(PyObject* function) {
    if (function == nullptr) return true;
    PyObject* answer = call_plainly(function);
    const bool nothing = answer != nullptr && PyObject_IsTrue(answer) == 0;
    if (answer == nullptr) PyErr_Clear();
    Py_XDECREF(answer);
    return nothing;
}

}  // namespace

bool look_for_torch() {
    if (torch.tensor != nullptr) return true;
    PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
    PyObject* tensor = attribute(module, "Tensor");
    if (tensor == nullptr) return false;  // not imported, or not yet to its end
    PyObject* nn = attribute(module, "nn");
    torch.parameter = reinterpret_cast<PyTypeObject*>(attribute(nn, "Parameter"));
    Py_XDECREF(nn);
    PyObject* capsule = attribute(tensor, "__dlpack_c_exchange_api__");
    if (capsule != nullptr) {
        torch.api = static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
        if (torch.api == nullptr) PyErr_Clear();
        if (torch.api != nullptr && torch.api->header.version.major != DLPACK_MAJOR_VERSION) torch.api = nullptr;
    }
    torch.is_neg = attribute(tensor, "is_neg");
    torch.requires_grad = attribute(tensor, "requires_grad");
    torch.is_inference = attribute(tensor, "is_inference");
    torch.version = attribute(tensor, "_version");
    torch.detach = attribute(tensor, "detach");
    torch.as_strided = attribute(tensor, "as_strided");
    torch.storage_offset = attribute(tensor, "storage_offset");
    torch.is_grad_enabled = attribute(module, "is_grad_enabled");
    torch.is_inference_mode_enabled = attribute(module, "is_inference_mode_enabled");
    if (torch.is_neg == nullptr || torch.requires_grad == nullptr) torch.api = nullptr;
    PyObject* graph = PyImport_ImportModule("torch.autograd.graph");
    if (graph == nullptr) PyErr_Clear();
    torch.increment_version = attribute(graph, "increment_version");
    Py_XDECREF(graph);
    PyObject* native = attribute(module, "_C");
    torch.is_any_autocast_enabled = attribute(native, "_is_any_autocast_enabled");
    torch.function_modes = attribute(native, "_len_torch_function_stack");
    torch.dispatch_modes = attribute(native, "_len_torch_dispatch_stack");
    Py_XDECREF(native);
    torch.tensor = reinterpret_cast<PyTypeObject*>(tensor);
    return true;
}

int ask_truth(PyObject* descriptor, PyObject* object) {
    PyObject* answer = ask(descriptor, object);
    if (answer == nullptr) return -1;
    Py_DECREF(answer);
    return answer == Py_True ? 1 : 0;
}

bool says_true(PyObject* function) {
    if (function == nullptr) return false;
    PyObject* answer = call_plainly(function);
    const bool is_true = answer == Py_True;
    Py_XDECREF(answer);
    return is_true;
}

namespace {

std::int64_t ask_number(PyObject* descriptor, PyObject* object) {
    PyObject* answer = descriptor != nullptr ? ask(descriptor, object) : nullptr;
    const std::int64_t number = answer != nullptr ? PyLong_AsLongLong(answer) : -1;
    Py_XDECREF(answer);
    if (PyErr_Occurred()) PyErr_Clear();
    return number;
}

PyObject* tuple_of_numbers(std::span<const std::int64_t> numbers) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(numbers.size()));
    for (std::size_t i = 0; tuple != nullptr && i < numbers.size(); ++i) {
        PyObject* number = PyLong_FromLongLong(numbers[i]);
        if (number == nullptr) {
            Py_DECREF(tuple);
            return nullptr;
        }
        PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), number);
    }
    return tuple;
}

}  // namespace

std::int64_t version_of(PyObject* tensor) { return ask_number(torch.version, tensor); }

PyObject* torch_view(PyObject* tensor, std::int64_t shift, std::span<const std::int64_t> sizes,
                     std::span<const std::int64_t> strides) {
    const std::int64_t offset = ask_number(torch.storage_offset, tensor);
    if (offset < 0 || offset + shift < 0 || torch.as_strided == nullptr || torch.detach == nullptr) return nullptr;
    // No gradient goes through what a program gives.
    PyObject* base = ask_truth(torch.requires_grad, tensor) == 0 ? Py_NewRef(tensor) : ask(torch.detach, tensor);
    PyObject* first = base != nullptr ? PyLong_FromLongLong(offset + shift) : nullptr;
    PyObject* new_sizes = first != nullptr ? tuple_of_numbers(sizes) : nullptr;
    PyObject* new_strides = new_sizes != nullptr ? tuple_of_numbers(strides) : nullptr;
    PyObject* arguments[] = {base, new_sizes, new_strides, first};
    PyObject* view = new_strides != nullptr ? PyObject_Vectorcall(torch.as_strided, arguments, 4, nullptr) : nullptr;
    Py_XDECREF(base), Py_XDECREF(first), Py_XDECREF(new_sizes), Py_XDECREF(new_strides);
    if (view == nullptr) PyErr_Clear();
    return view;
}

bool torch_is_plain() {
    if (torch.tensor == nullptr && !look_for_torch()) return true;
    return gives_nothing(torch.is_any_autocast_enabled) && gives_nothing(torch.function_modes) &&
           gives_nothing(torch.dispatch_modes);
}

}  // namespace flexor::python
