#pragma once
// A value of a program: tensor, scalar, string, list, dict, function or a foreign object of the host. Dynamically
// typed, 16 bytes. Lists, dicts and strings are values: copies share memory, a change makes a copy first unless the
// holder is the only one. Tensors are handles: copies alias.
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flexor/error.h"
#include "flexor/export.h"
#include "flexor/tensor.h"

namespace flexor {

class Value;

enum class ValueKind : std::uint8_t {
    kUnset,  // no value: a local before its first write; users never see it
    kNone,
    kBool,
    kInt,
    kFloat,
    kTensor,
    kString,
    kList,
    kDict,
    kFunction,
    kForeign
};
FLEXOR_API std::string_view to_string(ValueKind kind);  // "tensor", "int", ...

// An object of the host that programs hold, call and read attributes of. Called without any lock held, from whichever
// thread runs the program.
class FLEXOR_API Foreign {
public:
    virtual ~Foreign();
    virtual Expected<Value> call(std::span<const Value> arguments) = 0;
    virtual Expected<Value> attribute(std::string_view name) = 0;
    virtual std::string describe() const;
};

using ValueList = std::vector<Value>;
using ValueDict = std::vector<std::pair<std::string, Value>>;  // in order of insertion

class FLEXOR_API Value {
public:
    Value() noexcept : kind_(ValueKind::kNone) { word_ = 0; }
    Value(bool value) noexcept : kind_(ValueKind::kBool) { word_ = value; }         // NOLINT: implicit
    Value(int value) noexcept : kind_(ValueKind::kInt) { word_ = value; }           // NOLINT: implicit
    Value(std::int64_t value) noexcept : kind_(ValueKind::kInt) { word_ = value; }  // NOLINT: implicit
    Value(double value) noexcept : kind_(ValueKind::kFloat) { real_ = value; }      // NOLINT: implicit
    Value(Tensor tensor) noexcept : kind_(ValueKind::kTensor) { new (&tensor_) Tensor(std::move(tensor)); }  // NOLINT
    Value(std::string text);                               // NOLINT: implicit
    Value(const char* text) : Value(std::string(text)) {}  // NOLINT: implicit
    static Value unset() noexcept {
        Value value;
        value.kind_ = ValueKind::kUnset;
        return value;
    }
    static Value list(ValueList elements);
    static Value dict(ValueDict items);
    static Value function(std::string name);  // a function of the Module that runs
    static Value foreign(std::shared_ptr<Foreign> object);

    Value(const Value& other) noexcept : kind_(other.kind_) { copy(other); }
    Value(Value&& other) noexcept : kind_(other.kind_) { take(other); }
    Value& operator=(const Value& other) noexcept {
        if (this != &other) {
            Value copy(other);
            *this = std::move(copy);
        }
        return *this;
    }
    Value& operator=(Value&& other) noexcept {
        if (this != &other) {
            drop();
            kind_ = other.kind_;
            take(other);
        }
        return *this;
    }
    ~Value() { drop(); }

    ValueKind kind() const { return kind_; }
    bool is_unset() const { return kind_ == ValueKind::kUnset; }
    bool is_none() const { return kind_ == ValueKind::kNone; }
    bool is_bool() const { return kind_ == ValueKind::kBool; }
    bool is_int() const { return kind_ == ValueKind::kInt; }
    bool is_float() const { return kind_ == ValueKind::kFloat; }
    bool is_tensor() const { return kind_ == ValueKind::kTensor; }
    bool is_string() const { return kind_ == ValueKind::kString; }
    bool is_list() const { return kind_ == ValueKind::kList; }
    bool is_dict() const { return kind_ == ValueKind::kDict; }
    bool is_function() const { return kind_ == ValueKind::kFunction; }
    bool is_foreign() const { return kind_ == ValueKind::kForeign; }
    bool is_scalar() const { return is_bool() || is_int() || is_float(); }

    // The kind must be the one asked for.
    bool boolean() const { return word_ != 0; }
    std::int64_t integer() const { return word_; }  // int or bool
    double real() const { return real_; }
    const Tensor& tensor() const { return tensor_; }
    const std::string& text() const;                // string: the text; function: its name
    const ValueList& elements() const;              // list
    const ValueDict& items() const;                 // dict
    const Value* find(std::string_view key) const;  // dict: the value of a key, or null
    const std::shared_ptr<Foreign>& foreign_object() const;
    // The elements, for change: of a list that no other value shares (a copy is made if one does).
    ValueList& mutable_elements();

    // For messages and listings: "f32[4,8]", "3", "[1, 2.5]", "none".
    std::string describe() const;

    // A heap part; internal.
    struct Object;

private:
    void copy(const Value& other) noexcept {
        if (kind_ == ValueKind::kTensor)
            new (&tensor_) Tensor(other.tensor_);
        else if (kind_ > ValueKind::kTensor)
            retain(other.object_);
        else
            word_ = other.word_;
    }
    void take(Value& other) noexcept {
        if (kind_ == ValueKind::kTensor) {
            new (&tensor_) Tensor(std::move(other.tensor_));
            other.tensor_.~Tensor();
        } else {
            word_ = other.word_;
        }
        other.kind_ = ValueKind::kNone;
        other.word_ = 0;
    }
    void drop() noexcept {
        if (kind_ == ValueKind::kTensor)
            tensor_.~Tensor();
        else if (kind_ > ValueKind::kTensor)
            release();
    }
    void retain(Object* object) noexcept;
    void release() noexcept;

    union {
        std::int64_t word_;
        double real_;
        Tensor tensor_;
        Object* object_;
    };
    ValueKind kind_;
};

}  // namespace flexor
