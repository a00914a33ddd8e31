#pragma once
// The text of one Triton function while it is written, and the arguments that it turns out to need.
#include <string>
#include <vector>

#include "codegen/triton/expression.h"
#include "codegen/triton/kernel_source.h"
#include "loopir/kernel.h"

namespace flexor::codegen::triton {

class SourceText {
public:
    explicit SourceText(const loopir::Kernel& kernel) : kernel_(kernel) {}

    void line(const std::string& text) { text_ += std::string(depth_ * 4, ' ') + text + "\n"; }
    void open(const std::string& head) {
        line(head);
        ++depth_;
    }
    void close() { --depth_; }

    // The name of an argument, which the function gets.
    std::string use(ArgumentKind kind, std::uint32_t index);
    std::string place(const loopir::IntRef& ref) {
        return ref.is_constant ? int_text(ref.value) : use(ArgumentKind::kPlace, static_cast<std::uint32_t>(ref.value));
    }
    std::string constant(const std::string& name);  // a constexpr argument
    std::string scratch(DType dtype);               // a new one
    Expressions& expressions() { return expressions_; }

    KernelSource finish();

private:
    const loopir::Kernel& kernel_;
    Expressions expressions_;
    std::string text_;
    std::size_t depth_ = 1;
    std::vector<Argument> used_;
    std::vector<std::string> constants_;
    std::vector<DType> scratch_;
};

// Several conditions as one.
std::string all_of(const std::vector<std::string>& conditions);

// Parts of an address as one term.
std::string sum_text(const std::vector<std::string>& terms);

}  // namespace flexor::codegen::triton
