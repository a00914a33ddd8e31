// infer(): dtype rule, shape rule, layout rule, and the refusals that they lead to.
#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "ops/op_def.h"
#include "ops/rules.h"
#include "support/check.h"
#include "support/text.h"

namespace flexor::ops {
namespace {

using types::Truth;

// ---------------------------------------------------------------- layout rule

// One operand as the layout rule sees it: strides along the result's axes, 0 where it is broadcast.
using AxisStrides = std::vector<Dim>;

// The questions that the order of the axes depends on. What neither facts nor hints answer is asked as a guard on
// symbols that no entry knows: a caller that keeps guards on layouts sees that it cannot keep this one.
class Questions {
public:
    Questions(ShapeContext& context, const std::vector<Dim>& sizes, std::vector<Requirement>* open)
        : context_(context), sizes_(sizes), open_(open) {}
    const ShapeEnv& env() const { return context_.env(); }
    bool eq(const Dim& a, const Dim& b) {
        note(Relation::kEq, env().eq(a, b), a, b);
        return context_.layout_eq(a, b);
    }
    bool le(const Dim& a, const Dim& b) {
        note(Relation::kLe, env().le(a, b), a, b);
        return context_.layout_le(a, b);
    }
    // Of a result that has elements; the strides of others have no say.
    bool proven_le(const Dim& a, const Dim& b) {
        const Truth known = env().le(a, b);
        if (known != Truth::kUnknown || hinted(a, b)) return known == Truth::kTrue;
        if (!filled_) {
            filled_ = env();
            for (const Dim& size : sizes_) filled_->assume_range(size, {1, types::kDimInfinity});
        }
        return filled_->le(a, b) == Truth::kTrue;
    }

private:
    bool hinted(const Dim& a, const Dim& b) const { return env().hint(a) && env().hint(b); }
    void note(Relation relation, Truth known, const Dim& a, const Dim& b) {
        if (open_ == nullptr || known != Truth::kUnknown || hinted(a, b)) return;
        open_->push_back({Requirement::Kind::kGuard, relation, a, b, 0, false});
    }
    ShapeContext& context_;
    const std::vector<Dim>& sizes_;
    std::vector<Requirement>* open_;  // null: nobody keeps guards on layouts
    std::optional<ShapeEnv> filled_;
};

// Whether an axis is broadcast can change the order of the result's axes.
AxisStrides align(Questions& ask, const TensorType& type, const std::vector<Dim>& sizes) {
    AxisStrides strides(sizes.size(), Dim(0));
    const std::size_t skip = sizes.size() - type.sizes.size();
    for (std::size_t axis = 0; axis < type.sizes.size(); ++axis) {
        const Dim& size = type.sizes[axis];
        const Dim& result = sizes[skip + axis];
        const bool broadcast = ask.env().eq(size, result) != Truth::kTrue && ask.eq(size, 1) && !ask.eq(result, 1);
        if (!broadcast) strides[skip + axis] = type.strides[axis];
    }
    return strides;
}

// Whether axis `inner` should change places with axis `outer` (> 0), must not (< 0), or nothing says (0): torch's
// TensorIterator. Unknown orders are decided by the hints, as guards.
int compare_axes(Questions& ask, const std::vector<AxisStrides>& operands, const std::vector<Dim>& sizes,
                 std::size_t inner, std::size_t outer) {
    const ShapeEnv& env = ask.env();
    for (const AxisStrides& strides : operands) {
        const Dim& a = strides[inner];
        const Dim& b = strides[outer];
        if (env.eq(a, 0) == Truth::kTrue || env.eq(b, 0) == Truth::kTrue) continue;
        // Strides are equal where one of the axes has size 1, or where memory overlaps: then the larger axis goes out.
        if (env.eq(a, b) != Truth::kTrue) {
            if (ask.proven_le(a, b)) return -1;
            if (ask.proven_le(b, a)) return 1;
            if (ask.le(a + 1, b)) return -1;
            if (ask.le(b + 1, a)) return 1;
        }
        if (ask.le(sizes[outer] + 1, sizes[inner])) return 1;
    }
    return 0;
}

// Strides of a fresh result whose axes lie in memory in the order of the operands' strides.
std::vector<Dim> dense_strides(Questions& ask, const std::vector<const TensorType*>& operands,
                               const std::vector<Dim>& sizes) {
    const bool row_major = std::all_of(operands.begin(), operands.end(),
                                       [&](const TensorType* type) { return rules::is_row_major(ask.env(), *type); });
    const std::size_t rank = sizes.size();
    if (row_major || rank < 2) return types::contiguous_strides(sizes);
    std::vector<AxisStrides> aligned;
    for (const TensorType* type : operands) aligned.push_back(align(ask, *type, sizes));
    std::vector<std::size_t> order(rank);  // innermost first
    std::iota(order.rbegin(), order.rend(), std::size_t{0});
    for (std::size_t i = 1; i < rank; ++i) {
        std::size_t moving = i;
        for (std::size_t j = i; j-- > 0;) {
            const int comparison = compare_axes(ask, aligned, sizes, order[j], order[moving]);
            if (comparison < 0) break;
            if (comparison > 0) {
                std::swap(order[j], order[moving]);
                moving = j;
            }
        }
    }
    std::vector<Dim> strides(rank, Dim(0));
    Dim next = 1;
    for (const std::size_t axis : order) {
        strides[axis] = next;
        next = next * sizes[axis];
    }
    return strides;
}

// ---------------------------------------------------------------- refusals

std::string operand_name(const OpDef& op, std::size_t index) {
    const auto specs = op.operands.value;
    if (specs.empty()) return std::to_string(index);
    if (index + 1 >= specs.size() && specs.back().kind == OperandKind::kTensorList) {
        return std::string(specs.back().name) + "[" + std::to_string(index - (specs.size() - 1)) + "]";
    }
    return index < specs.size() ? std::string(specs[index].name) : std::to_string(index);
}

// "x: f32[B,S]" and, when all hints are there and differ from it, " = f32[8,12]".
std::string describe_arg(const ShapeEnv& env, const ArgType& arg) {
    if (!arg.present) return "none";
    const auto spell = [&](types::SymbolId id) { return env.name(id); };
    if (arg.strength == types::Strength::kScalar) return "scalar " + std::string(dtype_name(arg.type.dtype));
    std::string text(dtype_name(arg.type.dtype));
    std::string symbolic = "[";
    std::string concrete = "[";
    bool hinted = true;
    for (int axis = 0; axis < arg.type.rank(); ++axis) {
        const Dim& size = arg.type.sizes[axis];
        if (axis > 0) symbolic += ",", concrete += ",";
        symbolic += size.to_string(spell);
        const auto hint = env.hint(size);
        hinted = hinted && hint.has_value();
        if (hint) concrete += std::to_string(*hint);
    }
    symbolic += "]";
    concrete += "]";
    text += symbolic;
    if (hinted && concrete != symbolic) text += " = " + concrete;
    return text;
}

std::string describe_args(const OpDef& op, const ShapeEnv& env, std::span<const ArgType> args) {
    std::string text;
    for (std::size_t i = 0; i < args.size(); ++i) {
        if (i > 0) text += ", ";
        text += operand_name(op, i) + ": " + describe_arg(env, args[i]);
    }
    return text.empty() ? "no operands" : text;
}

Diagnostic constraint_failed(const OpDef& op, const ShapeContext& context, const ShapeEnv& env) {
    const int number = context.failed_constraint();
    const auto constraints = op.constraints.value;
    FLEXOR_CHECK(number >= 1 && static_cast<std::size_t>(number) <= constraints.size());
    const Constraint& constraint = constraints[static_cast<std::size_t>(number) - 1];
    const Requirement& r = context.failed_requirement();
    std::string expected = std::string(constraint.text);
    if (!(r.a == r.b)) {
        expected += " (" + env.to_string(r.a) + std::string(spelling(r.relation)) + env.to_string(r.b) + ")";
    }
    std::string found = describe_args(op, env, context.args());
    const auto spell = [&](types::SymbolId id) { return env.name(id); };
    const std::string attrs = types::to_string(context.attrs(), spell);
    if (!attrs.empty()) found += "; " + attrs;
    Diagnostic d(constraint.id);
    std::string label = "C";
    label += std::to_string(number);
    d.op(std::string(op.name.value)).constraint(std::move(label)).found(found).expected(expected);
    if (constraint.operand >= 0) d.operand(operand_name(op, static_cast<std::size_t>(constraint.operand)));
    return d;
}

// ---------------------------------------------------------------- operands

Expected<void> check_operands(const OpDef& op, std::span<const ArgType> args) {
    const auto specs = op.operands.value;
    const bool has_list = !specs.empty() && specs.back().kind == OperandKind::kTensorList;
    const std::size_t fixed = has_list ? specs.size() - 1 : specs.size();
    if (args.size() < fixed || (!has_list && args.size() > fixed)) {
        return Diagnostic(DiagnosticId::kWrongOperandCount)
            .op(std::string(op.name.value))
            .found(std::to_string(args.size()) + " operands")
            .expected(std::to_string(fixed) + (has_list ? " or more" : ""));
    }
    const Device* device = nullptr;
    for (std::size_t i = 0; i < args.size(); ++i) {
        const OperandSpec& spec = i < fixed ? specs[i] : specs.back();
        const auto refuse = [&](DiagnosticId id, std::string found, std::string expected) {
            return Diagnostic(id)
                .op(std::string(op.name.value))
                .operand(operand_name(op, i))
                .found(std::move(found))
                .expected(std::move(expected));
        };
        if (!args[i].present) {
            if (spec.kind == OperandKind::kOptionalTensor) continue;
            return refuse(DiagnosticId::kMissingArgument, "none", "a tensor");
        }
        if (args[i].strength == types::Strength::kScalar) {
            if (!spec.scalar_ok) return refuse(DiagnosticId::kValueKindMismatch, "a scalar", "a tensor");
            continue;
        }
        // Rank-0 tensors on the CPU may join tensors of any device, as in torch.
        if (args[i].type.rank() == 0 && args[i].type.device == Device{}) continue;
        if (device != nullptr && !(*device == args[i].type.device)) {
            return refuse(DiagnosticId::kDeviceMismatch, "another device than the operands before it", "one device");
        }
        if (device == nullptr) device = &args[i].type.device;
    }
    return {};
}

Device result_device(std::span<const ArgType> args) {
    Device device;
    for (const ArgType& arg : args) {
        if (!arg.present || arg.strength == types::Strength::kScalar) continue;
        device = arg.type.device;
        if (!(device == Device{})) return device;
    }
    return device;
}

}  // namespace

Expected<Inferred> infer(const OpDef& op, std::span<const ArgType> args, const Attrs& attrs, ShapeEnv& env,
                         std::vector<Requirement>& requirements, types::Promotion promotion, bool allow_guards,
                         bool settle_layout) {
    FLEXOR_TRY(check_operands(op, args));
    auto dtypes = op.dtype.value(args, attrs, promotion);
    if (!dtypes) {
        Diagnostic error = std::move(dtypes).error();
        error.op(std::string(op.name.value));
        // Rules name operands by number, "#1"; the entry knows their names.
        const std::string& operand = error.where().operand;
        if (operand.size() > 1 && operand[0] == '#') {
            if (const auto index = support::int_from_text(operand.substr(1))) {
                error.operand(operand_name(op, static_cast<std::size_t>(*index)));
            }
        }
        if (error.found().empty()) error.found(describe_args(op, env, args));
        return error;
    }

    ShapeContext context(args, attrs, env, requirements, allow_guards, settle_layout);
    std::vector<ShapeResult> shapes;
    if (!op.shape.value(context, shapes)) return constraint_failed(op, context, env);

    Inferred inferred;
    inferred.dtypes = std::move(*dtypes);
    if (!inferred.dtypes.bounds && promotion == types::Promotion::kNumpy)
        rules::bound_integers(args, promotion, inferred.dtypes);
    if (inferred.dtypes.results.size() == 1 && shapes.size() != 1) {
        inferred.dtypes.results.assign(shapes.size(), inferred.dtypes.results[0]);
    }
    FLEXOR_CHECK(inferred.dtypes.results.size() == shapes.size());
    const Device device = result_device(args);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        ShapeResult& shape = shapes[i];
        ResultType result;
        result.view_of = shape.view_of;
        result.is_operand = shape.is_operand;
        result.type.dtype = inferred.dtypes.results[i];
        result.type.device = device;
        for (Dim& size : shape.sizes) size = env.simplify(size);
        if (shape.view_of >= 0) {
            for (Dim& stride : shape.strides) stride = env.simplify(stride);
            const TensorType& base = args[static_cast<std::size_t>(shape.view_of)].type;
            result.type.strides = std::move(shape.strides);
            result.type.offset = env.simplify(base.offset + shape.offset);
            result.type.device = base.device;
        } else if (!shape.strides.empty()) {
            result.type.strides = std::move(shape.strides);
        } else if (op.layout.value == Layout::kElementwise || op.layout.value == Layout::kLikeFirst) {
            std::vector<const TensorType*> operands;
            for (const ArgType& arg : args) {
                if (arg.present && arg.strength != types::Strength::kScalar &&
                    arg.type.sizes.size() <= shape.sizes.size()) {
                    operands.push_back(&arg.type);
                }
                if (op.layout.value == Layout::kLikeFirst) break;
            }
            Questions ask(context, shape.sizes, settle_layout ? &requirements : nullptr);
            result.type.strides = dense_strides(ask, operands, shape.sizes);
        } else {
            result.type.strides = types::contiguous_strides(shape.sizes);
        }
        result.type.sizes = std::move(shape.sizes);
        FLEXOR_CHECK(result.type.strides.size() == result.type.sizes.size());
        inferred.results.push_back(std::move(result));
    }
    return inferred;
}

Expected<void> settle_data_sizes(const OpDef& op, ReferenceContext& context, Inferred& inferred) {
    if (op.data_sizes == nullptr) return {};
    FLEXOR_ASSIGN(const std::vector<std::int64_t> sizes, op.data_sizes(context));
    // Constant types bring no symbols of their own: those that there are stand in the order of fresh().
    std::vector<Dim> values(sizes.begin(), sizes.end());
    const auto settle = [&](Dim& dim) {
        dim = dim.substitute([&](types::SymbolId id) { return &values.at(id); });
        FLEXOR_CHECK(dim.is_constant());
    };
    for (ResultType& result : inferred.results) {
        std::ranges::for_each(result.type.sizes, settle);
        std::ranges::for_each(result.type.strides, settle);
    }
    return {};
}

Expected<void> run_whole(const OpDef& op, ReferenceContext& context) {
    return (op.native != nullptr ? op.native : op.reference.value)(context);
}

}  // namespace flexor::ops
