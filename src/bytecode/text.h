#pragma once
// The text form of a Module, `.fasm`.
//
//   file      := line*                                     ; a comment runs from ';' to the end of the line
//   line      := directive | label | instruction           ; inside brackets a line may go on in the next one
//   directive := .func NAME(params) [-> COUNT | -> (names)] | .end
//              | .symbol NAME [in LO..HI]                  ; HI may be inf
//              | .weight NAME dtype[sizes] = zeros | ones | normal(SEED [, STD]) | uniform(SEED) | [numbers]
//                                          | hex "bytes" | file "x.npy"
//              | .const LITERAL                            ; appends to the constant pool
//              | .meta KEY VALUE | .hook NAME | .promotion torch|numpy
//              | .local NAME+ | .line N ["file"]           ; inside a function; .line 0: no position
//   params    := NAME [: type ['?']], ...                  ; '?': may be none
//   type      := dtype[dims] | dtype[...] | any[dims] | any[...] | int | float | bool | str | any
//   dims      := [FROZEN] dim, ...                         ; a dim '?' is a symbol of its own
//   dim       := integer expression over symbols: + - * // % ( ) min max mod trunc_div broadcast
//   label     := NAME ':'
//   instruction := [PC] MNEMONIC operands                  ; the number is a remark of the printer, not read
//   call site := CALL_OP op [count] [NAME=value, ...]      ; count defaults to the required operands
//   value     := dim | [dims] | float | true | false | none | all | "text" | dtype | $operand
//
// An upper-case op name is a CALL_OP (RELU, REDUCE_SUM axes=[-1]); BINARY_ADD, BINARY_SUB, BINARY_MUL, BINARY_DIV too.
// LOAD_TENSOR x reads a local or a weight, CONST_SCALAR is LOAD_CONST. STORE_TENSOR out stores a local and marks an
// output: a function without RETURN returns its outputs in the order of their first store.
// Names that are not identifiers are written as "text". Symbols that no .symbol declares range over 0..inf.
//
// Laws
//  T1  assemble(disassemble(m)) is the same program as m, for every verified m (weights up to weight_bytes).
//  T2  A refusal names file and line.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bytecode/module.h"
#include "support/expected.h"

namespace flexor::bytecode {

struct AssembleOptions {
    bool read_files = true;  // false: `= file "x.npy"` is refused (text that is not trusted)
    std::uint64_t weight_bytes = std::uint64_t{8} << 30;  // of all weights together: a short text may ask for much
};

// `file_name` stands in diagnostics and, where no .line says otherwise, in source positions; files that weights name
// are looked up beside it.
Expected<Module> assemble(std::string_view text, std::string file_name, AssembleOptions options = {});

struct DisassembleOptions {
    bool positions = true;              // .line directives
    bool pcs = false;                   // a number before each instruction
    std::uint64_t weight_bytes = 4096;  // larger weights are written as `= omitted`, which does not assemble
};
std::string disassemble(const Module& module, DisassembleOptions options = {});
// One instruction without its pc: "CALL_OP reduce_sum 1 axes=[-1], keepdim=false". Targets are spelt L<pc>.
std::string to_string(const Module& module, const Function& function, std::int32_t pc);
// "x: f32[B, FROZEN S]?", and the part behind the name.
std::string to_string(const Module& module, const ParamDecl& param);
std::string type_text(const Module& module, const ParamDecl& param);
// "f32[B, S]", "any[...]": no dtype is any, no dims are any rank.
std::string tensor_text(std::optional<DType> dtype, const std::optional<std::vector<std::string>>& dims);
std::string to_string(const Constant& constant);

}  // namespace flexor::bytecode
