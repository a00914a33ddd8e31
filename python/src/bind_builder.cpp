#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "binding.h"
#include "flexor/builder.h"
#include "flexor/ops.h"

namespace flexor::python {

namespace {

std::optional<DType> dtype_named(const std::string& name) {
#define X(enumerator, text, framework, bytes) \
    if (name == text || name == framework) return DType::enumerator;
    FLEXOR_DTYPES(X)
#undef X
    return std::nullopt;
}

std::string dtype_names() {
    std::string out;
#define X(enumerator, text, framework, bytes) out += std::string(out.empty() ? "" : ", ") + framework;
    FLEXOR_DTYPES(X)
#undef X
    return out;
}

// Numbers of diagnostics (src/support/diagnostics.def).
enum class Fault : std::uint16_t {
    kBadAttribute = 110,
    kSizeOverflow = 309,
    kDTypeMismatch = 401,
    kValueKindMismatch = 404,
};
Diagnostic fault(Fault id) { return Diagnostic(static_cast<DiagnosticId>(id)); }

// Where a Python object was given: the verb of the Builder and the argument, by name or, for operands of an op, by place.
class Place {
public:
    Place(std::string verb, std::string argument) : verb_(std::move(verb)), argument_(std::move(argument)) {}
    Place(std::string verb, std::size_t index) : verb_(std::move(verb)), index_(index) {}

    [[noreturn]] void refuse(Fault id, std::string found, std::string expected, std::string hint = "") const {
        raise(fault(id)
                  .op(verb_)
                  .operand(argument())
                  .found(std::move(found))
                  .expected(std::move(expected))
                  .hint(std::move(hint)));
    }
    [[noreturn]] void wrong_kind(nb::handle found, std::string expected) const {
        refuse(Fault::kValueKindMismatch, kind_of(found), std::move(expected), hint());
    }

private:
    static std::string name_of(nb::handle type) { return nb::cast<std::string>(type.attr("__name__")); }

    static std::string kind_of(nb::handle h) {
        const std::string name = "a value of type " + name_of(h.type());
        if (!PyList_Check(h.ptr()) && !PyTuple_Check(h.ptr())) return name;
        std::vector<std::string> kinds;
        for (nb::handle element : h) {
            const std::string kind = name_of(element.type());
            if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
        }
        std::string of;
        for (const std::string& kind : kinds) of += (of.empty() ? " of " : " and ") + kind;
        return name + of;
    }

    std::string argument() const {
        if (!argument_.empty()) return argument_;
        const auto op = find_op_info(verb_);
        return op && index_ < op->operands.size() ? op->operands[index_].name : std::to_string(index_ + 1);
    }

    // An operand too many may be meant as an attribute.
    std::string hint() const {
        const auto op = find_op_info(verb_);
        if (!argument_.empty() || !op || op->attributes.empty() || index_ < op->operands.size()) return "";
        std::string names;
        for (const AttributeInfo& a : op->attributes) names += (names.empty() ? "" : ", ") + a.name + "=";
        return "attributes are given by name: " + names;
    }

