#include "fast/convert.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <cstring>
#include <utility>

#include "fast/foreign.h"
#include "fast/torch.h"
#include "interpreter.h"

namespace flexor::python {

namespace {

// Whether a tensor on a CUDA device was ever met: calls look for one only then.
bool cuda_met = false;

struct InternedNames {
    PyObject* dlpack = nullptr;
    PyObject* dlpack_version = nullptr;  // {"max_version": (1, 0)}
    PyObject* bfloat16 = nullptr;        // ml_dtypes.bfloat16 dtype, if an array of it was met
} interned;

PyObject* errors_module() {
    static PyObject* module = PyImport_ImportModule("flexor.errors");
    return module;
}

void raise_named(const char* exception, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    PyObject* text = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    PyObject* module = errors_module();
    PyObject* type = module != nullptr ? PyObject_GetAttrString(module, exception) : nullptr;
    PyObject* raised = type != nullptr && text != nullptr ? PyObject_CallOneArg(type, text) : nullptr;
    if (raised != nullptr) {
        // The text begins with the number: "E0704 ...".
        const int number = std::atoi(PyUnicode_AsUTF8(text) + 1);
        const Diagnostic diagnostic{DiagnosticId{static_cast<std::uint16_t>(number)}};
        PyObject* code = PyUnicode_FromString(diagnostic.code().c_str());
        PyObject* name = PyUnicode_FromString(std::string(diagnostic.name()).c_str());
        if (code != nullptr && name != nullptr && PyObject_SetAttrString(raised, "code", code) == 0 &&
            PyObject_SetAttrString(raised, "name", name) == 0) {
            PyErr_SetObject(type, raised);
        }
        Py_XDECREF(code);
        Py_XDECREF(name);
        Py_DECREF(raised);
    }
    Py_XDECREF(type);
    Py_XDECREF(text);
}

// Replaces the exception that is set. Of what it said the first line is kept: torch appends the stack of its own C++.
void raise_after(const char* exception, const char* sentence) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject* text = value != nullptr ? PyObject_Str(value) : nullptr;
    PyObject* lines = text != nullptr ? PyUnicode_Splitlines(text, 0) : nullptr;
    PyErr_Clear();
    if (lines != nullptr && PyList_GET_SIZE(lines) > 0) {
        raise_named(exception, "%s: %U", sentence, PyList_GET_ITEM(lines, 0));
    } else {
        raise_named(exception, "%s", sentence);
    }
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace), Py_XDECREF(text), Py_XDECREF(lines);
}

bool dtype_from_dlpack(DLDataType type, DType& out) {
    if (type.lanes != 1) return false;
    switch (type.code) {
        case kDLBool: out = DType::kBool; return type.bits == 8;
        case kDLInt:
            out = type.bits == 64 ? DType::kI64 : (type.bits == 32 ? DType::kI32 : DType::kI8);
            return type.bits == 64 || type.bits == 32 || type.bits == 8;
        case kDLUInt: out = DType::kU8; return type.bits == 8;
        case kDLFloat:
            out = type.bits == 64 ? DType::kF64 : (type.bits == 32 ? DType::kF32 : DType::kF16);
            return type.bits == 64 || type.bits == 32 || type.bits == 16;
        case kDLBfloat: out = DType::kBF16; return type.bits == 16;
        default: return false;
    }
}

DLDataType dlpack_from_dtype(DType dtype) {
    const auto bits = static_cast<std::uint8_t>(8 * dtype_size(dtype));
    switch (dtype) {
        case DType::kBool: return {kDLBool, 8, 1};
        case DType::kU8: return {kDLUInt, 8, 1};
        case DType::kI8:
        case DType::kI32:
        case DType::kI64: return {kDLInt, bits, 1};
        case DType::kBF16: return {kDLBfloat, 16, 1};
        case DType::kF16:
        case DType::kF32:
        case DType::kF64: return {kDLFloat, bits, 1};
    }
    return {kDLFloat, bits, 1};
}

// Drops the Python object that owns a Tensor's memory, from whichever thread lets go last.
void release_object(void* context, void*) {
    if (!Py_IsInitialized()) return;
    const PyGILState_STATE state = enter_interpreter();
    Py_DECREF(static_cast<PyObject*>(context));
    PyGILState_Release(state);
}

Tensor tensor_of_object(PyObject* object, void* data, DType dtype, std::span<const std::int64_t> sizes,
                        std::span<const std::int64_t> strides, Device device = {}) {
    Py_INCREF(object);
    return Tensor::from_blob(data, dtype, sizes, strides, release_object, object, device);
}

