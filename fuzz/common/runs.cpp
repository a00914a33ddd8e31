#include "common/runs.h"

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bytecode/public_module.h"
#include "bytecode/text.h"
#include "common/laws.h"
#include "driver/example.h"
#include "elements.h"
#include "flexor/session.h"
#include "flexor/stress.h"
#include "ops/op_def.h"
#include "support/diagnostic.h"
#include "support/hash.h"
#include "tensor/element.h"
#include "types/half.h"

namespace flexor::fuzz {
namespace {

constexpr std::int64_t kSizes[] = {0, 1, 2, 15, 16, 17, 33};
constexpr std::uint64_t kPoolBytes = std::uint64_t{64} << 20;
constexpr int kCalls = 3;
constexpr std::uint64_t kCases = 2;

// Random numbers that follow from the input alone.
class Choice {
public:
    explicit Choice(std::uint64_t seed) : state_(seed * 2 + 1) {}
    std::uint64_t below(std::uint64_t limit) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return (state_ >> 33) % limit;
    }

private:
    std::uint64_t state_;
};

// ------------------------------------------------------------------ arguments

void store_real(const Tensor& tensor, std::int64_t index, double value) {
    switch (tensor.dtype()) {
        case DType::kF16:
            tensor.data_as<std::uint16_t>()[index] = types::f16_from_f32(static_cast<float>(value));
            break;
        case DType::kBF16:
            tensor.data_as<std::uint16_t>()[index] = types::bf16_from_f32(static_cast<float>(value));
            break;
        case DType::kF32: tensor.data_as<float>()[index] = static_cast<float>(value); break;
        case DType::kF64: tensor.data_as<double>()[index] = value; break;
        default: break;
    }
}

// Whole numbers, halves, and now and then what is special: programs stay exact for longer.
void refill(const Tensor& tensor, Choice& choose) {
    if (!is_floating(tensor.dtype())) return;
    const bool special = choose.below(4) == 0;
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
        store_real(tensor, i, static_cast<double>(choose.below(17)) / 2 - 4);
    if (!special || tensor.numel() == 0) return;
    constexpr double kSpecial[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(), -0.0};
    store_real(tensor, static_cast<std::int64_t>(choose.below(static_cast<std::uint64_t>(tensor.numel()))),
               kSpecial[choose.below(4)]);
}

// The same elements in other memory: axes reversed, every second place, one place off, or along an axis of stride 0.
Tensor laid_out(const Tensor& tensor, std::uint64_t how) {
    const auto rank = static_cast<std::size_t>(tensor.rank());
    if (rank == 0 || tensor.numel() == 0 || how < 3) return tensor;
    const std::vector<std::int64_t> sizes(tensor.sizes().begin(), tensor.sizes().end());
    std::vector<std::int64_t> strides(rank);
    std::int64_t step = how == 4 ? 2 : 1;
    for (std::size_t i = 0; i < rank; ++i) {
        const std::size_t axis = how == 3 ? i : rank - 1 - i;
        strides[axis] = step;
        step *= sizes[axis];
    }
    if (how == 6) strides[0] = 0;
    const std::int64_t offset = how == 5 ? 1 : 0;
    const Tensor memory = Tensor::empty(tensor.dtype(), {step + 1});
    const std::size_t bytes = dtype_size(tensor.dtype());
    std::fill_n(static_cast<std::uint8_t*>(memory.data()), static_cast<std::size_t>(memory.numel()) * bytes, 1);
    const Tensor view =
        memory.view(static_cast<std::uint8_t*>(memory.data()) + offset * static_cast<std::int64_t>(bytes),
                    tensor.dtype(), sizes, strides);
    std::vector<std::int64_t> at(rank, 0);
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
        std::int64_t place = 0;
        for (std::size_t d = 0; d < rank; ++d) place += at[d] * strides[d];
        std::copy_n(static_cast<const std::uint8_t*>(tensor.data()) + static_cast<std::size_t>(i) * bytes, bytes,
                    static_cast<std::uint8_t*>(view.data()) + static_cast<std::size_t>(place) * bytes);
        for (std::size_t d = rank; d-- > 0;) {
            if (++at[d] < sizes[d]) break;
            at[d] = 0;
        }
    }
    return view;
}

constexpr std::int64_t kMostElements = 1 << 18;

