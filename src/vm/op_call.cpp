#include "vm/op_call.h"

#include <algorithm>
#include <cstring>

#include "ops/strided.h"
#include "ops/write.h"
#include "runtime/stop_check.h"
#include "runtime/thread_pool.h"
#include "support/check.h"
#include "support/diagnostic.h"
#include "support/text.h"
#include "tensor/scalar.h"
#include "vm/native_call.h"

namespace flexor::vm {

using ops::ArgType;
using types::Attrs;
using types::AttrValue;
using types::Dim;
using types::DimList;
using types::OperandRef;
using types::Strength;

namespace {

Tensor tensor_of(const Value& scalar) {
    if (scalar.is_bool()) return scalar_tensor<std::uint8_t>(DType::kBool, scalar.boolean() ? 1 : 0);
    if (scalar.is_int()) return scalar_tensor(DType::kI64, scalar.integer());
    return scalar_tensor(DType::kF64, scalar.real());
}

Expected<AttrValue> attribute_from(const Value& value, std::string_view name) {
    if (value.is_none()) return AttrValue{};
    if (value.is_bool()) return AttrValue{value.boolean()};
    if (value.is_int()) return AttrValue{Dim(value.integer())};
    if (value.is_float()) return AttrValue{value.real()};
    if (value.is_string()) return AttrValue{value.text()};
    if (value.is_list()) {
        DimList list;
        for (const Value& element : value.elements()) {
            if (!element.is_int() && !element.is_bool()) {
                return Diagnostic(DiagnosticId::kBadAttribute)
                    .operand(std::string(name))
                    .found(value.describe())
                    .expected("a list of integers");
            }
            list.emplace_back(element.integer());
        }
        return AttrValue{std::move(list)};
    }
    return Diagnostic(DiagnosticId::kBadAttribute)
        .operand(std::string(name))
        .found(value.describe())
        .expected("a scalar, a string or a list of integers");
}

// Attributes with every operand reference and symbol replaced by its value.
class AttributeResolver {
public:
    AttributeResolver(std::span<const Value> operands, const SymbolSource& symbols)
        : operands_(operands), used_(operands.size(), false), symbols_(symbols) {}

    Expected<Attrs> run(const bytecode::CallSite& site) {
        Attrs out;
        for (const auto& [name, value] : site.attrs.items()) {
            if (const auto* reference = std::get_if<OperandRef>(&value)) {
                if (reference->index >= operands_.size()) {
                    return Diagnostic(DiagnosticId::kBadAttribute)
                        .operand(name)
                        .found("operand " + std::to_string(reference->index))
                        .expected("one of " + std::to_string(operands_.size()));
                }
                used_[reference->index] = true;
                FLEXOR_ASSIGN(AttrValue resolved, attribute_from(operands_[reference->index], name));
                out.set(name, std::move(resolved));
            } else if (const auto* dim = std::get_if<Dim>(&value)) {
                FLEXOR_ASSIGN(Dim constant, evaluate(*dim, name));
                out.set(name, constant);
            } else if (const auto* list = std::get_if<DimList>(&value)) {
                DimList constants;
                for (const Dim& element : *list) {
                    FLEXOR_ASSIGN(Dim constant, evaluate(element, name));
                    constants.push_back(constant);
                }
                out.set(name, std::move(constants));
            } else {
                out.set(name, value);
            }
        }
        return ops::check_attrs(*site.definition, out);
    }

    bool is_attribute(std::size_t operand) const { return used_[operand]; }

private:
    Expected<Dim> evaluate(const Dim& dim, const std::string& name) const {
        if (dim.is_constant()) return dim;
        FLEXOR_ASSIGN(const SymbolValues* values, symbols_());
        const auto spell = [&](types::SymbolId id) { return std::string(values->names[id]); };
        if (const std::vector<types::SymbolId> unbound = values->unbound(dim); !unbound.empty()) {
            return Diagnostic(DiagnosticId::kUnknownName)
                .operand(name)
                .found("symbol " + std::string(values->names[unbound[0]]))
                .expected("a symbol that the sizes of the arguments determine");
        }
        const auto value = values->evaluate(dim);
        if (!value) {
            return Diagnostic(DiagnosticId::kSizeOverflow)
                .operand(name)
                .found(dim.to_string(spell))
                .expected("a result that fits in 64 bits");
        }
        return Dim(*value);
    }

