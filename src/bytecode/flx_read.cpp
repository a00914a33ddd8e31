#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "bytecode/flx.h"
#include "bytecode/flx_format.h"
#include "bytecode/lexer.h"
#include "bytecode/opcodes.h"
#include "support/diagnostic.h"
#include "support/hash.h"
#include "support/text.h"
#include "types/dtype.h"

namespace flexor::bytecode {
namespace {

using flx::Section;

Diagnostic bad_section(std::string_view section, std::string found) {
    return Diagnostic(DiagnosticId::kBadSection).operand(std::string(section)).found(std::move(found));
}

// Reads one section; after the first read beyond its end every read gives zeros and failed() holds.
class SectionReader {
public:
    SectionReader(std::span<const std::byte> bytes, std::string_view section) : bytes_(bytes), section_(section) {}

    template <class T>
    T get() {
        T value{};
        if (bytes_.size() - at_ < sizeof value) {
            fail();
            return value;
        }
        std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::uint8_t u8() { return get<std::uint8_t>(); }
    std::uint32_t u32() { return get<std::uint32_t>(); }
    std::int32_t i32() { return get<std::int32_t>(); }
    std::uint64_t u64() { return get<std::uint64_t>(); }
    std::int64_t i64() { return get<std::int64_t>(); }

    // A number of items of at least `item_bytes` each: never more than what is left can hold.
    std::size_t count(std::size_t item_bytes) {
        const std::size_t n = u32();
        if (n <= (bytes_.size() - at_) / item_bytes) return n;
        fail();
        return 0;
    }
    std::string_view raw(std::size_t size) {
        if (bytes_.size() - at_ < size) {
            fail();
            return {};
        }
        const auto* begin = reinterpret_cast<const char*>(bytes_.data() + at_);
        at_ += size;
        return {begin, size};
    }
    bool failed() const { return failed_; }
    // All of the section must have been read, and nothing beyond.
    Status finish() const {
        if (failed_) return bad_section(section_, "an end before its last item");
        if (at_ != bytes_.size()) {
            return bad_section(section_, std::to_string(bytes_.size() - at_) + " bytes after its last item");
        }
        return {};
    }
    std::string_view section() const { return section_; }

private:
    void fail() {
        failed_ = true;
        at_ = bytes_.size();
    }
    std::span<const std::byte> bytes_;
    std::string_view section_;
    std::size_t at_ = 0;
    bool failed_ = false;
};

class Reader {
public:
    Reader(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
        : bytes_(bytes), owner_(std::move(owner)) {}

    Expected<Module> read() {
        FLEXOR_TRY(read_table());
        FLEXOR_TRY(read_strings());
        FLEXOR_TRY(read_meta());
        FLEXOR_TRY(read_symbols());
        FLEXOR_TRY(read_constants());
        FLEXOR_TRY(read_hooks());
        FLEXOR_TRY(read_weights());
        FLEXOR_TRY(read_functions());
        return std::move(module_);
    }

private:
    Status read_table() {
        if (!is_flx(bytes_)) return Diagnostic(DiagnosticId::kNotAFlxFile);
        if (bytes_.size() < flx::kHeaderBytes) return truncated(flx::kHeaderBytes);
        SectionReader head(bytes_.subspan(flx::kMagic.size(), flx::kHeaderBytes - flx::kMagic.size()), "header");
        const std::uint32_t version = head.u32();
        const std::uint32_t count = head.u32();
        const std::uint64_t file_size = head.u64();
        const std::uint64_t checksum = head.u64();
        if (version > kFlxVersion) {
            return Diagnostic(DiagnosticId::kNewerFormat)
                .found("version " + std::to_string(version))
                .expected("version " + std::to_string(kFlxVersion) + " or older");
        }
        if (version == 0 || count > flx::kMaxSections) {
            return bad_section("header", std::to_string(count) + " sections, version " + std::to_string(version));
        }
        if (bytes_.size() < file_size) return truncated(file_size);
        const std::size_t head_bytes = flx::kHeaderBytes + count * flx::kTableRowBytes;
        if (file_size < head_bytes) return truncated(head_bytes);
        bytes_ = bytes_.first(file_size);
        if (flx::head_checksum(bytes_.first(head_bytes)) != checksum) return mismatch("header");
        SectionReader table(bytes_.subspan(flx::kHeaderBytes, count * flx::kTableRowBytes), "header");
        std::array<bool, flx::kSectionNames.size()> seen{};
        for (std::uint32_t i = 0; i < count; ++i) {
            std::string_view name = table.raw(8);
            name = name.substr(0, name.find('\0'));
            const std::uint64_t offset = table.u64();
            const std::uint64_t size = table.u64();
            const std::uint64_t section_checksum = table.u64();
            if (offset > bytes_.size() || size > bytes_.size() - offset) return truncated(offset + size);
            const std::span<const std::byte> section = bytes_.subspan(offset, size);
            if (support::hash_bytes(section) != section_checksum) return mismatch(name);
            const auto known = std::ranges::find(flx::kSectionNames, name);
            if (known == flx::kSectionNames.end()) continue;  // of a later minor addition; nothing here refers to it
            const auto index = static_cast<std::size_t>(known - flx::kSectionNames.begin());
            if (seen[index]) return bad_section(name, "a second section of this name");
            if (static_cast<Section>(index) == Section::kData && offset % flx::kAlignment != 0) {
                return bad_section(name, "an offset that is no multiple of 64");
            }
            seen[index] = true;
            sections_[index] = section;
        }
        for (std::size_t i = 0; i < seen.size(); ++i) {
            if (!seen[i]) return bad_section(flx::kSectionNames[i], "no such section");
        }
        return {};
    }

    Diagnostic truncated(std::uint64_t expected) const {
        return Diagnostic(DiagnosticId::kFileTruncated)
            .found(std::to_string(bytes_.size()) + " bytes")
            .expected(std::to_string(expected) + " bytes");
    }
    static Diagnostic mismatch(std::string_view section) {
        return Diagnostic(DiagnosticId::kChecksumMismatch).operand(std::string(section));
    }

    SectionReader section(Section s) const {
        const auto index = static_cast<std::size_t>(s);
        return {sections_[index], flx::kSectionNames[index]};
    }

    Status read_strings() {
        SectionReader in = section(Section::kStrings);
        // One text may be used by many; together they may not copy more than a multiple of what the file holds.
        text_budget_ =
            (std::size_t{1} << 20) + 256 * (bytes_.size() - sections_[static_cast<std::size_t>(Section::kData)].size());
        const std::size_t count = in.count(4);
        strings_.reserve(count);
        for (std::size_t i = 0; i < count && !in.failed(); ++i) {
            const std::size_t size = in.u32();
            strings_.push_back(in.raw(size));
        }
        return in.finish();
    }

    // A text by its index; the first bad index fails the section.
    std::string text(SectionReader& in, Status& status) { return std::string(view(in, status)); }
    std::string_view view(SectionReader& in, Status& status) {
        const std::uint32_t index = in.u32();
        if (index < strings_.size()) {
            used_text_ += strings_[index].size();
            if (used_text_ <= text_budget_) return strings_[index];
            if (status) status = Diagnostic(DiagnosticId::kFileSizeLimit).found("texts that are used too often");
            return {};
        }
        if (status && !in.failed()) status = bad_section(in.section(), "text number " + std::to_string(index));
        return {};
    }

    static Status finish(const SectionReader& in, Status status) {
        if (!status) return status;
        return in.finish();
    }

    Status read_meta() {
        SectionReader in = section(Section::kMeta);
        Status status;
        const std::string_view promotion = view(in, status);
        if (status && promotion != "torch" && promotion != "numpy") {
            return bad_section("meta", "the promotion rule " + support::quote(promotion.substr(0, 40)));
        }
        module_.promotion = promotion == "numpy" ? types::Promotion::kNumpy : types::Promotion::kTorch;
        const std::size_t count = in.count(8);
        for (std::size_t i = 0; i < count; ++i) {
            std::string key = text(in, status);
            module_.metadata[std::move(key)] = text(in, status);
        }
        return finish(in, std::move(status));
    }

    Status read_symbols() {
        SectionReader in = section(Section::kSymbols);
        Status status;
        module_.symbols.resize(in.count(20));
        for (SymbolDecl& symbol : module_.symbols) {
            symbol.name = text(in, status);
            symbol.range.lo = in.i64();
            symbol.range.hi = in.i64();
        }
        for (const SymbolDecl& symbol : module_.symbols) {
            symbols_.emplace(symbol.name, static_cast<types::SymbolId>(&symbol - module_.symbols.data()));
        }
        return finish(in, std::move(status));
    }

    Status read_constants() {
        using flx::ConstantTag;
        SectionReader in = section(Section::kConsts);
        Status status;
        const std::size_t count = in.count(1);
        module_.constants.reserve(std::min<std::size_t>(count, 65536));
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint8_t tag = in.u8();
            Constant constant;
            switch (static_cast<ConstantTag>(tag)) {
                case ConstantTag::kNone: break;
                case ConstantTag::kFalse: constant = false; break;
                case ConstantTag::kTrue: constant = true; break;
                case ConstantTag::kInt: constant = in.i64(); break;
                case ConstantTag::kFloat: constant = in.get<double>(); break;
                case ConstantTag::kText: constant = text(in, status); break;
                case ConstantTag::kIntList: {
                    std::vector<std::int64_t> list(in.count(8));
                    for (std::int64_t& item : list) item = in.i64();
                    constant = std::move(list);
                    break;
                }
                default: return bad_section("consts", "the tag " + std::to_string(tag));
            }
            if (in.failed()) break;
            module_.constants.push_back(std::move(constant));
        }
        return finish(in, std::move(status));
    }

