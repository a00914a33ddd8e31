#include "npz.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "faults.h"
#include "npy.h"

namespace flexor::cli {
namespace {

// Zip records, by their signatures and the offsets of the fields used here.
constexpr std::uint64_t kLocalHeader = 0x04034b50, kLocalHeaderBytes = 30;
constexpr std::uint64_t kCentralHeader = 0x02014b50, kCentralHeaderBytes = 46;
constexpr std::uint64_t kEnd = 0x06054b50, kEndBytes = 22;
constexpr std::uint64_t kEnd64 = 0x06064b50, kEnd64Bytes = 56;
constexpr std::uint64_t kEnd64Locator = 0x07064b50, kEnd64LocatorBytes = 20;
constexpr std::uint64_t kSaturated = 0xFFFFFFFF;  // the true value stands in the zip64 record
constexpr std::uint64_t kZip64Extra = 0x0001;
constexpr std::uint64_t kMaxExpansion = 1032;  // deflate cannot do better

struct Entry {
    std::string name;
    std::uint64_t flags = 0, method = 0, crc = 0, packed = 0, size = 0, offset = 0;
};

struct Directory {
    std::uint64_t offset = 0, entries = 0;
};

class Archive {
public:
    explicit Archive(const Bytes& file) : file_(file) {}

    Expected<NamedTensors> read() {
        CLI_ASSIGN(const std::vector<Entry> entries, directory());
        NamedTensors tensors;
        for (const Entry& entry : entries) {
            if (!entry.name.ends_with(".npy")) {
                return fault(Fault::kUnsupportedTensor)
                    .operand(file_.source + ": " + entry.name)
                    .expected("entries whose names end in .npy");
            }
            std::string name = entry.name.substr(0, entry.name.size() - 4);
            const auto taken = [&](const auto& other) { return other.first == name; };
            if (std::ranges::any_of(tensors, taken)) return malformed("the name '" + name + "' twice");
            CLI_ASSIGN(const Bytes contents, expand(entry));
            CLI_ASSIGN(Tensor tensor, read_npy(contents));
            tensors.emplace_back(std::move(name), std::move(tensor));
        }
        return tensors;
    }

private:
    Diagnostic malformed(std::string found) const {
        return fault(Fault::kBadSection).operand(file_.source).found(std::move(found)).expected("a zip archive");
    }
    Diagnostic truncated() const { return fault(Fault::kFileTruncated).operand(file_.source); }

    Expected<Directory> end_record() const {
        const std::uint64_t size = file_.size();
        // The record is followed by a comment of at most 65535 bytes.
        for (std::uint64_t tail = kEndBytes; tail <= size && tail <= kEndBytes + 0xFFFF; ++tail) {
            const std::uint64_t at = size - tail;
            if (file_.number(at, 4) != kEnd || file_.number(at + 20, 2) != tail - kEndBytes) continue;
            const std::uint64_t entries = *file_.number(at + 10, 2), offset = *file_.number(at + 16, 4);
            if (entries != 0xFFFF && offset != kSaturated) return Directory{offset, entries};
            if (at < kEnd64LocatorBytes || file_.number(at - kEnd64LocatorBytes, 4) != kEnd64Locator) {
                return Directory{offset, entries};
            }
            const std::uint64_t at64 = *file_.number(at - kEnd64LocatorBytes + 8, 8);
            if (file_.number(at64, 4) != kEnd64 || !file_.part(at64, kEnd64Bytes)) return malformed("a bad zip64 end");
            return Directory{*file_.number(at64 + 48, 8), *file_.number(at64 + 32, 8)};
        }
        return malformed("no end record");
    }

