#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>

#include "bytecode/flx.h"
#include "bytecode/flx_format.h"
#include "bytecode/lexer.h"
#include "bytecode/opcodes.h"
#include "support/diagnostic.h"
#include "support/hash.h"

namespace flexor::bytecode {
namespace {

using flx::Section;

class SectionWriter {
public:
    void u8(std::uint8_t value) { put(&value, 1); }
    void u32(std::uint32_t value) { put(&value, sizeof value); }
    void u64(std::uint64_t value) { put(&value, sizeof value); }
    void i32(std::int32_t value) { put(&value, sizeof value); }
    void i64(std::int64_t value) { put(&value, sizeof value); }
    void f64(double value) { put(&value, sizeof value); }
    void count(std::size_t value) { u32(static_cast<std::uint32_t>(value)); }
    void raw(std::string_view text) { put(text.data(), text.size()); }
    void put(const void* data, std::size_t size) {
        const auto* begin = static_cast<const std::byte*>(data);
        bytes_.insert(bytes_.end(), begin, begin + size);
    }
    std::span<const std::byte> view() const { return bytes_; }

private:
    std::vector<std::byte> bytes_;
};

struct Piece {
    std::size_t offset;
    std::span<const std::byte> bytes;
};

class Writer {
public:
    explicit Writer(const Module& module) : module_(module) {
        write_meta();
        write_symbols();
        write_constants();
        write_hooks();
        write_weights();
        write_functions();
        SectionWriter& out = section(Section::kStrings);
        out.count(strings_.size());
        std::vector<const std::string*> ordered(strings_.size());
        for (const auto& [text, index] : strings_) ordered[index] = &text;
        for (const std::string* text : ordered) {
            out.count(text->size());
            out.raw(*text);
        }
        lay_out();
    }

    std::size_t file_size() const { return file_size_; }
    // In ascending order of offset, without overlap; what lies between them is zero.
    const std::vector<Piece>& pieces() const { return pieces_; }

private:
    SectionWriter& section(Section s) { return sections_[static_cast<std::size_t>(s)]; }

    std::uint32_t text(std::string_view value) {
        return strings_.try_emplace(std::string(value), static_cast<std::uint32_t>(strings_.size())).first->second;
    }

    void write_meta() {
        SectionWriter& out = section(Section::kMeta);
        out.u32(text(module_.promotion == types::Promotion::kNumpy ? "numpy" : "torch"));
        out.count(module_.metadata.size());
        for (const auto& [key, value] : module_.metadata) {
            out.u32(text(key));
            out.u32(text(value));
        }
    }

    void write_symbols() {
        SectionWriter& out = section(Section::kSymbols);
        out.count(module_.symbols.size());
        for (const SymbolDecl& symbol : module_.symbols) {
            out.u32(text(symbol.name));
            out.i64(symbol.range.lo);
            out.i64(symbol.range.hi);
        }
    }

    void write_constants() {
        using flx::ConstantTag;
        struct Visitor {
            Writer& writer;
            SectionWriter& out;
            void tag(ConstantTag t) const { out.u8(static_cast<std::uint8_t>(t)); }
            void operator()(None) const { tag(ConstantTag::kNone); }
            void operator()(bool value) const { tag(value ? ConstantTag::kTrue : ConstantTag::kFalse); }
            void operator()(std::int64_t value) const {
                tag(ConstantTag::kInt);
                out.i64(value);
            }
            void operator()(double value) const {
                tag(ConstantTag::kFloat);
                out.f64(value);
            }
            void operator()(const std::string& value) const {
                tag(ConstantTag::kText);
                out.u32(writer.text(value));
            }
            void operator()(const std::vector<std::int64_t>& list) const {
                tag(ConstantTag::kIntList);
                out.count(list.size());
                for (const std::int64_t item : list) out.i64(item);
            }
        };
        SectionWriter& out = section(Section::kConsts);
        out.count(module_.constants.size());
        for (const Constant& constant : module_.constants) std::visit(Visitor{*this, out}, constant);
    }

    void write_hooks() {
        SectionWriter& out = section(Section::kHooks);
        out.count(module_.hooks.size());
        for (const std::string& hook : module_.hooks) out.u32(text(hook));
    }

