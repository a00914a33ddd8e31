#pragma once
// What is known of torch once it is imported: its parts, looked up once, and its state, asked for every call.
#include <Python.h>

#include <cstdint>
#include <span>

#include "dlpack/dlpack.h"

namespace flexor::python {

// Strong references for the life of the process.
struct Torch {
    PyTypeObject* tensor = nullptr;  // null: torch is not loaded, or was not looked for since
    PyTypeObject* parameter = nullptr;
    const DLPackExchangeAPI* api = nullptr;  // null: this torch has none that is understood; tensors go by __dlpack__
    PyObject* is_neg = nullptr;              // descriptors of torch.Tensor
    PyObject* requires_grad = nullptr;
    PyObject* is_inference = nullptr;
    PyObject* version = nullptr;
    PyObject* detach = nullptr;
    PyObject* as_strided = nullptr;
    PyObject* storage_offset = nullptr;
    PyObject* is_grad_enabled = nullptr;  // functions
    PyObject* is_inference_mode_enabled = nullptr;
    PyObject* increment_version = nullptr;
    PyObject* is_any_autocast_enabled = nullptr;
    PyObject* function_modes = nullptr;  // how many are active
    PyObject* dispatch_modes = nullptr;
};
extern Torch torch;

// Looks for torch where that was in vain so far. False: it is not loaded.
bool look_for_torch();

inline bool is_torch_tensor(PyObject* object) {  // exactly, or a Parameter
    return torch.tensor != nullptr && (Py_TYPE(object) == torch.tensor || Py_TYPE(object) == torch.parameter);
}

// 1 or 0 as the answer is True, -1 with a Python error set: of what a descriptor gives of the object, or, where that is
// a method, of what it returns.
int ask_truth(PyObject* descriptor, PyObject* object);
// The same of a function without arguments, which may be null: then false, without an error.
bool says_true(PyObject* function);

// The version counter of a tensor, which every write raises; -1, without an error, where there is none.
std::int64_t version_of(PyObject* tensor);

// New reference to a view of a tensor, of its storage and its version counter, `shift` elements behind its first one, that
// requires no gradient; null, without an error, where torch makes none.
PyObject* torch_view(PyObject* tensor, std::int64_t shift, std::span<const std::int64_t> sizes,
                     std::span<const std::int64_t> strides);

// Whether torch is in the state in which calls do what they say: no autocast, no function mode, no dispatch mode.
bool torch_is_plain();

}  // namespace flexor::python
