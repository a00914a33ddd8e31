#include "types/attr.h"

#include <algorithm>
#include <bit>

#include "support/check.h"
#include "support/hash.h"
#include "support/text.h"

namespace flexor::types {
namespace {

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

const AttrValue& present(const Attrs& attrs, std::string_view name) {
    const AttrValue* value = attrs.find(name);
    FLEXOR_CHECK(value != nullptr);
    return *value;
}

template <class T>
const T& typed(const Attrs& attrs, std::string_view name) {
    const T* value = std::get_if<T>(&present(attrs, name));
    FLEXOR_CHECK(value != nullptr);
    return *value;
}

std::uint64_t hash_value(const AttrValue& value) {
    const auto payload = std::visit(
        Overloaded{[](std::monostate) -> std::uint64_t { return 0; }, [](bool b) -> std::uint64_t { return b ? 1 : 0; },
                   [](const Dim& d) -> std::uint64_t { return d.hash(); },
                   // +0 and -0 compare equal, so they must not hash apart.
                   [](double d) -> std::uint64_t { return d == 0 ? 0 : std::bit_cast<std::uint64_t>(d); },
                   [](const std::string& s) -> std::uint64_t { return support::hash_bytes(std::string_view(s)); },
                   [](DType d) -> std::uint64_t { return static_cast<std::uint64_t>(d); },
                   [](const DimList& list) {
                       std::uint64_t hash = list.size();
                       for (const Dim& d : list) hash = support::hash_combine(hash, d.hash());
                       return hash;
                   },
                   [](OperandRef r) -> std::uint64_t { return r.index; }},
        value);
    return support::hash_combine(value.index(), payload);
}

}  // namespace

Attrs::Attrs(std::initializer_list<std::pair<std::string, AttrValue>> items) {
    for (const auto& [name, value] : items) set(name, value);
}

const AttrValue* Attrs::find(std::string_view name) const {
    for (const auto& item : items_) {
        if (item.first == name) return &item.second;
    }
    return nullptr;
}

void Attrs::set(std::string name, AttrValue value) {
    const auto place = std::lower_bound(items_.begin(), items_.end(), name,
                                        [](const auto& item, const std::string& key) { return item.first < key; });
    if (place != items_.end() && place->first == name) {
        place->second = std::move(value);
    } else {
        items_.emplace(place, std::move(name), std::move(value));
    }
}

bool Attrs::flag(std::string_view name) const { return typed<bool>(*this, name); }

Dim Attrs::integer(std::string_view name) const { return typed<Dim>(*this, name); }

double Attrs::real(std::string_view name) const {
    if (const Dim* integer = std::get_if<Dim>(&present(*this, name))) {
        FLEXOR_CHECK(integer->is_constant());
        return static_cast<double>(integer->constant());
    }
    return typed<double>(*this, name);
}

const std::string& Attrs::text(std::string_view name) const { return typed<std::string>(*this, name); }

DType Attrs::dtype(std::string_view name) const { return typed<DType>(*this, name); }

const DimList& Attrs::list(std::string_view name) const { return typed<DimList>(*this, name); }

bool Attrs::has(std::string_view name) const {
    const AttrValue* value = find(name);
    return value != nullptr && !std::holds_alternative<std::monostate>(*value);
}

std::size_t Attrs::hash() const {
    std::uint64_t hash = items_.size();
    for (const auto& [name, value] : items_) {
        hash = support::hash_combine(hash, support::hash_bytes(std::string_view(name)));
        hash = support::hash_combine(hash, hash_value(value));
    }
    return hash;
}

std::string to_string(const AttrValue& value, const std::function<std::string(SymbolId)>& name) {
    return std::visit(
        Overloaded{[](std::monostate) -> std::string { return "none"; },
                   [](bool b) -> std::string { return b ? "true" : "false"; },
                   [&](const Dim& d) -> std::string { return d.to_string(name); },
                   [](double d) -> std::string { return support::text_from_double(d); },
                   [](const std::string& s) -> std::string { return support::quote(s); },
                   [](DType d) -> std::string { return std::string(dtype_name(d)); },
                   [&](const DimList& list) -> std::string {
                       return "[" + support::join(list, ", ", [&](const Dim& d) { return d.to_string(name); }) + "]";
                   },
                   [](OperandRef r) -> std::string { return "$" + std::to_string(r.index); }},
        value);
}

std::string to_string(const Attrs& attrs, const std::function<std::string(SymbolId)>& name) {
    return support::join(attrs.items(), ", ",
                         [&](const auto& item) { return item.first + "=" + to_string(item.second, name); });
}

}  // namespace flexor::types