bool check_rank(int rank) {
    if (rank <= kMaxRank) return true;
    raise_named("NotSupported", "E0704 a tensor of rank %d; the highest is %d", rank, kMaxRank);
    return false;
}

// `on_device`: memory of a CUDA device is taken; its owner's work and ours go to one stream.
bool from_dltensor(PyObject* owner, const DLTensor& t, Value& out, bool on_device = false) {
    Device device;
    if (on_device && t.device.device_type == kDLCUDA && t.device.device_id < 128) {
        device = {DeviceKind::kCuda, static_cast<std::int8_t>(t.device.device_id)};
        cuda_met = true;
    } else if (t.device.device_type != kDLCPU) {
        raise_named(
            "DTypeError",
            "E0403 the argument lies on DLPack device type %d; programs run on the CPU, and on CUDA devices with"
            " torch's tensors",
            static_cast<int>(t.device.device_type));
        return false;
    }
    DType dtype;
    if (!dtype_from_dlpack(t.dtype, dtype)) {
        raise_named("DTypeError", "E0401 a tensor of DLPack type code %d, %d bits has no dtype here", t.dtype.code,
                    t.dtype.bits);
        return false;
    }
    if (!check_rank(t.ndim)) return false;
    std::int64_t strides[kMaxRank];
    std::int64_t count = 1;
    for (int i = t.ndim; i-- > 0;) {
        strides[i] = t.strides != nullptr ? t.strides[i] : count;
        count *= t.shape[i];
    }
    if (t.data == nullptr && count != 0) {
        raise_named("NotSupported", "E0704 the tensor has elements but no memory (a fake, meta or resized tensor)");
        return false;
    }
    out = tensor_of_object(owner, static_cast<char*>(t.data) + t.byte_offset, dtype,
                           {t.shape, static_cast<std::size_t>(t.ndim)}, {strides, static_cast<std::size_t>(t.ndim)},
                           device);
    return true;
}

bool from_torch(PyObject* object, Value& out) {
    const int wants_grad = ask_truth(torch.requires_grad, object);
    if (wants_grad < 0) return false;
    if (wants_grad == 1 && says_true(torch.is_grad_enabled)) {
        raise_named("ArgumentError",
                    "E0510 the argument requires a gradient, and the module computes none\n"
                    "  hint: call it under torch.no_grad() or torch.inference_mode(), or pass x.detach()");
        return false;
    }
    const int is_negative = ask_truth(torch.is_neg, object);
    if (is_negative < 0) return false;
    if (is_negative == 1) {
        raise_named("NotSupported", "E0704 the tensor is a lazily negated view\n  hint: pass x.resolve_neg()");
        return false;
    }
    DLTensor t;
    if (torch.api->dltensor_from_py_object_no_sync(object, &t) != 0) {
        raise_after("NotSupported", "E0704 the tensor's memory cannot be read directly");
        return false;
    }
    return from_dltensor(object, t, out, true);
}

bool from_array(PyObject* object, Value& out) {
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    PyArray_Descr* descr = PyArray_DESCR(array);
    DType dtype;
    if (PyDataType_ISBYTESWAPPED(descr)) {
        raise_named("DTypeError",
                    "E0401 an array in the other byte order\n  hint: x.astype(x.dtype.newbyteorder('='))");
        return false;
    }
    switch (descr->type_num) {
        case NPY_BOOL: dtype = DType::kBool; break;
        case NPY_UINT8: dtype = DType::kU8; break;
        case NPY_INT8: dtype = DType::kI8; break;
        case NPY_FLOAT16: dtype = DType::kF16; break;
        case NPY_FLOAT32: dtype = DType::kF32; break;
        case NPY_FLOAT64: dtype = DType::kF64; break;
        default:
            if (PyTypeNum_ISSIGNED(descr->type_num) &&
                (PyDataType_ELSIZE(descr) == 4 || PyDataType_ELSIZE(descr) == 8)) {
                dtype = PyDataType_ELSIZE(descr) == 4 ? DType::kI32 : DType::kI64;
                break;
            }
            if (PyDataType_ELSIZE(descr) == 2 && std::strcmp(descr->typeobj->tp_name, "ml_dtypes.bfloat16") == 0) {
                dtype = DType::kBF16;
                if (interned.bfloat16 == nullptr) {
                    Py_INCREF(descr);
                    interned.bfloat16 = reinterpret_cast<PyObject*>(descr);
                }
                break;
            }
            raise_named("DTypeError", "E0401 an array of dtype %S has no dtype here",
                        reinterpret_cast<PyObject*>(descr));
            return false;
    }
    const int rank = PyArray_NDIM(array);
    if (!check_rank(rank)) return false;
    const auto item = static_cast<std::int64_t>(dtype_size(dtype));
    std::int64_t sizes[kMaxRank];
    std::int64_t strides[kMaxRank];
    for (int i = 0; i < rank; ++i) {
        sizes[i] = PyArray_DIM(array, i);
        const std::int64_t bytes = PyArray_STRIDE(array, i);
        if (bytes % item != 0 && sizes[i] > 1) {
            raise_named("NotSupported",
                        "E0704 an array whose strides are no multiples of its element size\n  hint: pass a copy");
            return false;
        }
        strides[i] = bytes / item;
    }
    const Tensor tensor = tensor_of_object(object, PyArray_DATA(array), dtype, {sizes, static_cast<std::size_t>(rank)},
                                           {strides, static_cast<std::size_t>(rank)});
    if (PyArray_ISWRITEABLE(array) == 0) tensor.refuse_writes();
    out = Value(tensor);
    return true;
}

