#include "bytecode/opcodes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "support/check.h"

namespace flexor::bytecode {
namespace {

constexpr int kOpcodeCount = 0
#define X(enumerator, number, format, pops, pushes, flags, sentence) +1
#include "bytecode/opcodes.def"
#undef X
    ;

// "kLoadConst" gives "LOAD_CONST".
struct Spelling {
    std::array<char, 32> text{};
    std::size_t size = 0;
};
constexpr Spelling spell(std::string_view enumerator) {
    Spelling out;
    for (std::size_t i = 1; i < enumerator.size(); ++i) {
        const char c = enumerator[i];
        const bool upper = c >= 'A' && c <= 'Z';
        if (upper && i > 1) out.text[out.size++] = '_';
        out.text[out.size++] = upper ? c : static_cast<char>(c - 'a' + 'A');
    }
    return out;
}

constexpr std::array<Spelling, kOpcodeCount> kSpellings = {
#define X(enumerator, number, format, pops, pushes, flags, sentence) spell(#enumerator),
#include "bytecode/opcodes.def"
#undef X
};

constexpr std::array<OpcodeInfo, kOpcodeCount> kTable = {{
#define X(enumerator, number, format, pops, pushes, flags, sentence)            \
    {Opcode::enumerator,                                                        \
     std::string_view(kSpellings[number].text.data(), kSpellings[number].size), \
     OperandFormat::format,                                                     \
     pops,                                                                      \
     pushes,                                                                    \
     flags,                                                                     \
     sentence},
#include "bytecode/opcodes.def"
#undef X
}};

constexpr bool numbers_are_dense() {
    for (int i = 0; i < kOpcodeCount; ++i) {
        if (static_cast<int>(kTable[static_cast<std::size_t>(i)].op) != i) return false;
    }
    return true;
}
static_assert(numbers_are_dense(), "opcodes.def: rows stand in the order of their numbers, without gaps");

constexpr bool targets_end_blocks() {
    return std::ranges::all_of(kTable, [](const OpcodeInfo& row) {
        return row.has_target() == (row.format == OperandFormat::kTarget) && (!row.has_target() || row.ends_block());
    });
}
static_assert(targets_end_blocks(), "opcodes.def: flag 2 and the format kTarget go together, and end a block");

constexpr std::array<std::string_view, kScalarOperatorCount> kScalarNames = {
    "add", "sub", "mul", "true_div", "floor_div", "mod", "pow", "min", "max",    "eq",       "ne",
    "lt",  "le",  "gt",  "ge",       "and",       "or",  "neg", "not", "to_int", "to_float", "to_bool",
};

}  // namespace

std::span<const OpcodeInfo> all_opcodes() { return kTable; }

bool is_opcode(std::uint8_t number) { return number < kOpcodeCount; }

const OpcodeInfo& opcode_info(Opcode op) {
    FLEXOR_CHECK(is_opcode(static_cast<std::uint8_t>(op)));
    return kTable[static_cast<std::size_t>(op)];
}

std::optional<Opcode> opcode_from_mnemonic(std::string_view mnemonic) {
    const auto row = std::ranges::find(kTable, mnemonic, &OpcodeInfo::mnemonic);
    if (row == kTable.end()) return std::nullopt;
    return row->op;
}

std::string_view scalar_operator_name(ScalarOperator op) { return kScalarNames[static_cast<std::size_t>(op)]; }

std::optional<ScalarOperator> scalar_operator_from_name(std::string_view name) {
    const auto found = std::ranges::find(kScalarNames, name);
    if (found == kScalarNames.end()) return std::nullopt;
    return static_cast<ScalarOperator>(found - kScalarNames.begin());
}

std::optional<StackEffect> stack_effect(const Module& module, const Function& function,
                                        const Instruction& instruction) {
    const OpcodeInfo& info = opcode_info(instruction.op);
    if (info.pops >= 0 && info.pushes >= 0) return StackEffect{info.pops, info.pushes};
    switch (instruction.op) {
        case Opcode::kRotate: return StackEffect{instruction.a, instruction.a};
        case Opcode::kCallOp: {
            const CallSite& site = function.sites[static_cast<std::size_t>(instruction.a)];
            const ops::OpDef* definition = site.definition != nullptr ? site.definition : ops::find_op(site.op);
            if (definition == nullptr) return std::nullopt;
            const int results = ops::result_count(*definition, site.attrs);
            if (results < 0) return std::nullopt;
            return StackEffect{site.operand_count, results};
        }
        case Opcode::kCall:
            return StackEffect{instruction.b, module.functions[static_cast<std::size_t>(instruction.a)].result_count};
        case Opcode::kCallForeign: return StackEffect{instruction.b, 1};
        case Opcode::kReturn: return StackEffect{instruction.a, 0};
        case Opcode::kBuildList: return StackEffect{instruction.a, 1};
        case Opcode::kUnpack: return StackEffect{1, instruction.a};
        case Opcode::kScalar: return StackEffect{is_unary(static_cast<ScalarOperator>(instruction.a)) ? 1 : 2, 1};
        case Opcode::kBuildDict: return StackEffect{2 * instruction.a, 1};
        case Opcode::kCallValue: return StackEffect{instruction.a + 1, 1};
        default: FLEXOR_UNREACHABLE();
    }
}

OperandBounds operand_bounds(const ops::OpDef& op) {
    OperandBounds bounds{0, static_cast<std::int32_t>(op.operands.value.size())};
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(op.operands.value.size()); ++i) {
        const ops::OperandKind kind = op.operands.value[static_cast<std::size_t>(i)].kind;
        if (kind != ops::OperandKind::kOptionalTensor) bounds.least = i + 1;
        if (kind == ops::OperandKind::kTensorList) bounds.most = std::numeric_limits<std::int32_t>::max();
    }
    return bounds;
}

}  // namespace flexor::bytecode
