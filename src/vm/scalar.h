#pragma once
// Scalar arithmetic with Python semantics, and truth.
#include "bytecode/module.h"
#include "flexor/value.h"
#include "support/expected.h"

namespace flexor::vm {

bool is_unary(bytecode::ScalarOperator op);
Expected<Value> scalar_binary(bytecode::ScalarOperator op, const Value& a, const Value& b);
Expected<Value> scalar_unary(bytecode::ScalarOperator op, const Value& a);

// bool, number or one-element tensor.
Expected<bool> truth(const Value& value);
// The element of a one-element tensor; numbers are themselves.
Expected<Value> item(const Value& value);

}  // namespace flexor::vm
