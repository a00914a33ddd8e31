#include "fake/cublaslt.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "types/half.h"

namespace {

using flexor::types::bf16_from_f32;
using flexor::types::f16_from_f32;
using flexor::types::f32_from_bf16;
using flexor::types::f32_from_f16;

flexor::tests::FakeCublasLt state;

constexpr int kInvalid = 7, kNotSupported = 15;
constexpr std::uint64_t kMagic = 0x5eed;

struct Product {
    std::int32_t compute, scale, transposed[2];  // of the first matrix and of the second
    std::uint32_t epilogue;
    std::uint64_t bias;
};
struct Layout {
    std::int32_t type, batch;
    std::uint64_t rows, columns;
    std::int64_t leading, stride;
};
struct Preference {
    std::uint64_t workspace;
    std::uint32_t reductions, alignment[4];
};
static_assert(sizeof(Product) <= 256 && sizeof(Layout) <= 64 && sizeof(Preference) <= 64);

char* host(std::uint64_t address) {
    static void* driver = dlopen(FLEXOR_FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD);
    static auto* memory = reinterpret_cast<void* (*)(std::uint64_t)>(dlsym(driver, "fake_cuda_memory"));
    return static_cast<char*>(memory(address));
}

double load(const char* from, int type, std::int64_t index) {
    const auto read = [&](auto zero) {
        std::memcpy(&zero, from + index * static_cast<std::int64_t>(sizeof zero), sizeof zero);
        return zero;
    };
    switch (type) {
        case 0: return static_cast<double>(read(float{}));
        case 1: return read(double{});
        case 2: return static_cast<double>(f32_from_f16(read(std::uint16_t{})));
        case 14: return static_cast<double>(f32_from_bf16(read(std::uint16_t{})));
        default: std::abort();
    }
}

void store(char* to, int type, std::int64_t index, double value) {
    const auto write = [&](auto element) {
        std::memcpy(to + index * static_cast<std::int64_t>(sizeof element), &element, sizeof element);
    };
    switch (type) {
        case 0: write(static_cast<float>(value)); break;
        case 1: write(value); break;
        case 2: write(f16_from_f32(static_cast<float>(value))); break;
        case 14: write(bf16_from_f32(static_cast<float>(value))); break;
        default: std::abort();
    }
}

std::int64_t item_size(int type) { return type == 0 ? 4 : type == 1 ? 8 : 2; }

struct Sizes {
    std::uint64_t m, n, k, batch;
};

// What the library calls m is our n.
bool consistent(const Product& product, const Layout& a, const Layout& b, const Layout& c, Sizes& out) {
    out.m = product.transposed[0] != 0 ? a.columns : a.rows;
    out.k = product.transposed[0] != 0 ? a.rows : a.columns;
    out.n = product.transposed[1] != 0 ? b.rows : b.columns;
    out.batch = static_cast<std::uint64_t>(c.batch);
    const std::uint64_t k = product.transposed[1] != 0 ? b.columns : b.rows;
    if (out.m == 0 || out.n == 0 || out.k == 0 || k != out.k || c.rows != out.m || c.columns != out.n) return false;
    if (a.batch != c.batch || b.batch != c.batch || a.type != b.type) return false;
    for (const Layout* layout : {&a, &b, &c}) {
        if (layout->leading < static_cast<std::int64_t>(layout->rows)) return false;
    }
    return product.compute == (a.type == 1 ? 70 : 68) && product.scale == (a.type == 1 ? 1 : 0);
}

template <class T>
T& as(void* memory) {
    return *static_cast<T*>(memory);
}

}  // namespace

flexor::tests::FakeCublasLt* fake_cublaslt_state() { return &state; }

#define CALL(name, ...) extern "C" int name(__VA_ARGS__)

extern "C" std::size_t cublasLtGetVersion() { return 130000; }
extern "C" const char* cublasLtGetStatusName(int status) {
    return status == kInvalid ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS_OF_THE_FAKE";
}
CALL(cublasLtCreate, void** handle) {
    ++state.handles;
    *handle = &state;
    return 0;
}
CALL(cublasLtDestroy, void*) {
    --state.handles;
    return 0;
}
CALL(cublasLtMatmulDescInit_internal, void* memory, std::size_t size, int compute, int scale) {
    if (size < 256) return 3;
    as<Product>(memory) = {compute, scale, {0, 0}, 1, 0};
    return 0;
}
CALL(cublasLtMatmulDescSetAttribute, void* memory, int attribute, const void* value, std::size_t size) {
    auto& product = as<Product>(memory);
    if (size != (attribute == 8 ? 8u : 4u)) return kInvalid;
    switch (attribute) {
        case 3: std::memcpy(&product.transposed[0], value, size); return 0;
        case 4: std::memcpy(&product.transposed[1], value, size); return 0;
        case 7: std::memcpy(&product.epilogue, value, size); return 0;
        case 8: std::memcpy(&product.bias, value, size); return 0;
        default: return kInvalid;
    }
}
CALL(cublasLtMatrixLayoutInit_internal, void* memory, std::size_t size, int type, std::uint64_t rows,
     std::uint64_t columns, std::int64_t leading) {
    if (size < sizeof(Layout)) return 3;
    as<Layout>(memory) = {type, 1, rows, columns, leading, 0};
    return 0;
}
CALL(cublasLtMatrixLayoutSetAttribute, void* memory, int attribute, const void* value, std::size_t size) {
    auto& layout = as<Layout>(memory);
    if (attribute == 5 && size == 4)
        std::memcpy(&layout.batch, value, size);
    else if (attribute == 6 && size == 8)
        std::memcpy(&layout.stride, value, size);
    else
        return kInvalid;
    return 0;
}
CALL(cublasLtMatmulPreferenceInit_internal, void* memory, std::size_t size) {
    if (size < sizeof(Preference)) return 3;
    as<Preference>(memory) = {0, 7, {256, 256, 256, 256}};
    return 0;
}
CALL(cublasLtMatmulPreferenceSetAttribute, void* memory, int attribute, const void* value, std::size_t size) {
    auto& preference = as<Preference>(memory);
    if (attribute == 1 && size == 8)
        std::memcpy(&preference.workspace, value, size);
    else if (attribute == 3 && size == 4)
        std::memcpy(&preference.reductions, value, size);
    else if (attribute >= 5 && attribute <= 8 && size == 4)
        std::memcpy(&preference.alignment[attribute - 5], value, size);
    else
        return kInvalid;
    return 0;
}

