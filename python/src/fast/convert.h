#pragma once
// Python objects to Values and back, without copying tensor memory.
//
// Laws
//  P1  Raw memory is read only of exact numpy.ndarray and exact torch.Tensor/Parameter that are plain strided CPU
//      memory, or torch's on a CUDA device. Everything else takes __dlpack__ or is refused by name.
//  P2  A Tensor made from an object keeps the object alive; memory handed out is kept alive by the object that wraps it.
//  P3  An argument that comes back is the same Python object; a view of one is another, over the same storage: torch's
//      tensors share its version counter with it, arrays have it as their base.
//  P4  Read-only memory (a weight, an array that says so) stays so: NumPy gets a read-only array, torch, which knows no
//      such thing, a copy.
#include <Python.h>

#include <span>
#include <unordered_map>

#include "flexor/call_options.h"
#include "flexor/value.h"

namespace flexor::python {

enum class Framework { kNone, kNumpy, kTorch };

// What a function declares of a parameter, as far as it changes how an argument is read.
enum class ParameterKind : char { kOther = '.', kInt = 'i', kFloat = 'f', kBool = 'b' };

bool initialise_convert();  // imports NumPy's C API; false with a Python error set

// False with a Python error set. `framework` becomes that of the first tensor met; torch wins over NumPy.
// An object without a kind of its own becomes a foreign value.
bool value_from_object(PyObject* object, Value& out, Framework& framework);
// The same for a declared parameter: a scalar parameter takes every number of its kind, NumPy's scalars and whatever has
// __index__ or __float__ among them; tensors stay tensors.
bool value_from_argument(ParameterKind kind, PyObject* object, Value& out, Framework& framework);
// Where the memory of an exact array or tensor begins; null, without an error, where that is not known.
const void* data_of(PyObject* object);
// What one call has given so far, by storage: torch's tensors over one memory of the program's share a storage of torch's.
struct Given {
    Tensor tensor;
    PyObject* object;  // borrowed: what is given holds it
};
using GivenTensors = std::unordered_map<const Storage*, Given>;
// New reference, or null with a Python error set. `given`: null where one tensor at the most is given.
PyObject* object_from_value(const Value& value, Framework framework, GivenTensors* given = nullptr);
// NumPy's scalar in place of an array without axes; any other object as it is. Takes over the reference.
PyObject* scalar_of_array(PyObject* object);

// Raises the exception of the diagnostic's kind (flexor.errors).
void raise_diagnostic(const Diagnostic& diagnostic);

// Adds one to the version counter of every torch tensor in an argument that a run wrote to; arrays of NumPy have none.
void note_writes(const Value& argument);
// Where a call with these arguments is to run: the first CUDA device that a tensor lies on, else the processor; and the
// stream of torch's that work goes to there. False with a Python error set.
bool place_of(std::span<const Value> arguments, Device& device, void*& stream);
// Lets torch make the large results of a run on a device, which `place` names and which lives as long as the run: from its own
// allocator, for its current stream. Nothing where this torch cannot.
OutputAllocator torch_results(const Device& place);
// Marks what a program must not write beside read-only arrays: the memory of inference tensors outside inference mode.
// False with a Python error set.
bool protect(const Value& argument);

}  // namespace flexor::python
