#include "vm/hooks.h"

#include <mutex>

#include "support/diagnostic.h"

namespace flexor::vm {

namespace {

// A bound function, held as a value.
class FunctionObject : public Foreign {
public:
    FunctionObject(std::string name, std::shared_ptr<const Hooks::Hook> function)
        : name_(std::move(name)), function_(std::move(function)) {}
    Expected<Value> call(std::span<const Value> arguments) override { return function_->function(arguments); }
    Expected<Value> attribute(std::string_view name) override {
        return Diagnostic(DiagnosticId::kUnknownName)
            .operand(name_)
            .found(std::string(name))
            .expected("a function has no attributes");
    }
    std::string describe() const override { return "foreign " + name_; }

private:
    std::string name_;
    std::shared_ptr<const Hooks::Hook> function_;
};

}  // namespace

// What was bound before goes when the lock is free: it may run code of the host.

void Hooks::bind(std::string name, ForeignFunction function, bool is_typed) {
    auto bound = std::make_shared<const Hook>(Hook{std::move(function), is_typed});
    std::unique_lock lock(mutex_);
    std::swap(functions_[std::move(name)], bound);
    lock.unlock();
}

void Hooks::bind_value(std::string name, Value value) {
    std::unique_lock lock(mutex_);
    std::swap(values_[std::move(name)], value);
    lock.unlock();
}

std::shared_ptr<const Hooks::Hook> Hooks::function(std::string_view name) const {
    std::shared_lock lock(mutex_);
    const auto found = functions_.find(name);
    return found != functions_.end() ? found->second : nullptr;
}

bool Hooks::value(std::string_view name, Value* out) const {
    std::shared_lock lock(mutex_);
    if (const auto found = values_.find(name); found != values_.end()) {
        *out = found->second;
        return true;
    }
    if (const auto found = functions_.find(name); found != functions_.end()) {
        *out = Value::foreign(std::make_shared<FunctionObject>(found->first, found->second));
        return true;
    }
    return false;
}

}  // namespace flexor::vm