// The object's __dlpack__, asked for the first version of the format where the object knows versions.
PyObject* dlpack_capsule(PyObject* object) {
    PyObject* method = PyObject_GetAttr(object, interned.dlpack);
    PyObject* none = PyTuple_New(0);
    PyObject* capsule =
        method != nullptr && none != nullptr ? PyObject_Call(method, none, interned.dlpack_version) : nullptr;
    if (capsule == nullptr && method != nullptr && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

// Any other object that speaks DLPack (JAX arrays, CuPy, ...). The first version of the format says what is read-only.
bool from_dlpack(PyObject* object, Value& out) {
    constexpr const char *kPlain = "dltensor", *kVersioned = "dltensor_versioned";
    PyObject* capsule = dlpack_capsule(object);
    if (capsule == nullptr) {
        if (PyErr_ExceptionMatches(PyExc_Exception))
            raise_after("NotSupported", "E0704 __dlpack__ raised an exception");
        return false;
    }
    // The capsule owns the exported tensor and is what keeps its memory alive.
    bool ok = false;
    if (PyCapsule_IsValid(capsule, kVersioned) != 0) {
        const auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kVersioned));
        ok = from_dltensor(capsule, managed->dl_tensor, out);
        if (ok && (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) out.tensor().refuse_writes();
    } else if (PyCapsule_IsValid(capsule, kPlain) != 0) {
        const auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain));
        ok = from_dltensor(capsule, managed->dl_tensor, out);
    } else {
        raise_named("NotSupported", "E0704 __dlpack__ of a %s gave a %s, not a capsule named dltensor",
                    Py_TYPE(object)->tp_name, Py_TYPE(capsule)->tp_name);
    }
    Py_DECREF(capsule);
    return ok;
}

bool sequence_from_object(PyObject* object, Value& out, Framework& framework) {
    PyObject* fast = PySequence_Fast(object, "a list or tuple");
    if (fast == nullptr) return false;
    ValueList list;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(fast);
    for (Py_ssize_t i = 0; i < count; ++i) {
        Value element;
        if (!value_from_object(PySequence_Fast_GET_ITEM(fast, i), element, framework)) {
            Py_DECREF(fast);
            return false;
        }
        list.push_back(std::move(element));
    }
    Py_DECREF(fast);
    out = Value::list(std::move(list));
    return true;
}

bool dict_from_object(PyObject* object, Value& out, Framework& framework) {
    ValueDict items;
    PyObject *key, *item;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &item) != 0) {
        const char* text = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;
        if (text == nullptr) {
            if (!PyErr_Occurred()) raise_named("DTypeError", "E0404 a dict argument needs keys of str, not %R", key);
            return false;
        }
        Value value;
        if (!value_from_object(item, value, framework)) return false;
        items.emplace_back(text, std::move(value));
    }
    out = Value::dict(std::move(items));
    return true;
}

bool from_integer(PyObject* integer, Value& out) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(integer, &overflow);
    if (overflow != 0) {
        raise_named("SizeOverflowError", "E0309 an int does not fit in 64 bits");
        return false;
    }
    if (value == -1 && PyErr_Occurred()) return false;
    return out = Value(static_cast<std::int64_t>(value)), true;
}

