#pragma once
// Ops of one's own: registered once in the process, then used as those of the registry are, from .fasm and .flx, the
// Builder and Python, in regions that are compiled.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flexor/error.h"
#include "flexor/export.h"
#include "flexor/tensor.h"

namespace flexor {

enum class OpAttributeKind : std::uint8_t { kBool, kInt, kFloat, kString };

struct OpAttribute {
    std::string name;
    OpAttributeKind kind = OpAttributeKind::kInt;
    std::string fallback;  // text of the default: "true", "3", "0.5", a string as it is; empty: required
};

// One execution of an op. Asking for an attribute that the op does not declare, or as another kind, aborts.
class FLEXOR_API OpCall {
public:
    std::span<const Tensor> inputs() const { return inputs_; }    // row-major; an optional one may be undefined
    std::span<const Tensor> outputs() const { return outputs_; }  // row-major and not yet written
    bool flag(std::string_view attribute) const;
    std::int64_t integer(std::string_view attribute) const;
    double real(std::string_view attribute) const;
    std::string_view text(std::string_view attribute) const;
    // Whether the run is to stop; a kernel that takes long asks now and then, and returns early.
    bool stop_requested() const;
    // Runs body(context, begin, end) for the chunks of 0..count, `grain` long, on the threads of the library.
    void parallel(void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context, std::int64_t count,
                  std::int64_t grain) const;

    struct Impl;
    OpCall(const Impl& impl, std::span<const Tensor> inputs, std::span<const Tensor> outputs)
        : impl_(impl), inputs_(inputs), outputs_(outputs) {}

private:
    const Impl& impl_;
    std::span<const Tensor> inputs_, outputs_;
};

struct OpDef {
    std::string name;  // letters, digits and '_'
    std::string summary;
    // Types of operands and results as parameters of the text form have them:
    //     "x: f32[B, N], scale: f32[N]? -> f32[B, N], i64[B]"
    // A dim is a number, a symbol that the operands bind where it first stands alone, or an expression over such symbols
    // and, in results, integer attributes. Operands of another dtype, rank or size are refused before `run` is called.
    std::string signature;
    std::vector<OpAttribute> attributes;
    // Fills the outputs. Called without any lock held, by any number of threads at once; it neither writes to inputs nor
    // keeps tensors. A Diagnostic that it returns ends the run.
    std::function<Expected<void>(const OpCall& call)> run;
};

// From any library of the process; the op stays until the process ends. DuplicateName (E0111) for a name that is taken,
// E8xx for a signature that cannot be read, BadOption (E0507) for anything else that makes no sense.
FLEXOR_API Expected<void> register_op(OpDef op);

}  // namespace flexor
