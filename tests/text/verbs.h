#pragma once
// What a verb of the text tests gets.
#include <string>

namespace flexor::tests {

struct TextCase {
    std::string name;    // path, as it stands in diagnostics
    std::string source;  // the whole text
};

}  // namespace flexor::tests