// A scalar: an object that gives itself as an int or a float, and is no tensor.
bool is_number(PyObject* object) {
    if (PyBool_Check(object) || PyArray_IsScalar(object, Generic)) return true;
    const PyNumberMethods* methods = Py_TYPE(object)->tp_as_number;
    if (methods == nullptr || (methods->nb_index == nullptr && methods->nb_float == nullptr)) return false;
    return !PyArray_Check(object) && PyObject_HasAttr(object, interned.dlpack) == 0;
}

// --- results

struct Exported {
    DLManagedTensorVersioned managed;
    Tensor tensor;
    bool* deleted;  // while torch makes its tensor: whether it has let go
};

void delete_exported(DLManagedTensorVersioned* self) {
    auto* exported = static_cast<Exported*>(self->manager_ctx);
    if (exported->deleted != nullptr) *exported->deleted = true;
    delete exported;
}

// The same view, of a copy of the memory that it spans; undefined if memory is exhausted.
Tensor copy_of_span(const Tensor& tensor) {
    std::int64_t low = 0, high = tensor.numel() > 0 ? 1 : 0;
    for (int i = 0; i < tensor.rank() && high > 0; ++i) {
        const std::int64_t reach = (tensor.size(i) - 1) * tensor.stride(i);
        (reach < 0 ? low : high) += reach;
    }
    const auto item = static_cast<std::int64_t>(dtype_size(tensor.dtype()));
    const Tensor memory = Tensor::empty(DType::kU8, {(high - low) * item});
    if (!memory.defined()) return {};
    std::memcpy(memory.data(), static_cast<char*>(tensor.data()) + low * item,
                static_cast<std::size_t>((high - low) * item));
    return memory.view(static_cast<char*>(memory.data()) - low * item, tensor.dtype(), tensor.sizes(),
                       tensor.strides());
}

PyObject* torch_from_tensor(const Tensor& given) {
    const bool on_device = given.device().kind == DeviceKind::kCuda;
    const Tensor tensor = given.is_read_only() && !on_device ? copy_of_span(given) : given;
    if (!tensor.defined()) {
        raise_named("ResourceLimit", "E0602 no memory for a copy of a read-only result");
        return nullptr;
    }
    bool deleted = false;
    auto* exported = new Exported{{}, tensor, &deleted};
    DLManagedTensorVersioned& m = exported->managed;
    m.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    m.manager_ctx = exported;
    m.deleter = delete_exported;
    m.flags = 0;
    m.dl_tensor.data = tensor.data();
    m.dl_tensor.device = {on_device ? kDLCUDA : kDLCPU, given.device().index};
    m.dl_tensor.ndim = tensor.rank();
    m.dl_tensor.dtype = dlpack_from_dtype(tensor.dtype());
    m.dl_tensor.shape = const_cast<std::int64_t*>(exported->tensor.sizes().data());
    m.dl_tensor.strides = const_cast<std::int64_t*>(exported->tensor.strides().data());
    m.dl_tensor.byte_offset = 0;
    void* object = nullptr;
    const int failed = torch.api->managed_tensor_to_py_object_no_sync(&m, &object);
    if (!deleted) exported->deleted = nullptr;
    if (failed != 0) {
        // Where it fails decides whether torch takes the tensor.
        if (!deleted) delete exported;
        raise_after("NotSupported", "E0704 torch makes no tensor of the result");
        return nullptr;
    }
    if (!on_device || !given.is_read_only()) return static_cast<PyObject*>(object);
    PyObject* copy = PyObject_CallMethod(static_cast<PyObject*>(object), "clone", nullptr);
    Py_DECREF(static_cast<PyObject*>(object));
    return copy;
}

// Owner of the memory behind a NumPy result.
constexpr const char* kOwnerName = "flexor.tensor";

void delete_owner(PyObject* capsule) { delete static_cast<Tensor*>(PyCapsule_GetPointer(capsule, kOwnerName)); }

// Whether elements are one in memory along an axis.
bool repeats(const Tensor& tensor) {
    for (int i = 0; i < tensor.rank(); ++i) {
        if (tensor.size(i) > 1 && tensor.stride(i) == 0) return tensor.numel() > 0;
    }
    return false;
}

