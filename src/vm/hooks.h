#pragma once
// Host functions and foreign values by name.
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "flexor/call_options.h"

namespace flexor::vm {

class Hooks {
public:
    void bind(std::string name, ForeignFunction function);
    void bind_value(std::string name, Value value);
    std::shared_ptr<const ForeignFunction> function(std::string_view name) const;  // null: not bound
    bool value(std::string_view name, Value* out) const;  // a bound function is a foreign value too

private:
    mutable std::shared_mutex mutex_;
    std::map<std::string, std::shared_ptr<const ForeignFunction>, std::less<>> functions_;
    std::map<std::string, Value, std::less<>> values_;
};

}  // namespace flexor::vm