    Status read_hooks() {
        SectionReader in = section(Section::kHooks);
        Status status;
        module_.hooks.resize(in.count(4));
        for (std::string& hook : module_.hooks) hook = text(in, status);
        return finish(in, std::move(status));
    }

    Status read_weights() {
        SectionReader in = section(Section::kWeights);
        Status status;
        const std::span<const std::byte> data = sections_[static_cast<std::size_t>(Section::kData)];
        const std::size_t count = in.count(20);
        module_.weights.reserve(count);
        for (std::size_t i = 0; i < count && !in.failed() && status; ++i) {
            Weight weight;
            weight.name = text(in, status);
            const std::optional<DType> dtype = types::dtype_from_name(view(in, status));
            const std::size_t rank = in.count(8);
            std::vector<std::int64_t> sizes(std::min<std::size_t>(rank, kMaxRank));
            for (std::int64_t& size : sizes) size = in.i64();
            const std::uint64_t offset = in.u64();
            if (in.failed() || !status) break;
            if (!dtype || rank > kMaxRank) return bad_section("weights", "a weight of unknown dtype or rank above 12");
            std::uint64_t bytes = dtype_size(*dtype);
            bool overflow = false;
            for (const std::int64_t size : sizes) {
                overflow =
                    overflow || size < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes);
            }
            // Sizes whose product overflows are refused even where another size is 0.
            if (overflow || offset % flx::kAlignment != 0 || offset > data.size() || bytes > data.size() - offset) {
                return bad_section("weights",
                                   "weight " + support::quote(weight.name.substr(0, 80)) + " outside the data");
            }
            FLEXOR_ASSIGN(weight.tensor, tensor(data.subspan(offset, bytes), *dtype, sizes));
            module_.weights.push_back(std::move(weight));
        }
        return finish(in, std::move(status));
    }