// The arguments of calls of "main": the same, each time in memory of their own, for the same number.
class Arguments {
public:
    // Nothing if they would be too large.
    static std::optional<Arguments> of(const bytecode::Module& module, std::uint64_t seed) {
        Arguments out(module, seed);
        Choice choose(seed);
        driver::FixedSizes fixed;
        for (std::size_t i = 0; i < module.symbols.size(); ++i) {
            const std::int64_t size = kSizes[choose.below(std::size(kSizes))];
            if (size >= module.symbols[i].range.lo && size <= module.symbols[i].range.hi && choose.below(4) != 0)
                fixed[static_cast<types::SymbolId>(i)] = size;
        }
        out.sizes_ = driver::example_sizes(module, out.main_, fixed);
        out.choose_ = choose;
        for (const bytecode::ParamDecl& param : module.functions[static_cast<std::size_t>(out.main_)].params) {
            double elements = 1;
            for (const types::Dim& dim : param.dims) {
                const types::Evaluated size = dim.evaluate(out.sizes_);
                elements *= size.status == types::EvalStatus::kOk ? static_cast<double>(size.value) : 1;
            }
            if (elements > static_cast<double>(kMostElements)) return std::nullopt;
        }
        if (!driver::make_arguments(module, out.main_, out.sizes_)) return std::nullopt;
        return out;
    }

    std::vector<Value> make() const {
        Choice choose = choose_;
        std::vector<Value> made = *driver::make_arguments(*module_, main_, sizes_);
        for (Value& value : made) {
            if (!value.is_tensor()) continue;
            if (choose.below(4) != 0) refill(value.tensor(), choose);
            value = laid_out(value.tensor(), choose.below(8));
        }
        return made;
    }

private:
    Arguments(const bytecode::Module& module, std::uint64_t seed)
        : module_(&module), main_(module.find_function("main")), choose_(seed) {}

    const bytecode::Module* module_;
    std::int32_t main_;
    std::vector<std::int64_t> sizes_;
    Choice choose_;
};

// ------------------------------------------------------------------ one run

struct Outcome {
    std::optional<Diagnostic> raised;
    std::vector<Value> values;  // results, then arguments after the call
};

bool is_limit(const Outcome& outcome) {
    if (!outcome.raised) return false;
    const DiagnosticId id = outcome.raised->id();
    return outcome.raised->kind() == DiagnosticKind::kLimit || id == DiagnosticId::kInterrupted;
}

class Budget {
public:
    CallOptions options() {
        end_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
        return {.allocator = {},
                .should_stop =
                    [](void* self) { return std::chrono::steady_clock::now() > static_cast<Budget*>(self)->end_; },
                .stop_context = this,
                .device = {}};
    }

private:
    std::chrono::steady_clock::time_point end_;
};

void bind_hooks(Session& session, const bytecode::Module& module) {
    for (const std::string& hook : module.hooks) {
        session.bind(hook, [](std::span<const Value> given) -> Expected<Value> {
            return given.empty() ? Value() : given.front();
        });
    }
}

Outcome run(Session& session, const bytecode::ModuleRef& module, std::vector<Value> arguments) {
    Budget budget;
    const CallOptions options = budget.options();
    Expected<std::vector<Value>> results = session.run(bytecode::public_module(module), arguments, options);
    Outcome outcome;
    if (!results) {
        if (results.error().kind() == DiagnosticKind::kBug)
            broken("no program finds a bug of ours",
                   results.error().to_string() + "\n" + bytecode::disassemble(*module));
        outcome.raised = std::move(results).error();
        return outcome;
    }
    outcome.values = *std::move(results);
    outcome.values.insert(outcome.values.end(), arguments.begin(), arguments.end());
    return outcome;
}

// ------------------------------------------------------------------ comparison

