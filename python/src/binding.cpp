#include "binding.h"

#include <nanobind/stl/string.h>

namespace flexor::python {

nb::object exception_of(const Diagnostic& diagnostic) {
    return nb::module_::import_("flexor.errors")
        .attr("from_diagnostic")(diagnostic.code().c_str(), std::string(diagnostic.name()).c_str(),
                                 diagnostic.to_string().c_str());
}

void raise(const Diagnostic& diagnostic) {
    nb::object exception = exception_of(diagnostic);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    throw nb::python_error();
}

}  // namespace flexor::python

namespace nb = nanobind;

NB_MODULE(_flexor, m) {
    nanobind::set_leak_warnings(false);  // the default session lives as long as the process
    m.doc() = "Native part of flexor; use the package.";
    m.def(
        "refusal",
        [](int number, const std::string& verb, const std::string& argument, const std::string& found,
           const std::string& expected, const std::string& hint) {
            flexor::Diagnostic diagnostic(flexor::DiagnosticId{static_cast<std::uint16_t>(number)});
            diagnostic.op(verb).operand(argument).found(found).expected(expected).hint(hint);
            return flexor::python::exception_of(diagnostic);
        },
        nb::arg("number"), nb::kw_only(), nb::arg("verb") = "", nb::arg("argument") = "", nb::arg("found") = "",
        nb::arg("expected") = "", nb::arg("hint") = "", "The exception of a diagnostic that the package itself finds.");
    flexor::python::bind_module(m);
    flexor::python::bind_builder(m);
    flexor::python::bind_session(m);
}