namespace {

struct Result {
    std::uint64_t algorithm[8];
    std::size_t workspace;
    int status;
    float waves;
    int reserved[4];
};
// Alignments are powers of two up to 16, of which the exponents are kept.
struct Packed {
    std::uint64_t magic, m, n, k, batch, workspace, alignment;
};
static_assert(sizeof(Packed) <= 64);

bool aligned(std::uint64_t address, const Layout& layout, std::uint64_t to) {
    const auto item = static_cast<std::uint64_t>(item_size(layout.type));
    return address % to == 0 && static_cast<std::uint64_t>(layout.leading) * item % to == 0 &&
           (layout.batch == 1 || static_cast<std::uint64_t>(layout.stride) * item % to == 0);
}

}  // namespace

CALL(cublasLtMatmulAlgoGetHeuristic, void*, void* product, void* a, void* b, void* c, void* d, void* preference,
     int most, void* results, int* count) {
    ++state.asked;
    *count = 0;
    Sizes sizes{};
    if (most != 1 || c != d || !consistent(as<Product>(product), as<Layout>(a), as<Layout>(b), as<Layout>(d), sizes))
        return kInvalid;
    const auto& wanted = as<Preference>(preference);
    // Sums that meet in the result do so in any order.
    if ((wanted.reductions & 5) != 0 || wanted.alignment[2] != wanted.alignment[3]) return kInvalid;
    if (state.no_algorithm || state.workspace > wanted.workspace) return kNotSupported;
    const Packed packed{kMagic,
                        sizes.m,
                        sizes.n,
                        sizes.k,
                        sizes.batch,
                        state.workspace,
                        wanted.alignment[0] | wanted.alignment[1] << 8 | wanted.alignment[2] << 16};
    Result result{};
    std::memcpy(result.algorithm, &packed, sizeof packed);
    result.workspace = state.workspace;
    std::memcpy(results, &result, sizeof result);
    *count = 1;
    return 0;
}

CALL(cublasLtMatmul, void*, void* product, const void* alpha, const void* a, void* a_layout, const void* b,
     void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout, const void* algorithm,
     void* workspace, std::size_t workspace_size, void*) {
    const auto& p = as<Product>(product);
    const auto &la = as<Layout>(a_layout), &lb = as<Layout>(b_layout), &ld = as<Layout>(d_layout);
    Packed packed{};
    std::memcpy(&packed, algorithm, sizeof packed);
    Sizes sizes{};
    const bool wide = la.type == 1;
    const double one =
        wide ? *static_cast<const double*>(alpha) : static_cast<double>(*static_cast<const float*>(alpha));
    const double zero =
        wide ? *static_cast<const double*>(beta) : static_cast<double>(*static_cast<const float*>(beta));
    if (!consistent(p, la, lb, ld, sizes) || packed.magic != kMagic || one != 1 || zero != 0 || c != d ||
        c_layout != d_layout)
        return kInvalid;
    if (sizes.m > packed.m || sizes.n > packed.n || sizes.k > packed.k || sizes.batch > packed.batch) return kInvalid;
    if (workspace_size < packed.workspace || (workspace_size > 0 && workspace == nullptr)) return kInvalid;
    const auto address = [](const void* memory) { return reinterpret_cast<std::uint64_t>(memory); };
    if (!aligned(address(a), la, packed.alignment & 255) || !aligned(address(b), lb, packed.alignment >> 8 & 255) ||
        !aligned(address(d), ld, packed.alignment >> 16 & 255))
        return kInvalid;
    if (state.refuse > 0) {
        --state.refuse;
        return kNotSupported;
    }
    ++state.multiplied;
    if (workspace_size > 0) std::memset(host(address(workspace)), 0x5A, workspace_size);
    const char *left = host(address(a)), *right = host(address(b));
    char* to = host(address(d));
    const char* bias = (p.epilogue & 4) != 0 ? host(p.bias) : nullptr;
    const auto m = static_cast<std::int64_t>(sizes.m), n = static_cast<std::int64_t>(sizes.n);
    const auto k = static_cast<std::int64_t>(sizes.k);
    for (std::int64_t batch = 0; batch < ld.batch; ++batch) {
        for (std::int64_t column = 0; column < n; ++column) {
            for (std::int64_t row = 0; row < m; ++row) {
                double sum = 0;
                for (std::int64_t step = 0; step < k; ++step) {
                    const std::int64_t at_left =
                        p.transposed[0] != 0 ? row * la.leading + step : step * la.leading + row;
                    const std::int64_t at_right =
                        p.transposed[1] != 0 ? step * lb.leading + column : column * lb.leading + step;
                    sum += load(left, la.type, batch * la.stride + at_left) *
                           load(right, lb.type, batch * lb.stride + at_right);
                }
                if (!wide) sum = static_cast<double>(static_cast<float>(sum));
                if (bias != nullptr) sum += load(bias, ld.type, row);
                store(to, ld.type, batch * ld.stride + column * ld.leading + row, sum);
            }
        }
    }
    return 0;
}