// Ops whose every engine computes the reference's roundings, or none. What is not named here may differ in the last
// places.
const std::set<std::string_view>& exact_ops() {
    static const std::set<std::string_view> kOps = {
        "neg",          "abs",          "sign",         "sqrt",       "square",       "relu",       "relu6",
        "floor",        "ceil",         "round",        "trunc",      "isnan",        "isinf",      "isfinite",
        "logical_not",  "bitwise_not",  "cast",         "add",        "sub",          "mul",        "div",
        "floor_divide", "remainder",    "fmod",         "maximum",    "minimum",      "fmax",       "fmin",
        "eq",           "ne",           "lt",           "le",         "gt",           "ge",         "logical_and",
        "logical_or",   "logical_xor",  "bitwise_and",  "bitwise_or", "bitwise_xor",  "shift_left", "shift_right",
        "where",        "clamp",        "copysign",     "gcd",        "lcm",          "reduce_sum", "reduce_mean",
        "reduce_max",   "reduce_min",   "reduce_prod",  "reduce_any", "reduce_all",   "argmax",     "argmin",
        "reshape",      "view",         "flatten",      "contiguous", "permute",      "transpose",  "expand",
        "squeeze",      "unsqueeze",    "slice",        "select",     "diagonal",     "narrow",     "split",
        "clone",        "concat",       "stack",        "pad",        "flip",         "roll",       "repeat",
        "matmul",       "batch_matmul", "linear",       "addmm",      "outer",        "gather",     "index_select",
        "take",         "embedding",    "tril",         "triu",       "masked_fill",  "cumsum",     "cumprod",
        "cummax",       "cummin",       "sort",         "argsort",    "topk",         "nonzero",    "mask_select",
        "scatter",      "index_put",    "searchsorted", "bincount",   "repeat_index", "unique",     "full",
        "zeros",        "ones",         "full_like",    "zeros_like", "ones_like",    "arange",     "eye",
        "assign",       "fill",
    };
    return kOps;
}

const std::set<std::string_view>& smooth_ops() {
    static const std::set<std::string_view> kOps = {
        "neg",         "abs",     "exp",          "log1p",        "sin",       "cos",       "tan",       "tanh",
        "erf",         "sigmoid", "relu",         "silu",         "gelu",      "softplus",  "elu",       "add",
        "sub",         "mul",     "maximum",      "minimum",      "where",     "clamp",     "lerp",      "addcmul",
        "atan",        "asinh",   "reduce_sum",   "reduce_mean",  "logsumexp", "reshape",   "view",      "flatten",
        "contiguous",  "permute", "transpose",    "expand",       "squeeze",   "unsqueeze", "slice",     "select",
        "diagonal",    "narrow",  "split",        "clone",        "concat",    "stack",     "pad",       "flip",
        "roll",        "repeat",  "matmul",       "batch_matmul", "linear",    "addmm",     "outer",     "softmax",
        "log_softmax", "sdpa",    "gather",       "index_select", "take",      "embedding", "tril",      "triu",
        "masked_fill", "cumsum",  "logcumsumexp", "full",         "zeros",     "ones",      "full_like", "zeros_like",
        "ones_like",   "eye",     "assign",       "fill",
    };
    return kOps;
}

// Exact ops that add many: in which order, and in which precision, is the engine's own matter.
const std::set<std::string_view>& accumulating_ops() {
    static const std::set<std::string_view> kOps = {"matmul",      "batch_matmul", "linear", "addmm",  "reduce_sum",
                                                    "reduce_mean", "reduce_prod",  "cumsum", "cumprod"};
    return kOps;
}

struct Character {
    bool exact = true;         // roundings are those of the reference
    bool accumulates = false;  // but for sums
    bool smooth = true;        // small errors stay small
    bool chance = false;       // results are drawn
};

Character character_of(const bytecode::Module& module) {
    Character out;
    for (const bytecode::Function& function : module.functions) {
        for (const bytecode::CallSite& site : function.sites) {
            std::string_view name = site.op;
            if (name.ends_with('_')) name.remove_suffix(1);  // in place
            out.exact = out.exact && exact_ops().contains(name);
            out.accumulates = out.accumulates || accumulating_ops().contains(name);
            out.smooth = out.smooth && smooth_ops().contains(name);
            out.chance =
                out.chance || site.definition->effects.value == ops::Effects::kRandom || site.op.starts_with("empty");
        }
        for (const bytecode::Instruction& instruction : function.code)
            out.smooth = out.smooth && instruction.op != bytecode::Opcode::kItem;
    }
    return out;
}

double tolerance(DType dtype) {
    switch (dtype) {
        case DType::kF64: return 1e-9;
        case DType::kF32: return 1e-3;
        case DType::kF16: return 1e-2;
        case DType::kBF16: return 6e-2;
        default: return 0;
    }
}

