#include "common/text_mutation.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bytecode/opcodes.h"
#include "ops/op_def.h"
#include "support/text.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace flexor::fuzz {
namespace {

using Lines = std::vector<std::string>;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

struct Token {
    std::size_t line, begin, length;
};

class Mutation {
public:
    Mutation(std::string_view text, unsigned seed) : random_(seed) {
        for (const std::string_view line : support::split(text, '\n')) lines_.emplace_back(line);
    }

    std::string run(MutationRates rates) {
        if (below(100) < rates.edits) {
            edit_numbers();
        } else {
            for (std::uint64_t count = 1 + below(3); count > 0; --count) step();
        }
        return support::join(lines_, "\n");
    }

private:
    std::uint64_t below(std::uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }
    template <class T>
    const T& pick(const std::vector<T>& items) {
        return items[below(items.size())];
    }

    void step() {
        switch (below(18)) {
            case 0:
            case 1:
            case 2:
            case 3:
            case 4: return insert(op_statement());
            case 5: return insert(scalar_statement());
            case 6: return insert(branch());
            case 7: return insert(loop());
            case 8: return return_another();
            case 9: return replace_number();
            case 10: return replace_name();
            case 11: return replace_dtype();
            case 12: return replace_mnemonic();
            case 13: return replace_dim();
            case 14: return erase_line();
            case 15: return copy_line();
            case 16: return swap_lines();
            default: return insert(list_statement());
        }
    }

    // ------------------------------------------------------------------ what the text knows

    static std::string_view first_word(std::string_view line) {
        line = support::trim(line);
        return line.substr(0, line.find(' '));
    }

    // Places where the stack is empty as far as lines show.
    std::vector<std::size_t> places() const {
        std::vector<std::size_t> out;
        bool inside = false;
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            const std::string_view word = first_word(lines_[i]);
            if (word == ".func") inside = true;
            if (word == ".end") inside = false;
            if (inside && (word == ".func" || word == "STORE_LOCAL" || word == "LOOP_HEAD" || word == "POP" ||
                           word == "ASSERT" || word.starts_with("BRANCH_IF")))
                out.push_back(i + 1);
        }
        return out;
    }

    // Names that a function of the text may use at a line: its parameters and what was stored before.
    std::vector<std::string> names(std::size_t line) const {
        std::vector<std::string> out;
        for (std::size_t i = 0; i < std::min(line, lines_.size()); ++i) {
            const std::string_view text = support::trim(lines_[i]);
            if (text.starts_with(".func")) {
                out.clear();
                const std::size_t open = text.find('('), close = text.find(") ", open);
                if (open == std::string_view::npos) continue;
                std::string_view parameters =
                    text.substr(open + 1, close == std::string_view::npos ? close : close - open - 1);
                for (const std::string_view piece : support::split(parameters, ',')) {
                    const std::string_view name = support::trim(piece.substr(0, piece.find(':')));
                    if (piece.find(':') != std::string_view::npos && !name.empty()) out.emplace_back(name);
                }
            }
            if (text.starts_with("STORE_LOCAL ")) out.emplace_back(support::trim(text.substr(12)));
        }
        return out;
    }

    std::string fresh() { return "v" + std::to_string(random_() % 100000); }

    std::string load(const std::vector<std::string>& known) {
        if (known.empty() || below(12) == 0) return "  LOAD_CONST " + number();
        const std::size_t recent = std::min<std::size_t>(known.size(), 4);
        return "  LOAD_LOCAL " + (below(2) == 0 ? pick(known) : known[known.size() - 1 - below(recent)]);
    }

    std::string number() {
        static const std::vector<std::string> kNumbers = {"0",   "1",    "2",   "3",   "-1",   "-2",    "4",
                                                          "5",   "7",    "15",  "16",  "17",   "33",    "0.5",
                                                          "1.0", "-1.5", "100", "0.0", "true", "false", "none"};
        return pick(kNumbers);
    }

