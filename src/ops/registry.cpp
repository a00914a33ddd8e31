#include <deque>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "ops/families.h"
#include "ops/op_def.h"
#include "support/check.h"
#include "support/text.h"

namespace flexor::ops {
namespace {

// Entries never move and never die; the list may grow by register_op.
struct Registry {
    std::shared_mutex mutex;
    std::deque<OpDef> entries;
    std::deque<std::vector<const OpDef*>> lists;  // a list handed out stays valid: a new op makes a new list
    std::unordered_map<std::string_view, const OpDef*> by_name;

    Registry() {
        std::vector<const OpDef*> list;
        for (auto* family : {unary_ops, binary_ops, special_ops, iterative_ops, reduce_ops, movement_ops, copying_ops,
                             contraction_ops, normalisation_ops, attention_ops, indexing_ops, order_ops, selection_ops,
                             scatter_ops, search_ops, creation_ops, write_ops}) {
            for (OpDef& op : family()) {
                const OpDef& entry = entries.emplace_back(std::move(op));
                const bool fresh = by_name.emplace(entry.name.value, &entry).second;
                FLEXOR_CHECK(fresh);
                list.push_back(&entry);
            }
        }
        lists.push_back(std::move(list));
    }
};

Registry& registry() {
    static Registry& instance = *new Registry;
    return instance;
}

struct FamilyName {
    std::string_view operator()(const MapLower&) const { return "map"; }
    std::string_view operator()(const ReduceLower&) const { return "reduce"; }
    std::string_view operator()(const ViewLower&) const { return "view"; }
    std::string_view operator()(const IndexLower&) const { return "index"; }
    std::string_view operator()(const ConcatLower&) const { return "concat"; }
    std::string_view operator()(const CompositeLower&) const { return "composite"; }
    std::string_view operator()(const ContractionLower&) const { return "contraction"; }
    std::string_view operator()(const AttentionLower&) const { return "attention"; }
    std::string_view operator()(const WriteLower&) const { return "write"; }
    std::string_view operator()(const ExternLower&) const { return "extern"; }
};

}  // namespace

std::string_view family(const LowerRule& lower) { return std::visit(FamilyName{}, lower); }

std::span<const OpDef* const> all_ops() {
    Registry& r = registry();
    const std::shared_lock lock(r.mutex);
    return r.lists.back();
}

const OpDef* find_op(std::string_view name) {
    Registry& r = registry();
    const std::shared_lock lock(r.mutex);
    const auto it = r.by_name.find(name);
    return it == r.by_name.end() ? nullptr : it->second;
}

std::string_view nearest_op_name(std::string_view name) {
    std::vector<std::string_view> names;
    for (const OpDef* op : all_ops()) names.push_back(op->name.value);
    const auto closest = support::closest_name(name, names);
    if (!closest) return "";
    const OpDef* op = find_op(*closest);
    return op != nullptr ? op->name.value : std::string_view();
}

const OpDef* register_op(OpDef op) {
    Registry& r = registry();
    const std::unique_lock lock(r.mutex);
    if (r.by_name.contains(op.name.value)) return nullptr;
    op.name.value = keep_text(std::string(op.name.value));
    op.summary.value = keep_text(std::string(op.summary.value));
    std::vector<Constraint> constraints(op.constraints.value.begin(), op.constraints.value.end());
    for (Constraint& c : constraints) c.text = keep_text(std::string(c.text));
    op.constraints.value = keep(std::move(constraints));
    std::vector<OperandSpec> operands(op.operands.value.begin(), op.operands.value.end());
    for (OperandSpec& o : operands) o.name = keep_text(std::string(o.name));
    op.operands.value = keep(std::move(operands));
    std::vector<AttrSpec> attrs(op.attrs.value.begin(), op.attrs.value.end());
    for (AttrSpec& a : attrs) a.name = keep_text(std::string(a.name));
    op.attrs.value = keep(std::move(attrs));
    op.samples.value.dtypes = keep(std::vector<DType>(op.samples.value.dtypes.begin(), op.samples.value.dtypes.end()));
    for (std::string_view* name : {&op.names.value.torch, &op.names.value.numpy, &op.names.value.onnx}) {
        *name = keep_text(std::string(*name));
    }
    const OpDef& entry = r.entries.emplace_back(std::move(op));
    r.by_name.emplace(entry.name.value, &entry);
    std::vector<const OpDef*> list = r.lists.back();
    list.push_back(&entry);
    r.lists.push_back(std::move(list));
    return &entry;
}

namespace {

std::string_view kind_text(AttrKind kind) {
    switch (kind) {
        case AttrKind::kBool: return "a bool";
        case AttrKind::kInt: return "an integer";
        case AttrKind::kFloat: return "a number";
        case AttrKind::kString: return "a string";
        case AttrKind::kDType: return "a dtype";
        case AttrKind::kIntList: return "a list of integers";
        case AttrKind::kOptionalInt: return "an integer or none";
        case AttrKind::kOptionalIntList: return "a list of integers or none";
        case AttrKind::kOptionalDType: return "a dtype or none";
        case AttrKind::kOptionalFloat: return "a number or none";
    }
    FLEXOR_UNREACHABLE();
}

bool is_optional(AttrKind kind) {
    return kind == AttrKind::kOptionalInt || kind == AttrKind::kOptionalIntList || kind == AttrKind::kOptionalDType ||
           kind == AttrKind::kOptionalFloat;
}

// Whether the value is of the kind; integers become numbers where the kind is one.
bool accept(AttrKind kind, AttrValue& value) {
    if (std::holds_alternative<std::monostate>(value)) return is_optional(kind);
    if (std::holds_alternative<types::OperandRef>(value)) {
        return kind != AttrKind::kBool && kind != AttrKind::kString && kind != AttrKind::kDType &&
               kind != AttrKind::kOptionalDType;
    }
    switch (kind) {
        case AttrKind::kBool: return std::holds_alternative<bool>(value);
        case AttrKind::kInt:
        case AttrKind::kOptionalInt: return std::holds_alternative<Dim>(value);
        case AttrKind::kFloat:
        case AttrKind::kOptionalFloat:
            if (const Dim* d = std::get_if<Dim>(&value)) {
                if (!d->is_constant()) return false;
                value = static_cast<double>(d->constant());
            }
            return std::holds_alternative<double>(value);
        case AttrKind::kString: return std::holds_alternative<std::string>(value);
        case AttrKind::kDType:
        case AttrKind::kOptionalDType: return std::holds_alternative<DType>(value);
        case AttrKind::kIntList:
        case AttrKind::kOptionalIntList: return std::holds_alternative<types::DimList>(value);
    }
    FLEXOR_UNREACHABLE();
}

std::string value_kind_text(const AttrValue& value) {
    struct Visitor {
        std::string operator()(std::monostate) const { return "none"; }
        std::string operator()(bool) const { return "a bool"; }
        std::string operator()(const Dim&) const { return "an integer"; }
        std::string operator()(double) const { return "a number"; }
        std::string operator()(const std::string& s) const { return "the string " + support::quote(s); }
        std::string operator()(DType d) const { return "the dtype " + std::string(dtype_name(d)); }
        std::string operator()(const types::DimList&) const { return "a list of integers"; }
        std::string operator()(const types::OperandRef&) const { return "a run-time operand"; }
    };
    return std::visit(Visitor{}, value);
}

}  // namespace

Expected<Attrs> check_attrs(const OpDef& op, const Attrs& given) {
    const auto specs = op.attrs.value;
    for (const auto& [name, value] : given.items()) {
        bool known = false;
        for (const AttrSpec& spec : specs) known = known || spec.name == name;
        if (known) continue;
        std::vector<std::string_view> names;
        for (const AttrSpec& spec : specs) names.push_back(spec.name);
        return Diagnostic(DiagnosticId::kBadAttribute)
            .op(std::string(op.name.value))
            .operand(name)
            .found("attribute '" + name + "'")
            .expected(names.empty()
                          ? "no attributes"
                          : "one of: " + support::join(names, ", ", [](std::string_view n) { return std::string(n); }))
            .hint(support::near_miss_hint(name, names));
    }
    Attrs checked;
    for (const AttrSpec& spec : specs) {
        const AttrValue* found = given.find(spec.name);
        AttrValue value = found != nullptr ? *found : spec.fallback;
        if (!accept(spec.kind, value)) {
            return Diagnostic(DiagnosticId::kBadAttribute)
                .op(std::string(op.name.value))
                .operand(std::string(spec.name))
                .found(found != nullptr ? value_kind_text(value) : "no value")
                .expected(std::string(kind_text(spec.kind)));
        }
        checked.set(std::string(spec.name), std::move(value));
    }
    return checked;
}

}  // namespace flexor::ops
