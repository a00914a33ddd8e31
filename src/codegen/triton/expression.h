#pragma once
// Scalar operators, casts and reductions of the loop IR as Triton expressions, with the meaning that loopir/scalar_ops.def
// and the evaluator give them. Operands are names; every value is a typed tensor (of any shape, 0-d too), so that
// Python's numbers never decide a dtype.
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "loopir/kernel.h"

namespace flexor::codegen::triton {

std::string_view dtype_text(DType dtype);                         // "tl.float32"
std::string_view pointee_text(DType dtype);                       // of a signature: "fp32"; bool lies in memory as "u8"
std::string int_text(std::int64_t value);                         // with parentheses where a minus would bind too late
std::string constant_text(const loopir::Node& n);                 // a 0-d tensor
std::string identity_text(loopir::Combine combine, DType dtype);  // a Python number

class Expressions {
public:
    std::string apply(const loopir::Node& node, DType operand, const std::string (&names)[3]);
    std::string cast(const std::string& name, DType from, DType to);
    // A cheaper function of f32, for results that are rounded to 16 bits: within 2^-14 of the value. None: use apply.
    std::optional<std::string> short_function(loopir::ScalarOp op, const std::string (&names)[3]);
    // The function that joins two values of a reduction; for arg* of two (value, position) pairs.
    std::string combine(loopir::Combine combine, DType dtype);

    // A call of a helper of ours, which definitions() then holds.
    std::string call(std::string_view helper, std::string arguments);

    // The definitions that the expressions made so far call.
    std::string definitions() const;

private:
    std::string integer(loopir::ScalarOp op, DType dtype, const std::string (&names)[3]);
    std::string floating(loopir::ScalarOp op, DType dtype, const std::string (&names)[3]);
    std::string compare(loopir::ScalarOp op, DType operand, const std::string (&names)[3]);

    std::set<std::string, std::less<>> used_;
};

}  // namespace flexor::codegen::triton
