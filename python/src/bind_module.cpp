#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding.h"
#include "flexor/module.h"
#include "flexor/ops.h"

namespace flexor::python {

namespace {

nb::dict dim_dict(const DimInfo& d) {
    nb::dict out;
    out["text"] = d.text;
    out["lo"] = d.lo;
    out["hi"] = d.hi >= kUnboundedDim ? nb::none() : nb::object(nb::int_(d.hi));
    out["frozen"] = d.frozen;
    return out;
}

nb::dict argument_dict(const ArgumentInfo& a) {
    nb::dict out;
    out["name"] = a.name;
    out["kind"] = a.kind;
    out["dtype"] = a.dtype ? nb::object(nb::str(std::string(dtype_framework_name(*a.dtype)).c_str())) : nb::none();
    out["any_rank"] = a.any_rank;
    nb::list dims;
    for (const DimInfo& d : a.dims) dims.append(dim_dict(d));
    out["dims"] = dims;
    out["optional"] = a.optional;
    out["text"] = a.to_string();
    return out;
}

Entries argument_list(const std::vector<ArgumentInfo>& arguments) {
    Entries out;
    for (const ArgumentInfo& a : arguments) out.append(argument_dict(a));
    return out;
}

}  // namespace

void bind_module(nb::module_& m) {
    nb::class_<Module>(m, "NativeModule")
        .def_static("load", [](const std::string& path) { return take(Module::load(path)); })
        .def_static("from_text", [](const std::string& text,
                                    const std::string& name) { return take(Module::from_text(text, name)); })
        .def_static(
            "from_bytes",
            [](const nb::bytes& bytes) {
                return take(Module::from_bytes({reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()}));
            })
        .def("to_bytes",
             [](const Module& module) {
                 const std::vector<std::byte> bytes = module.to_bytes();
                 return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
             })
        .def("save", [](const Module& module, const std::string& path) { check(module.save(path)); })
        .def("disassemble",
             [](const Module& module, bool positions, bool pcs) {
                 DisassembleOptions options;
                 options.positions = positions;
                 options.pcs = pcs;
                 return module.disassemble(options);
             })
        .def("inputs",
             [](const Module& module, const std::string& function) { return argument_list(module.inputs(function)); })
        .def("outputs",
             [](const Module& module, const std::string& function) { return argument_list(module.outputs(function)); })
        .def("functions",
             [](const Module& module) {
                 nb::typed<nb::list, nb::str> out;
                 for (const FunctionInfo& f : module.functions()) out.append(nb::str(f.name.c_str()));
                 return out;
             })
        .def("symbols",
             [](const Module& module) {
                 Entry out;
                 for (const SymbolInfo& s : module.symbols()) {
                     out[s.name.c_str()] =
                         nb::make_tuple(s.lo, s.hi >= kUnboundedDim ? nb::none() : nb::object(nb::int_(s.hi)));
                 }
                 return out;
             })
        .def("weights",
             [](const Module& module) {
                 Entries out;
                 for (const WeightInfo& w : module.weights()) {
                     nb::dict item;
                     item["name"] = w.name;
                     item["dtype"] = std::string(dtype_framework_name(w.dtype));
                     item["shape"] = nb::tuple(nb::cast(w.sizes));
                     item["bytes"] = w.bytes;
                     out.append(item);
                 }
                 return out;
             })
        .def("metadata", [](const Module& module) { return std::map<std::string, std::string>(module.metadata()); })
        .def("hooks", [](const Module& module) { return std::vector<std::string>(module.hooks()); })
        .def("writes_arguments", [](const Module& module) { return module.writes_arguments(); })
        .def("address", [](const Module& module) { return reinterpret_cast<std::uintptr_t>(&module); });

    m.def("registry", [] {
        Entries out;
        for (const OpInfo& op : list_ops()) {
            nb::dict item;
            item["name"] = op.name;
            item["family"] = op.family;
            item["summary"] = op.summary;
            item["constraints"] = op.constraints;
            nb::list operands;
            for (const OperandInfo& o : op.operands) operands.append(nb::make_tuple(o.name, o.kind, o.scalar_ok));
            item["operands"] = operands;
            nb::list attributes;
            for (const AttributeInfo& a : op.attributes) attributes.append(nb::make_tuple(a.name, a.kind, a.fallback));
            item["attributes"] = attributes;
            item["results"] = op.results;
            item["writes_first"] = op.writes_first;
            nb::list dtypes;
            for (const DType d : op.dtypes) dtypes.append(nb::str(std::string(dtype_framework_name(d)).c_str()));
            item["dtypes"] = dtypes;
            item["torch"] = op.torch;
            item["numpy"] = op.numpy;
            item["onnx"] = op.onnx;
            out.append(item);
        }
        return out;
    });
}

}  // namespace flexor::python