    Expected<std::vector<Entry>> directory() const {
        CLI_ASSIGN(const Directory directory, end_record());
        std::vector<Entry> entries;
        std::uint64_t at = directory.offset;
        for (std::uint64_t i = 0; i < directory.entries; ++i) {
            const auto header = file_.part(at, kCentralHeaderBytes);
            if (!header) return truncated();
            if (header->number(0, 4) != kCentralHeader) return malformed("a bad directory entry");
            const std::uint64_t name_bytes = *header->number(28, 2), extra_bytes = *header->number(30, 2);
            const auto name = file_.part(at + kCentralHeaderBytes, name_bytes);
            const auto extra = file_.part(at + kCentralHeaderBytes + name_bytes, extra_bytes);
            if (!name || !extra) return truncated();
            Entry entry;
            entry.name = name->text();
            entry.flags = *header->number(8, 2);
            entry.method = *header->number(10, 2);
            entry.crc = *header->number(16, 4);
            entry.packed = *header->number(20, 4);
            entry.size = *header->number(24, 4);
            entry.offset = *header->number(42, 4);
            if (!widen(entry, *extra)) return malformed("a bad zip64 field");
            entries.push_back(std::move(entry));
            at += kCentralHeaderBytes + name_bytes + extra_bytes + *header->number(32, 2);
        }
        return entries;
    }

    // Replaces saturated fields by those of the zip64 extra field, which holds them in this order.
    static bool widen(Entry& entry, const Bytes& extra) {
        std::uint64_t at = 0;
        while (extra.size() - at >= 4) {
            const std::uint64_t id = *extra.number(at, 2), length = *extra.number(at + 2, 2);
            const auto field = extra.part(at + 4, length);
            if (!field) return false;
            at += 4 + length;
            if (id != kZip64Extra) continue;
            std::uint64_t next = 0;
            for (std::uint64_t* value : {&entry.size, &entry.packed, &entry.offset}) {
                if (*value != kSaturated) continue;
                const auto wide = field->number(next, 8);
                if (!wide) return false;
                *value = *wide;
                next += 8;
            }
        }
        return true;
    }

    Expected<Bytes> expand(const Entry& entry) const {
        const std::string source = file_.source + ": " + entry.name;
        const auto header = file_.part(entry.offset, kLocalHeaderBytes);
        if (!header) return truncated();
        if (header->number(0, 4) != kLocalHeader) return malformed("a bad entry header");
        if ((entry.flags & 1) != 0 || (entry.method != 0 && entry.method != 8)) {
            return fault(Fault::kUnsupportedTensor)
                .operand(source)
                .found((entry.flags & 1) != 0 ? "an encrypted entry" : "method " + std::to_string(entry.method))
                .expected("a stored or deflated entry");
        }
        const std::uint64_t begin = kLocalHeaderBytes + *header->number(26, 2) + *header->number(28, 2);
        auto packed = file_.part(entry.offset + begin, entry.packed);
        if (!packed) return truncated();
        packed->source = source;
        if (entry.method == 0) {
            if (entry.size != entry.packed) return malformed("a stored entry of two sizes");
            return checked(*packed, entry);
        }
        if (entry.size / kMaxExpansion > entry.packed) return malformed("an entry that cannot expand to its size");
        CLI_ASSIGN(const Bytes inflated, inflate_bytes(*packed, entry.size));
        return checked(inflated, entry);
    }

    static Expected<Bytes> checked(const Bytes& contents, const Entry& entry) {
        if (crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(contents.span.data()), contents.size()) !=
            entry.crc) {
            return fault(Fault::kChecksumMismatch).operand(contents.source);
        }
        return contents;
    }

    static Expected<Bytes> inflate_bytes(const Bytes& packed, std::uint64_t size) {
        const std::int64_t sizes[] = {static_cast<std::int64_t>(size)};
        auto buffer = std::make_shared<Tensor>(Tensor::empty(DType::kU8, sizes));
        if (!buffer->defined()) return fault(Fault::kOutOfMemory).operand(packed.source);
        z_stream stream{};
        if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return fault(Fault::kOutOfMemory).operand(packed.source);
        stream.next_in = reinterpret_cast<Bytef*>(packed.span.data());
        stream.next_out = buffer->data_as<Bytef>();
        // zlib counts in 32 bits: long entries are fed piece by piece.
        constexpr std::uint64_t kPiece = std::numeric_limits<uInt>::max();
        std::uint64_t in_left = packed.size(), out_left = size;
        int code = Z_OK;
        do {
            const uInt in = stream.avail_in = static_cast<uInt>(std::min(in_left, kPiece));
            const uInt out = stream.avail_out = static_cast<uInt>(std::min(out_left, kPiece));
            code = inflate(&stream, Z_NO_FLUSH);
            in_left -= in - stream.avail_in;
            out_left -= out - stream.avail_out;
            if (in == stream.avail_in && out == stream.avail_out) break;
        } while (code == Z_OK);
        inflateEnd(&stream);
        if (code != Z_STREAM_END || out_left != 0) {
            return fault(Fault::kBadSection).operand(packed.source).found("deflated bytes that do not expand");
        }
        return Bytes{buffer, {buffer->data_as<std::byte>(), size}, packed.source};
    }

