#pragma once
// Bytes of files, read without ever leaving their bounds, and written in one step.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "flexor/error.h"
#include "flexor/tensor.h"

namespace flexor::cli {

// A run of bytes that `owner` keeps alive. The memory is private to the process: writing to it changes no file.
struct Bytes {
    std::shared_ptr<void> owner;
    std::span<std::byte> span;
    std::string source;  // for messages: "data.npz", "data.npz: x.npy"

    std::size_t size() const { return span.size(); }
    std::string_view text() const { return {reinterpret_cast<const char*>(span.data()), span.size()}; }
    // Nothing if the range does not lie inside.
    std::optional<Bytes> part(std::uint64_t offset, std::uint64_t length) const;
    // A little-endian unsigned number of 1 to 8 bytes; nothing if it does not lie inside.
    std::optional<std::uint64_t> number(std::uint64_t offset, int bytes) const;
};

// Regular files are mapped copy-on-write; pipes are read to their end.
Expected<Bytes> open_file(const std::string& path);

// A tensor of the contents at `data`, kept alive by its owner; copied where the address does not suit the dtype.
// `data` must hold as many bytes as the sizes ask for. Strides in elements.
Expected<Tensor> tensor_of_bytes(const Bytes& data, DType dtype, std::span<const std::int64_t> sizes,
                                 std::span<const std::int64_t> strides);
// Bytes that a dense tensor takes; nothing if that does not fit in 62 bits or a size is negative.
std::optional<std::uint64_t> dense_bytes(DType dtype, std::span<const std::int64_t> sizes);

// Where the writers of this folder send their bytes.
using Sink = std::function<void(const void* data, std::size_t bytes)>;
// Replaces the file in one step; on failure the old one stays.
Status write_file(const std::string& path, const std::function<Status(const Sink&)>& write);

std::string little_endian(std::uint64_t value, int bytes);

}  // namespace flexor::cli
