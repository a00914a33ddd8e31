#include "binding.h"

namespace flexor::python {

void raise(const Diagnostic& diagnostic) {
    nb::object errors = nb::module_::import_("flexor.errors");
    nb::object exception = errors.attr("from_diagnostic")(
        diagnostic.code().c_str(), std::string(diagnostic.name()).c_str(), diagnostic.to_string().c_str());
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    throw nb::python_error();
}

}  // namespace flexor::python

NB_MODULE(_flexor, m) {
    nanobind::set_leak_warnings(false);  // the default session lives as long as the process
    m.doc() = "Native part of flexor; use the package.";
    flexor::python::bind_module(m);
    flexor::python::bind_builder(m);
    flexor::python::bind_session(m);
}
