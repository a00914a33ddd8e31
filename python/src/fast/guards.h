#pragma once
// What a translation has assumed of Python objects, and the check that it still holds: the type Guards.
//
// Laws
//  G1  A guard holds if its holder gives what is expected: the same object, or of numbers, texts and tuples one that is
//      equal and of the same class (-0.0 is not 0.0; a NaN is like another).
//  G2  A dict that nobody has changed since its guards held is not looked into again. 3.10 and 3.11 number the states of
//      a dict; from 3.12 on a watcher counts its changes, and while no watched dict at all has changed none is visited
//      (from 3.13 on but those of objects that hold their attributes themselves).
//  G3  A set of guards keeps holders and expected objects alive: an identity is never taken over by a new object.
//  G4  What raises does not hold, and leaves no exception.
#include <Python.h>

#include <cstdint>

namespace flexor::python {

// Adds the type to the module; false with a Python error set.
bool initialise_guards(PyObject* module);

bool is_guards(PyObject* object);
// Whether all guards of the set hold.
bool guards_hold(PyObject* guards);

// Whether `found` may stand for `expected`, as G1 says. -1 with a Python error set.
int is_same(PyObject* found, PyObject* expected);

}  // namespace flexor::python