    Expected<Tensor> tensor(std::span<const std::byte> bytes, DType dtype, std::span<const std::int64_t> sizes) const {
        const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
        if (owner_ != nullptr && address % kTensorAlignment == 0) {
            std::vector<std::int64_t> strides(sizes.size(), 1);
            for (std::size_t i = sizes.size(); i > 1; --i) {
                strides[i - 2] = strides[i - 1] * std::max<std::int64_t>(sizes[i - 1], 1);
            }
            using Owner = std::shared_ptr<const void>;
            return Tensor::from_blob(
                const_cast<std::byte*>(bytes.data()), dtype, sizes, strides,
                [](void* context, void*) { delete static_cast<Owner*>(context); }, new Owner(owner_));
        }
        Tensor copy = Tensor::empty(dtype, sizes);
        if (!copy.defined()) return Diagnostic(DiagnosticId::kOutOfMemory).operand("weights");
        if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
        return copy;
    }

    // ------------------------------------------------------------ functions

    Expected<types::SymbolId> symbol(const std::string& name) const {
        if (const auto found = symbols_.find(name); found != symbols_.end()) return found->second;
        return bad_section("funcs", "the symbol " + support::quote(name.substr(0, 80)));
    }

    Expected<types::Dim> dim(std::string_view text) const {
        if (const auto number = support::int_from_text(text)) return types::Dim(*number);
        FLEXOR_ASSIGN(const std::vector<Token> tokens, tokenize(text, "funcs"));
        Cursor cursor(tokens, "funcs");
        FLEXOR_ASSIGN(types::Dim out, parse_dim(cursor, [this](const std::string& n) { return symbol(n); }));
        if (cursor.peek().kind != TokenKind::kEnd) return bad_section("funcs", "text after a dim");
        return out;
    }

