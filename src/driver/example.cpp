#include "driver/example.h"

#include <algorithm>
#include <optional>

#include "bytecode/type_flow.h"
#include "ops/relation.h"
#include "support/diagnostic.h"
#include "types/half.h"

namespace flexor::driver {

namespace {

using Sizes = std::vector<std::int64_t>;
using types::Dim;

// A size that a symbol may have: 8 or a little more, or what its range has nearest to it.
std::int64_t pick(const types::Range& range, std::size_t index) {
    const std::int64_t wanted = 8 + static_cast<std::int64_t>(index % 5);
    return std::clamp(wanted, range.lo, std::max(range.lo, range.hi));
}

// Chooses sizes: what must be equal is made equal first, then single sizes are tried for what is still not met.
class SizeSearch {
public:
    SizeSearch(const bytecode::Module& module, std::int32_t function, const FixedSizes& fixed)
        : module_(module),
          requirements_(bytecode::required_of_symbols(module, module.functions[static_cast<std::size_t>(function)])),
          env_(bytecode::module_env(module)) {
        for (const auto& [symbol, size] : fixed) env_.assume_eq(Dim::symbol(symbol), size);
        for (const ops::Requirement& r : requirements_) ops::assume(env_, r.relation, r.a, r.b);
        for (std::size_t i = 0; i < module.symbols.size(); ++i) {
            const Dim symbol = Dim::symbol(static_cast<types::SymbolId>(i));
            const auto given = fixed.find(static_cast<types::SymbolId>(i));
            solved_.push_back(given != fixed.end() ? Dim(given->second) : env_.simplify(symbol));
            if (solved_.back() == symbol) free_.push_back(i);
        }
    }

    Sizes run() {
        Sizes sizes(module_.symbols.size(), 0);
        for (const std::size_t i : free_) {
            const types::Range range = env_.range(Dim::symbol(static_cast<types::SymbolId>(i)));
            sizes[i] = pick(range, i);
        }
        settle(sizes);
        while (const std::size_t missed = misses(sizes)) {
            if (!improve(sizes, missed)) break;
        }
        return sizes;
    }

private:
    // Fills in the sizes that follow from the free ones.
    void settle(Sizes& sizes) const {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const types::Evaluated size = solved_[i].evaluate(sizes);
            const types::Range& declared = module_.symbols[i].range;
            sizes[i] = size.status == types::EvalStatus::kOk ? size.value : pick(declared, i);
        }
    }

    std::size_t misses(const Sizes& sizes) const {
        std::size_t count = 0;
        for (const ops::Requirement& r : requirements_) {
            const types::Evaluated a = r.a.evaluate(sizes), b = r.b.evaluate(sizes);
            const bool known = a.status == types::EvalStatus::kOk && b.status == types::EvalStatus::kOk;
            const bool one = r.or_one && (a.value == 1 || b.value == 1);
            if (!known || !(one || ops::holds(r.relation, a.value, b.value))) ++count;
        }
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const types::Range& declared = module_.symbols[i].range;
            if (sizes[i] < declared.lo || sizes[i] > declared.hi) ++count;
        }
        return count;
    }

    // Sizes to try: small ones, and what divides a number of elements that is asked for.
    std::vector<std::int64_t> candidates() const {
        constexpr std::int64_t kSmall = 16, kMostElements = std::int64_t{1} << 24, kMostDivisors = 96;
        std::vector<std::int64_t> out;
        for (std::int64_t size = 1; size <= kSmall; ++size) out.push_back(size);
        for (const ops::Requirement& r : requirements_) {
            const Dim& wanted = r.a.is_constant() ? r.a : r.b;
            if (!wanted.is_constant() || wanted.constant() > kMostElements) continue;
            for (std::int64_t d = 1; d * d <= wanted.constant() && std::ssize(out) < kMostDivisors; ++d) {
                if (wanted.constant() % d != 0) continue;
                out.push_back(d);
                out.push_back(wanted.constant() / d);
            }
        }
        std::ranges::sort(out);
        out.erase(std::unique(out.begin(), out.end()), out.end());
        return out;
    }

