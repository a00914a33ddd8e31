#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding.h"
#include "flexor/builder.h"

namespace flexor::python {

namespace {

std::optional<DType> dtype_named(const std::string& name) {
#define X(enumerator, text, framework, bytes) \
    if (name == text || name == framework) return DType::enumerator;
    FLEXOR_DTYPES(X)
#undef X
    return std::nullopt;
}

DType dtype_of(const std::string& name) {
    const auto dtype = dtype_named(name);
    if (!dtype) throw nb::value_error(("no dtype is called '" + name + "'").c_str());
    return *dtype;
}

SymbolicInt symbolic(nb::handle h) {
    if (nb::isinstance<SymbolicInt>(h)) return nb::cast<SymbolicInt>(h);
    if (nb::isinstance<Var>(h)) return SymbolicInt(nb::cast<Var>(h));
    return SymbolicInt(nb::cast<std::int64_t>(h));
}

Operand operand(nb::handle h) {
    if (h.is_none()) return nullptr;
    if (nb::isinstance<Var>(h)) return nb::cast<Var>(h);
    if (nb::isinstance<SymbolicInt>(h)) return nb::cast<SymbolicInt>(h);
    if (PyBool_Check(h.ptr())) return nb::cast<bool>(h);
    if (PyLong_Check(h.ptr())) return nb::cast<std::int64_t>(h);
    if (PyFloat_Check(h.ptr())) return nb::cast<double>(h);
    if (PyUnicode_Check(h.ptr())) return nb::cast<std::string>(h);
    if (PyList_Check(h.ptr()) || PyTuple_Check(h.ptr())) {
        std::vector<Var> list;
        for (nb::handle e : h) list.push_back(nb::cast<Var>(e));
        return list;
    }
    throw nb::type_error("an operand is a value of the program, a number, a str, None or a list of values");
}

Attribute attribute(nb::handle h) {
    if (h.is_none()) return nullptr;
    if (nb::isinstance<Var>(h)) return nb::cast<Var>(h);
    if (nb::isinstance<SymbolicInt>(h)) return nb::cast<SymbolicInt>(h);
    if (PyBool_Check(h.ptr())) return nb::cast<bool>(h);
    if (PyLong_Check(h.ptr())) return nb::cast<std::int64_t>(h);
    if (PyFloat_Check(h.ptr())) return nb::cast<double>(h);
    if (PyUnicode_Check(h.ptr())) return nb::cast<std::string>(h);
    if (PyList_Check(h.ptr()) || PyTuple_Check(h.ptr())) {
        std::vector<SymbolicInt> list;
        for (nb::handle e : h) list.push_back(symbolic(e));
        return list;
    }
    throw nb::type_error("an attribute is a number, a str, None, a symbolic integer or a list of integers");
}

std::vector<Operand> operands(nb::handle sequence) {
    std::vector<Operand> out;
    for (nb::handle h : sequence) out.push_back(operand(h));
    return out;
}

Attributes attributes(const nb::dict& named) {
    Attributes out;
    for (auto [key, value] : named) {
        const std::string name = nb::cast<std::string>(key);
        if (name == "dtype" && PyUnicode_Check(value.ptr())) {
            out.emplace_back(name, dtype_of(nb::cast<std::string>(value)));
        } else {
            out.emplace_back(name, attribute(value));
        }
    }
    return out;
}

// Memory of a NumPy array (contiguous, of a dtype that the name spells), kept alive by the Tensor.
Tensor tensor_from_array(nb::object array, std::uintptr_t data, const std::string& dtype,
                         const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t running = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = running;
        running *= shape[i];
    }
    auto release = [](void* context, void*) {
        if (!Py_IsInitialized()) return;
        nb::gil_scoped_acquire gil;
        Py_DECREF(static_cast<PyObject*>(context));
    };
    return Tensor::from_blob(reinterpret_cast<void*>(data), dtype_of(dtype), shape, strides, release,
                             array.release().ptr());
}

// The first refusal of a builder as an exception, at the line that caused it.
template <class T>
T checked(const Builder& builder, T value) {
    if (builder.error() != nullptr) raise(*builder.error());
    return value;
}

struct NativeFunction {
    std::shared_ptr<Builder> builder;
    FunctionBuilder function;
};

}  // namespace

