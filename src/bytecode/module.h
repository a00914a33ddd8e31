#pragma once
// The Module: portable stack bytecode with undecided shapes. Immutable once verified; shared by sessions.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "flexor/tensor.h"
#include "ops/op_def.h"
#include "types/attr.h"
#include "types/dim.h"
#include "types/shape_env.h"

namespace flexor::bytecode {

enum class Opcode : std::uint8_t {
#define X(enumerator, number, format, pops, pushes, flags, sentence) enumerator = number,
#include "bytecode/opcodes.def"
#undef X
};

enum class ScalarOperator : std::uint8_t {
    // Binary on int, float, bool with Python semantics (true division gives float; // and % floor), then unary from
    // kNeg on.
    kAdd,
    kSub,
    kMul,
    kTrueDiv,
    kFloorDiv,
    kMod,
    kPow,
    kMin,
    kMax,
    kEq,
    kNe,
    kLt,
    kLe,
    kGt,
    kGe,
    kAnd,
    kOr,
    kNeg,
    kNot,
    kToInt,
    kToFloat,
    kToBool,
};

struct Instruction {
    Opcode op;
    std::int32_t a = 0;
    std::int32_t b = 0;
    friend bool operator==(const Instruction&, const Instruction&) = default;
};

// One CALL_OP. Attribute dims refer to module symbols; values may also be types::OperandRef (taken from the stack
// operands after the tensors).
struct CallSite {
    std::string op;                          // registry name
    const ops::OpDef* definition = nullptr;  // resolved by verify
    std::int32_t operand_count =
        0;  // values popped: tensors, scalars, none, then those that OperandRef attributes name
    types::Attrs attrs;
    friend bool operator==(const CallSite& x, const CallSite& y) {
        return x.op == y.op && x.operand_count == y.operand_count && x.attrs == y.attrs;
    }
};

struct None {
    friend bool operator==(None, None) = default;
};
// Constant pool entry.
using Constant = std::variant<None, bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;

// Symbol of the module: `S in 1..4096`. Dims of a module use SymbolId = index into Module::symbols.
struct SymbolDecl {
    std::string name;
    types::Range range;
};

enum class ParamKind : std::uint8_t { kTensor, kInt, kFloat, kBool, kString, kAny };
struct ParamDecl {
    std::string name;
    ParamKind kind = ParamKind::kAny;
    DType dtype = DType::kF32;     // kTensor
    bool any_dtype = false;        // kTensor: written "any[...]"
    bool any_rank = false;         // kTensor: written "f32[...]"
    std::vector<types::Dim> dims;  // kTensor: constants or expressions over module symbols
    std::vector<bool> frozen;      // kTensor: per dim, written "FROZEN S"
    bool optional = false;         // '?': may be none
};

struct SourcePosition {
    std::int32_t pc = 0;  // first pc it covers
    std::int32_t line = 0;
    std::string file;
};

struct Function {
    std::string name;
    std::vector<ParamDecl> params;  // locals 0..params-1
    std::int32_t result_count = 1;
    std::vector<std::string> result_names;  // empty, or one name per result
    std::vector<std::string> locals;        // names, params first
    std::vector<Instruction> code;
    std::vector<CallSite> sites;
    std::vector<SourcePosition> positions;  // ascending pc
    std::int32_t max_stack = 0;             // computed by verify
    std::int32_t line_at(std::int32_t pc) const;
};

struct Weight {
    std::string name;
    Tensor tensor;  // contiguous; may map a file
};

struct Module {
    std::vector<SymbolDecl> symbols;
    std::vector<Constant> constants;
    std::vector<Weight> weights;
    std::vector<Function> functions;  // "main" is the entry
    std::vector<std::string> hooks;   // foreign hooks by name
    std::map<std::string, std::string> metadata;
    types::Promotion promotion = types::Promotion::kTorch;
    std::uint64_t id = 0;  // unique in the process, set by verify
    bool verified = false;
    std::int32_t find_function(std::string_view name) const;  // -1 if absent
};
using ModuleRef = std::shared_ptr<const Module>;

// The same program: everything but definition pointers, id, verified and max_stack; constants by
// same_constant, weights by their bits.
bool same_program(const Module& x, const Module& y);
bool same_constant(const Constant& x, const Constant& y);  // any NaN equals any NaN, 0.0 is not -0.0

// Spells symbols of the module; for Dim::to_string and the printers.
std::function<std::string(types::SymbolId)> symbol_names(const Module& module);

}  // namespace flexor::bytecode