    // Changes the one or two free sizes that help most; false if none do.
    bool improve(Sizes& sizes, std::size_t missed) const {
        const std::vector<std::int64_t> values = candidates();
        Sizes best;
        const auto attempt = [&](Sizes tried) {
            settle(tried);
            const std::size_t left = misses(tried);
            if (left >= missed) return;
            missed = left;
            best = std::move(tried);
        };
        const auto with = [](Sizes changed, std::size_t symbol, std::int64_t value) {
            changed[symbol] = value;
            return changed;
        };
        for (const std::size_t i : free_) {
            for (const std::int64_t value : values) attempt(with(sizes, i, value));
        }
        constexpr std::size_t kMostForPairs = 8;
        if (best.empty() && free_.size() <= kMostForPairs) {
            for (const std::size_t i : free_) {
                for (const std::size_t j : free_) {
                    if (i >= j) continue;
                    for (const std::int64_t value : values) {
                        for (const std::int64_t other : values) attempt(with(with(sizes, i, value), j, other));
                    }
                }
            }
        }
        if (best.empty()) return false;
        sizes = std::move(best);
        return true;
    }

    const bytecode::Module& module_;
    std::vector<ops::Requirement> requirements_;
    types::ShapeEnv env_;
    std::vector<Dim> solved_;  // each symbol over the free ones
    std::vector<std::size_t> free_;
};

void fill(const Tensor& tensor) {
    const std::int64_t count = tensor.numel();
    for (std::int64_t i = 0; i < count; ++i) {
        const double real = static_cast<double>((i * 7919 + 13) % 2003) / 1001.5 - 1.0;
        const std::int64_t integer = (i * 7919 + 13) % 8;
        switch (tensor.dtype()) {
            case DType::kBool: tensor.data_as<std::uint8_t>()[i] = (integer & 1) != 0; break;
            case DType::kU8: tensor.data_as<std::uint8_t>()[i] = static_cast<std::uint8_t>(integer); break;
            case DType::kI8: tensor.data_as<std::int8_t>()[i] = static_cast<std::int8_t>(integer); break;
            case DType::kI32: tensor.data_as<std::int32_t>()[i] = static_cast<std::int32_t>(integer); break;
            case DType::kI64: tensor.data_as<std::int64_t>()[i] = integer; break;
            case DType::kF16: tensor.data_as<std::uint16_t>()[i] = types::f16_from_f32(static_cast<float>(real)); break;
            case DType::kBF16:
                tensor.data_as<std::uint16_t>()[i] = types::bf16_from_f32(static_cast<float>(real));
                break;
            case DType::kF32: tensor.data_as<float>()[i] = static_cast<float>(real); break;
            case DType::kF64: tensor.data_as<double>()[i] = real; break;
        }
    }
}

}  // namespace

std::vector<std::int64_t> example_sizes(const bytecode::Module& module, std::int32_t function,
                                        const FixedSizes& fixed) {
    return SizeSearch(module, function, fixed).run();
}

Expected<std::vector<Value>> make_arguments(const bytecode::Module& module, std::int32_t function,
                                            const std::vector<std::int64_t>& symbols) {
    const bytecode::Function& f = module.functions[static_cast<std::size_t>(function)];
    std::vector<Value> out;
    for (const bytecode::ParamDecl& param : f.params) {
        switch (param.kind) {
            case bytecode::ParamKind::kInt: out.emplace_back(std::int64_t{1}); continue;
            case bytecode::ParamKind::kFloat: out.emplace_back(1.0); continue;
            case bytecode::ParamKind::kBool: out.emplace_back(true); continue;
            case bytecode::ParamKind::kString: out.emplace_back(""); continue;
            case bytecode::ParamKind::kTensor: break;
            case bytecode::ParamKind::kAny:
                return Diagnostic(DiagnosticId::kMissingArgument)
                    .function(f.name)
                    .operand(param.name)
                    .expected("a declared type, or arguments given by the caller");
        }
        if (param.any_rank) {
            return Diagnostic(DiagnosticId::kMissingArgument)
                .function(f.name)
                .operand(param.name)
                .expected("a declared rank, or arguments given by the caller");
        }
        std::vector<std::int64_t> sizes;
        for (const types::Dim& dim : param.dims) {
            const types::Evaluated size = dim.evaluate(symbols);
            if (size.status != types::EvalStatus::kOk || size.value < 0) {
                return Diagnostic(DiagnosticId::kOutOfDeclaredRange)
                    .function(f.name)
                    .operand(param.name)
                    .expected("sizes that the declared ranges allow; give arguments instead");
            }
            sizes.push_back(size.value);
        }
        Tensor tensor = Tensor::empty(param.any_dtype ? DType::kF32 : param.dtype, sizes);
        if (!tensor.defined()) return Diagnostic(DiagnosticId::kOutOfMemory).operand(param.name);
        fill(tensor);
        out.emplace_back(std::move(tensor));
    }
    return out;
}

}  // namespace flexor::driver
