#include "bytecode/weight_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numbers>

#include "support/check.h"
#include "support/diagnostic.h"
#include "support/text.h"
#include "types/half.h"

namespace flexor::bytecode {
namespace {

constexpr std::int64_t kInlineNumbers = 256;  // longer weights are written as hex

template <class T>
void put(void* element, T value) {
    std::memcpy(element, &value, sizeof value);
}
template <class T>
T get(const void* element) {
    T value;
    std::memcpy(&value, element, sizeof value);
    return value;
}

void store_real(DType dtype, void* element, double value) {
    switch (dtype) {
        case DType::kF16: return put(element, types::f16_from_f64(value));
        case DType::kBF16: return put(element, types::bf16_from_f64(value));
        case DType::kF32: return put(element, static_cast<float>(value));
        case DType::kF64: return put(element, value);
        default: FLEXOR_UNREACHABLE();
    }
}

bool store_integer(DType dtype, void* element, std::int64_t value) {
    const auto narrow = [&]<class T>(T) {
        put(element, static_cast<T>(value));
        return static_cast<std::int64_t>(static_cast<T>(value)) == value;
    };
    switch (dtype) {
        case DType::kBool: put(element, static_cast<std::uint8_t>(value != 0)); return value == 0 || value == 1;
        case DType::kU8: return narrow(std::uint8_t{});
        case DType::kI8: return narrow(std::int8_t{});
        case DType::kI32: return narrow(std::int32_t{});
        case DType::kI64: return narrow(std::int64_t{});
        default: store_real(dtype, element, static_cast<double>(value)); return true;
    }
}

std::string spell_element(DType dtype, const void* element) {
    switch (dtype) {
        case DType::kBool: return get<std::uint8_t>(element) != 0 ? "true" : "false";
        case DType::kU8: return std::to_string(get<std::uint8_t>(element));
        case DType::kI8: return std::to_string(get<std::int8_t>(element));
        case DType::kI32: return std::to_string(get<std::int32_t>(element));
        case DType::kI64: return std::to_string(get<std::int64_t>(element));
        case DType::kF16: return support::text_from_double(types::f32_from_f16(get<std::uint16_t>(element)));
        case DType::kBF16: return support::text_from_double(types::f32_from_bf16(get<std::uint16_t>(element)));
        case DType::kF32: return support::text_from_double(get<float>(element));
        case DType::kF64: return support::text_from_double(get<double>(element));
    }
    FLEXOR_UNREACHABLE();
}

// Texts that stand for one bit pattern only: no NaN, and bools that are 0 or 1.
bool spells_exactly(DType dtype, const void* element) {
    if (dtype == DType::kBool) return get<std::uint8_t>(element) <= 1;
    if (!is_floating(dtype)) return true;
    return spell_element(dtype, element) != "nan";
}

// SplitMix64: the same numbers on every machine.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t bits() {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
    double normal() {
        const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
        return radius * std::cos(2.0 * std::numbers::pi * uniform());
    }

private:
    std::uint64_t state_;
};

Expected<Tensor> allocate(DType dtype, std::span<const std::int64_t> sizes, const std::string& where) {
    Tensor tensor = Tensor::empty(dtype, sizes);
    if (!tensor.defined()) return Diagnostic(DiagnosticId::kOutOfMemory).source(where).operand("weight");
    return tensor;
}

Status parse_elements(Cursor& cursor, const Tensor& tensor) {
    FLEXOR_TRY(cursor.expect("["));
    auto* bytes = tensor.data_as<std::byte>();
    const std::size_t size = dtype_size(tensor.dtype());
    const std::int64_t count = tensor.numel();
    std::int64_t i = 0;
    while (!cursor.at("]")) {
        void* element = bytes + static_cast<std::size_t>(i) * size;
        if (i++ == count) return cursor.unexpected(std::to_string(count) + " numbers");
        if (cursor.at_name("true") || cursor.at_name("false")) {
            store_integer(tensor.dtype(), element, cursor.next().text == "true" ? 1 : 0);
        } else if (is_floating(tensor.dtype())) {
            FLEXOR_ASSIGN(const double value, cursor.number("a number"));
            store_real(tensor.dtype(), element, value);
        } else {
            FLEXOR_ASSIGN(const std::int64_t value, cursor.integer("an integer"));
            if (!store_integer(tensor.dtype(), element, value)) {
                return Diagnostic(DiagnosticId::kBadLiteral)
                    .source(cursor.where())
                    .found(std::to_string(value))
                    .expected("a value of " + std::string(dtype_name(tensor.dtype())));
            }
        }
        if (!cursor.accept(",")) break;
    }
    if (i != count) return cursor.unexpected(std::to_string(count) + " numbers, not " + std::to_string(i));
    return cursor.expect("]");
}

Status parse_hex(Cursor& cursor, const Tensor& tensor) {
    const std::string where = cursor.where();
    FLEXOR_ASSIGN(const std::string text, cursor.string("hexadecimal digits as a text"));
    const std::size_t bytes = static_cast<std::size_t>(tensor.numel()) * dtype_size(tensor.dtype());
    const auto bad = [&](std::string found) {
        return Diagnostic(DiagnosticId::kBadLiteral)
            .source(where)
            .found(std::move(found))
            .expected(std::to_string(2 * bytes) + " hexadecimal digits");
    };
    if (text.size() != 2 * bytes) return bad(std::to_string(text.size()) + " characters");
    const auto digit = [](char c) {
        if (c >= '0' && c <= '9') return c - '0';
        if (c >= 'a' && c <= 'f') return c - 'a' + 10;
        return -1;
    };
    auto* out = tensor.data_as<std::uint8_t>();
    for (std::size_t i = 0; i < bytes; ++i) {
        const int high = digit(text[2 * i]);
        const int low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return bad(support::quote(text.substr(2 * i, 2)));
        out[i] = static_cast<std::uint8_t>(16 * high + low);
    }
    return {};
}

void fill(const Tensor& tensor, const auto& element) {
    auto* bytes = tensor.data_as<std::byte>();
    const std::size_t size = dtype_size(tensor.dtype());
    const auto count = static_cast<std::size_t>(tensor.numel());
    for (std::size_t i = 0; i < count; ++i) element(bytes + i * size);
}

std::string npy_dtype(DType dtype) {
    switch (dtype) {
        case DType::kBool: return "|b1";
        case DType::kU8: return "|u1";
        case DType::kI8: return "|i1";
        case DType::kI32: return "<i4";
        case DType::kI64: return "<i8";
        case DType::kF16: return "<f2";
        case DType::kF32: return "<f4";
        case DType::kF64: return "<f8";
        case DType::kBF16: return "";  // NumPy has no name for it
    }
    FLEXOR_UNREACHABLE();
}

struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Expected<Tensor> parse_weight(Cursor& cursor, DType dtype, std::span<const std::int64_t> sizes,
                              const std::string* folder, std::uint64_t* budget) {
    const std::string where = cursor.where();
    std::uint64_t bytes = dtype_size(dtype);
    bool too_large = false;
    for (const std::int64_t size : sizes) {
        too_large = __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes) || too_large;
    }
    if (too_large || bytes > *budget) {
        return Diagnostic(DiagnosticId::kFileSizeLimit)
            .source(where)
            .found(too_large ? "a weight of more than 2^64 bytes" : support::text_from_bytes(bytes))
            .expected("at most " + support::text_from_bytes(*budget) + " for the weights of a text");
    }
    *budget -= bytes;
    if (cursor.at_name("file")) {
        cursor.next();
        FLEXOR_ASSIGN(std::string path, cursor.string("the name of a .npy file"));
        if (folder == nullptr) {
            return Diagnostic(DiagnosticId::kFileNotReadable)
                .source(where)
                .operand(path)
                .hint("this text may not read files");
        }
        if (!path.starts_with('/') && !folder->empty()) path = *folder + "/" + path;
        Expected<Tensor> tensor = read_npy(path);
        if (!tensor) return std::move(tensor).error().source(where);
        const auto spell = [](DType d, std::span<const std::int64_t> s) {
            return std::string(dtype_name(d)) + "[" +
                   support::join(s, ",", [](std::int64_t n) { return std::to_string(n); }) + "]";
        };
        if (tensor->dtype() != dtype || !std::ranges::equal(tensor->sizes(), sizes)) {
            return Diagnostic(DiagnosticId::kShapeMismatch)
                .source(where)
                .operand(path)
                .found(spell(tensor->dtype(), tensor->sizes()))
                .expected(spell(dtype, sizes));
        }
        return tensor;
    }
    if (cursor.at_name("omitted")) {
        return Diagnostic(DiagnosticId::kBadLiteral)
            .source(where)
            .found("omitted")
            .hint("the listing left out this weight: ask for larger weights when disassembling, or load the .flx file");
    }
    FLEXOR_ASSIGN(Tensor tensor, allocate(dtype, sizes, where));
    if (cursor.at("[")) {
        FLEXOR_TRY(parse_elements(cursor, tensor));
        return tensor;
    }
    const Token& word = cursor.peek();
    if (word.kind != TokenKind::kName) {
        return cursor.unexpected("zeros, ones, normal(seed), uniform(seed), hex, file or [numbers]");
    }
    const std::string kind(word.text);
    if (kind == "zeros" || kind == "ones") {
        cursor.next();
        fill(tensor, [&](void* element) { store_integer(dtype, element, kind == "ones" ? 1 : 0); });
        return tensor;
    }
    if (kind == "hex") {
        cursor.next();
        FLEXOR_TRY(parse_hex(cursor, tensor));
        return tensor;
    }
    if (kind == "normal" || kind == "uniform") {
        cursor.next();
        FLEXOR_TRY(cursor.expect("("));
        FLEXOR_ASSIGN(const std::int64_t seed, cursor.integer("a seed"));
        double scale = 1.0;
        if (cursor.accept(",")) {
            FLEXOR_ASSIGN(scale, cursor.number("a standard deviation or upper bound"));
        }
        FLEXOR_TRY(cursor.expect(")"));
        Random random(static_cast<std::uint64_t>(seed));
        fill(tensor, [&](void* element) {
            const double value = scale * (kind == "normal" ? random.normal() : random.uniform());
            if (is_floating(dtype)) {
                store_real(dtype, element, value);
            } else {
                const double bounded = std::clamp(std::floor(value), -128.0, 127.0);
                store_integer(dtype, element, dtype == DType::kBool ? (value >= 0.5) : static_cast<int>(bounded));
            }
        });
        return tensor;
    }
    static constexpr std::string_view kKinds[] = {"zeros", "ones", "normal", "uniform", "hex", "file"};
    return cursor.unexpected("zeros, ones, normal(seed), uniform(seed), hex, file or [numbers]")
        .hint(support::near_miss_hint(kind, kKinds));
}

