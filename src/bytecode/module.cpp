#include "bytecode/module.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace flexor::bytecode {
namespace {

bool same_param(const ParamDecl& x, const ParamDecl& y) {
    if (x.name != y.name || x.kind != y.kind || x.optional != y.optional) return false;
    if (x.kind != ParamKind::kTensor) return true;
    if (x.any_dtype != y.any_dtype || x.any_rank != y.any_rank || (!x.any_dtype && x.dtype != y.dtype)) return false;
    return x.any_rank || (x.dims == y.dims && x.frozen == y.frozen);
}

bool same_position(const SourcePosition& x, const SourcePosition& y) {
    return x.pc == y.pc && x.line == y.line && x.file == y.file;
}

bool same_attribute(const std::pair<std::string, types::AttrValue>& x,
                    const std::pair<std::string, types::AttrValue>& y) {
    const auto* a = std::get_if<double>(&x.second);
    const auto* b = std::get_if<double>(&y.second);
    if (a != nullptr && b != nullptr) return x.first == y.first && same_constant(*a, *b);
    return x == y;
}

bool same_site(const CallSite& x, const CallSite& y) {
    return x.op == y.op && x.operand_count == y.operand_count &&
           std::ranges::equal(x.attrs.items(), y.attrs.items(), same_attribute);
}

bool same_function(const Function& x, const Function& y) {
    return x.name == y.name && std::ranges::equal(x.params, y.params, same_param) && x.result_count == y.result_count &&
           x.result_names == y.result_names && x.locals == y.locals && x.code == y.code &&
           std::ranges::equal(x.sites, y.sites, same_site) &&
           std::ranges::equal(x.positions, y.positions, same_position);
}

bool same_weight(const Weight& x, const Weight& y) {
    if (x.name != y.name || x.tensor.defined() != y.tensor.defined()) return false;
    if (!x.tensor.defined()) return true;
    if (x.tensor.dtype() != y.tensor.dtype() || !std::ranges::equal(x.tensor.sizes(), y.tensor.sizes())) return false;
    const Tensor a = x.tensor.contiguous();
    const Tensor b = y.tensor.contiguous();
    const std::size_t bytes = static_cast<std::size_t>(a.numel()) * dtype_size(a.dtype());
    return bytes == 0 || std::memcmp(a.data(), b.data(), bytes) == 0;
}

bool same_symbol(const SymbolDecl& x, const SymbolDecl& y) {
    return x.name == y.name && x.range.lo == y.range.lo && x.range.hi == y.range.hi;
}

}  // namespace

std::int32_t Function::line_at(std::int32_t pc) const {
    const auto after = std::ranges::upper_bound(positions, pc, {}, &SourcePosition::pc);
    return after == positions.begin() ? 0 : std::prev(after)->line;
}

std::int32_t Module::find_function(std::string_view name) const {
    const auto found = std::ranges::find(functions, name, &Function::name);
    return found == functions.end() ? -1 : static_cast<std::int32_t>(found - functions.begin());
}

bool same_constant(const Constant& x, const Constant& y) {
    if (x.index() != y.index()) return false;
    if (const auto* a = std::get_if<double>(&x)) {
        const double b = std::get<double>(y);
        if (*a != *a) return b != b;
        return std::bit_cast<std::uint64_t>(*a) == std::bit_cast<std::uint64_t>(b);
    }
    return x == y;
}

bool same_program(const Module& x, const Module& y) {
    return std::ranges::equal(x.symbols, y.symbols, same_symbol) &&
           std::ranges::equal(x.constants, y.constants, same_constant) &&
           std::ranges::equal(x.weights, y.weights, same_weight) &&
           std::ranges::equal(x.functions, y.functions, same_function) && x.hooks == y.hooks &&
           x.metadata == y.metadata && x.promotion == y.promotion;
}

std::function<std::string(types::SymbolId)> symbol_names(const Module& module) {
    return [&module](types::SymbolId id) {
        return id < module.symbols.size() ? module.symbols[id].name : "?" + std::to_string(id);
    };
}

}  // namespace flexor::bytecode