    Expected<types::Attrs> attrs(std::string_view text) const {
        FLEXOR_ASSIGN(const std::vector<Token> tokens, tokenize(text, "funcs"));
        Cursor cursor(tokens, "funcs");
        FLEXOR_ASSIGN(types::Attrs out,
                      parse_attrs(cursor, [this](const std::string& n) { return symbol(n); }, nullptr));
        if (cursor.peek().kind != TokenKind::kEnd) return bad_section("funcs", "text after the attributes");
        return out;
    }

    Status read_functions() {
        SectionReader in = section(Section::kFuncs);
        Status status;
        const std::size_t opcodes = in.count(4);
        for (std::size_t i = 0; i < opcodes; ++i) {
            // An unknown mnemonic is refused where it is used.
            opcodes_.push_back(opcode_from_mnemonic(view(in, status)));
        }
        const std::size_t count = in.count(32);
        module_.functions.reserve(count);
        for (std::size_t i = 0; i < count && !in.failed() && status; ++i) {
            Function function;
            FLEXOR_TRY(read_function(in, status, function));
            module_.functions.push_back(std::move(function));
        }
        return finish(in, std::move(status));
    }

    Status read_function(SectionReader& in, Status& status, Function& function) {
        function.name = text(in, status);
        const std::size_t params = in.count(17);
        for (std::size_t i = 0; i < params && !in.failed() && status; ++i) FLEXOR_TRY(read_param(in, status, function));
        function.result_count = in.i32();
        function.result_names.resize(in.count(4));
        for (std::string& name : function.result_names) name = text(in, status);
        function.locals.resize(in.count(4));
        for (std::string& name : function.locals) name = text(in, status);
        const std::size_t sites = in.count(12);
        for (std::size_t i = 0; i < sites && !in.failed() && status; ++i) {
            CallSite site;
            site.op = text(in, status);
            site.operand_count = in.i32();
            const std::string_view spelling = view(in, status);
            FLEXOR_ASSIGN(site.attrs, attrs(spelling));
            function.sites.push_back(std::move(site));
        }
        const std::size_t code = in.count(9);
        function.code.reserve(code);
        for (std::size_t i = 0; i < code; ++i) {
            const std::uint8_t number = in.u8();
            std::int32_t a = in.i32();
            const std::int32_t b = in.i32();
            if (number >= opcodes_.size() || !opcodes_[number]) {
                return Diagnostic(DiagnosticId::kUnknownOpcode)
                    .function(function.name)
                    .pc(static_cast<std::int64_t>(i));
            }
            const Opcode op = *opcodes_[number];
            if (opcode_info(op).format == OperandFormat::kScalarOp) {
                const auto index = static_cast<std::uint32_t>(a);
                const auto named = index < strings_.size() ? scalar_operator_from_name(strings_[index]) : std::nullopt;
                if (!named) return bad_section("funcs", "an unknown scalar operator");
                a = static_cast<std::int32_t>(*named);
            }
            function.code.push_back({op, a, b});
        }
        function.positions.resize(in.count(12));
        for (SourcePosition& position : function.positions) {
            position.pc = in.i32();
            position.line = in.i32();
            position.file = text(in, status);
        }
        return {};
    }