    std::string verb_;
    std::string argument_;  // empty: operand `index_`
    std::size_t index_ = 0;
};

std::int64_t integer(nb::handle h, const Place& place) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(h.ptr(), &overflow);
    if (overflow != 0) place.refuse(Fault::kSizeOverflow, "an int", "an int of 64 bits");
    return value;
}

SymbolicInt symbolic(nb::handle h, const Place& place) {
    if (nb::isinstance<SymbolicInt>(h)) return nb::cast<SymbolicInt>(h);
    if (nb::isinstance<Var>(h)) return SymbolicInt(nb::cast<Var>(h));
    if (!PyLong_Check(h.ptr())) place.wrong_kind(h, "an int, a size or an int of the program");
    return integer(h, place);
}

std::vector<SymbolicInt> symbolic_list(nb::handle sequence, const Place& place) {
    std::vector<SymbolicInt> out;
    for (nb::handle e : sequence) {
        const bool fits = nb::isinstance<SymbolicInt>(e) || nb::isinstance<Var>(e) || PyLong_Check(e.ptr());
        if (!fits) place.wrong_kind(sequence, "a list of ints, sizes or ints of the program");
        out.push_back(symbolic(e, place));
    }
    return out;
}

// What operands and attributes have in common; nothing for anything else.
template <class Out>
std::optional<Out> plain(nb::handle h, const Place& place) {
    if (h.is_none()) return Out(nullptr);
    if (nb::isinstance<Var>(h)) return Out(nb::cast<Var>(h));
    if (nb::isinstance<SymbolicInt>(h)) return Out(nb::cast<SymbolicInt>(h));
    if (PyBool_Check(h.ptr())) return Out(nb::cast<bool>(h));
    if (PyLong_Check(h.ptr())) return Out(integer(h, place));
    if (PyFloat_Check(h.ptr())) return Out(nb::cast<double>(h));
    if (PyUnicode_Check(h.ptr())) return Out(nb::cast<std::string>(h));
    return std::nullopt;
}

Operand operand(nb::handle h, const Place& place) {
    if (auto value = plain<Operand>(h, place)) return *std::move(value);
    constexpr const char* kExpected =
        "a value of the program, a number, a str, None or a list of values of the program";
    if (!PyList_Check(h.ptr()) && !PyTuple_Check(h.ptr())) place.wrong_kind(h, kExpected);
    std::vector<Var> list;
    for (nb::handle e : h) {
        if (!nb::isinstance<Var>(e)) place.wrong_kind(h, kExpected);
        list.push_back(nb::cast<Var>(e));
    }
    return list;
}

Attribute attribute(nb::handle h, const Place& place) {
    if (auto value = plain<Attribute>(h, place)) return *std::move(value);
    if (PyList_Check(h.ptr()) || PyTuple_Check(h.ptr())) return symbolic_list(h, place);
    place.wrong_kind(h, "a number, a str, None, a size, a value of the program or a list of ints and sizes");
}

// Operands of an op, each named by its place.
std::vector<Operand> op_operands(nb::handle sequence, const std::string& verb) {
    std::vector<Operand> out;
    for (nb::handle h : sequence) {
        const Place place(verb, out.size());
        if (PyUnicode_Check(h.ptr()))
            place.wrong_kind(h, "a value of the program, a number, None or a list of values of the program");
        out.push_back(operand(h, place));
    }
    return out;
}

std::vector<Operand> operands(nb::handle sequence, const std::string& verb, const std::string& argument) {
    std::vector<Operand> out;
    for (nb::handle h : sequence) out.push_back(operand(h, Place(verb, argument)));
    return out;
}

DType dtype_of(const std::string& name, Fault id, const Place& place) {
    const auto dtype = dtype_named(name);
    if (!dtype) place.refuse(id, name, dtype_names());
    return *dtype;
}

Attributes attributes(const Entry& named, const std::string& verb) {
    Attributes out;
    for (auto [key, value] : named) {
        const std::string name = nb::cast<std::string>(key);
        const Place place(verb, name);
        if (name == "dtype" && PyUnicode_Check(value.ptr())) {
            out.emplace_back(name, dtype_of(nb::cast<std::string>(value), Fault::kBadAttribute, place));
        } else {
            out.emplace_back(name, attribute(value, place));
        }
    }
    return out;
}

// Contiguous memory of the caller.
Tensor tensor_of(std::uintptr_t data, DType dtype, const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t running = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = running;
        running *= shape[i];
    }
    return Tensor::from_blob(reinterpret_cast<void*>(data), dtype, shape, strides);
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
    const auto other = [](nb::handle h) { return symbolic(h, Place("a size", "other")); };
    nb::class_<SymbolicInt>(
        m, "SymbolicInt",
        "An integer of a program under construction: a constant, an expression over symbols or a run-time value.")
        .def("is_constant", &SymbolicInt::is_constant, "Whether it is a number.")
        .def("is_known", &SymbolicInt::is_known, "Whether it is a number or an expression over symbols.")
        .def(
            "constant",
            [](const SymbolicInt& s) {
                if (!s.is_constant())
                    Place("a size", "self").refuse(Fault::kValueKindMismatch, s.to_string(), "a number");
                return s.constant();
            },
            "The number. Raises DTypeError (E0404) if it is none.")
        .def("__str__", &SymbolicInt::to_string)
        .def("__repr__", &SymbolicInt::to_string)
        .def("__add__", [other](const SymbolicInt& a, nb::handle b) { return a + other(b); })
        .def("__radd__", [other](const SymbolicInt& a, nb::handle b) { return other(b) + a; })
        .def("__sub__", [other](const SymbolicInt& a, nb::handle b) { return a - other(b); })
        .def("__rsub__", [other](const SymbolicInt& a, nb::handle b) { return other(b) - a; })
        .def("__mul__", [other](const SymbolicInt& a, nb::handle b) { return a * other(b); })
        .def("__rmul__", [other](const SymbolicInt& a, nb::handle b) { return other(b) * a; })
        .def("__neg__", [](const SymbolicInt& a) { return SymbolicInt(0) - a; })
        .def("__floordiv__", [other](const SymbolicInt& a, nb::handle b) { return floor_div(a, other(b)); })
        .def("__rfloordiv__", [other](const SymbolicInt& a, nb::handle b) { return floor_div(other(b), a); })
        .def("__mod__", [other](const SymbolicInt& a, nb::handle b) { return a % other(b); })
        .def("__rmod__", [other](const SymbolicInt& a, nb::handle b) { return other(b) % a; })
        .def(
            "minimum", [other](const SymbolicInt& a, nb::handle b) { return min(a, other(b)); }, "The smaller one.")
        .def("maximum", [other](const SymbolicInt& a, nb::handle b) { return max(a, other(b)); }, "The larger one.");

