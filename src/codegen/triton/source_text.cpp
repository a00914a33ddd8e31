#include "codegen/triton/source_text.h"

#include <algorithm>
#include <cctype>

#include "support/check.h"
#include "support/text.h"

namespace flexor::codegen::triton {

std::string argument_name(const Argument& argument) {
    const std::string number = std::to_string(argument.index);
    switch (argument.kind) {
        case ArgumentKind::kBuffer: return "b" + number;
        case ArgumentKind::kFault: return "fault";
        case ArgumentKind::kScratch: return "scratch" + number;
        case ArgumentKind::kCounters: return "counters";
        case ArgumentKind::kExtent: return "n" + number;
        case ArgumentKind::kPlace: return "p" + number;
        case ArgumentKind::kNumber: return "x" + number;
    }
    FLEXOR_UNREACHABLE();
}

namespace {

// A name of Python's that is neither a keyword, nor a module, nor a helper.
std::string identifier(const std::string& name) {
    std::string out = "k_";
    for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return out;
}

// A condition as an operand of '&'.
std::string bracketed(const std::string& condition) {
    return condition.find(' ') == std::string::npos ? condition : "(" + condition + ")";
}

}  // namespace

std::string all_of(const std::vector<std::string>& conditions) {
    return conditions.size() == 1 ? conditions[0] : support::join(conditions, " & ", bracketed);
}

std::string sum_text(const std::vector<std::string>& terms) {
    return support::join(terms, " + ", [](const std::string& t) { return t; });
}

std::string SourceText::use(ArgumentKind kind, std::uint32_t index) {
    const Argument argument{kind, index};
    if (std::find(used_.begin(), used_.end(), argument) == used_.end()) used_.push_back(argument);
    return argument_name(argument);
}

std::string SourceText::constant(const std::string& name) {
    if (std::find(constants_.begin(), constants_.end(), name) == constants_.end()) constants_.push_back(name);
    return name;
}

std::string SourceText::scratch(DType dtype) {
    scratch_.push_back(dtype);
    return use(ArgumentKind::kScratch, static_cast<std::uint32_t>(scratch_.size() - 1));
}

KernelSource SourceText::finish() {
    KernelSource out;
    out.function = identifier(kernel_.name);
    for (std::uint32_t b = 0; b < kernel_.buffers.size(); ++b) out.arguments.push_back({ArgumentKind::kBuffer, b});
    std::erase_if(used_, [](const Argument& a) { return a.kind == ArgumentKind::kBuffer; });
    std::sort(used_.begin(), used_.end(), [](const Argument& a, const Argument& b) {
        return std::pair(a.kind, a.index) < std::pair(b.kind, b.index);
    });
    out.arguments.insert(out.arguments.end(), used_.begin(), used_.end());
    out.constants = constants_;
    out.scratch = scratch_;
    std::vector<std::string> parameters;
    for (const Argument& argument : out.arguments) parameters.push_back(argument_name(argument));
    for (const std::string& name : constants_) parameters.push_back(name + ": tl.constexpr");
    out.text = "import triton\nimport triton.language as tl\nfrom triton.language.extra.cuda import libdevice\n\n\n";
    out.text += expressions_.definitions();
    out.text += "@triton.jit\ndef " + out.function + "(";
    out.head = out.text.size();
    out.text += support::join(parameters, ", ", [](const std::string& p) { return p; }) + "):\n";
    out.body = out.text.size();
    out.text += text_;
    return out;
}

}  // namespace flexor::codegen::triton