std::string spell_weight(const Tensor& given) {
    const Tensor tensor = given.contiguous();
    const std::size_t size = dtype_size(tensor.dtype());
    const auto count = static_cast<std::size_t>(tensor.numel());
    const auto* bytes = tensor.data_as<std::uint8_t>();
    if (std::all_of(bytes, bytes + count * size, [](std::uint8_t b) { return b == 0; })) return "zeros";
    bool exact = tensor.numel() <= kInlineNumbers;
    for (std::size_t i = 0; exact && i < count; ++i) exact = spells_exactly(tensor.dtype(), bytes + i * size);
    std::string out;
    if (exact) {
        for (std::size_t i = 0; i < count; ++i) {
            out += i == 0 ? "[" : ", ";
            out += spell_element(tensor.dtype(), bytes + i * size);
        }
        return out + "]";
    }
    constexpr std::string_view kDigits = "0123456789abcdef";
    out = "hex \"";
    out.reserve(out.size() + 2 * count * size + 1);
    for (std::size_t i = 0; i < count * size; ++i) {
        out += kDigits[bytes[i] >> 4];
        out += kDigits[bytes[i] & 15];
    }
    return out + "\"";
}

Expected<Tensor> read_npy(const std::string& path) {
    const auto bad = [&](std::string found) {
        return Diagnostic(DiagnosticId::kBadSection).operand(path).found(std::move(found)).expected("a .npy file");
    };
    const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(path.c_str(), "rb"));
    if (file == nullptr) return Diagnostic(DiagnosticId::kFileNotReadable).operand(path);
    std::uint8_t head[12];
    if (std::fread(head, 1, 10, file.get()) != 10 || std::memcmp(head, "\x93NUMPY", 6) != 0)
        return bad("another magic");
    std::size_t length = head[8] + 256U * head[9];
    if (head[6] >= 2) {
        if (std::fread(head + 10, 1, 2, file.get()) != 2) return bad("a short header");
        length += 65536U * head[10] + 16777216U * head[11];
    }
    if (length > 65536) return bad("a header of " + std::to_string(length) + " bytes");
    std::string header(length, '\0');
    if (std::fread(header.data(), 1, length, file.get()) != length) return bad("a short header");
    const auto after = [&](std::string_view key) {
        const std::size_t at = header.find(key);
        return at == std::string::npos ? std::string_view()
                                       : support::trim(std::string_view(header).substr(at + key.size()));
    };
    if (!after("'fortran_order':").starts_with("False")) return bad("column-major order");
    std::string_view shape = after("'shape':");
    if (!shape.starts_with('(') || shape.find(')') == std::string_view::npos) return bad("no shape");
    shape = shape.substr(1, shape.find(')') - 1);
    std::vector<std::int64_t> sizes;
    for (const std::string_view piece : support::split(shape, ',')) {
        const std::string_view text = support::trim(piece);
        if (text.empty()) continue;
        const auto size = support::int_from_text(text);
        if (!size || *size < 0 || sizes.size() == kMaxRank) return bad("the shape (" + std::string(shape) + ")");
        sizes.push_back(*size);
    }
    const std::string_view description = after("'descr':");
    for (int d = 0; d < kDTypeCount; ++d) {
        const auto dtype = static_cast<DType>(d);
        const std::string name = npy_dtype(dtype);
        if (name.empty() || !description.starts_with("'" + name + "'")) continue;
        std::uint64_t bytes = dtype_size(dtype);
        bool overflow = false;
        for (const std::int64_t size : sizes) {
            overflow = __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes) || overflow;
        }
        const long begin = std::ftell(file.get());
        const bool sized = begin >= 0 && std::fseek(file.get(), 0, SEEK_END) == 0;
        const long end = sized ? std::ftell(file.get()) : -1;
        if (overflow || end < begin || static_cast<std::uint64_t>(end - begin) < bytes) {
            return Diagnostic(DiagnosticId::kFileTruncated).operand(path);
        }
        FLEXOR_ASSIGN(Tensor tensor, allocate(dtype, sizes, path));
        std::fseek(file.get(), begin, SEEK_SET);
        if (bytes != 0 && std::fread(tensor.data(), 1, bytes, file.get()) != bytes) {
            return Diagnostic(DiagnosticId::kFileTruncated).operand(path);
        }
        return tensor;
    }
    return bad("the dtype " + std::string(description.substr(0, description.find(','))));
}

}  // namespace flexor::bytecode
