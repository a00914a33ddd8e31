#include "ops/rules.h"

#include <algorithm>

namespace flexor::ops::rules {

using types::Promotion;
using Args = std::span<const ArgType>;

// ---------------------------------------------------------------- dtype rules

Diagnostic refuse_dtype(Args args, std::size_t index, std::string expected) {
    std::string operand = "#";
    operand += std::to_string(index);
    return Diagnostic(DiagnosticId::kDTypeMismatch)
        .operand(std::move(operand))
        .found(std::string(dtype_name(args[index].type.dtype)))
        .expected(std::move(expected));
}

DType common_dtype(Args args, Promotion promotion, std::size_t first, std::size_t last) {
    std::vector<types::PromotionOperand> operands;
    for (std::size_t i = first; i < std::min(last, args.size()); ++i) {
        if (args[i].present) operands.push_back({args[i].type.dtype, args[i].strength});
    }
    return types::promote(operands, promotion);
}

bool is_integer_scalar(const ArgType& arg) {
    return arg.present && arg.strength == types::Strength::kScalar && arg.type.dtype == DType::kI64;
}

void bound_integers(Args args, Promotion promotion, DTypes& dtypes) {
    dtypes.bounds.emplace();
    for (std::size_t i = 0; i < std::min(args.size(), dtypes.operands.size()); ++i) {
        const auto range = types::integer_range(dtypes.operands[i]);
        if (!range || dtypes.operands[i] == DType::kI64 || !is_integer_scalar(args[i])) continue;
        const bool wraps = promotion == Promotion::kTorch && range->lo == 0;
        dtypes.bounds->push_back({i, wraps ? -range->hi : range->lo, range->hi});
    }
}

DType float_of(DType dtype, Promotion promotion) {
    if (is_floating(dtype)) return dtype;
    if (promotion == Promotion::kTorch) return types::default_float();
    switch (dtype) {
        case DType::kBool:
        case DType::kU8:
        case DType::kI8: return DType::kF16;
        default: return DType::kF64;
    }
}

namespace {

DTypes all_as(Args args, DType operand, DType result) { return {std::vector<DType>(args.size(), operand), {result}}; }
bool is_scalar(const ArgType& arg) { return arg.strength == types::Strength::kScalar; }
constexpr const char* kNotBool = "a dtype other than bool";
constexpr const char* kFloat = "a floating dtype";
constexpr const char* kBits = "bool or an integer dtype";
constexpr const char* kInteger = "an integer dtype";

// 16-bit floats are computed with in f32; torch's kernels of some ops take a scalar as it is, without rounding it
// first.
void keep_scalar(std::size_t index, Promotion promotion, DTypes& dtypes) {
    DType& operand = dtypes.operands[index];
    if (promotion == Promotion::kTorch && (operand == DType::kF16 || operand == DType::kBF16)) operand = DType::kF32;
}

// A weak scalar alone keeps what its kind promotes to.
DType single(Args args, Promotion promotion) { return common_dtype(args, promotion, 0, 1); }

}  // namespace

Expected<DTypes> same(Args args, const Attrs&, Promotion promotion) {
    const DType d = single(args, promotion);
    return all_as(args, d, d);
}
Expected<DTypes> same_not_bool(Args args, const Attrs&, Promotion promotion) {
    const DType d = single(args, promotion);
    if (d == DType::kBool) return refuse_dtype(args, 0, kNotBool);
    return all_as(args, d, d);
}
Expected<DTypes> same_not_bool_in_torch(Args args, const Attrs&, Promotion promotion) {
    const DType d = single(args, promotion);
    if (d == DType::kBool && promotion == Promotion::kTorch) return refuse_dtype(args, 0, kNotBool);
    return all_as(args, d, d);
}
Expected<DTypes> same_float(Args args, const Attrs&, Promotion promotion) {
    const DType d = single(args, promotion);
    if (!is_floating(d)) return refuse_dtype(args, 0, kFloat);
    return all_as(args, d, d);
}
Expected<DTypes> same_bits(Args args, const Attrs&, Promotion promotion) {
    const DType d = single(args, promotion);
    if (is_floating(d)) return refuse_dtype(args, 0, kBits);
    return all_as(args, d, d);
}
Expected<DTypes> to_float(Args args, const Attrs&, Promotion promotion) {
    const DType d = float_of(single(args, promotion), promotion);
    return all_as(args, d, d);
}
Expected<DTypes> to_bool(Args args, const Attrs&, Promotion promotion) {
    return all_as(args, single(args, promotion), DType::kBool);
}
Expected<DTypes> by_attr(Args args, const Attrs& attrs, Promotion promotion) {
    return DTypes{args.empty() ? std::vector<DType>{} : std::vector<DType>{single(args, promotion)},
                  {attrs.dtype("dtype")}};
}
Expected<DTypes> first(Args args, const Attrs&, Promotion) {
    DTypes dtypes;
    for (const ArgType& arg : args) dtypes.operands.push_back(arg.type.dtype);
    dtypes.results.push_back(args[0].type.dtype);
    return dtypes;
}

Expected<DTypes> promote(Args args, const Attrs&, Promotion promotion) {
    const DType d = common_dtype(args, promotion);
    return all_as(args, d, d);
}
Expected<DTypes> promote_not_bool(Args args, const Attrs&, Promotion promotion) {
    DType d = common_dtype(args, promotion);
    if (d == DType::kBool) {
        if (promotion == Promotion::kTorch) return refuse_dtype(args, 0, kNotBool);
        d = DType::kI8;  // NumPy's smallest loop for these functions
    }
    return all_as(args, d, d);
}
Expected<DTypes> product(Args args, const Attrs& attrs, Promotion promotion) {
    FLEXOR_ASSIGN(DTypes dtypes, promote(args, attrs, promotion));
    if (is_scalar(args[0])) keep_scalar(0, promotion, dtypes);
    if (args[1].strength != types::Strength::kTensor) keep_scalar(1, promotion, dtypes);
    return dtypes;
}
Expected<DTypes> quotient(Args args, const Attrs&, Promotion promotion) {
    DType d = common_dtype(args, promotion);
    // NumPy divides integers in float64 whatever their width.
    if (!is_floating(d)) d = promotion == Promotion::kTorch ? types::default_float() : DType::kF64;
    DTypes dtypes = all_as(args, d, d);
    if (args[1].strength != types::Strength::kTensor) keep_scalar(1, promotion, dtypes);
    return dtypes;
}
Expected<DTypes> floor_quotient(Args args, const Attrs& attrs, Promotion promotion) {
    Expected<DTypes> dtypes = promote_not_bool(args, attrs, promotion);
    if (dtypes && args[1].strength != types::Strength::kTensor) keep_scalar(1, promotion, *dtypes);
    return dtypes;
}
Expected<DTypes> promote_to_float(Args args, const Attrs&, Promotion promotion) {
    const DType d = float_of(common_dtype(args, promotion), promotion);
    return all_as(args, d, d);
}
Expected<DTypes> promote_bits(Args args, const Attrs&, Promotion promotion) {
    const DType d = common_dtype(args, promotion);
    for (std::size_t i = 0; i < args.size(); ++i) {
        if (args[i].present && is_floating(args[i].type.dtype)) return refuse_dtype(args, i, kBits);
    }
    return all_as(args, d, d);
}
Expected<DTypes> promote_shift(Args args, const Attrs& attrs, Promotion promotion) {
    for (std::size_t i = 0; i < args.size(); ++i) {
        if (args[i].present && is_floating(args[i].type.dtype)) return refuse_dtype(args, i, kInteger);
    }
    return promote_not_bool(args, attrs, promotion);
}
Expected<DTypes> subtract(Args args, const Attrs&, Promotion promotion) {
    const DType d = common_dtype(args, promotion);
    for (std::size_t i = 0; i < args.size(); ++i) {
        const bool refused = promotion == Promotion::kTorch ? args[i].type.dtype == DType::kBool : d == DType::kBool;
        if (refused) return refuse_dtype(args, i, kNotBool);
    }
    return all_as(args, d, d);
}
Expected<DTypes> compare(Args args, const Attrs&, Promotion promotion) {
    DType d = common_dtype(args, promotion);
    // NumPy compares with an integer of Python as numbers are, whatever the dtype of the array holds.
    const bool exact = promotion == Promotion::kNumpy && is_integer(d) && std::ranges::any_of(args, is_integer_scalar);
    if (exact) d = DType::kI64;
    return all_as(args, d, DType::kBool);
}
Expected<DTypes> logical(Args args, const Attrs&, Promotion) { return all_as(args, DType::kBool, DType::kBool); }

// ---------------------------------------------------------------- shape rules

ShapeResult fresh_result(std::vector<Dim> sizes) {
    ShapeResult result;
    result.sizes = std::move(sizes);
    return result;
}

bool same_shape(ShapeContext& context, std::vector<ShapeResult>& results) {
    results.push_back(fresh_result(context.type(0).sizes));
    return true;
}

bool broadcast_into(ShapeContext& context, std::vector<Dim>& sizes, std::span<const Dim> more, int constraint) {
    if (more.size() > sizes.size()) sizes.insert(sizes.begin(), more.size() - sizes.size(), Dim(1));
    const std::size_t skip = sizes.size() - more.size();
    for (std::size_t axis = 0; axis < more.size(); ++axis) {
        Dim& size = sizes[skip + axis];
        if (!context.broadcast(size, more[axis], constraint, &size)) return false;
    }
    return true;
}

bool broadcast_shape(ShapeContext& context, std::vector<ShapeResult>& results) {
    std::vector<Dim> sizes;
    for (const ArgType& arg : context.args()) {
        if (!arg.present || is_scalar(arg)) continue;
        if (!broadcast_into(context, sizes, arg.type.sizes, 1)) return false;
    }
    results.push_back(fresh_result(std::move(sizes)));
    return true;
}

bool is_row_major(const ShapeEnv& env, const TensorType& type) {
    for (const Dim& size : type.sizes) {
        if (env.eq(size, 0) == types::Truth::kTrue) return true;
    }
    Dim expected = 1;
    for (std::size_t axis = type.sizes.size(); axis-- > 0;) {
        const Dim& size = type.sizes[axis];
        if (env.eq(size, 1) == types::Truth::kTrue) continue;
        if (env.eq(type.strides[axis], expected) != types::Truth::kTrue) return false;
        expected = expected * size;
    }
    return true;
}

// ---------------------------------------------------------------- attributes

int normal_axis(const Dim& axis, int rank) {
    if (!axis.is_constant()) return -1;
    const std::int64_t a = axis.constant() < 0 ? axis.constant() + rank : axis.constant();
    return a >= 0 && a < rank ? static_cast<int>(a) : -1;
}

std::vector<int> reduced_axes(const Attrs& attrs, int rank) {
    std::vector<int> axes;
    if (!attrs.has("axes")) {
        for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
        return axes;
    }
    for (const Dim& axis : attrs.list("axes")) {
        if (const int a = normal_axis(axis, rank); a >= 0) axes.push_back(a);
    }
    std::sort(axes.begin(), axes.end());
    axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    return axes;
}

}  // namespace flexor::ops::rules