    // Offsets count from the beginning of the data section.
    void write_weights() {
        SectionWriter& out = section(Section::kWeights);
        out.count(module_.weights.size());
        for (const Weight& weight : module_.weights) {
            const Tensor tensor = weight.tensor.contiguous();
            const std::size_t bytes = static_cast<std::size_t>(tensor.numel()) * dtype_size(tensor.dtype());
            out.u32(text(weight.name));
            out.u32(text(dtype_name(tensor.dtype())));
            out.count(tensor.sizes().size());
            for (const std::int64_t size : tensor.sizes()) out.i64(size);
            out.u64(data_size_);
            weights_.push_back(tensor);
            weight_offsets_.push_back(data_size_);
            data_size_ = flx::align_up(data_size_ + bytes);
        }
    }

    void write_functions() {
        SectionWriter& out = section(Section::kFuncs);
        out.count(all_opcodes().size());
        for (const OpcodeInfo& row : all_opcodes()) out.u32(text(row.mnemonic));
        out.count(module_.functions.size());
        for (const Function& function : module_.functions) write_function(out, function);
    }

    void write_function(SectionWriter& out, const Function& function) {
        out.u32(text(function.name));
        out.count(function.params.size());
        for (const ParamDecl& param : function.params) write_param(out, param);
        out.i32(function.result_count);
        out.count(function.result_names.size());
        for (const std::string& name : function.result_names) out.u32(text(name));
        out.count(function.locals.size());
        for (const std::string& name : function.locals) out.u32(text(name));
        out.count(function.sites.size());
        for (const CallSite& site : function.sites) {
            out.u32(text(site.op));
            out.i32(site.operand_count);
            out.u32(text(spell_attrs(site.attrs, nullptr, symbol_names(module_))));
        }
        out.count(function.code.size());
        for (const Instruction& instruction : function.code) {
            const bool scalar = opcode_info(instruction.op).format == OperandFormat::kScalarOp;
            out.u8(static_cast<std::uint8_t>(instruction.op));  // index into the file's own list of mnemonics
            out.i32(scalar ? static_cast<std::int32_t>(
                                 text(scalar_operator_name(static_cast<ScalarOperator>(instruction.a))))
                           : instruction.a);
            out.i32(instruction.b);
        }
        out.count(function.positions.size());
        for (const SourcePosition& position : function.positions) {
            out.i32(position.pc);
            out.i32(position.line);
            out.u32(text(position.file));
        }
    }

    void write_param(SectionWriter& out, const ParamDecl& param) {
        out.u32(text(param.name));
        out.u32(text(flx::kParamKindNames[static_cast<std::size_t>(param.kind)]));
        std::uint8_t flags = param.optional ? flx::kParamOptional : 0;
        if (param.any_dtype) flags |= flx::kParamAnyDType;
        if (param.any_rank) flags |= flx::kParamAnyRank;
        out.u8(flags);
        out.u32(text(dtype_name(param.dtype)));
        out.count(param.dims.size());
        for (std::size_t i = 0; i < param.dims.size(); ++i) {
            out.u32(text(param.dims[i].to_string(symbol_names(module_))));
            out.u8(i < param.frozen.size() && param.frozen[i] ? 1 : 0);
        }
    }

    void lay_out() {
        const std::size_t count = flx::kSectionNames.size();
        std::size_t offset = flx::align_up(flx::kHeaderBytes + count * flx::kTableRowBytes);
        SectionWriter table;
        pieces_.push_back({0, {}});
        for (std::size_t i = 0; i < count; ++i) {
            std::array<char, 8> name{};
            flx::kSectionNames[i].copy(name.data(), name.size());
            const bool data = static_cast<Section>(i) == Section::kData;
            const std::size_t size = data ? data_size_ : sections_[i].view().size();
            table.put(name.data(), name.size());
            table.u64(offset);
            table.u64(size);
            table.u64(data ? data_checksum() : support::hash_bytes(sections_[i].view()));
            if (data) {
                for (std::size_t w = 0; w < weights_.size(); ++w) {
                    pieces_.push_back({offset + weight_offsets_[w], weight_bytes(w)});
                }
            } else {
                pieces_.push_back({offset, sections_[i].view()});
            }
            offset = flx::align_up(offset + size);
        }
        file_size_ = offset;
        head_.put(flx::kMagic.data(), flx::kMagic.size());
        head_.u32(kFlxVersion);
        head_.count(count);
        head_.u64(file_size_);
        SectionWriter checked = head_;
        checked.put(table.view().data(), table.view().size());
        head_.u64(support::hash_bytes(checked.view()));
        head_.put(table.view().data(), table.view().size());
        pieces_[0].bytes = head_.view();
    }

