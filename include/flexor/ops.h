#pragma once
// The op registry, as users see it.
#include <string>
#include <string_view>
#include <vector>

#include "flexor/dtype.h"
#include "flexor/error.h"
#include "flexor/export.h"

namespace flexor {

struct OperandInfo {
    std::string name;
    std::string kind;  // "tensor", "optional tensor", "tensor list"
    bool scalar_ok = false;
};

struct AttributeInfo {
    std::string name;
    std::string kind;      // "bool", "int", "float", "string", "dtype", "int list", with "?" where none is taken
    std::string fallback;  // text of the default; empty: required
};

struct OpInfo {
    std::string name;
    std::string family;  // how it is lowered: "map", "reduce", "view", ...
    std::string summary;
    std::vector<std::string> constraints;  // texts of C1, C2, ...
    std::vector<OperandInfo> operands;
    std::vector<AttributeInfo> attributes;
    int results = 1;  // -1: decided by an attribute
    bool writes_first = false;
    std::vector<DType> dtypes;       // of the operands, those of masks and indices aside; each is tested
    std::string torch, numpy, onnx;  // spellings elsewhere, or empty
};

FLEXOR_API std::vector<OpInfo> list_ops();
FLEXOR_API Expected<OpInfo> find_op_info(std::string_view name);  // UnknownOp hints at the nearest name

}  // namespace flexor
