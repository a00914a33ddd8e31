#include "safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "faults.h"
#include "json_writer.h"
#include "npy.h"

namespace flexor::cli {
namespace {

using nlohmann::json;

struct TypeName {
    DType dtype;
    std::string_view name;
};
constexpr TypeName kTypeNames[] = {{DType::kBool, "BOOL"}, {DType::kU8, "U8"},   {DType::kI8, "I8"},
                                   {DType::kI32, "I32"},   {DType::kI64, "I64"}, {DType::kF16, "F16"},
                                   {DType::kBF16, "BF16"}, {DType::kF32, "F32"}, {DType::kF64, "F64"}};
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

Diagnostic malformed_safetensors(const Bytes& file, std::string found) {
    return fault(Fault::kBadSection).operand(file.source).found(std::move(found)).expected("a safetensors file");
}

// The unsigned integers of a JSON list; nothing if it holds anything else.
std::optional<std::vector<std::int64_t>> integers(const json& row, const char* key) {
    const auto list = row.find(key);
    if (list == row.end() || !list->is_array()) return std::nullopt;
    std::vector<std::int64_t> out;
    for (const json& element : *list) {
        if (!element.is_number_unsigned() || element.get<std::uint64_t>() >> 62 != 0) return std::nullopt;
        out.push_back(static_cast<std::int64_t>(element.get<std::uint64_t>()));
    }
    return out;
}

std::vector<std::int64_t> row_major(std::span<const std::int64_t> sizes) {
    std::vector<std::int64_t> strides(sizes.size());
    std::int64_t step = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        strides[i] = step;
        step *= std::max<std::int64_t>(sizes[i], 1);
    }
    return strides;
}

Expected<Tensor> read_tensor(const Bytes& file, const Bytes& data, const std::string& name, const json& row) {
    const auto shape = row.is_object() ? integers(row, "shape") : std::nullopt;
    const auto offsets = row.is_object() ? integers(row, "data_offsets") : std::nullopt;
    const auto type = row.is_object() ? row.find("dtype") : row.end();
    if (!shape || !offsets || offsets->size() != 2 || type == row.end() || !type->is_string()) {
        return malformed_safetensors(file, "no dtype, shape and data_offsets for '" + name + "'");
    }
    const auto* known = std::ranges::find(kTypeNames, type->get_ref<const std::string&>(), &TypeName::name);
    if (known == std::end(kTypeNames) || shape->size() > static_cast<std::size_t>(kMaxRank)) {
        return fault(Fault::kUnsupportedTensor)
            .operand(file.source + ": " + name)
            .found(type->get<std::string>() + " of rank " + std::to_string(shape->size()))
            .expected("BOOL, U8, I8, I32, I64, F16, BF16, F32 or F64 of rank " + std::to_string(kMaxRank) + " at most");
    }
    const auto bytes = dense_bytes(known->dtype, *shape);
    const std::int64_t begin = (*offsets)[0], end = (*offsets)[1];
    if (!bytes) return fault(Fault::kSizeOverflow).operand(file.source + ": " + name);
    if (begin > end || static_cast<std::uint64_t>(end - begin) != *bytes) {
        return malformed_safetensors(file, "offsets of '" + name + "' that do not fit its shape");
    }
    const auto part = data.part(static_cast<std::uint64_t>(begin), *bytes);
    if (!part) return fault(Fault::kFileTruncated).operand(file.source + ": " + name);
    return tensor_of_bytes(*part, known->dtype, *shape, row_major(*shape));
}

}  // namespace

Expected<NamedTensors> read_safetensors(const Bytes& file) {
    const auto length = file.number(0, 8);
    if (!length) return fault(Fault::kFileTruncated).operand(file.source);
    if (*length > kMaxHeaderBytes)
        return malformed_safetensors(file, "a header of " + std::to_string(*length) + " bytes");
    const auto header_bytes = file.part(8, *length);
    if (!header_bytes) return fault(Fault::kFileTruncated).operand(file.source);
    const Bytes data = *file.part(8 + *length, file.size() - 8 - *length);
    const std::string_view text = header_bytes->text();
    const json header = json::parse(text.begin(), text.end(), nullptr, false);
    if (!header.is_object()) return malformed_safetensors(file, "a header that is no JSON object");
    NamedTensors tensors;
    for (const auto& [name, row] : header.items()) {
        if (name == "__metadata__") continue;
        CLI_ASSIGN(Tensor tensor, read_tensor(file, data, name, row));
        tensors.emplace_back(name, std::move(tensor));
    }
    return tensors;
}

Status write_safetensors(const NamedTensors& named, const Sink& sink) {
    // Wide dtypes first, so that every tensor lies aligned.
    NamedTensors tensors = named;
    std::ranges::stable_sort(tensors, std::greater(), [](const auto& row) { return dtype_size(row.second.dtype()); });
    JsonWriter header;
    header.begin_object();
    std::int64_t offset = 0;
    for (const auto& [name, tensor] : tensors) {
        const auto* type = std::ranges::find(kTypeNames, tensor.dtype(), &TypeName::dtype);
        const std::int64_t bytes = tensor.numel() * static_cast<std::int64_t>(dtype_size(tensor.dtype()));
        header.key(name).begin_object().key("dtype").string(type->name).key("shape").begin_array();
        for (const std::int64_t size : tensor.sizes()) header.integer(size);
        header.end_array().key("data_offsets").begin_array().integer(offset).integer(offset + bytes).end_array();
        header.end_object();
        offset += bytes;
    }
    header.end_object();
    std::string text = header.text();
    text.append((8 - text.size() % 8) % 8, ' ');
    const std::string length = little_endian(text.size(), 8);
    sink(length.data(), length.size());
    sink(text.data(), text.size());
    for (const auto& [name, tensor] : tensors) CLI_TRY(write_elements(tensor, sink));
    return {};
}

}  // namespace flexor::cli
