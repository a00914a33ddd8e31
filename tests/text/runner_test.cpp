// Runs every tests/text/<stage>/<topic>.fasm. The first line names what is done with it: "; test: roundtrip, verify".
//
// A program that must be refused carries "; error: E0103" at the end of the line that the refusal names (on the first
// line if it names none). The refusal must come from one of the verbs, in their order; that of `run` is what the
// program raises.
//
// A verb is one row of kVerbs. It gets the text and returns nothing, or the refusal that the engine gave; expectations
// of its own it states with gtest.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "bytecode/flx.h"
#include "bytecode/text.h"
#include "bytecode/verify.h"
#include "support/diagnostic.h"
#include "support/text.h"
#include "text/verbs.h"

namespace flexor::tests {
namespace {

Status roundtrip(const TextCase& text) {
    Expected<bytecode::Module> first = bytecode::assemble(text.source, text.name);
    if (!first) return std::move(first).error();
    const std::string listing = bytecode::disassemble(*first);
    Expected<bytecode::Module> second = bytecode::assemble(listing, "listing");
    EXPECT_TRUE(second.has_value()) << (second ? "" : second.error().to_string()) << "\n" << listing;
    if (second) {
        EXPECT_TRUE(bytecode::same_program(*first, *second)) << listing;
    }
    Expected<bytecode::Module> third = bytecode::read_flx(bytecode::write_flx(*first), nullptr);
    EXPECT_TRUE(third.has_value()) << (third ? "" : third.error().to_string());
    if (third) {
        EXPECT_TRUE(bytecode::same_program(*first, *third)) << bytecode::disassemble(*third);
    }
    return {};
}

Status verify(const TextCase& text) {
    Expected<bytecode::Module> module = bytecode::assemble(text.source, text.name);
    if (!module) return std::move(module).error();
    Expected<bytecode::ModuleRef> first = bytecode::verify(*std::move(module));
    if (!first) return std::move(first).error();
    // T1 for a verified Module.
    const std::string listing = bytecode::disassemble(**first);
    Expected<bytecode::Module> again = bytecode::assemble(listing, "listing");
    EXPECT_TRUE(again.has_value()) << (again ? "" : again.error().to_string()) << "\n" << listing;
    if (!again) return {};
    Expected<bytecode::ModuleRef> second = bytecode::verify(*std::move(again));
    EXPECT_TRUE(second.has_value()) << (second ? "" : second.error().to_string()) << "\n" << listing;
    if (second) {
        EXPECT_TRUE(bytecode::same_program(**first, **second)) << listing;
    }
    return {};
}

const std::map<std::string, std::function<Status(const TextCase&)>, std::less<>>& verbs() {
    static const std::map<std::string, std::function<Status(const TextCase&)>, std::less<>> kVerbs = {
        {"roundtrip", roundtrip}, {"verify", verify}, {"specialize", specialize_verb},
        {"lower", lower_verb},    {"run", run_verb},
    };
    return kVerbs;
}

struct ExpectedError {
    std::string code;
    std::int64_t line;
};

std::optional<ExpectedError> expected_error(const std::string& source) {
    constexpr std::string_view kMark = "; error: ";
    std::int64_t number = 0;
    for (const std::string_view line : support::split(source, '\n')) {
        ++number;
        const std::size_t at = line.find(kMark);
        if (at != std::string_view::npos) return ExpectedError{std::string(line.substr(at + kMark.size(), 5)), number};
    }
    return std::nullopt;
}

std::int64_t line_of(const Diagnostic& diagnostic) {
    const std::string& source = diagnostic.where().source;
    const std::size_t colon = source.rfind(':');
    return colon == std::string::npos ? 1 : support::int_from_text(source.substr(colon + 1)).value_or(1);
}

class TextTest : public testing::TestWithParam<std::string> {};

TEST_P(TextTest, DoesWhatItsHeaderSays) {
    const std::filesystem::path path = std::filesystem::path(FLEXOR_SOURCE_DIR) / "tests/text" / GetParam();
    std::ostringstream stream;
    stream << std::ifstream(path).rdbuf();
    const TextCase text{path.string(), stream.str()};
    constexpr std::string_view kHeader = "; test: ";
    ASSERT_TRUE(text.source.starts_with(kHeader)) << path;
    const std::string_view header =
        std::string_view(text.source).substr(kHeader.size(), text.source.find('\n') - kHeader.size());
    const std::optional<ExpectedError> expected = expected_error(text.source);
    std::optional<Diagnostic> refusal;
    for (const std::string_view piece : support::split(header.substr(0, header.find(';')), ',')) {
        const auto verb = verbs().find(support::trim(piece));
        ASSERT_NE(verb, verbs().end()) << "unknown verb '" << piece << "'";
        Status status = verb->second(text);
        if (status) continue;
        refusal = std::move(status).error();
        break;
    }
    if (!expected) {
        ASSERT_FALSE(refusal.has_value()) << refusal->to_string();
        return;
    }
    ASSERT_TRUE(refusal.has_value()) << "nothing was refused; expected " << expected->code;
    EXPECT_EQ(refusal->code(), expected->code) << refusal->to_string();
    EXPECT_EQ(line_of(*refusal), expected->line) << refusal->to_string();
}

std::vector<std::string> text_files() {
    std::vector<std::string> out;
    const std::filesystem::path root = std::filesystem::path(FLEXOR_SOURCE_DIR) / "tests/text";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
        if (entry.path().extension() == ".fasm") out.push_back(std::filesystem::relative(entry.path(), root).string());
    }
    std::ranges::sort(out);
    return out;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
    std::string name = info.param.substr(0, info.param.size() - std::string_view(".fasm").size());
    for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    }
    return name;
}

INSTANTIATE_TEST_SUITE_P(Text, TextTest, testing::ValuesIn(text_files()), test_name);

}  // namespace
}  // namespace flexor::tests
