#include "literal.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "bytes.h"
#include "faults.h"

namespace flexor::cli {
namespace {

Diagnostic bad_literal(std::string_view text, std::string expected) {
    return fault(Fault::kBadLiteral).found(std::string(text.substr(0, 80))).expected(std::move(expected));
}

// The numbers of a nested list in order, and the sizes that all lists of one depth share.
class ListParser {
public:
    explicit ListParser(std::string_view text) : text_(text), rest_(text) {}

    Status parse() {
        CLI_TRY(list(0));
        skip_space();
        if (!rest_.empty()) return bad_literal(text_, "nothing after the closing bracket");
        return {};
    }
    const std::vector<Number>& numbers() const { return numbers_; }
    const std::vector<std::int64_t>& sizes() const { return sizes_; }

private:
    void skip_space() {
        while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    }
    bool take(char c) {
        skip_space();
        if (rest_.empty() || rest_.front() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    Diagnostic ragged() const { return bad_literal(text_, "lists of equal length at every depth"); }

    Status list(std::size_t depth) {
        if (!take('[')) return bad_literal(text_, "an opening bracket");
        if (depth == static_cast<std::size_t>(kMaxRank)) return bad_literal(text_, "at most 12 dimensions");
        const bool first = sizes_.size() == depth;
        if (first) sizes_.push_back(-1);
        std::int64_t count = 0;
        while (!take(']')) {
            if (count++ > 0 && !take(',')) return bad_literal(text_, "a comma between elements");
            skip_space();
            const bool nested = !rest_.empty() && rest_.front() == '[';
            if (first && count == 1) innermost_ = nested ? innermost_ : depth;
            if (nested == (depth == innermost_)) return ragged();
            if (nested) {
                CLI_TRY(list(depth + 1));
            } else {
                CLI_TRY(number());
            }
        }
        if (sizes_[depth] >= 0 && sizes_[depth] != count) return ragged();
        sizes_[depth] = count;
        return {};
    }

    Status number() {
        const std::size_t end = std::min(rest_.find_first_of(",] "), rest_.size());
        const auto number = parse_number(rest_.substr(0, end));
        if (!number) return bad_literal(rest_.substr(0, end), "a number");
        numbers_.push_back(*number);
        rest_.remove_prefix(end);
        return {};
    }

    std::string_view text_, rest_;
    std::vector<Number> numbers_;
    std::vector<std::int64_t> sizes_;
    std::size_t innermost_ = static_cast<std::size_t>(kMaxRank);  // the depth of the lists that hold numbers
};

DType common_dtype(const std::vector<Number>& numbers) {
    const auto all = [&](Number::Kind kind) {
        return !numbers.empty() && std::ranges::all_of(numbers, [&](const Number& n) { return n.kind == kind; });
    };
    if (all(Number::Kind::kBool)) return DType::kBool;
    return all(Number::Kind::kInt) ? DType::kI64 : DType::kF32;
}

Status fill(const Tensor& tensor, const std::vector<Number>& numbers) {
    auto* element = tensor.data_as<std::byte>();
    for (const Number& number : numbers) {
        if (!store_element(tensor.dtype(), element, number)) {
            return bad_literal(
                number.kind == Number::Kind::kReal ? std::to_string(number.real) : std::to_string(number.integer),
                "a number that " + std::string(dtype_name(tensor.dtype())) + " holds");
        }
        element += dtype_size(tensor.dtype());
    }
    return {};
}

std::optional<DType> dtype_of_name(std::string_view name) {
    for (int i = 0; i < kDTypeCount; ++i) {
        const auto dtype = static_cast<DType>(i);
        if (name == dtype_name(dtype) || name == dtype_framework_name(dtype)) return dtype;
    }
    return std::nullopt;
}

// SplitMix64, so that every run sees the same contents.
std::uint64_t random_bits(std::uint64_t& state) {
    std::uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

Expected<Tensor> random_tensor(DType dtype, std::span<const std::int64_t> sizes, std::string_view text) {
    if (!dense_bytes(dtype, sizes)) return fault(Fault::kSizeOverflow).found(std::string(text));
    Tensor tensor = Tensor::empty(dtype, sizes);
    if (!tensor.defined()) return fault(Fault::kOutOfMemory).operand(std::string(text));
    std::uint64_t state = 1;
    auto* element = tensor.data_as<std::byte>();
    const std::int64_t count = tensor.numel();
    for (std::int64_t i = 0; i < count; ++i, element += dtype_size(dtype)) {
        const std::uint64_t bits = random_bits(state);
        if (is_floating(dtype)) {
            const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
            store_element(dtype, element, {Number::Kind::kReal, 0, 2 * unit - 1});
        } else {
            const std::uint64_t range = dtype == DType::kBool ? 2 : 10;
            store_element(dtype, element, {Number::Kind::kInt, static_cast<std::int64_t>(bits % range), 0});
        }
    }
    return tensor;
}

}  // namespace

std::optional<Number> parse_number(std::string_view text) {
    if (text == "true" || text == "True") return Number{Number::Kind::kBool, 1, 0};
    if (text == "false" || text == "False") return Number{Number::Kind::kBool, 0, 0};
    if (text.starts_with("+")) text.remove_prefix(1);
    const char* end = text.data() + text.size();
    Number number{Number::Kind::kInt, 0, 0};
    if (const auto read = std::from_chars(text.data(), end, number.integer);
        read.ec == std::errc() && read.ptr == end) {
        return number;
    }
    number = {Number::Kind::kReal, 0, 0};
    const auto read = std::from_chars(text.data(), end, number.real);
    if (text.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
    return number;
}

Expected<Tensor> parse_tensor(std::string_view text, std::optional<DType> dtype) {
    ListParser parser(text);
    CLI_TRY(parser.parse());
    Tensor tensor = Tensor::empty(dtype.value_or(common_dtype(parser.numbers())), parser.sizes());
    if (!tensor.defined()) return fault(Fault::kOutOfMemory).operand(std::string(text.substr(0, 80)));
    CLI_TRY(fill(tensor, parser.numbers()));
    return tensor;
}

std::optional<Expected<Tensor>> parse_shape(std::string_view text) {
    const std::size_t bracket = text.find('[');
    if (bracket == std::string_view::npos || !text.ends_with("]")) return std::nullopt;
    const auto dtype = dtype_of_name(text.substr(0, bracket));
    if (!dtype) return std::nullopt;
    std::vector<std::int64_t> sizes;
    std::string_view rest = text.substr(bracket + 1, text.size() - bracket - 2);
    while (!rest.empty()) {
        while (rest.starts_with(" ")) rest.remove_prefix(1);
        std::int64_t size = 0;
        const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), size);
        rest.remove_prefix(static_cast<std::size_t>(read.ptr - rest.data()));
        const bool more = rest.starts_with(",");
        if (read.ec != std::errc() || size < 0 || (!more && !rest.empty()) ||
            sizes.size() == static_cast<std::size_t>(kMaxRank)) {
            return bad_literal(text, "a shape like f32[8,128] of at most 12 sizes");
        }
        if (more) rest.remove_prefix(1);
        sizes.push_back(size);
    }
    return random_tensor(*dtype, sizes, text);
}

Expected<Tensor> tensor_of_number(const Number& number, DType dtype) {
    Tensor tensor = Tensor::empty(dtype, {});
    if (!tensor.defined()) return fault(Fault::kOutOfMemory).operand("a scalar");
    CLI_TRY(fill(tensor, {number}));
    return tensor;
}

}  // namespace flexor::cli