    nb::class_<Var>(m, "NativeVar")
        .def("type", &Var::type)
        .def("dtype",
             [](const Var& v) -> std::optional<std::string> {
                 const auto d = v.dtype();
                 return d ? std::optional<std::string>(std::string(dtype_framework_name(*d))) : std::nullopt;
             })
        .def("rank", &Var::rank)
        .def("size", [](const Var& v, int axis) { return v.size(axis); })
        .def("shape", [](const Var& v) { return v.shape(); });

    // One branch of an if.
    const auto side = [](nb::object function, const std::string& verb, const std::string& argument) {
        return [function = std::move(function), verb, argument] {
            return operands(nb::object(function()), verb, argument);
        };
    };
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
                return checked(*f.builder, f.function.constant(operand(value, Place("constant", "value"))));
            },
            nb::arg("value").none())
        .def("ops",
             [](NativeFunction& f, const std::string& name, nb::handle args, const Entry& attrs) {
                 return checked(*f.builder, f.function.ops(name, op_operands(args, name), attributes(attrs, name)));
             })
        .def("scalar",
             [](NativeFunction& f, const std::string& name, nb::handle args) {
                 return checked(*f.builder, f.function.scalar(name, operands(args, "scalar " + name, "operands")));
             })
        .def("frozen",
             [](NativeFunction& f, const Var& v, int axis) { return checked(*f.builder, f.function.frozen(v, axis)); })
        .def("size",
             [](NativeFunction& f, const Var& v, int axis) { return checked(*f.builder, f.function.size(v, axis)); })
        .def("item", [](NativeFunction& f, const Var& v) { return checked(*f.builder, f.function.item(v)); })
        .def(
            "require",
            [](NativeFunction& f, nb::handle condition, const std::string& text) {
                f.function.require(operand(condition, Place("require", "condition")), text);
                checked(*f.builder, 0);
            },
            nb::arg("condition").none(), nb::arg("message"))
        .def("build_list",
             [](NativeFunction& f, nb::handle args) {
                 return checked(*f.builder, f.function.list(operands(args, "list", "elements")));
             })
        .def(
            "append",
            [](NativeFunction& f, const Var& list, nb::handle v) {
                return checked(*f.builder, f.function.append(list, operand(v, Place("append", "element"))));
            },
            nb::arg("list"), nb::arg("element").none())
        .def(
            "get",
            [](NativeFunction& f, const Var& list, nb::handle i, const std::string& promise) {
                return checked(*f.builder, f.function.get(list, operand(i, Place("get", "index")), promise));
            },
            nb::arg("list"), nb::arg("index").none(), nb::arg("promise") = "any")
        .def("promise",
             [](NativeFunction& f, const Var& value, const std::string& type) {
                 f.function.promise(value, type);
                 checked(*f.builder, 0);
             })
        .def(
            "set",
            [](NativeFunction& f, const Var& list, nb::handle i, nb::handle v) {
                return checked(*f.builder, f.function.set(list, operand(i, Place("set", "index")),
                                                          operand(v, Place("set", "element"))));
            },
            nb::arg("list"), nb::arg("index").none(), nb::arg("element").none())
        .def("length", [](NativeFunction& f, const Var& list) { return checked(*f.builder, f.function.length(list)); })
        .def("unpack", [](NativeFunction& f, const Var& list,
                          int count) { return checked(*f.builder, f.function.unpack(list, count)); })
        .def("build_dict",
             [](NativeFunction& f, const Entry& items) {
                 std::vector<std::pair<std::string, Operand>> out;
                 for (auto [key, value] : items) {
                     const std::string name = nb::cast<std::string>(key);
                     out.emplace_back(name, operand(value, Place("dict", name)));
                 }
                 return checked(*f.builder, f.function.dict(std::move(out)));
             })
        .def("dict_get", [](NativeFunction& f, const Var& dict,
                            const std::string& key) { return checked(*f.builder, f.function.dict_get(dict, key)); })
        .def("call",
             [](NativeFunction& f, const std::string& function, nb::handle args, int results) {
                 return checked(*f.builder, f.function.call(function, operands(args, "call", "arguments"), results));
             })
        .def("call_foreign",
             [](NativeFunction& f, const std::string& hook, nb::handle args, const std::string& promise) {
                 return checked(*f.builder,
                                f.function.call_foreign(hook, operands(args, "call_foreign", "arguments"), promise));
             })
        .def("function_value",
             [](NativeFunction& f, const std::string& name) {
                 return checked(*f.builder, f.function.function_value(name));
             })
        .def("foreign_value",
             [](NativeFunction& f, const std::string& name) {
                 return checked(*f.builder, f.function.foreign_value(name));
             })
        .def("attribute_of",
             [](NativeFunction& f, const Var& foreign, const std::string& name) {
                 return checked(*f.builder, f.function.attribute_of(foreign, name));
             })
        .def("call_value",
             [](NativeFunction& f, const Var& callee, nb::handle args) {
                 return checked(*f.builder, f.function.call_value(callee, operands(args, "call_value", "arguments")));
             })
        .def(
            "if_else",
            [side](NativeFunction& f, nb::handle condition, nb::object then, nb::object otherwise) {
                return checked(*f.builder, f.function.if_else(operand(condition, Place("if_else", "condition")),
                                                              side(std::move(then), "if_else", "then"),
                                                              side(std::move(otherwise), "if_else", "otherwise")));
            },
            nb::arg("condition").none(), nb::arg("then"), nb::arg("otherwise"))
        .def(
            "if_none",
            [side](NativeFunction& f, nb::handle value, nb::object then, nb::object otherwise) {
                return checked(*f.builder, f.function.if_none(operand(value, Place("if_none", "value")),
                                                              side(std::move(then), "if_none", "then"),
                                                              side(std::move(otherwise), "if_none", "otherwise")));
            },
            nb::arg("value").none(), nb::arg("then"), nb::arg("otherwise"))
        .def("while_loop",
             [](NativeFunction& f, nb::handle initial, nb::object condition, nb::object body) {
                 const auto list = [](std::span<const Var> carried) {
                     nb::list out;
                     for (const Var& v : carried) out.append(v);
                     return out;
                 };
                 return checked(*f.builder, f.function.while_loop(
                                                operands(initial, "while_loop", "initial"),
                                                [&](std::span<const Var> c) {
                                                    return operand(nb::object(condition(list(c))),
                                                                   Place("while_loop", "condition"));
                                                },
                                                [&](std::span<const Var> c) {
                                                    return operands(nb::object(body(list(c))), "while_loop", "body");
                                                }));
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
        .def(
            "branch",
            [](NativeFunction& f, nb::handle condition, const Label& then, const Label& otherwise) {
                f.function.branch(operand(condition, Place("branch", "condition")), then, otherwise);
                checked(*f.builder, 0);
            },
            nb::arg("condition").none(), nb::arg("then"), nb::arg("otherwise"))
        .def(
            "branch_none",
            [](NativeFunction& f, nb::handle value, const Label& then, const Label& otherwise) {
                f.function.branch_none(operand(value, Place("branch_none", "value")), then, otherwise);
                checked(*f.builder, 0);
            },
            nb::arg("value").none(), nb::arg("then"), nb::arg("otherwise"))
        .def("give",
             [](NativeFunction& f, nb::handle results) {
                 f.function.give(operands(results, "give", "results"));
                 checked(*f.builder, 0);
             })
        .def("variable", [](NativeFunction& f, const std::string& name) { return f.function.variable(name); })
        .def(
            "store",
            [](NativeFunction& f, const Variable& variable, nb::handle value) {
                f.function.store(variable, operand(value, Place("store", "value")));
                checked(*f.builder, 0);
            },
            nb::arg("variable"), nb::arg("value").none())
        .def(
            "take",
            [](NativeFunction& f, const Variable& variable, const Var* like) {
                return checked(*f.builder, f.function.take(variable, like == nullptr ? Var() : *like));
            },
            nb::arg("variable"), nb::arg("like").none())
        .def(
            "output",
            [](NativeFunction& f, const std::string& name, nb::handle value) {
                f.function.output(name, operand(value, Place("output", name)));
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
             [](Builder& b, const std::string& name, std::uintptr_t data, const std::string& dtype,
                const std::vector<std::int64_t>& shape) {
                 const DType known = dtype_of(dtype, Fault::kDTypeMismatch, Place("weight", name));
                 b.weight(name, tensor_of(data, known, shape));
                 checked(b, 0);
             })
        .def("metadata", [](Builder& b, const std::string& key, const std::string& value) { b.metadata(key, value); })
        .def("numpy_promotion", &Builder::numpy_promotion)
        .def("set_location", [](Builder& b, const std::string& file, int line) { b.set_location(file, line); })
        .def("check", [](Builder& b) { checked(b, 0); })
        .def("build", [](Builder& b) { return take(b.build()); });
    m.def("dtypes", [] {
        nb::typed<nb::dict, nb::str, nb::str> out;
#define X(enumerator, text, framework, bytes) out[framework] = text;
        FLEXOR_DTYPES(X)
#undef X
        return out;
    });
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