// What repeats elements is not to be written to, as NumPy has it.
// `base`: the array whose memory it is; null: the program's.
PyObject* numpy_from_tensor(const Tensor& tensor, PyObject* base) {
    if (tensor.device().kind != DeviceKind::kCpu) return torch_from_tensor(tensor);
    int type = NPY_FLOAT32;
    switch (tensor.dtype()) {
        case DType::kBool: type = NPY_BOOL; break;
        case DType::kU8: type = NPY_UINT8; break;
        case DType::kI8: type = NPY_INT8; break;
        case DType::kI32: type = NPY_INT32; break;
        case DType::kI64: type = NPY_INT64; break;
        case DType::kF16: type = NPY_FLOAT16; break;
        case DType::kBF16:
        case DType::kF32: break;
        case DType::kF64: type = NPY_FLOAT64; break;
    }
    PyArray_Descr* descr = nullptr;
    if (tensor.dtype() == DType::kBF16) {
        if (interned.bfloat16 == nullptr) {
            PyObject* ml = PyImport_ImportModule("ml_dtypes");
            PyObject* scalar = ml != nullptr ? PyObject_GetAttrString(ml, "bfloat16") : nullptr;
            PyArray_Descr* found = nullptr;
            if (scalar == nullptr || PyArray_DescrConverter(scalar, &found) == 0) {
                PyErr_Clear();
                raise_named("NotSupported", "E0704 a bfloat16 result for NumPy needs the package ml_dtypes");
                Py_XDECREF(ml), Py_XDECREF(scalar);
                return nullptr;
            }
            Py_DECREF(ml), Py_DECREF(scalar);
            interned.bfloat16 = reinterpret_cast<PyObject*>(found);
        }
        descr = reinterpret_cast<PyArray_Descr*>(interned.bfloat16);
        Py_INCREF(descr);
    } else {
        descr = PyArray_DescrFromType(type);
    }
    npy_intp sizes[kMaxRank];
    npy_intp strides[kMaxRank];
    const auto item = static_cast<std::int64_t>(dtype_size(tensor.dtype()));
    for (int i = 0; i < tensor.rank(); ++i) {
        sizes[i] = tensor.size(i);
        strides[i] = tensor.stride(i) * item;
    }
    const bool is_fixed = tensor.is_read_only() || repeats(tensor);
    PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, tensor.rank(), sizes, strides, tensor.data(),
                                           is_fixed ? 0 : NPY_ARRAY_WRITEABLE, nullptr);
    if (array == nullptr) {
        if (PyErr_ExceptionMatches(PyExc_ValueError))
            raise_after("SizeOverflowError", "E0309 NumPy holds no array of the result's sizes");
        return nullptr;
    }
    PyObject* owner = base != nullptr ? Py_NewRef(base) : PyCapsule_New(new Tensor(tensor), kOwnerName, delete_owner);
    // The array has the reference to its owner, also where it refuses it.
    if (owner == nullptr || PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner) != 0) {
        Py_DECREF(array);
        return nullptr;
    }
    return array;
}

// First and last byte, the last one exclusive, that a tensor with elements reaches.
std::pair<const char*, const char*> reach(const Tensor& tensor) {
    const auto item = static_cast<std::int64_t>(dtype_size(tensor.dtype()));
    const char *low = static_cast<const char*>(tensor.data()), *high = low + item;
    for (int i = 0; i < tensor.rank(); ++i) {
        const std::int64_t step = (tensor.size(i) - 1) * tensor.stride(i) * item;
        (step < 0 ? low : high) += step;
    }
    return {low, high};
}

// The view as torch's of a tensor of torch's, whose first element is `first`; null, without an error, where there is none.
PyObject* torch_from_view(const Tensor& view, PyObject* of, const void* first, DType dtype) {
    const auto item = static_cast<std::int64_t>(dtype_size(view.dtype()));
    const std::int64_t bytes = static_cast<const char*>(view.data()) - static_cast<const char*>(first);
    if (view.dtype() != dtype || bytes % item != 0) return nullptr;
    return torch_view(of, view.numel() > 0 ? bytes / item : 0, view.sizes(), view.strides());
}

// A tensor over memory of `object`, one of the host's.
PyObject* object_from_view(const Tensor& tensor, PyObject* object, Framework framework) {
    if (is_torch_tensor(object) && framework == Framework::kTorch && torch.api != nullptr && !tensor.is_read_only()) {
        DLTensor t;
        DType dtype;
        if (torch.api->dltensor_from_py_object_no_sync(object, &t) != 0) {
            PyErr_Clear();
        } else if (dtype_from_dlpack(t.dtype, dtype)) {
            return torch_from_view(tensor, object, static_cast<char*>(t.data) + t.byte_offset, dtype);
        }
    }
    if (PyArray_CheckExact(object) && framework == Framework::kNumpy) return numpy_from_tensor(tensor, object);
    return nullptr;
}

