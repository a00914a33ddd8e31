// One operator of the loop IR on register-form values (convert.h), scalar or vector.
#pragma once

#include <functional>

#include "codegen/cpu_llvm/convert.h"
#include "codegen/cpu_llvm/vector_math.h"
#include "loopir/kernel.h"

namespace flexor::codegen::cpu_llvm {

class ExprEmitter {
public:
    explicit ExprEmitter(Ir& ir) : ir_(ir), math_(ir) {}

    // `operands` have equal lane counts and the dtype `operand_dtype` (of the last operand for select). Mul and add of
    // floats may contract to fma (law L5 of the loop IR). `zero_divisor` is called with the lanes that divide an
    // integer by 0; those lanes give 0.
    Value emit(loopir::ScalarOp op, DType dtype, DType operand_dtype, std::span<const Value> operands,
               const std::function<void(Value)>& zero_divisor);

    // The constant of a kConst node, splat to `lanes`.
    Value constant(const loopir::Node& node, int lanes);

    VectorMath& math() { return math_; }

    // Rough count of instructions, for unrolling and buffering.
    static int cost(loopir::ScalarOp op, DType dtype, DType operand_dtype);

private:
    Value emit_float(loopir::ScalarOp op, std::span<const Value> v);
    Value emit_integer(loopir::ScalarOp op, DType dtype, std::span<const Value> v,
                       const std::function<void(Value)>& zero_divisor);
    Value compare(loopir::ScalarOp op, DType operand_dtype, Value a, Value b);
    Value contractable(Value v);

    Ir& ir_;
    VectorMath math_;
};

}  // namespace flexor::codegen::cpu_llvm