    std::span<const Value> operands_;
    std::vector<bool> used_;
    const SymbolSource& symbols_;
};

Expected<void> add_operand(const Value& value, std::vector<ArgType>& args, std::vector<Tensor>& inputs,
                           std::vector<Strength>& strengths) {
    ArgType arg;
    if (value.is_none()) {
        arg.present = false;
        inputs.emplace_back();
    } else if (value.is_scalar()) {
        inputs.push_back(tensor_of(value));
        arg.type.dtype = inputs.back().dtype();
        arg.strength = Strength::kScalar;
    } else if (value.is_tensor()) {
        const Tensor& tensor = value.tensor();
        arg.type.dtype = tensor.dtype();
        arg.type.device = tensor.device();
        for (const std::int64_t size : tensor.sizes()) arg.type.sizes.emplace_back(size);
        for (const std::int64_t stride : tensor.strides()) arg.type.strides.emplace_back(stride);
        arg.strength = tensor.rank() == 0 ? Strength::kZeroDim : Strength::kTensor;
        inputs.push_back(tensor);
    } else if (value.is_list()) {
        for (const Value& element : value.elements()) FLEXOR_TRY(add_operand(element, args, inputs, strengths));
        return {};
    } else {
        return Diagnostic(DiagnosticId::kValueKindMismatch)
            .found(value.describe())
            .expected("a tensor, a scalar, none or a list of tensors");
    }
    strengths.push_back(arg.strength);
    args.push_back(std::move(arg));
    return {};
}

std::string shape_text(const types::TensorType& type) {
    return types::to_string(type, [](types::SymbolId id) { return "s" + std::to_string(id); });
}

// Memory of a fresh result with its strides, which are dense.
Expected<Tensor> allocate(const types::TensorType& type, std::size_t index, runtime::Pool& pool) {
    std::vector<std::int64_t> sizes, strides;
    std::int64_t count = 1;
    bool overflow = false;
    for (std::size_t i = 0; i < type.sizes.size(); ++i) {
        if (!type.sizes[i].is_constant() || !type.strides[i].is_constant()) {
            return Diagnostic(DiagnosticId::kOpNotCompiled)
                .operand("result " + std::to_string(index))
                .found(shape_text(type))
                .expected("sizes that do not depend on data");
        }
        sizes.push_back(type.sizes[i].constant());
        strides.push_back(type.strides[i].constant());
        overflow |= __builtin_mul_overflow(count, sizes.back(), &count);
    }
    std::int64_t bytes = 0;
    overflow |= __builtin_mul_overflow(count, static_cast<std::int64_t>(dtype_size(type.dtype)), &bytes);
    if (overflow) {
        return Diagnostic(DiagnosticId::kSizeOverflow)
            .operand("result " + std::to_string(index))
            .found(shape_text(type))
            .expected("a size in bytes that fits in 64 bits");
    }
    const std::int64_t flat[1] = {count};
    Tensor memory = pool.empty(type.dtype, flat);
    if (!memory.defined()) {
        const auto& limits = pool.options();
        const bool limited = limits.hard_limit != 0;
        Diagnostic diagnostic(limited ? DiagnosticId::kHardMemoryLimit : DiagnosticId::kOutOfMemory);
        diagnostic.operand("result " + std::to_string(index) + ": " + shape_text(type))
            .found(support::text_from_bytes(static_cast<std::uint64_t>(bytes)) + " more beside " +
                   support::text_from_bytes(pool.gauges().live_bytes) + " in use");
        if (limited) {
            diagnostic.expected("soft limit " + support::text_from_bytes(limits.soft_limit) + ", hard limit " +
                                support::text_from_bytes(limits.hard_limit));
        }
        return diagnostic;
    }
    return memory.view(memory.data(), type.dtype, sizes, strides);
}

Tensor view_of(const Tensor& base, const types::TensorType& type) {
    std::vector<std::int64_t> sizes, strides;
    for (const Dim& size : type.sizes) sizes.push_back(size.constant());
    for (const Dim& stride : type.strides) strides.push_back(stride.constant());
    auto* data =
        static_cast<char*>(base.data()) + type.offset.constant() * static_cast<std::int64_t>(dtype_size(type.dtype));
    return base.view(data, type.dtype, sizes, strides);
}

// ---------------------------------------------------------------- writes that meet what they read

// Whether the elements fill one stretch of memory, each place once.
bool is_dense(const Tensor& tensor) {
    std::vector<int> axes;
    for (int axis = 0; axis < tensor.rank(); ++axis) {
        if (tensor.size(axis) != 1) axes.push_back(axis);
    }
    std::sort(axes.begin(), axes.end(), [&](int a, int b) { return tensor.stride(a) < tensor.stride(b); });
    std::int64_t next = 1;
    for (const int axis : axes) {
        if (tensor.stride(axis) != next) return false;
        next *= tensor.size(axis);
    }
    return true;
}

bool is_same_view(const Tensor& a, const Tensor& b) {
    return a.data() == b.data() && a.dtype() == b.dtype() && std::ranges::equal(a.sizes(), b.sizes()) &&
           std::ranges::equal(a.strides(), b.strides());
}

// As torch: where both are dense, they share nothing, or, unless they have to lie apart, are the same elements in the
// same order.
bool overlaps(const Tensor& target, const Tensor& source, bool apart) {
    if (target.numel() == 0 || source.numel() == 0 || !is_dense(target) || !is_dense(source)) return false;
    const auto* to = static_cast<const char*>(target.data());
    const auto* from = static_cast<const char*>(source.data());
    const auto* to_end = to + target.numel() * static_cast<std::int64_t>(dtype_size(target.dtype()));
    const auto* from_end = from + source.numel() * static_cast<std::int64_t>(dtype_size(source.dtype()));
    if (apart || to != from || to_end != from_end) return to < from_end && from < to_end;
    bool same = target.rank() == source.rank();
    for (int axis = 0; same && axis < target.rank(); ++axis)
        same = target.size(axis) == 1 || target.stride(axis) == source.stride(axis);
    return !same;
}

Expected<void> refuse_overlap(const ops::OpDef& op, std::span<const Tensor> inputs,
                              std::span<const Strength> strengths) {
    const bool apart = ops::writes_by_index(op);
    const auto& specs = op.operands.value;
    for (std::size_t i = 1; i < inputs.size(); ++i) {
        if (!inputs[i].defined() || strengths[i] == Strength::kScalar || !overlaps(inputs[0], inputs[i], apart))
            continue;
        return Diagnostic(DiagnosticId::kPartialOverlap)
            .operand(std::string(specs[std::min(i, specs.size() - 1)].name))
            .found("memory that overlaps that of " + std::string(specs[0].name))
            .expected(apart ? "memory apart" : "the same elements in the same places, or memory apart")
            .hint("read from a clone");
    }
    return {};
}

Expected<void> call(const bytecode::CallSite& site, std::span<const Value> operands, types::Promotion promotion,
                    const SymbolSource& symbols, runtime::Pool& pool, DeviceRun* device, std::vector<Value>& results) {
    const ops::OpDef& op = *site.definition;
    AttributeResolver resolver(operands, symbols);
    FLEXOR_ASSIGN(const Attrs attrs, resolver.run(site));

    std::vector<ArgType> args;
    std::vector<Tensor> inputs;
    std::vector<Strength> strengths;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (!resolver.is_attribute(i)) FLEXOR_TRY(add_operand(operands[i], args, inputs, strengths));
    }
    // Optional operands that were left out at the end are none.
    const auto& specs = op.operands.value;
    while (args.size() < specs.size() && specs[args.size()].kind == ops::OperandKind::kOptionalTensor) {
        FLEXOR_TRY(add_operand(Value(), args, inputs, strengths));
    }
    if (ops::copies(op) && strengths[1] != Strength::kScalar && is_same_view(inputs[0], inputs[1])) {
        results.emplace_back(inputs[0]);
        return {};
    }
    types::ShapeEnv env;
    std::vector<ops::Requirement> requirements;
    FLEXOR_ASSIGN(ops::Inferred inferred, ops::infer(op, args, attrs, env, requirements, promotion, false));
    const std::vector<Tensor> given = inputs;
    bool made_on_device = device != nullptr;
    if (device != nullptr) {
        bool any = false, there = false;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (!inputs[i].defined() || strengths[i] == Strength::kScalar) continue;
            any = true;
            there |= device->holds(inputs[i]);
            FLEXOR_ASSIGN(inputs[i], device->to_host(inputs[i]));
        }
        made_on_device = there || !any;
    }
    FLEXOR_TRY(refuse_out_of_range(op, inferred.dtypes, inputs));
    ops::ReferenceContext context{
        inputs, strengths, {}, attrs, inferred.dtypes, runtime::stop_requested, runtime::parallel_for};
    FLEXOR_TRY(ops::settle_data_sizes(op, context, inferred));
    const bool writes = op.effects.value == ops::Effects::kWritesFirst;
    // NumPy's writes read everything first, as every engine does.
    if (writes && promotion == types::Promotion::kTorch) FLEXOR_TRY(refuse_overlap(op, given, strengths));