PyObject* object_from_tensor(const Tensor& tensor, Framework framework, GivenTensors* given) {
    const Storage* storage = tensor.storage();
    if (storage->deleter == release_object && storage->context != nullptr) {
        auto* object = static_cast<PyObject*>(storage->context);
        if (!tensor.is_view() && (PyArray_CheckExact(object) || is_torch_tensor(object))) return Py_NewRef(object);
        PyObject* view = object_from_view(tensor, object, framework);
        if (view != nullptr || PyErr_Occurred()) return view;
    }
    if (framework != Framework::kTorch || torch.api == nullptr) return numpy_from_tensor(tensor, nullptr);
    if (given == nullptr || tensor.is_read_only() || tensor.numel() == 0) return torch_from_tensor(tensor);
    const auto [found, is_new] = given->try_emplace(storage, Given{tensor, nullptr});
    if (!is_new) {
        const Tensor& base = found->second.tensor;
        const auto [low, high] = reach(base);
        const auto [first, last] = reach(tensor);
        if (first >= low && last <= high) {
            PyObject* view = torch_from_view(tensor, found->second.object, base.data(), base.dtype());
            if (view != nullptr) return view;
        }
        return torch_from_tensor(tensor);
    }
    found->second.object = torch_from_tensor(tensor);
    if (found->second.object == nullptr) {
        given->erase(found);
        return nullptr;
    }
    return found->second.object;
}

}  // namespace

bool initialise_convert() {
    interned.dlpack = PyUnicode_InternFromString("__dlpack__");
    interned.dlpack_version = Py_BuildValue("{s:(ii)}", "max_version", DLPACK_MAJOR_VERSION, 0);
    return _import_array() >= 0;
}

bool value_from_object(PyObject* object, Value& out, Framework& framework) {
    PyTypeObject* type = Py_TYPE(object);
    if (type == &PyArray_Type) {
        if (framework == Framework::kNone) framework = Framework::kNumpy;
        return from_array(object, out);
    }
    if (is_torch_tensor(object)) {
        if (torch.api == nullptr) return from_dlpack(object, out);
        framework = Framework::kTorch;
        return from_torch(object, out);
    }
    if (object == Py_None) return out = Value(), true;
    if (PyBool_Check(object)) return out = Value(object == Py_True), true;
    if (PyFloat_CheckExact(object)) return out = Value(PyFloat_AS_DOUBLE(object)), true;
    if (PyLong_CheckExact(object)) return from_integer(object, out);
    if (PyUnicode_Check(object)) {
        const char* text = PyUnicode_AsUTF8(object);
        if (text == nullptr) return false;
        return out = Value(text), true;
    }
    if (PyList_Check(object) || PyTuple_Check(object) || PyDict_Check(object)) {
        // A list may hold itself. Interpreters differ in how deep they let C go.
        constexpr int kMostNested = 500;
        thread_local int nested = 0;
        if (nested == kMostNested) {
            PyErr_SetString(PyExc_RecursionError, "an argument is nested deeper than 500 lists");
            return false;
        }
        ++nested;
        const bool ok = PyDict_Check(object) ? dict_from_object(object, out, framework)
                                             : sequence_from_object(object, out, framework);
        --nested;
        return ok;
    }
    if (torch.tensor == nullptr && look_for_torch()) return value_from_object(object, out, framework);
    if (torch.tensor != nullptr && PyObject_TypeCheck(object, torch.tensor)) {
        raise_named("NotSupported",
                    "E0704 a subclass of torch.Tensor (%s): its memory is not read directly\n"
                    "  hint: pass x.as_subclass(torch.Tensor) if the plain tensor is meant",
                    type->tp_name);
        return false;
    }
    if (PyArray_Check(object)) {
        PyObject* masked = PyObject_HasAttrString(object, "mask") ? Py_True : Py_False;
        if (masked == Py_True) {
            raise_named("NotSupported", "E0704 a masked array\n  hint: pass x.filled() or x.data");
            return false;
        }
        if (framework == Framework::kNone) framework = Framework::kNumpy;
        return from_array(object, out);
    }
    if (PyArray_CheckScalar(object)) {
        PyObject* array = PyArray_FromScalar(object, nullptr);
        if (array == nullptr) return false;
        if (framework == Framework::kNone) framework = Framework::kNumpy;
        const bool ok = from_array(array, out);
        Py_DECREF(array);
        return ok;
    }
    if (PyObject_HasAttr(object, interned.dlpack) != 0) {
        if (framework == Framework::kNone) framework = Framework::kNumpy;
        return from_dlpack(object, out);
    }
    // Subclasses of Python's numbers.
    if (PyLong_Check(object)) return from_integer(object, out);
    if (PyFloat_Check(object)) return out = Value(PyFloat_AS_DOUBLE(object)), true;
    return out = foreign_from_object(object), true;
}

