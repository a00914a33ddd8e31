#pragma once
// A Module: a verified, immutable program of stack bytecode with its weights. Copies share it; any number of threads
// and sessions may use one.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flexor/error.h"
#include "flexor/export.h"
#include "flexor/tensor.h"

namespace flexor {

// One size of an argument or result.
struct DimInfo {
    std::string text;     // "S", "2*S + 1", "768"; "?" where nothing is known before the run
    std::int64_t lo = 0;  // the size lies within lo..hi
    std::int64_t hi = 0;  // kUnboundedDim: no upper end
    bool frozen = false;  // one compilation per value
    bool is_constant() const { return lo == hi; }
};
inline constexpr std::int64_t kUnboundedDim = std::int64_t{1} << 62;

// An argument or a result of a function.
struct FLEXOR_API ArgumentInfo {
    std::string name;
    std::string kind;               // "tensor", "int", "float", "bool", "str", "any"
    std::optional<DType> dtype;     // of a tensor; nothing: any
    bool any_rank = false;          // of a tensor: dims are not declared
    std::vector<DimInfo> dims;      // of a tensor
    bool optional = false;          // may be none
    std::string to_string() const;  // "x: f32[B, S in 1..4096, 768]"
};

struct SymbolInfo {
    std::string name;
    std::int64_t lo = 0;
    std::int64_t hi = kUnboundedDim;
};

struct WeightInfo {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> sizes;
    std::uint64_t bytes = 0;
};

struct FunctionInfo {
    std::string name;
    std::size_t instructions = 0;
    std::int32_t results = 0;
};

struct DisassembleOptions {
    bool positions = true;              // .line directives
    bool pcs = false;                   // a number before each instruction
    std::uint64_t weight_bytes = 4096;  // larger weights are written as `= omitted`, which does not assemble
};

class FLEXOR_API Module {
public:
    // A .flx file (its weights are mapped, not copied) or a .fasm text, told apart by the contents.
    static Expected<Module> load(const std::string& path);
    // `name` stands in messages and source positions. Without read_files a weight may not name a .npy file.
    static Expected<Module> from_text(std::string_view text, std::string name = "<text>", bool read_files = true);
    static Expected<Module> from_bytes(std::span<const std::byte> bytes);  // the contents of a .flx file, copied

    // A name that ends in .fasm gets the text form, every other the binary one. The file is replaced in one step.
    Expected<void> save(const std::string& path) const;
    std::vector<std::byte> to_bytes() const;
    std::string disassemble(DisassembleOptions options = {}) const;

    // Of a function; nothing if the Module has none of this name.
    std::vector<ArgumentInfo> inputs(std::string_view function = "main") const;
    std::vector<ArgumentInfo> outputs(std::string_view function = "main") const;
    std::vector<FunctionInfo> functions() const;
    std::vector<SymbolInfo> symbols() const;
    const std::map<std::string, std::string>& metadata() const;
    std::vector<WeightInfo> weights() const;
    Tensor weight(std::string_view name) const;     // read-only memory of the Module; undefined if there is none
    const std::vector<std::string>& hooks() const;  // foreign functions that the host must bind
    bool writes_arguments() const;                  // some function holds an op that writes to an operand
    std::uint64_t id() const;                       // unique in the process

    struct Impl;
    explicit Module(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
    const Impl& impl() const { return *impl_; }

private:
    std::shared_ptr<const Impl> impl_;
};

}  // namespace flexor
