#pragma once
// What is known of the values of a program without running it: types over the symbols of the Module. Unknown is always
// a right answer; a known type holds on every run that reaches the value without an error.
#include <optional>
#include <vector>

#include "bytecode/module.h"
#include "support/expected.h"

namespace flexor::bytecode {

struct StaticType {
    enum class Kind : std::uint8_t {
        kUnknown,
        kTensor,
        kNone,
        kBool,
        kInt,
        kFloat,
        kString,
        kList,
        kDict,
        kFunction,
        kForeign,
    };
    Kind kind = Kind::kUnknown;
    types::TensorType tensor{};            // kTensor
    std::optional<types::Dim> value = {};  // kInt: the integer, where it is an expression over symbols
    std::vector<StaticType> items = {};    // kList
    bool read = false;                     // kFloat: made from what tensors hold

    bool is_scalar() const { return kind == Kind::kBool || kind == Kind::kInt || kind == Kind::kFloat; }
    friend bool operator==(const StaticType&, const StaticType&) = default;

    static StaticType of(Kind kind) { return {.kind = kind}; }
    static StaticType of(types::TensorType type) { return {.kind = Kind::kTensor, .tensor = std::move(type)}; }
    static StaticType integer(types::Dim value) { return {.kind = Kind::kInt, .value = std::move(value)}; }
};

// "f32[B, S]", "int S + 1", "list of 2", "?"
std::string to_string(const StaticType& type, const std::function<std::string(types::SymbolId)>& name);

StaticType static_type(const ParamDecl& param);
StaticType static_type(const Constant& constant);
StaticType static_type(const Tensor& tensor);

// An environment in which the symbols of the Module have their own ids. Sizes made by data get ids from
// module.symbols.size() on.
types::ShapeEnv module_env(const Module& module);

// Operands of a site as the rules of its op see them: lists flattened, absent optional operands filled in, attributes
// from the stack resolved: integers that only the run knows are new symbols of `env`. Nothing if something needed is
// unknown.
struct SiteArguments {
    std::vector<ops::ArgType> args;
    types::Attrs attrs;
};
std::optional<SiteArguments> site_arguments(const ops::OpDef& op, const CallSite& site,
                                            std::span<const StaticType> operands, types::ShapeEnv& env);

// Result types of a site with checked attributes. Refuses only what its op refuses on every run; what it may refuse is
// added to `requirements`.
Expected<std::vector<StaticType>> infer_site(const ops::OpDef& op, const CallSite& site,
                                             std::span<const StaticType> operands, types::ShapeEnv& env,
                                             types::Promotion promotion,
                                             std::vector<ops::Requirement>* requirements = nullptr);

StaticType infer_scalar(ScalarOperator op, std::span<const StaticType> operands);

// Of a verified Module: the result types of a function called with its declared parameters.
std::vector<StaticType> result_types(const Module& module, const Function& function, types::ShapeEnv& env);

// What ops on the way of a call with every argument given, optional ones too, require of the symbols of the Module, as
// far as types are known without running it.
std::vector<ops::Requirement> required_of_symbols(const Module& module, const Function& function);

// A FROZEN, in the function or in what it calls, on a size that depends on what tensors hold. Call sites must be
// checked.
struct FrozenOnData {
    std::int32_t function;  // index
    std::int32_t pc;
};
std::optional<FrozenOnData> frozen_on_data(const Module& module, const Function& function);

}  // namespace flexor::bytecode