    std::span<const std::byte> weight_bytes(std::size_t i) const {
        const Tensor& tensor = weights_[i];
        return {tensor.data_as<const std::byte>(),
                static_cast<std::size_t>(tensor.numel()) * dtype_size(tensor.dtype())};
    }

    std::uint64_t data_checksum() const {
        support::Hasher hasher;
        static constexpr std::array<std::byte, flx::kAlignment> kZeros{};
        for (std::size_t i = 0; i < weights_.size(); ++i) {
            const std::span<const std::byte> bytes = weight_bytes(i);
            hasher.add(bytes);
            hasher.add(std::span(kZeros).first(flx::align_up(bytes.size()) - bytes.size()));
        }
        return hasher.digest();
    }

    const Module& module_;
    std::map<std::string, std::uint32_t> strings_;
    std::array<SectionWriter, flx::kSectionNames.size()> sections_;
    SectionWriter head_;
    std::vector<Tensor> weights_;
    std::vector<std::size_t> weight_offsets_;
    std::size_t data_size_ = 0;
    std::size_t file_size_ = 0;
    std::vector<Piece> pieces_;
};

class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number() const { return number_; }

private:
    int number_;
};

bool write_at(int file, std::span<const std::byte> bytes, std::size_t offset) {
    while (!bytes.empty()) {
        const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(written));
        offset += static_cast<std::size_t>(written);
    }
    return true;
}

}  // namespace

std::uint64_t flx::head_checksum(std::span<const std::byte> head) {
    std::vector<std::byte> checked(head.begin(), head.begin() + kHeaderBytes - 8);
    checked.insert(checked.end(), head.begin() + kHeaderBytes, head.end());
    return support::hash_bytes(checked);
}

void flx::seal(std::span<std::byte> file) {
    if (file.size() < kHeaderBytes || !is_flx(file)) return;
    std::uint32_t sections = 0;
    std::memcpy(&sections, file.data() + 12, sizeof sections);
    const std::size_t head = kHeaderBytes + std::min<std::size_t>(sections, kMaxSections) * kTableRowBytes;
    if (file.size() < head) return;
    for (std::size_t row = kHeaderBytes; row < head; row += kTableRowBytes) {
        std::uint64_t offset = 0;
        std::uint64_t size = 0;
        std::memcpy(&offset, file.data() + row + 8, sizeof offset);
        std::memcpy(&size, file.data() + row + 16, sizeof size);
        if (offset > file.size() || size > file.size() - offset) continue;
        const std::uint64_t checksum = support::hash_bytes(file.subspan(offset, size));
        std::memcpy(file.data() + row + 24, &checksum, sizeof checksum);
    }
    const std::uint64_t checksum = head_checksum(file.first(head));
    std::memcpy(file.data() + 24, &checksum, sizeof checksum);
}

std::vector<std::byte> write_flx(const Module& module) {
    const Writer writer(module);
    std::vector<std::byte> out(writer.file_size());
    for (const Piece& piece : writer.pieces()) {
        if (!piece.bytes.empty()) std::memcpy(out.data() + piece.offset, piece.bytes.data(), piece.bytes.size());
    }
    return out;
}

Status save_flx(const Module& module, const std::string& path) {
    static std::atomic<std::uint64_t> counter{0};
    const std::string temporary =
        path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(counter.fetch_add(1));
    const auto refuse = [&] {
        const std::string reason = std::strerror(errno);
        ::unlink(temporary.c_str());
        return Diagnostic(DiagnosticId::kFileNotWritable).operand(path).found(reason);
    };
    const Writer writer(module);
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.number() < 0) return refuse();
    if (::ftruncate(file.number(), static_cast<off_t>(writer.file_size())) != 0) return refuse();
    for (const Piece& piece : writer.pieces()) {
        if (!write_at(file.number(), piece.bytes, piece.offset)) return refuse();
    }
    if (::fsync(file.number()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) return refuse();
    return {};
}

}  // namespace flexor::bytecode
