#include "flexor/value.h"

#include "support/check.h"
#include "support/text.h"

namespace flexor {

struct Value::Object {
    std::atomic<std::int64_t> references{1};
    ValueKind kind;
    std::string text;
    ValueList elements;
    ValueDict items;
    std::shared_ptr<Foreign> foreign;
    explicit Object(ValueKind k) : kind(k) {}
};

std::string_view to_string(ValueKind kind) {
    switch (kind) {
        case ValueKind::kUnset: return "unset";
        case ValueKind::kNone: return "none";
        case ValueKind::kBool: return "bool";
        case ValueKind::kInt: return "int";
        case ValueKind::kFloat: return "float";
        case ValueKind::kTensor: return "tensor";
        case ValueKind::kString: return "string";
        case ValueKind::kList: return "list";
        case ValueKind::kDict: return "dict";
        case ValueKind::kFunction: return "function";
        case ValueKind::kForeign: return "foreign";
    }
    return "?";
}

Foreign::~Foreign() = default;
std::string Foreign::describe() const { return "foreign"; }

Value::Value(std::string text) : kind_(ValueKind::kString) {
    object_ = new Object(kind_);
    object_->text = std::move(text);
}

Value Value::list(ValueList elements) {
    Value value;
    value.kind_ = ValueKind::kList;
    value.object_ = new Object(value.kind_);
    value.object_->elements = std::move(elements);
    return value;
}

Value Value::dict(ValueDict items) {
    Value value;
    value.kind_ = ValueKind::kDict;
    value.object_ = new Object(value.kind_);
    value.object_->items = std::move(items);
    return value;
}

Value Value::function(std::string name) {
    Value value;
    value.kind_ = ValueKind::kFunction;
    value.object_ = new Object(value.kind_);
    value.object_->text = std::move(name);
    return value;
}

Value Value::foreign(std::shared_ptr<Foreign> object) {
    Value value;
    value.kind_ = ValueKind::kForeign;
    value.object_ = new Object(value.kind_);
    value.object_->foreign = std::move(object);
    return value;
}

void Value::retain(Object* object) noexcept {
    object->references.fetch_add(1, std::memory_order_relaxed);
    object_ = object;
}

void Value::release() noexcept {
    if (object_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object_;
}

const std::string& Value::text() const {
    FLEXOR_CHECK(kind_ == ValueKind::kString || kind_ == ValueKind::kFunction);
    return object_->text;
}

const ValueList& Value::elements() const {
    FLEXOR_CHECK(kind_ == ValueKind::kList);
    return object_->elements;
}

const ValueDict& Value::items() const {
    FLEXOR_CHECK(kind_ == ValueKind::kDict);
    return object_->items;
}

const Value* Value::find(std::string_view key) const {
    for (const auto& [name, value] : items()) {
        if (name == key) return &value;
    }
    return nullptr;
}

const std::shared_ptr<Foreign>& Value::foreign_object() const {
    FLEXOR_CHECK(kind_ == ValueKind::kForeign);
    return object_->foreign;
}

ValueList& Value::mutable_elements() {
    FLEXOR_CHECK(kind_ == ValueKind::kList);
    if (object_->references.load(std::memory_order_acquire) != 1) *this = list(object_->elements);
    return object_->elements;
}

std::string Value::describe() const {
    switch (kind_) {
        case ValueKind::kUnset:
        case ValueKind::kNone: return std::string(to_string(kind_));
        case ValueKind::kBool: return boolean() ? "true" : "false";
        case ValueKind::kInt: return std::to_string(word_);
        case ValueKind::kFloat: return support::text_from_double(real_);
        case ValueKind::kTensor: {
            if (!tensor_.defined()) return "undefined tensor";
            std::string out(dtype_name(tensor_.dtype()));
            return out + "[" + support::join(tensor_.sizes(), ",", [](std::int64_t n) { return std::to_string(n); }) +
                   "]";
        }
        case ValueKind::kString: return support::quote(object_->text);
        case ValueKind::kList: {
            std::string out = "[";
            out += support::join(object_->elements, ", ", [](const Value& v) { return v.describe(); });
            return out + "]";
        }
        case ValueKind::kDict: {
            std::string out = "{";
            out += support::join(object_->items, ", ", [](const auto& item) {
                return support::quote(item.first) + ": " + item.second.describe();
            });
            return out + "}";
        }
        case ValueKind::kFunction: return "function " + object_->text;
        case ValueKind::kForeign: return object_->foreign != nullptr ? object_->foreign->describe() : "foreign";
    }
    return "?";
}

}  // namespace flexor