void bind_builder(nb::module_& m) {
    nb::class_<SymbolicInt>(
        m, "SymbolicInt",
        "An integer of a program under construction: a constant, an expression over symbols or a run-time value.")
        .def("is_known", &SymbolicInt::is_known)
        .def("__str__", &SymbolicInt::to_string)
        .def("__repr__", &SymbolicInt::to_string)
        .def("__add__", [](const SymbolicInt& a, nb::handle b) { return a + symbolic(b); })
        .def("__radd__", [](const SymbolicInt& a, nb::handle b) { return symbolic(b) + a; })
        .def("__sub__", [](const SymbolicInt& a, nb::handle b) { return a - symbolic(b); })
        .def("__rsub__", [](const SymbolicInt& a, nb::handle b) { return symbolic(b) - a; })
        .def("__mul__", [](const SymbolicInt& a, nb::handle b) { return a * symbolic(b); })
        .def("__rmul__", [](const SymbolicInt& a, nb::handle b) { return symbolic(b) * a; })
        .def("__neg__", [](const SymbolicInt& a) { return SymbolicInt(0) - a; })
        .def("__floordiv__", [](const SymbolicInt& a, nb::handle b) { return floor_div(a, symbolic(b)); })
        .def("__mod__", [](const SymbolicInt& a, nb::handle b) { return a % symbolic(b); })
        .def("minimum", [](const SymbolicInt& a, nb::handle b) { return min(a, symbolic(b)); })
        .def("maximum", [](const SymbolicInt& a, nb::handle b) { return max(a, symbolic(b)); });

    nb::class_<Var>(m, "NativeVar")
        .def("type", &Var::type)
        .def("dtype",
             [](const Var& v) -> std::optional<std::string> {
                 const auto d = v.dtype();
                 return d ? std::optional<std::string>(std::string(dtype_framework_name(*d))) : std::nullopt;
             })
        .def("rank", &Var::rank)
        .def("size", [](const Var& v, int axis) { return v.size(axis); });

    nb::class_<Label>(m, "NativeLabel");
    nb::class_<Variable>(m, "NativeVariable");
    nb::class_<NativeFunction>(m, "NativeFunction")
        .def("input",
             [](NativeFunction& f, const std::string& name, const std::string& type) {
                 return checked(*f.builder, f.function.input(name, std::string_view(type)));
             })
        .def("require_size",
             [](NativeFunction& f, const SymbolicInt& size) {
                 f.function.require_size(size);
                 checked(*f.builder, 0);
             })
        .def("weight",
             [](NativeFunction& f, const std::string& name) { return checked(*f.builder, f.function.weight(name)); })
        .def(
            "constant",
            [](NativeFunction& f, nb::handle value) {
                return checked(*f.builder, f.function.constant(operand(value)));
            },
            nb::arg("value").none())
        .def("ops",
             [](NativeFunction& f, const std::string& name, nb::handle args, const nb::dict& attrs) {
                 return checked(*f.builder, f.function.ops(name, operands(args), attributes(attrs)));
             })
        .def("scalar", [](NativeFunction& f, const std::string& name,
                          nb::handle args) { return checked(*f.builder, f.function.scalar(name, operands(args))); })
        .def("frozen",
             [](NativeFunction& f, const Var& v, int axis) { return checked(*f.builder, f.function.frozen(v, axis)); })
        .def("size",
             [](NativeFunction& f, const Var& v, int axis) { return checked(*f.builder, f.function.size(v, axis)); })
        .def("item", [](NativeFunction& f, const Var& v) { return checked(*f.builder, f.function.item(v)); })
        .def("require",
             [](NativeFunction& f, nb::handle condition, const std::string& text) {
                 f.function.require(operand(condition), text);
                 checked(*f.builder, 0);
             })
        .def("build_list",
             [](NativeFunction& f, nb::handle args) { return checked(*f.builder, f.function.list(operands(args))); })
        .def("append", [](NativeFunction& f, const Var& list,
                          nb::handle v) { return checked(*f.builder, f.function.append(list, operand(v))); })
        .def(
            "get",
            [](NativeFunction& f, const Var& list, nb::handle i, const std::string& promise) {
                return checked(*f.builder, f.function.get(list, operand(i), promise));
            },
            nb::arg("list"), nb::arg("index"), nb::arg("promise") = "any")
        .def("set", [](NativeFunction& f, const Var& list, nb::handle i,
                       nb::handle v) { return checked(*f.builder, f.function.set(list, operand(i), operand(v))); })
        .def("length", [](NativeFunction& f, const Var& list) { return checked(*f.builder, f.function.length(list)); })
        .def("call",
             [](NativeFunction& f, const std::string& function, nb::handle args, int results) {
                 return checked(*f.builder, f.function.call(function, operands(args), results));
             })
        .def("call_foreign",
             [](NativeFunction& f, const std::string& hook, nb::handle args, const std::string& promise) {
                 return checked(*f.builder, f.function.call_foreign(hook, operands(args), promise));
             })
        .def("if_else",
             [](NativeFunction& f, nb::handle condition, nb::object then, nb::object otherwise) {
                 const auto side = [](nb::object function) {
                     return [function] { return operands(nb::object(function())); };
                 };
                 return checked(*f.builder, f.function.if_else(operand(condition), side(then), side(otherwise)));
             })
        .def("if_none",
             [](NativeFunction& f, nb::handle value, nb::object then, nb::object otherwise) {
                 const auto side = [](nb::object function) {
                     return [function] { return operands(nb::object(function())); };
                 };
                 return checked(*f.builder, f.function.if_none(operand(value), side(then), side(otherwise)));
             })
        .def("while_loop",
             [](NativeFunction& f, nb::handle initial, nb::object condition, nb::object body) {
                 const auto list = [](std::span<const Var> carried) {
                     nb::list out;
                     for (const Var& v : carried) out.append(v);
                     return out;
                 };
                 return checked(*f.builder,
                                f.function.while_loop(
                                    operands(initial),
                                    [&](std::span<const Var> c) { return operand(nb::object(condition(list(c)))); },
                                    [&](std::span<const Var> c) { return operands(nb::object(body(list(c)))); }));
             })
        .def("label", [](NativeFunction& f) { return f.function.label(); })
        .def("place",
             [](NativeFunction& f, const Label& label) {
                 f.function.place(label);
                 checked(*f.builder, 0);
             })
        .def("jump",
             [](NativeFunction& f, const Label& target) {
                 f.function.jump(target);
                 checked(*f.builder, 0);
             })
        .def("branch",
             [](NativeFunction& f, nb::handle condition, const Label& then, const Label& otherwise) {
                 f.function.branch(operand(condition), then, otherwise);
                 checked(*f.builder, 0);
             })
        .def("give",
             [](NativeFunction& f, nb::handle results) {
                 f.function.give(operands(results));
                 checked(*f.builder, 0);
             })
        .def("variable", [](NativeFunction& f, const std::string& name) { return f.function.variable(name); })
        .def("store",
             [](NativeFunction& f, const Variable& variable, nb::handle value) {
                 f.function.store(variable, operand(value));
                 checked(*f.builder, 0);
             })
        .def(
            "take",
            [](NativeFunction& f, const Variable& variable, const Var* like) {
                return checked(*f.builder, f.function.take(variable, like == nullptr ? Var() : *like));
            },
            nb::arg("variable"), nb::arg("like").none())
        .def(
            "output",
            [](NativeFunction& f, const std::string& name, nb::handle value) {
                f.function.output(name, operand(value));
                checked(*f.builder, 0);
            },
            nb::arg("name"), nb::arg("value").none());

    nb::class_<Builder>(m, "NativeBuilder")
        .def(nb::init<>())
        .def(
            "symbol",
            [](Builder& b, const std::string& name, std::int64_t lo, std::optional<std::int64_t> hi) {
                SymbolicInt s = b.symbol(name, lo, hi.value_or(kUnboundedDim));
                return checked(b, std::move(s));
            },
            nb::arg("name"), nb::arg("lo"), nb::arg("hi").none())
        .def("weight",
             [](Builder& b, const std::string& name, nb::object array, std::uintptr_t data, const std::string& dtype,
                const std::vector<std::int64_t>& shape) {
                 b.weight(name, tensor_from_array(std::move(array), data, dtype, shape));
                 checked(b, 0);
             })
        .def("metadata", [](Builder& b, const std::string& key, const std::string& value) { b.metadata(key, value); })
        .def("numpy_promotion", &Builder::numpy_promotion)
        .def("set_location", [](Builder& b, const std::string& file, int line) { b.set_location(file, line); })
        .def("build", [](Builder& b) { return take(b.build()); });
    m.def("begin_function", [](nb::object builder, const std::string& name) {
        // The function keeps its builder alive.
        Builder* native = nb::cast<Builder*>(builder);
        std::shared_ptr<Builder> shared(native, [builder](Builder*) mutable {
            nb::gil_scoped_acquire gil;
            builder.reset();
        });
        FunctionBuilder function = native->function(name);
        return checked(*native, NativeFunction{std::move(shared), std::move(function)});
    });
}

}  // namespace flexor::python
