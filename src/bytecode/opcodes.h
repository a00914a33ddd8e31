#pragma once
// What opcodes.def says, as a table. Printer, parser, verifier and file reader all read it; none of them lists opcodes.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "bytecode/module.h"

namespace flexor::bytecode {

// What the operands A and B of an instruction mean.
enum class OperandFormat : std::uint8_t {
    kNone,
    kConst,
    kLocal,
    kWeight,
    kSite,
    kFunctionCount,
    kHookCount,
    kTarget,
    kCount,
    kAxis,
    kScalarOp,
};

struct OpcodeInfo {
    Opcode op;
    std::string_view mnemonic;  // "LOAD_CONST"
    OperandFormat format;
    std::int8_t pops;    // -1: stack_effect() says
    std::int8_t pushes;  // -1: stack_effect() says
    std::uint8_t flags;
    std::string_view sentence;

    constexpr bool ends_block() const { return (flags & 1) != 0; }
    constexpr bool has_target() const { return (flags & 2) != 0; }
    constexpr bool safe_point_after() const { return (flags & 4) != 0; }
    // The next instruction is never reached from this one.
    constexpr bool never_falls_through() const { return op == Opcode::kJump || op == Opcode::kReturn; }
};

std::span<const OpcodeInfo> all_opcodes();  // indexed by number
bool is_opcode(std::uint8_t number);
const OpcodeInfo& opcode_info(Opcode op);  // only for known opcodes
std::optional<Opcode> opcode_from_mnemonic(std::string_view mnemonic);

inline constexpr int kScalarOperatorCount = static_cast<int>(ScalarOperator::kToBool) + 1;
std::string_view scalar_operator_name(ScalarOperator op);  // "floor_div"
std::optional<ScalarOperator> scalar_operator_from_name(std::string_view name);
constexpr bool is_unary(ScalarOperator op) { return op >= ScalarOperator::kNeg; }

struct StackEffect {
    std::int32_t pops;
    std::int32_t pushes;
};
// Of an instruction whose operands index their tables. A call site's results come from its definition, or from the
// registry where verify has not run; nothing if the op is unknown or the number of its results is.
std::optional<StackEffect> stack_effect(const Module& module, const Function& function, const Instruction& instruction);

// Values that a call of the op pops, operands of attributes ($n) not counted. Trailing optional operands may be left
// out; a list is one list value or the tensors themselves.
struct OperandBounds {
    std::int32_t least;
    std::int32_t most;
};
OperandBounds operand_bounds(const ops::OpDef& op);

}  // namespace flexor::bytecode