    const Bytes& file_;
};

// What stands in both headers of a written entry, from the version needed to the sizes. Sizes that do not fit in 32
// bits move to a zip64 field.
struct Written {
    std::string name;
    std::uint64_t crc = 0, size = 0, offset = 0;
    bool wide() const { return size >= kSaturated || offset >= kSaturated; }
    std::string common() const {
        const std::uint64_t narrow = wide() ? kSaturated : size;
        constexpr std::uint64_t kUtf8Names = 0x0800, kFirstDay = 0x0021;  // 1980-01-01
        return little_endian(wide() ? 45 : 20, 2) + little_endian(kUtf8Names, 2) + little_endian(0, 2) +
               little_endian(0, 2) + little_endian(kFirstDay, 2) + little_endian(crc, 4) + little_endian(narrow, 4) +
               little_endian(narrow, 4) + little_endian(name.size(), 2);
    }
    std::string zip64(bool with_offset) const {
        if (!wide()) return "";
        const std::string sizes = little_endian(size, 8) + little_endian(size, 8);
        const std::string fields = with_offset ? sizes + little_endian(offset, 8) : sizes;
        return little_endian(kZip64Extra, 2) + little_endian(fields.size(), 2) + fields;
    }
    std::string local() const {
        const std::string extra = zip64(false);
        return little_endian(kLocalHeader, 4) + common() + little_endian(extra.size(), 2) + name + extra;
    }
    std::string central() const {
        const std::string extra = zip64(true);
        return little_endian(kCentralHeader, 4) + little_endian(45, 2) + common() + little_endian(extra.size(), 2) +
               little_endian(0, 10) + little_endian(wide() ? kSaturated : offset, 4) + name + extra;
    }
};

std::string end_records(std::uint64_t offset, std::uint64_t bytes, std::uint64_t entries) {
    std::string out;
    if (offset >= kSaturated || entries >= 0xFFFF) {
        out = little_endian(kEnd64, 4) + little_endian(kEnd64Bytes - 12, 8) + little_endian(45, 2) +
              little_endian(45, 2) + little_endian(0, 8) + little_endian(entries, 8) + little_endian(entries, 8) +
              little_endian(bytes, 8) + little_endian(offset, 8) + little_endian(kEnd64Locator, 4) +
              little_endian(0, 4) + little_endian(offset + bytes, 8) + little_endian(1, 4);
    }
    const std::uint64_t short_entries = std::min<std::uint64_t>(entries, 0xFFFF);
    return out + little_endian(kEnd, 4) + little_endian(0, 4) + little_endian(short_entries, 2) +
           little_endian(short_entries, 2) + little_endian(std::min(bytes, kSaturated), 4) +
           little_endian(std::min(offset, kSaturated), 4) + little_endian(0, 2);
}

}  // namespace

Expected<NamedTensors> read_npz(const Bytes& file) { return Archive(file).read(); }

Status write_npz(const NamedTensors& tensors, const Sink& sink) {
    std::uint64_t position = 0;
    const auto put = [&](const std::string& bytes) {
        sink(bytes.data(), bytes.size());
        position += bytes.size();
    };
    std::string directory;
    for (const auto& [name, tensor] : tensors) {
        Written entry{name + ".npy", crc32_z(0, nullptr, 0), 0, position};
        const Tensor dense = tensor.contiguous();
        if (!dense.defined()) return fault(Fault::kOutOfMemory).operand(name);
        CLI_TRY(write_npy(dense, name, [&](const void* data, std::size_t bytes) {
            entry.crc = crc32_z(entry.crc, static_cast<const Bytef*>(data), bytes);
            entry.size += bytes;
        }));
        put(entry.local());
        CLI_TRY(write_npy(dense, name, sink));
        position += entry.size;
        directory += entry.central();
    }
    const std::uint64_t offset = position;
    put(directory);
    put(end_records(offset, directory.size(), tensors.size()));
    return {};
}

}  // namespace flexor::cli