bool value_from_argument(ParameterKind kind, PyObject* object, Value& out, Framework& framework) {
    if (kind == ParameterKind::kOther || PyLong_CheckExact(object) || PyFloat_CheckExact(object) || !is_number(object))
        return value_from_object(object, out, framework);
    if (kind == ParameterKind::kBool && PyArray_IsScalar(object, Bool))
        return out = Value(PyObject_IsTrue(object) == 1), true;
    if (kind == ParameterKind::kInt && PyIndex_Check(object)) {
        PyObject* integer = PyNumber_Index(object);
        const bool ok = integer != nullptr && from_integer(integer, out);
        Py_XDECREF(integer);
        return ok;
    }
    if (kind == ParameterKind::kFloat) {
        const double real = PyFloat_AsDouble(object);
        if (real == -1.0 && PyErr_Occurred()) return false;
        return out = Value(real), true;
    }
    return value_from_object(object, out, framework);
}

const void* data_of(PyObject* object) {
    if (PyArray_CheckExact(object)) return PyArray_DATA(reinterpret_cast<PyArrayObject*>(object));
    DLTensor t;
    if (!is_torch_tensor(object) || torch.api == nullptr) return nullptr;
    if (torch.api->dltensor_from_py_object_no_sync(object, &t) != 0) {
        PyErr_Clear();
        return nullptr;
    }
    return static_cast<char*>(t.data) + t.byte_offset;
}

PyObject* object_from_value(const Value& value, Framework framework, GivenTensors* given) {
    switch (value.kind()) {
        case ValueKind::kTensor: return object_from_tensor(value.tensor(), framework, given);
        case ValueKind::kUnset:
        case ValueKind::kNone: Py_RETURN_NONE;
        case ValueKind::kBool: return PyBool_FromLong(value.boolean() ? 1 : 0);
        case ValueKind::kInt: return PyLong_FromLongLong(value.integer());
        case ValueKind::kFloat: return PyFloat_FromDouble(value.real());
        case ValueKind::kString:
        case ValueKind::kFunction:
            return PyUnicode_FromStringAndSize(value.text().data(), static_cast<Py_ssize_t>(value.text().size()));
        case ValueKind::kList: {
            const ValueList& elements = value.elements();
            GivenTensors own;
            if (given == nullptr && elements.size() > 1) given = &own;
            PyObject* list = PyList_New(static_cast<Py_ssize_t>(elements.size()));
            for (std::size_t i = 0; list != nullptr && i < elements.size(); ++i) {
                PyObject* item = object_from_value(elements[i], framework, given);
                if (item == nullptr) {
                    Py_DECREF(list);
                    return nullptr;
                }
                PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), item);
            }
            return list;
        }
        case ValueKind::kDict: {
            PyObject* dict = PyDict_New();
            for (const auto& [key, item] : value.items()) {
                PyObject* object = dict != nullptr ? object_from_value(item, framework, given) : nullptr;
                if (object == nullptr || PyDict_SetItemString(dict, key.c_str(), object) != 0) {
                    Py_XDECREF(object);
                    Py_XDECREF(dict);
                    return nullptr;
                }
                Py_DECREF(object);
            }
            return dict;
        }
        case ValueKind::kForeign: {
            PyObject* object = object_of_foreign(value);
            if (object == nullptr) raise_named("NotSupported", "E0704 a foreign value that is not Python's");
            Py_XINCREF(object);
            return object;
        }
    }
    Py_RETURN_NONE;
}

PyObject* scalar_of_array(PyObject* object) {
    return PyArray_CheckExact(object) ? PyArray_Return(reinterpret_cast<PyArrayObject*>(object)) : object;
}

void raise_diagnostic(const Diagnostic& diagnostic) {
    PyObject* module = errors_module();
    if (module == nullptr) return;
    PyObject* raised = PyObject_CallMethod(module, "from_diagnostic", "sss", diagnostic.code().c_str(),
                                           std::string(diagnostic.name()).c_str(), diagnostic.to_string().c_str());
    if (raised == nullptr) return;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised)), raised);
    Py_DECREF(raised);
}

