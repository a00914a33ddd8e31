#pragma once
// Attribute values of ops: what stands between the braces of CALL_OP. Integers may be symbolic.
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "types/dim.h"
#include "types/dtype.h"

namespace flexor::types {

// An attribute whose value is taken at run time from a stack operand (int, float or list): index into the operands of
// the CALL_OP.
struct OperandRef {
    std::uint32_t index;
    friend bool operator==(const OperandRef&, const OperandRef&) = default;
};

using DimList = std::vector<Dim>;
using AttrValue = std::variant<std::monostate, bool, Dim, double, std::string, DType, DimList, OperandRef>;

enum class AttrKind : std::uint8_t {
    kBool,
    kInt,
    kFloat,
    kString,
    kDType,
    kIntList,
    kOptionalInt,
    kOptionalIntList,
    kOptionalDType,
    kOptionalFloat
};

class Attrs {
public:
    Attrs() = default;
    Attrs(std::initializer_list<std::pair<std::string, AttrValue>> items);
    const AttrValue* find(std::string_view name) const;
    void set(std::string name, AttrValue value);  // keeps items sorted by name
    const std::vector<std::pair<std::string, AttrValue>>& items() const { return items_; }
    // Typed reads of a checked attribute set; the name must exist with that kind.
    bool flag(std::string_view name) const;
    Dim integer(std::string_view name) const;
    double real(std::string_view name) const;  // accepts a constant integer
    const std::string& text(std::string_view name) const;
    DType dtype(std::string_view name) const;
    const DimList& list(std::string_view name) const;
    bool has(std::string_view name) const;  // present and not none
    friend bool operator==(const Attrs&, const Attrs&) = default;
    std::size_t hash() const;

private:
    std::vector<std::pair<std::string, AttrValue>> items_;
};

// "none", "true", "2*S", "1.5", "\"text\"", "f32", "[1, S]", "$2" (the operand of that index); `name` spells symbols.
std::string to_string(const AttrValue& value, const std::function<std::string(SymbolId)>& name);
// "axes=[-1], keepdim=false" in name order.
std::string to_string(const Attrs& attrs, const std::function<std::string(SymbolId)>& name);

}  // namespace flexor::types
