#pragma once
// References to Python objects that go together.
#include <Python.h>

#include <vector>

namespace flexor::python {

class References {
public:
    References() = default;
    ~References() {
        for (PyObject* object : objects_) Py_DECREF(object);
    }
    References(const References&) = delete;
    References& operator=(const References&) = delete;

    // Gives the object back.
    PyObject* keep(PyObject* object) {
        Py_INCREF(object);
        objects_.push_back(object);
        return object;
    }
    int traverse(visitproc visit, void* arg) const {
        for (PyObject* object : objects_) Py_VISIT(object);
        return 0;
    }

private:
    std::vector<PyObject*> objects_;
};

}  // namespace flexor::python
