#pragma once
// The stable-ABI module `_flexor`: Modules, Builders and Sessions for the Python package, which wraps them. Diagnostics
// become exceptions of flexor.errors.
#include <nanobind/nanobind.h>

#include "flexor/error.h"

namespace flexor::python {

namespace nb = nanobind;

// What the stubs say of dicts and lists.
using Entry = nb::typed<nb::dict, nb::str, nb::any>;
using Entries = nb::typed<nb::list, Entry>;

nb::object exception_of(const Diagnostic& diagnostic);
[[noreturn]] void raise(const Diagnostic& diagnostic);

template <class T>
T take(Expected<T> expected) {
    if (!expected) raise(expected.error());
    return std::move(expected).value();
}
inline void check(const Expected<void>& expected) {
    if (!expected) raise(expected.error());
}

void bind_module(nb::module_& m);
void bind_builder(nb::module_& m);
void bind_session(nb::module_& m);

}  // namespace flexor::python