bool is_half(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

class Comparison {
public:
    Comparison(std::string what, Character character) : what_(std::move(what)), character_(character) {}

    // `up` and `down`: the interpreter's with rounding up and down.
    void same(const Value& found, const Value& wanted, const Value& up, const Value& down) {
        if (found.kind() != wanted.kind()) fail("kind " + found.describe() + ", not " + wanted.describe());
        if (up.kind() != wanted.kind() || down.kind() != wanted.kind()) return;
        if (found.is_list()) {
            if (up.elements().size() != wanted.elements().size()) return;
            if (down.elements().size() != wanted.elements().size()) return;
            if (found.elements().size() != wanted.elements().size()) {
                if (!steady_) return;
                fail("length " + found.describe() + ", not " + wanted.describe());
            }
            for (std::size_t i = 0; i < found.elements().size(); ++i)
                same(found.elements()[i], wanted.elements()[i], up.elements()[i], down.elements()[i]);
            return;
        }
        if (found.is_tensor()) return same_tensor(found.tensor(), wanted.tensor(), up.tensor(), down.tensor());
        if (found.is_float()) return same_real(found.real(), wanted.real(), up.real(), down.real(), DType::kF64, 1);
        if (found.is_scalar() && up.integer() == down.integer() && found.integer() != wanted.integer() && steady_)
            fail(found.describe() + ", not " + wanted.describe());
    }

    // Whether rounding decides nothing that the program asks for; false: values are not compared.
    void set_steady(bool steady) { steady_ = steady; }

private:
    [[noreturn]] void fail(const std::string& details) { broken("engines agree", what_ + ": " + details); }

    void same_tensor(const Tensor& found, const Tensor& wanted, const Tensor& up, const Tensor& down) {
        const std::string a = Value(found).describe(), b = Value(wanted).describe();
        if (Value(up).describe() != b || Value(down).describe() != b) return;
        if (a != b) {
            if (!steady_ && found.dtype() == wanted.dtype() && found.rank() == wanted.rank()) return;
            fail(a + ", not " + b);
        }
        if (!steady_) return;
        const std::vector<double> x = elements(found), y = elements(wanted), u = elements(up), d = elements(down);
        double scale = 1;
        for (const double value : y) {
            if (std::isfinite(value)) scale = std::max(scale, std::fabs(value));
        }
        for (std::size_t i = 0; i < x.size(); ++i) same_real(x[i], y[i], u[i], d[i], wanted.dtype(), scale);
    }

    void same_real(double found, double wanted, double up, double down, DType dtype, double scale) {
        if (!steady_ || found == wanted || (std::isnan(found) && std::isnan(wanted))) return;
        if (std::isnan(up) != std::isnan(wanted) || std::isnan(down) != std::isnan(wanted)) return;
        const bool exact = character_.exact && !character_.accumulates && up == down && up == wanted && !is_half(dtype);
        constexpr double kFactor = 256;
        const double allowed = exact ? 0 : kFactor * std::fabs(up - down) + tolerance(dtype) * scale;
        // What overflows for one order of a sum need not for another.
        constexpr double kLarge = 1e30;
        if (!exact && (!std::isfinite(wanted) || !std::isfinite(found) || std::fabs(wanted) > kLarge)) return;
        if (!(std::fabs(found - wanted) <= allowed))
            fail(std::to_string(found) + ", not " + std::to_string(wanted) + " (rounded up " + std::to_string(up) +
                 ", down " + std::to_string(down) + ")");
    }

    std::string what_;
    Character character_;
    bool steady_ = true;
};

struct Rounding {
    explicit Rounding(int mode) { std::fesetround(mode); }
    ~Rounding() { std::fesetround(FE_TONEAREST); }
};

// What the interpreter makes of one call's arguments, with every rounding.
struct Case {
    Arguments arguments;
    Outcome wanted, up, down;
};

// Nothing where a limit decides.
std::optional<Case> case_of(Session& oracle, const bytecode::ModuleRef& module, std::uint64_t seed) {
    const std::optional<Arguments> arguments = Arguments::of(*module, seed);
    if (!arguments) return std::nullopt;
    Case out = {*arguments, run(oracle, module, arguments->make()), {}, {}};
    if (is_limit(out.wanted)) return std::nullopt;
    {
        const Rounding mode(FE_UPWARD);
        out.up = run(oracle, module, arguments->make());
    }
    {
        const Rounding mode(FE_DOWNWARD);
        out.down = run(oracle, module, arguments->make());
    }
    if (is_limit(out.up) || is_limit(out.down)) return std::nullopt;
    return out;
}

struct Engine {
    std::string name;
    SessionOptions options;
    StressOptions stress;
};

std::vector<Engine> engines(Choice& choose) {
    std::vector<Engine> out;
    const SessionOptions common = {.threads = 1, .hard_limit = kPoolBytes, .max_call_depth = 50};
    const StressOptions ways[] = {{}, {.fuse = false}, {.fail_guards = true}, {.end_at_once = true}, {}};
    const std::uint64_t way = choose.below(std::size(ways));
    Engine engine = {"way " + std::to_string(way), common, ways[way]};
    engine.stress.poison = true;
    engine.options.exact_only = way == 4;
    engine.stress.evaluate_kernels = !Session::has_code_generator() || choose.below(8) != 0;
    engine.name += engine.stress.evaluate_kernels ? ", evaluator" : ", generated code";
    out.push_back(engine);
    return out;
}

}  // namespace

