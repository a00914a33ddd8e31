#pragma once
// The call path of jitted functions: the type JitBase.
//
// A JitBase holds entries, each a Module with the arguments that it serves and the guards of its translation. A call
// whose arguments and guards an entry fits runs there; every other one goes to the Python method `_call`, which finds or
// makes a translation and adds entries.
//
// Laws
//  J1  An entry serves exactly the calls that `_call` would run on the same translation; what it cannot decide (an
//      argument that is read with an error, a state of torch that programs do not follow) it leaves to `_call`.
//  J2  A run that fails is handed with its exception to `_recover`, which has the last word on what the call gives.
#include <Python.h>

namespace flexor::python {

// Adds the type to the module; false with a Python error set.
bool initialise_jit(PyObject* module);

}  // namespace flexor::python
