#pragma once
// Scalar arithmetic with Python semantics, and truth.
#include "bytecode/opcodes.h"
#include "flexor/value.h"
#include "support/expected.h"

namespace flexor::bytecode {

Expected<Value> scalar_binary(ScalarOperator op, const Value& a, const Value& b);
Expected<Value> scalar_unary(ScalarOperator op, const Value& a);

// bool, number or one-element tensor.
Expected<bool> truth(const Value& value);
// The element of a one-element tensor; numbers are themselves.
Expected<Value> item(const Value& value);

}  // namespace flexor::bytecode