    Status read_param(SectionReader& in, Status& status, Function& function) {
        ParamDecl param;
        param.name = text(in, status);
        const auto kind = std::ranges::find(flx::kParamKindNames, view(in, status));
        const std::uint8_t flags = in.u8();
        const std::optional<DType> dtype = types::dtype_from_name(view(in, status));
        if (in.failed() || !status) return {};
        if (kind == flx::kParamKindNames.end() || !dtype) return bad_section("funcs", "a parameter of unknown type");
        param.kind = static_cast<ParamKind>(kind - flx::kParamKindNames.begin());
        param.dtype = *dtype;
        param.optional = (flags & flx::kParamOptional) != 0;
        param.any_dtype = (flags & flx::kParamAnyDType) != 0;
        param.any_rank = (flags & flx::kParamAnyRank) != 0;
        const std::size_t dims = in.count(5);
        for (std::size_t i = 0; i < dims; ++i) {
            const std::string_view spelling = view(in, status);
            const bool frozen = in.u8() != 0;
            if (in.failed() || !status) return {};
            FLEXOR_ASSIGN(types::Dim value, dim(spelling));
            param.dims.push_back(std::move(value));
            param.frozen.push_back(frozen);
        }
        function.params.push_back(std::move(param));
        return {};
    }

    std::span<const std::byte> bytes_;
    std::shared_ptr<const void> owner_;
    std::array<std::span<const std::byte>, flx::kSectionNames.size()> sections_;
    std::vector<std::string_view> strings_;
    std::size_t text_budget_ = 0;
    std::size_t used_text_ = 0;
    std::unordered_map<std::string_view, types::SymbolId> symbols_;
    std::vector<std::optional<Opcode>> opcodes_;
    Module module_;
};

}  // namespace

bool is_flx(std::span<const std::byte> bytes) {
    return bytes.size() >= flx::kMagic.size() && std::memcmp(bytes.data(), flx::kMagic.data(), flx::kMagic.size()) == 0;
}

Expected<Module> read_flx(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
    return Reader(bytes, std::move(owner)).read();
}

Expected<Module> load_flx(const std::string& path) {
    const auto refuse = [&] {
        return Diagnostic(DiagnosticId::kFileNotReadable).operand(path).found(std::strerror(errno));
    };
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return refuse();
    struct stat status{};
    const bool known = ::fstat(file, &status) == 0;
    const std::size_t size = known && status.st_size > 0 ? static_cast<std::size_t>(status.st_size) : 0;
    if (!known || !S_ISREG(status.st_mode) || size == 0) {
        Diagnostic diagnostic = known ? Diagnostic(DiagnosticId::kNotAFlxFile).operand(path) : refuse();
        ::close(file);
        return diagnostic;
    }
    // Private and writable: no program writes to a weight, but a host that casts the marks of a weight away must neither
    // crash the process nor reach the file.
    void* const mapping = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    ::close(file);
    if (mapping == MAP_FAILED) return refuse();
    const std::shared_ptr<const void> owner(
        mapping, [size](const void* address) { ::munmap(const_cast<void*>(address), size); });
    Expected<Module> module = read_flx({static_cast<const std::byte*>(mapping), size}, owner);
    if (!module) return std::move(module).error().source(path);
    return module;
}

}  // namespace flexor::bytecode
