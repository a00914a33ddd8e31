#include "bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "faults.h"

namespace flexor::cli {
namespace {

class FileDescriptor {
public:
    explicit FileDescriptor(int fd) : fd_(fd) {}
    ~FileDescriptor() {
        if (fd_ >= 0) close(fd_);
    }
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    int get() const { return fd_; }

private:
    int fd_;
};

Diagnostic file_fault(Fault id, const std::string& path) { return fault(id).operand(path).found(std::strerror(errno)); }

Expected<Bytes> read_pipe(int fd, const std::string& path) {
    auto buffer = std::make_shared<std::vector<std::byte>>();
    std::byte chunk[65536];
    for (;;) {
        const ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0) return file_fault(Fault::kFileNotReadable, path);
        if (n == 0) break;
        buffer->insert(buffer->end(), chunk, chunk + n);
    }
    return Bytes{buffer, {buffer->data(), buffer->size()}, path};
}

}  // namespace

std::optional<Bytes> Bytes::part(std::uint64_t offset, std::uint64_t length) const {
    if (offset > span.size() || length > span.size() - offset) return std::nullopt;
    return Bytes{owner, span.subspan(offset, length), source};
}

std::optional<std::uint64_t> Bytes::number(std::uint64_t offset, int bytes) const {
    if (offset > span.size() || static_cast<std::uint64_t>(bytes) > span.size() - offset) return std::nullopt;
    std::uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; --i) {
        value = value << 8 | std::to_integer<std::uint64_t>(span[offset + static_cast<std::uint64_t>(i)]);
    }
    return value;
}

Expected<Bytes> open_file(const std::string& path) {
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status{};
    if (file.get() < 0 || fstat(file.get(), &status) != 0) return file_fault(Fault::kFileNotReadable, path);
    if (!S_ISREG(status.st_mode)) return read_pipe(file.get(), path);
    const auto length = static_cast<std::size_t>(status.st_size);
    if (length == 0) return Bytes{nullptr, {}, path};
    void* address = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get(), 0);
    if (address == MAP_FAILED) return file_fault(Fault::kFileNotReadable, path);
    std::shared_ptr<void> owner(address, [length](void* mapped) { munmap(mapped, length); });
    return Bytes{std::move(owner), {static_cast<std::byte*>(address), length}, path};
}

std::optional<std::uint64_t> dense_bytes(DType dtype, std::span<const std::int64_t> sizes) {
    std::uint64_t bytes = dtype_size(dtype);
    bool empty = false;
    for (const std::int64_t size : sizes) {
        if (size < 0) return std::nullopt;
        if (size == 0) {
            empty = true;
        } else if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes) || bytes >> 62 != 0) {
            return std::nullopt;
        }
    }
    return empty ? 0 : bytes;
}

Expected<Tensor> tensor_of_bytes(const Bytes& data, DType dtype, std::span<const std::int64_t> sizes,
                                 std::span<const std::int64_t> strides) {
    std::byte* address = data.span.data();
    const std::size_t width = dtype_size(dtype);
    if (data.owner != nullptr && reinterpret_cast<std::uintptr_t>(address) % width == 0) {
        const auto release = [](void* context, void*) { delete static_cast<std::shared_ptr<void>*>(context); };
        return Tensor::from_blob(address, dtype, sizes, strides, release, new std::shared_ptr<void>(data.owner));
    }
    Tensor copy = Tensor::empty(dtype, sizes);
    if (!copy.defined()) return fault(Fault::kOutOfMemory).operand(data.source);
    if (data.size() > 0) std::memcpy(copy.data(), address, data.size());
    return copy.view(copy.data(), dtype, sizes, strides);
}

Status write_file(const std::string& path, const std::function<Status(const Sink&)>& write) {
    const std::string temporary = path + ".tmp";
    std::FILE* file = std::fopen(temporary.c_str(), "wb");
    if (file == nullptr) return file_fault(Fault::kFileNotWritable, path);
    bool good = true;
    Status status = write([&](const void* data, std::size_t bytes) {
        good = good && (bytes == 0 || std::fwrite(data, 1, bytes, file) == bytes);
    });
    good = std::fclose(file) == 0 && good;
    if (status && good && std::rename(temporary.c_str(), path.c_str()) == 0) return {};
    if (status) status = file_fault(Fault::kFileNotWritable, path);
    std::remove(temporary.c_str());
    return status;
}

std::string little_endian(std::uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value & 0xFF);
    return out;
}

}  // namespace flexor::cli