    std::vector<Tensor> outputs;
    outputs.reserve(inferred.results.size());
    for (std::size_t i = 0; i < inferred.results.size(); ++i) {
        const ops::ResultType& result = inferred.results[i];
        if (result.view_of >= 0) {
            outputs.push_back(view_of(inputs[static_cast<std::size_t>(result.view_of)], result.type));
        } else {
            FLEXOR_ASSIGN(Tensor fresh, allocate(result.type, i, pool));
            outputs.push_back(std::move(fresh));
        }
    }
    context.outputs = outputs;
    FLEXOR_TRY(ops::run_whole(op, context));
    if (writes && device != nullptr && device->holds(given[0])) FLEXOR_TRY(device->put_back(inputs[0], given[0]));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const ops::ResultType& result = inferred.results[i];
        if (result.is_operand) {
            outputs[i] = given[static_cast<std::size_t>(result.view_of)];
        } else if (device != nullptr && result.view_of >= 0) {
            outputs[i] = view_of(given[static_cast<std::size_t>(result.view_of)], result.type);
        } else if (made_on_device) {
            FLEXOR_ASSIGN(outputs[i], device->to_device(outputs[i]));
        }
        results.emplace_back(std::move(outputs[i]));
    }
    return {};
}

}  // namespace

Expected<void> call_op(const bytecode::CallSite& site, std::span<const Value> operands, types::Promotion promotion,
                       const SymbolSource& symbols, runtime::Pool& pool, DeviceRun* device,
                       std::vector<Value>& results) {
    FLEXOR_CHECK(site.definition != nullptr);
    auto done = call(site, operands, promotion, symbols, pool, device, results);
    if (done) return {};
    Diagnostic error = std::move(done).error();
    if (error.where().op.empty()) error.op(site.op);
    return error;
}

}  // namespace flexor::vm
