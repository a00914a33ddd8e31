#pragma once
// One value of any dtype, for the evaluator: integers and bool in `i` (bool as 0 or 1), floats of every width in `f`,
// each already rounded or wrapped to its dtype.
#include <cstdint>

#include "loopir/kernel.h"

namespace flexor::loopir {

struct ScalarValue {
    std::int64_t i = 0;
    double f = 0;
};

ScalarValue scalar_from_int(DType dtype, std::int64_t value);
ScalarValue scalar_from_double(DType dtype, double value);  // rounds; integers truncate
ScalarValue cast_scalar(ScalarValue value, DType from, DType to);

ScalarValue load_scalar(const void* memory, DType dtype, std::int64_t element);
void store_scalar(void* memory, DType dtype, std::int64_t element, ScalarValue value);

// An operator that is no leaf and no cast, on operands of dtype `operand`. An integer zero divisor sets `fault`.
ScalarValue apply_scalar(ScalarOp op, DType operand, const ScalarValue* operands, bool& fault);

// Reductions: the value of no elements, and the value of two parts (not for argmax and argmin).
ScalarValue combine_identity(Combine combine, DType dtype);
ScalarValue combine_scalars(Combine combine, DType dtype, ScalarValue a, ScalarValue b);

}  // namespace flexor::loopir