void run_interpreted(const bytecode::ModuleRef& module) {
    if (weight_bytes(*module) > kMostWeightBytes) return;
    Session session({.compile = false, .threads = 1, .hard_limit = kPoolBytes, .max_call_depth = 50}, {.poison = true});
    bind_hooks(session, *module);
    if (const std::optional<Arguments> arguments = Arguments::of(*module, 1))
        (void)run(session, module, arguments->make());
}

void compare_engines(const bytecode::ModuleRef& module, std::string_view text) {
    if (weight_bytes(*module) > kMostWeightBytes) return;
    const Character character = character_of(*module);
    if (character.chance) return;
    std::uint64_t seed = 0;
    for (const char c : text) seed = seed * 1099511628211u + static_cast<std::uint8_t>(c);
    Choice choose(seed);
    Session oracle({.compile = false, .threads = 1, .hard_limit = kPoolBytes, .max_call_depth = 50}, {.poison = true});
    bind_hooks(oracle, *module);
    // Other arguments in the second call, the first ones again in the third.
    std::vector<Case> cases;
    for (std::uint64_t i = 0; i < kCases; ++i) {
        std::optional<Case> next = case_of(oracle, module, seed + i);
        if (!next) break;
        cases.push_back(*std::move(next));
    }
    if (cases.empty()) return;
    for (const Engine& engine : engines(choose)) {
        Session session(engine.options, engine.stress);
        bind_hooks(session, *module);
        for (int call = 0; call < kCalls; ++call) {
            const auto& [arguments, wanted, up, down] = cases[static_cast<std::size_t>(call) % cases.size()];
            const Outcome found = run(session, module, arguments.make());
            for (const Event& event : session.events()) {
                // The interpreter serves what is not compiled, so the call shows nothing.
                if (event.kind == "compile_failed" && event.text.find("E09") != std::string::npos)
                    broken("no compilation finds a bug of ours", event.text + "\n" + bytecode::disassemble(*module));
            }
            if (is_limit(found)) return;
            const std::string what = engine.name + ", call " + std::to_string(call);
            const auto code = [](const Outcome& outcome) {
                return outcome.raised ? outcome.raised->code() : std::string("nothing");
            };
            if (code(up) != code(wanted) || code(down) != code(wanted)) continue;
            const bool steady = character.exact || character.smooth;
            if (code(found) != code(wanted)) {
                if (!steady) continue;
                broken("engines raise alike", what + ": " + code(found) + ", not " + code(wanted) + "\n" +
                                                  (found.raised ? found.raised->to_string() : "") +
                                                  (wanted.raised ? wanted.raised->to_string() : ""));
            }
            if (found.raised) continue;
            if (found.values.size() != wanted.values.size()) broken("engines agree", what + ": number of results");
            Comparison comparison(what, character);
            comparison.set_steady(steady);
            for (std::size_t i = 0; i < found.values.size(); ++i)
                comparison.same(found.values[i], wanted.values[i], up.values[i], down.values[i]);
        }
    }
}

}  // namespace flexor::fuzz
