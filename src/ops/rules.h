#pragma once
// Dtype and shape rules that more than one op uses, and the small questions about attributes that lowering shares.
#include <array>
#include <string>
#include <vector>

#include "ops/op_def.h"

namespace flexor::ops::rules {

// ---- constraints that ops of several families state, of the first operand

inline constexpr Constraint kAxisInRange{"the axis lies within the rank of x", DiagnosticId::kAxisOutOfRange, 0};
inline constexpr Constraint kDistinctAxes{"no axis is named twice", DiagnosticId::kDuplicateAxis, 0};
inline constexpr Constraint kSizesNotNegative{"sizes are not negative", DiagnosticId::kNegativeSize};

// ---------------------------------------------------------------- dtype rules

// The refusal of operand `index`; infer() adds the op's and the operand's name.
Diagnostic refuse_dtype(std::span<const ArgType> args, std::size_t index, std::string expected);

// Common dtype of the present operands [first, last).
DType common_dtype(std::span<const ArgType> args, types::Promotion promotion, std::size_t first = 0,
                   std::size_t last = ~std::size_t{0});
// An integer of Python, which has no dtype of its own.
bool is_integer_scalar(const ArgType& arg);
// Sets the bounds of such integers: what NumPy's ops and torch's checked conversions take for the dtypes that the
// operands are converted to. Beside torch, negative numbers wrap in unsigned dtypes.
void bound_integers(std::span<const ArgType> args, types::Promotion promotion, DTypes& dtypes);
// What float functions compute integers and bools in: torch the default float, NumPy by width.
DType float_of(DType dtype, types::Promotion promotion);

// One operand.
Expected<DTypes> same(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> same_not_bool(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> same_not_bool_in_torch(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> same_float(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> same_bits(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> to_float(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> to_bool(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> by_attr(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
// The first operand's dtype, whatever the others are (views, indexing).
Expected<DTypes> first(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);

// Several operands.
Expected<DTypes> promote(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> promote_not_bool(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
// Scalars beside 16-bit floats are not rounded first, nor is a divisor or second factor of rank 0: as in torch.
Expected<DTypes> product(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> quotient(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> floor_quotient(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> promote_to_float(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> promote_bits(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> promote_shift(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> subtract(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> compare(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);
Expected<DTypes> logical(std::span<const ArgType> args, const Attrs& attrs, types::Promotion promotion);

// ---------------------------------------------------------------- shape rules

ShapeResult fresh_result(std::vector<Dim> sizes);
bool same_shape(ShapeContext& context, std::vector<ShapeResult>& results);
// All present operands broadcast together; C1.
bool broadcast_shape(ShapeContext& context, std::vector<ShapeResult>& results);
inline constexpr std::string_view kBroadcastText = "aligned at the last axis, sizes are equal or one of them is 1";

// Broadcasts `sizes` with `more`, the longer one deciding the rank.
bool broadcast_into(ShapeContext& context, std::vector<Dim>& sizes, std::span<const Dim> more, int constraint);

// Whether the type is proven to be row-major without gaps, or empty. Sizes of 1 have no say.
bool is_row_major(const ShapeEnv& env, const TensorType& type);

// ---------------------------------------------------------------- bodies

// A constant of the dtype of `like`.
inline loopir::NodeId number(loopir::BodyBuilder& b, loopir::NodeId like, double value) {
    return b.constant(b.dtype(like), value);
}

// ---------------------------------------------------------------- attributes

// Axis in [0, rank) from a constant that may count from the end; -1 if it does not lie in the rank or is no constant.
int normal_axis(const Dim& axis, int rank);
// The axes that a reduction removes: attribute "axes" (none: all), ascending and without duplicates. The attribute must
// have passed the shape rule.
std::vector<int> reduced_axes(const Attrs& attrs, int rank);

}  // namespace flexor::ops::rules