    // ------------------------------------------------------------------ statements

    void insert(const std::function<Lines(const std::vector<std::string>&)>& make) {
        const std::vector<std::size_t> where = places();
        if (where.empty()) return;
        const std::size_t line = pick(where);
        const Lines made = make(names(line));
        lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(line), made.begin(), made.end());
    }

    using Maker = std::function<Lines(const std::vector<std::string>&)>;

    Lines op_lines(const std::vector<std::string>& known) {
        const std::vector<const ops::OpDef*> all(ops::all_ops().begin(), ops::all_ops().end());
        const ops::OpDef& op = *pick(all);
        const std::vector<ops::Sample> samples = op.samples.value.make();
        if (samples.empty()) return {};
        const ops::Sample& sample = pick(samples);
        Lines out;
        for (const ops::SampleInput& input : sample.inputs) {
            if (input.fill == ops::SampleInput::Fill::kNone)
                out.emplace_back("  LOAD_NONE");
            else if (input.fill == ops::SampleInput::Fill::kScalar)
                out.emplace_back("  LOAD_CONST " + support::text_from_double(input.value));
            else
                out.emplace_back(load(known));
        }
        std::string call = "  CALL_OP " + std::string(op.name.value) + " " + std::to_string(sample.inputs.size());
        const std::string attributes = types::to_string(sample.attrs, [](types::SymbolId) { return std::string("N"); });
        if (!attributes.empty()) call += " " + attributes;
        out.push_back(call);
        const int results = ops::result_count(op, sample.attrs);
        for (int i = 0; i < results; ++i) out.emplace_back("  STORE_LOCAL " + fresh());
        return out;
    }

    Maker op_statement() {
        return [this](const std::vector<std::string>& known) { return op_lines(known); };
    }

    Maker scalar_statement() {
        return [this](const std::vector<std::string>& known) {
            Lines out = {load(known)};
            switch (below(4)) {
                case 0: out.emplace_back("  GET_DIM " + std::to_string(static_cast<int>(below(4)) - 1)); break;
                case 1: out.emplace_back("  GET_RANK"); break;
                case 2: out.emplace_back("  ITEM"); break;
                default: {
                    out.push_back(load(known));
                    const auto op = static_cast<bytecode::ScalarOperator>(below(bytecode::kScalarOperatorCount));
                    if (bytecode::is_unary(op)) out.pop_back();
                    out.emplace_back("  SCALAR " + std::string(bytecode::scalar_operator_name(op)));
                }
            }
            out.emplace_back("  STORE_LOCAL " + fresh());
            return out;
        };
    }

    Maker list_statement() {
        return [this](const std::vector<std::string>& known) {
            Lines out;
            switch (below(4)) {
                case 0: out = {load(known), load(known), "  BUILD_LIST 2"}; break;
                case 1: out = {load(known), "  LOAD_CONST " + number(), "  LIST_GET"}; break;
                case 2: out = {load(known), load(known), "  LIST_APPEND"}; break;
                default: out = {load(known), "  LIST_LENGTH"}; break;
            }
            out.emplace_back("  STORE_LOCAL " + fresh());
            return out;
        };
    }

    // A condition on values or on a size; both ways set the same name.
    Maker branch() {
        return [this](const std::vector<std::string>& known) {
            const std::string name = fresh(), label = fresh();
            Lines out;
            if (below(2) == 0)
                out = {load(known), "  CALL_OP reduce_sum 1 axes=all, keepdim=false", "  LOAD_CONST 1",
                       "  CALL_OP gt 2"};
            else
                out = {load(known), "  GET_DIM 0", "  LOAD_CONST " + std::to_string(below(18)), "  SCALAR gt"};
            out.insert(out.end(), {"  BRANCH_IF_FALSE " + label + "e", load(known), "  STORE_LOCAL " + name});
            if (below(2) == 0) {
                const Lines inner = op_lines(known);
                out.insert(out.end(), inner.begin(), inner.end());
            }
            out.insert(out.end(),
                       {"  JUMP " + label + "j", label + "e:", load(known), "  STORE_LOCAL " + name, label + "j:"});
            return out;
        };
    }

    // A loop of a few passes over a value that it replaces.
    Maker loop() {
        return [this](const std::vector<std::string>& known) {
            const std::string count = fresh(), value = fresh(), label = fresh();
            Lines out = {"  LOAD_CONST 0",
                         "  STORE_LOCAL " + count,
                         load(known),
                         "  STORE_LOCAL " + value,
                         label + "h:",
                         "  LOOP_HEAD",
                         "  LOAD_LOCAL " + count,
                         "  LOAD_CONST " + std::to_string(below(5)),
                         "  SCALAR lt",
                         "  BRANCH_IF_FALSE " + label + "d"};
            std::vector<std::string> inside = known;
            inside.push_back(value);
            const Lines inner = op_lines(inside);
            out.insert(out.end(), inner.begin(), inner.end());
            if (!inner.empty() && inner.back().starts_with("  STORE_LOCAL") && below(4) != 0)
                out.back() = "  STORE_LOCAL " + value;
            out.insert(out.end(), {"  LOAD_LOCAL " + count, "  LOAD_CONST 1", "  SCALAR add", "  STORE_LOCAL " + count,
                                   "  JUMP " + label + "h", label + "d:"});
            return out;
        };
    }

    void return_another() {
        std::vector<std::size_t> returns;
        for (std::size_t i = 1; i < lines_.size(); ++i) {
            if (first_word(lines_[i]) == "RETURN" && first_word(lines_[i - 1]) == "LOAD_LOCAL") returns.push_back(i);
        }
        if (returns.empty()) return;
        const std::size_t line = pick(returns);
        const std::vector<std::string> known = names(line);
        if (!known.empty()) lines_[line - 1] = "  LOAD_LOCAL " + (below(2) == 0 ? known.back() : pick(known));
    }

    // ------------------------------------------------------------------ tokens and lines

    template <class Wanted>
    void replace(Wanted wanted, const std::function<std::string(const Token&)>& make) {
        std::vector<Token> tokens;
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            const std::string& line = lines_[i];
            for (std::size_t begin = 0; begin < line.size();) {
                if (!is_word(line[begin])) {
                    ++begin;
                    continue;
                }
                std::size_t end = begin;
                while (end < line.size() && is_word(line[end])) ++end;
                if (wanted(std::string_view(line).substr(begin, end - begin)))
                    tokens.push_back({i, begin, end - begin});
                begin = end;
            }
        }
        if (tokens.empty()) return;
        const Token token = pick(tokens);
        lines_[token.line].replace(token.begin, token.length, make(token));
    }

    void replace_number() {
        static const std::vector<std::string> kWild = {"64", "1000", "9223372036854775807", "4294967296", "2147483648"};
        replace([](std::string_view word) { return support::int_from_text(word).has_value(); },
                [this](const Token&) { return below(8) == 0 ? pick(kWild) : number(); });
    }

    void replace_name() {
        const std::vector<std::string> known = names(lines_.size());
        if (known.empty()) return;
        replace([&](std::string_view word) { return std::ranges::find(known, word) != known.end(); },
                [&](const Token&) { return pick(known); });
    }

    void replace_dtype() {
        static const std::vector<std::string> kNames = {"f32", "f64", "f16", "bf16", "i64", "i32", "i8", "u8", "bool"};
        replace([](std::string_view word) { return std::ranges::find(kNames, word) != kNames.end(); },
                [this](const Token&) { return pick(kNames); });
    }

    void replace_mnemonic() {
        const std::vector<const ops::OpDef*> all(ops::all_ops().begin(), ops::all_ops().end());
        if (below(2) == 0) {
            replace([](std::string_view word) { return ops::find_op(word) != nullptr; },
                    [&](const Token&) { return std::string(pick(all)->name.value); });
            return;
        }
        const auto opcodes = bytecode::all_opcodes();
        replace([](std::string_view word) { return bytecode::opcode_from_mnemonic(word).has_value(); },
                [&](const Token& token) {
                    const std::string_view old = std::string_view(lines_[token.line]).substr(token.begin, token.length);
                    // One of the same operand, if there is one.
                    const bytecode::OpcodeInfo& before = bytecode::opcode_info(*bytecode::opcode_from_mnemonic(old));
                    for (int tries = 0; tries < 30; ++tries) {
                        const bytecode::OpcodeInfo& other = opcodes[below(opcodes.size())];
                        if (other.format == before.format) return std::string(other.mnemonic);
                    }
                    return std::string(old);
                });
    }

    void replace_dim() {
        std::vector<std::size_t> heads;
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            if (first_word(lines_[i]) == ".func") heads.push_back(i);
        }
        if (heads.empty()) return;
        static const std::vector<std::string> kDims = {"[N]",    "[N, M]", "[M, N]",    "[N, N]",    "[]",
                                                       "[1, N]", "[N, 3]", "[3, 4]",    "[2*N]",     "[N + 1, M]",
                                                       "[...]",  "[?, N]", "[N, M, 2]", "[FROZEN N]"};
        std::string& line = lines_[pick(heads)];
        std::vector<std::size_t> opens;
        for (std::size_t i = 0; i < line.size(); ++i) {
            if (line[i] == '[') opens.push_back(i);
        }
        if (opens.empty()) return;
        const std::size_t open = pick(opens), close = line.find(']', open);
        if (close != std::string::npos) line.replace(open, close - open + 1, pick(kDims));
    }

    void erase_line() {
        lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(below(lines_.size())));
        keep_one();
    }
    void copy_line() {
        const std::string copy = pick(lines_);
        lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(below(lines_.size() + 1)), copy);
    }
    void swap_lines() {
        const std::size_t a = below(lines_.size());
        std::swap(lines_[a], lines_[std::min(lines_.size() - 1, a + 1 + below(3))]);
    }
    void keep_one() {
        if (lines_.empty()) lines_.emplace_back();
    }

    void edit_numbers() {
        constexpr std::string_view kMark = "; edits:";
        std::vector<std::int64_t> numbers;
        if (lines_.back().starts_with(kMark)) {
            for (const std::string_view piece :
                 support::split(std::string_view(lines_.back()).substr(kMark.size()), ' ')) {
                if (const auto number = support::int_from_text(piece)) numbers.push_back(*number);
            }
            lines_.pop_back();
        }
        const auto value = [this]() -> std::int64_t {
            switch (below(5)) {
                case 0: return static_cast<std::int64_t>(below(4));
                case 1: return -1 - static_cast<std::int64_t>(below(3));
                case 2: return static_cast<std::int64_t>(below(256));
                case 3: return std::int64_t{1} << below(63);
                default: return static_cast<std::int64_t>(below(16));
            }
        };
        if (numbers.size() < 4 || below(3) == 0) {
            for (const std::uint64_t limit : {48u, 64u, 64u})
                numbers.push_back(static_cast<std::int64_t>(below(limit)));
            numbers.push_back(value());
        } else {
            numbers[below(numbers.size())] = value();
        }
        if (numbers.size() > 24) numbers.resize(4);
        std::string line(kMark);
        for (const std::int64_t number : numbers) line += " " + std::to_string(number);
        lines_.push_back(line);
    }

    std::minstd_rand random_;
    Lines lines_;
};

}  // namespace

std::size_t mutate_text(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed, MutationRates rates) {
    if (seed % 100 < rates.wild) return LLVMFuzzerMutate(data, size, most);
    const std::string text = Mutation({reinterpret_cast<const char*>(data), size}, seed * 2654435761u + 1).run(rates);
    if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
    std::memcpy(data, text.data(), text.size());
    return text.size();
}

}  // namespace flexor::fuzz
