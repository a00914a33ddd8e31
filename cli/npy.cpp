#include "npy.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "faults.h"

namespace flexor::cli {
namespace {

struct Descr {
    DType dtype;
    std::string_view code;  // kind and width, without the byte order
};
constexpr Descr kDescrs[] = {{DType::kBool, "b1"}, {DType::kU8, "u1"},  {DType::kI8, "i1"},  {DType::kI32, "i4"},
                             {DType::kI64, "i8"},  {DType::kF16, "f2"}, {DType::kF32, "f4"}, {DType::kF64, "f8"}};

struct Header {
    std::string descr;
    bool fortran = false;
    std::vector<std::int64_t> shape;
};

// The header is a Python dict display of three known keys: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
public:
    explicit HeaderParser(std::string_view text) : rest_(text) {}

    std::optional<Header> parse() {
        Header header;
        int seen = 0;
        if (!take("{")) return std::nullopt;
        while (!take("}")) {
            const auto key = quoted();
            if (!key || !take(":")) return std::nullopt;
            bool good = false;
            if (*key == "descr") {
                const auto descr = quoted();
                good = descr.has_value();
                if (good) header.descr = *descr;
                seen |= 1;
            } else if (*key == "fortran_order") {
                header.fortran = take("True");
                good = header.fortran || take("False");
                seen |= 2;
            } else if (*key == "shape") {
                good = shape(header.shape);
                seen |= 4;
            }
            if (!good) return std::nullopt;
            if (!take(",") && !at("}")) return std::nullopt;
        }
        if (seen != 7) return std::nullopt;
        return header;
    }

private:
    void skip_space() {
        while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
    }
    bool at(std::string_view token) {
        skip_space();
        return rest_.starts_with(token);
    }
    bool take(std::string_view token) {
        if (!at(token)) return false;
        rest_.remove_prefix(token.size());
        return true;
    }
    std::optional<std::string> quoted() {
        skip_space();
        if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
        const std::size_t end = rest_.find(rest_.front(), 1);
        if (end == std::string_view::npos) return std::nullopt;
        std::string text(rest_.substr(1, end - 1));
        rest_.remove_prefix(end + 1);
        return text;
    }
    bool shape(std::vector<std::int64_t>& sizes) {
        if (!take("(")) return false;
        while (!take(")")) {
            skip_space();
            std::int64_t size = 0;
            const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
            if (error != std::errc()) return false;
            rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
            sizes.push_back(size);
            if (!take(",") && !at(")")) return false;
        }
        return true;
    }

    std::string_view rest_;
};

Diagnostic malformed_npy(const Bytes& file, std::string found) {
    return fault(Fault::kBadSection).operand(file.source).found(std::move(found)).expected("a NumPy .npy array");
}

std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> sizes, bool fortran) {
    std::vector<std::int64_t> strides(sizes.size());
    std::int64_t step = 1;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const std::size_t axis = fortran ? i : sizes.size() - 1 - i;
        strides[axis] = step;
        step *= std::max<std::int64_t>(sizes[axis], 1);
    }
    return strides;
}

}  // namespace

Expected<Tensor> read_npy(const Bytes& file) {
    if (!file.text().starts_with("\x93NUMPY"))
        return malformed_npy(file, "a file that does not begin as .npy files do");
    const auto version = file.number(6, 1);
    if (!version || *version < 1 || *version > 3) return malformed_npy(file, "an unknown version");
    const int length_bytes = *version == 1 ? 2 : 4;
    const auto length = file.number(8, length_bytes);
    const std::uint64_t header_begin = 8 + static_cast<std::uint64_t>(length_bytes);
    const auto header_bytes = length ? file.part(header_begin, *length) : std::nullopt;
    if (!header_bytes) return fault(Fault::kFileTruncated).operand(file.source);
    const auto header = HeaderParser(header_bytes->text()).parse();
    if (!header || header->descr.empty()) {
        return malformed_npy(file, "the header " + std::string(header_bytes->text().substr(0, 80)));
    }
    const char order = header->descr.front();
    const std::string_view code = std::string_view(header->descr).substr(1);
    const auto* descr = std::ranges::find(kDescrs, code, &Descr::code);
    if (descr == std::end(kDescrs) || (order != '<' && order != '|' && order != '=')) {
        return fault(Fault::kUnsupportedTensor)
            .operand(file.source)
            .found("dtype '" + header->descr + "'")
            .expected("little-endian bool, uint8, int8, int32, int64, float16, float32 or float64")
            .hint("convert it with numpy's astype; bfloat16 travels in .safetensors");
    }
    if (header->shape.size() > static_cast<std::size_t>(kMaxRank)) {
        return fault(Fault::kUnsupportedTensor)
            .operand(file.source)
            .found("rank " + std::to_string(header->shape.size()))
            .expected("at most " + std::to_string(kMaxRank));
    }
    const auto bytes = dense_bytes(descr->dtype, header->shape);
    if (!bytes) return fault(Fault::kSizeOverflow).operand(file.source);
    const auto data = file.part(header_begin + *length, *bytes);
    if (!data) {
        return fault(Fault::kFileTruncated)
            .operand(file.source)
            .found(std::to_string(file.size() - header_begin - *length) + " bytes of elements")
            .expected(std::to_string(*bytes));
    }
    return tensor_of_bytes(*data, descr->dtype, header->shape, dense_strides(header->shape, header->fortran));
}

Expected<std::string> npy_header(const Tensor& tensor, const std::string& name) {
    const auto* descr = std::ranges::find(kDescrs, tensor.dtype(), &Descr::dtype);
    if (descr == std::end(kDescrs)) {
        return fault(Fault::kUnsupportedTensor)
            .operand(name)
            .found(std::string(dtype_name(tensor.dtype())))
            .expected("a dtype that NumPy has")
            .hint("write a .safetensors file instead");
    }
    std::string header = "{'descr': '";
    header += dtype_size(tensor.dtype()) == 1 ? '|' : '<';
    header += descr->code;
    header += "', 'fortran_order': False, 'shape': (";
    for (const std::int64_t size : tensor.sizes()) header += std::to_string(size) + ",";
    header += "), }";
    header.append(63 - (10 + header.size()) % 64, ' ');
    header += '\n';
    return "\x93NUMPY\x01" + std::string(1, '\0') + little_endian(header.size(), 2) + header;
}

Status write_elements(const Tensor& tensor, const Sink& sink) {
    const Tensor dense = tensor.contiguous();
    if (!dense.defined()) return fault(Fault::kOutOfMemory).operand("output");
    sink(dense.data(), static_cast<std::size_t>(dense.numel()) * dtype_size(dense.dtype()));
    return {};
}

Status write_npy(const Tensor& tensor, const std::string& name, const Sink& sink) {
    CLI_ASSIGN(const std::string header, npy_header(tensor, name));
    sink(header.data(), header.size());
    return write_elements(tensor, sink);
}

}  // namespace flexor::cli
