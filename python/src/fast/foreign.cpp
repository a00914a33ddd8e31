#include "fast/foreign.h"

#include "interpreter.h"

namespace flexor::python {

thread_local Framework current_framework = Framework::kNumpy;

namespace {

class WithInterpreter {
public:
    WithInterpreter() : state_(enter_interpreter()) {}
    ~WithInterpreter() { PyGILState_Release(state_); }
    WithInterpreter(const WithInterpreter&) = delete;
    WithInterpreter& operator=(const WithInterpreter&) = delete;

private:
    PyGILState_STATE state_;
};

Diagnostic raised_in(const std::string& name) {
    return Diagnostic(DiagnosticId{509}).operand(name).found("an exception in the foreign function");
}

// Takes the reference; null means that an exception is set.
Expected<Value> value_of_result(PyObject* result, const std::string& name) {
    Value value;
    Framework framework = current_framework;
    const bool ok = result != nullptr && value_from_object(result, value, framework) && protect(value);
    Py_XDECREF(result);
    if (!ok) return raised_in(name);
    return value;
}

class PythonObject final : public Foreign {
public:
    explicit PythonObject(PyObject* object) : held_(object) {}

    Expected<Value> call(std::span<const Value> arguments) override {
        return call_object(held_.get(), describe(), arguments);
    }
    Expected<Value> attribute(std::string_view name) override {
        const WithInterpreter with;
        return value_of_result(PyObject_GetAttrString(held_.get(), std::string(name).c_str()), describe());
    }
    std::string describe() const override { return std::string("foreign ") + Py_TYPE(held_.get())->tp_name; }

    PyObject* object() const { return held_.get(); }

private:
    Held held_;
};

}  // namespace

Held::~Held() {
    if (!Py_IsInitialized()) return;
    const WithInterpreter with;
    Py_DECREF(object_);
}

Expected<Value> call_object(PyObject* callable, const std::string& name, std::span<const Value> arguments) {
    const WithInterpreter with;
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(arguments.size()));
    bool ok = tuple != nullptr;
    for (std::size_t i = 0; ok && i < arguments.size(); ++i) {
        PyObject* item = object_from_value(arguments[i], current_framework);
        ok = item != nullptr;
        if (ok) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
    }
    PyObject* result = ok ? PyObject_Call(callable, tuple, nullptr) : nullptr;
    Py_XDECREF(tuple);
    return value_of_result(result, name);
}

Value foreign_from_object(PyObject* object) { return Value::foreign(std::make_shared<PythonObject>(object)); }

PyObject* object_of_foreign(const Value& value) {
    const auto* object = dynamic_cast<const PythonObject*>(value.foreign_object().get());
    return object != nullptr ? object->object() : nullptr;
}

}  // namespace flexor::python