namespace {

// visit(tensor, object) for every tensor in the value that is memory of a torch tensor.
template <class Visit>
void for_each_torch_tensor(const Value& value, Visit&& visit) {
    if (torch.tensor == nullptr) return;
    if (value.is_list()) {
        for (const Value& element : value.elements()) for_each_torch_tensor(element, visit);
    } else if (value.is_dict()) {
        for (const auto& [key, item] : value.items()) for_each_torch_tensor(item, visit);
    } else if (value.is_tensor() && value.tensor().storage()->deleter == release_object) {
        auto* object = static_cast<PyObject*>(value.tensor().storage()->context);
        if (is_torch_tensor(object)) visit(value.tensor(), object);
    }
}

}  // namespace

void note_writes(const Value& argument) {
    for_each_torch_tensor(argument, [](const Tensor& tensor, PyObject* object) {
        if (tensor.version() == 0 || torch.increment_version == nullptr) return;
        PyObject* done = PyObject_CallOneArg(torch.increment_version, object);
        if (done == nullptr) PyErr_Clear();  // inference tensors have no counter
        Py_XDECREF(done);
    });
}

namespace {

// Sets the device of the first tensor that lies on one.
bool find_device(std::span<const Value> values, Device& device) {
    for (const Value& value : values) {
        if (value.is_tensor() && value.tensor().device().kind != DeviceKind::kCpu)
            return device = value.tensor().device(), true;
        if (value.is_list() && find_device(value.elements(), device)) return true;
        if (!value.is_dict()) continue;
        for (const auto& [key, item] : value.items()) {
            if (find_device({&item, 1}, device)) return true;
        }
    }
    return false;
}

}  // namespace

bool place_of(std::span<const Value> arguments, Device& device, void*& stream) {
    if (!cuda_met || !find_device(arguments, device)) return true;
    if (torch.api != nullptr && torch.api->current_work_stream != nullptr &&
        torch.api->current_work_stream(kDLCUDA, device.index, &stream) == 0)
        return true;
    if (PyErr_Occurred()) raise_after("NotSupported", "E0704 torch names no current stream");
    if (!PyErr_Occurred()) raise_named("NotSupported", "E0704 this torch names no current stream of a CUDA device");
    return false;
}

namespace {

void drop_managed(void* context, void*) {
    auto* managed = static_cast<DLManagedTensorVersioned*>(context);
    if (managed->deleter != nullptr) managed->deleter(managed);
}

// Needs no lock of the interpreter, but where torch raises.
Tensor torch_empty(void* context, DType dtype, std::span<const std::int64_t> sizes,
                   std::span<const std::int64_t> strides) {
    const Device& place = *static_cast<const Device*>(context);
    std::int64_t count = 1, step = 1;
    bool row_major = true;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        row_major = row_major && (sizes[i] == 1 || strides[i] == step);
        step *= std::max<std::int64_t>(sizes[i], 1);
        count *= sizes[i];
    }
    DLTensor wanted{};
    wanted.device = {kDLCUDA, place.index};
    wanted.dtype = dlpack_from_dtype(dtype);
    wanted.ndim = row_major ? static_cast<std::int32_t>(sizes.size()) : 1;
    wanted.shape = row_major ? const_cast<std::int64_t*>(sizes.data()) : &count;
    DLManagedTensorVersioned* made = nullptr;
    // What torch says of it, that memory is exhausted, is said in our words.
    const auto ignore = [](void*, const char*, const char*) {};
    if (torch.api->managed_tensor_allocator(&wanted, &made, nullptr, ignore) != 0 || made == nullptr) return {};
    return Tensor::from_blob(static_cast<char*>(made->dl_tensor.data) + made->dl_tensor.byte_offset, dtype, sizes,
                             strides, drop_managed, made, place);
}

}  // namespace

OutputAllocator torch_results(const Device& place) {
    if (place.kind != DeviceKind::kCuda || torch.api == nullptr || torch.api->managed_tensor_allocator == nullptr)
        return {};
    // Taking a tensor from torch's allocator costs about as much as launching a kernel.
    constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;
    return {torch_empty, const_cast<Device*>(&place), kLeastBytes};
}

bool protect(const Value& argument) {
    for_each_torch_tensor(argument, [](const Tensor& tensor, PyObject* object) {
        if (torch.is_inference != nullptr && ask_truth(torch.is_inference, object) == 1 &&
            !says_true(torch.is_inference_mode_enabled))
            tensor.refuse_writes(DiagnosticId{512});
    });
    return PyErr_Occurred() == nullptr;
}

}  // namespace flexor::python
