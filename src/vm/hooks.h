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
    struct Hook {
        ForeignFunction function;
        bool is_typed;  // what it gives is known before the run: a call of it is no fallback
    };
    void bind(std::string name, ForeignFunction function, bool is_typed);
    void bind_value(std::string name, Value value);
    std::shared_ptr<const Hook> function(std::string_view name) const;  // null: not bound
    bool value(std::string_view name, Value* out) const;                // a bound function is a foreign value too

private:
    mutable std::shared_mutex mutex_;
    std::map<std::string, std::shared_ptr<const Hook>, std::less<>> functions_;
    std::map<std::string, Value, std::less<>> values_;
};

}  // namespace flexor::vm
