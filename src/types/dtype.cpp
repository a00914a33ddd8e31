#include "types/dtype.h"

#include <array>
#include <limits>

namespace flexor::types {
namespace {

// The promotion lattices know 16-bit integers, which no tensor has: u8 with i8 is i16 while a promotion runs (so that
// its result does not depend on the order of the operands) and i32 at its end.
enum class Rank : std::uint8_t { kNone, kBool, kU8, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };

Rank rank_of(DType dtype) {
    switch (dtype) {
        case DType::kBool: return Rank::kBool;
        case DType::kU8: return Rank::kU8;
        case DType::kI8: return Rank::kI8;
        case DType::kI32: return Rank::kI32;
        case DType::kI64: return Rank::kI64;
        case DType::kF16: return Rank::kF16;
        case DType::kBF16: return Rank::kBF16;
        case DType::kF32: return Rank::kF32;
        case DType::kF64: return Rank::kF64;
    }
    return Rank::kNone;
}

DType dtype_of(Rank rank) {
    switch (rank) {
        case Rank::kNone:
        case Rank::kBool: return DType::kBool;
        case Rank::kU8: return DType::kU8;
        case Rank::kI8: return DType::kI8;
        case Rank::kI16:
        case Rank::kI32: return DType::kI32;
        case Rank::kI64: return DType::kI64;
        case Rank::kF16: return DType::kF16;
        case Rank::kBF16: return DType::kBF16;
        case Rank::kF32: return DType::kF32;
        case Rank::kF64: return DType::kF64;
    }
    return DType::kBool;
}

bool is_float(Rank r) { return r >= Rank::kF16; }

// Both operands of equal strength; the common part of both rules.
Rank join_same_category(Rank a, Rank b) {
    if (a == b) return a;
    if (a > b) std::swap(a, b);
    if (a == Rank::kU8 && b == Rank::kI8) return Rank::kI16;
    if (a == Rank::kF16 && b == Rank::kBF16) return Rank::kF32;
    return b;
}

Rank join_torch(Rank a, Rank b) {
    if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
    return join_same_category(a, b);
}

Rank join_numpy(Rank a, Rank b) {
    if (is_float(a) == is_float(b) || a <= Rank::kBool || b <= Rank::kBool) return join_same_category(a, b);
    const Rank floating = is_float(a) ? a : b;
    const Rank integer = is_float(a) ? b : a;
    if (integer <= Rank::kI8) return floating;
    if (integer == Rank::kI16) return join_same_category(floating, Rank::kF32);
    return Rank::kF64;
}

// torch: the weaker class counts only where its category (bool < integer < floating) is the higher one.
Rank combine_torch(Rank higher, Rank lower) {
    if (higher == Rank::kNone) return lower;
    if (lower == Rank::kNone || is_float(higher)) return higher;
    if (higher == Rank::kBool || is_float(lower)) return join_torch(higher, lower);
    return higher;
}

DType promote_torch(std::span<const PromotionOperand> operands) {
    std::array<Rank, 3> classes{Rank::kNone, Rank::kNone, Rank::kNone};
    for (const auto& operand : operands) {
        Rank rank = rank_of(operand.dtype);
        if (operand.strength == Strength::kScalar && is_float(rank)) rank = rank_of(default_float());
        Rank& joined = classes[static_cast<std::size_t>(operand.strength)];
        joined = join_torch(joined, rank);
    }
    return dtype_of(combine_torch(classes[0], combine_torch(classes[1], classes[2])));
}

DType promote_numpy(std::span<const PromotionOperand> operands) {
    // Floats first: u8 and i8 each with f16 are f16, though both together are i16, which with f16 would be f32.
    Rank strong = Rank::kNone;
    Rank weak = Rank::kNone;
    for (const auto& operand : operands) {
        const Rank rank = rank_of(operand.dtype);
        if (is_float(rank) && operand.strength != Strength::kScalar) strong = join_numpy(strong, rank);
    }
    for (const auto& operand : operands) {
        const Rank rank = rank_of(operand.dtype);
        // A Python bool is as strong as numpy.bool; ints and floats of Python are weak.
        const bool is_weak = operand.strength == Strength::kScalar && rank != Rank::kBool;
        Rank& joined = is_weak ? weak : strong;
        joined = join_numpy(joined, rank);
    }
    if (weak == Rank::kNone) return dtype_of(strong);
    if (is_float(weak)) return is_float(strong) ? dtype_of(strong) : DType::kF64;
    return strong <= Rank::kBool ? DType::kI64 : dtype_of(strong);
}

}  // namespace

std::optional<DType> dtype_from_name(std::string_view name) {
#define X(enumerator, text, framework, bytes) \
    if (name == text || name == framework) return DType::enumerator;
    FLEXOR_DTYPES(X)
#undef X
    return std::nullopt;
}

DType promote(std::span<const PromotionOperand> operands, Promotion rule) {
    return rule == Promotion::kTorch ? promote_torch(operands) : promote_numpy(operands);
}

DType default_float() { return DType::kF32; }

std::optional<IntegerRange> integer_range(DType dtype) {
    const auto of = []<class T>(T) {
        return IntegerRange{std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    };
    switch (dtype) {
        case DType::kU8: return of(std::uint8_t{});
        case DType::kI8: return of(std::int8_t{});
        case DType::kI32: return of(std::int32_t{});
        case DType::kI64: return of(std::int64_t{});
        default: return std::nullopt;
    }
}

}  // namespace flexor::types
