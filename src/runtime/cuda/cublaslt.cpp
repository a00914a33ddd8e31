#include "runtime/cuda/cublaslt.h"

#include <dlfcn.h>

#include <algorithm>
#include <bit>

#include "support/check.h"
#include "support/diagnostic.h"

namespace flexor::runtime::cuda {

namespace {

// cublasLt.h, cublas_api.h and library_types.h
constexpr int kInvalidValue = 7, kNotSupported = 15;
enum ProductAttribute : int { kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8 };
enum LayoutAttribute : int { kBatchCount = 5, kBatchStride = 6 };
enum PreferenceAttribute : int { kMostWorkspace = 1, kReductions = 3, kAlignmentOfA = 5 };
constexpr std::uint32_t kEpilogueOfBias = 4;
// Partial sums of their own, which are added in order; those that meet in the result are not.
constexpr std::uint32_t kReductionInComputeType = 2;
constexpr std::uint64_t kWorkspace = std::uint64_t{32} << 20;
constexpr std::int64_t kMostAlignment = 16;
constexpr std::int64_t kMostSize = std::int64_t{1} << 31;

constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

int data_type(DType dtype) {
    switch (dtype) {
        case DType::kF32: return 0;
        case DType::kF64: return 1;
        case DType::kF16: return 2;
        case DType::kBF16: return 14;
        default: FLEXOR_UNREACHABLE();
    }
}
int compute_type(DType dtype) { return dtype == DType::kF64 ? 70 : 68; }  // CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_32F

// Eight steps from one power of two to the next, each 32 at least.
std::int64_t rounded_up(std::int64_t size) {
    const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size)));
    const std::int64_t step = std::max<std::int64_t>(power / 8, 32);
    return (size + step - 1) / step * step;
}

std::int64_t alignment(const MatrixProduct::Matrix& matrix, DType dtype) {
    const auto item = static_cast<std::int64_t>(dtype_size(dtype));
    const std::uint64_t all = matrix.memory | static_cast<std::uint64_t>(matrix.leading * item) |
                              static_cast<std::uint64_t>(matrix.batch_stride * item) |
                              static_cast<std::uint64_t>(kMostAlignment);
    return static_cast<std::int64_t>(all & (~all + 1));
}

Diagnostic missing_library(const std::string& what) { return Diagnostic(DiagnosticId::kNoDevice).found(what); }

}  // namespace

struct CublasLt::Library {
#define FLEXOR_CUBLASLT_CALL(name, symbol, ...) int (*name)(__VA_ARGS__) = nullptr;
#include "runtime/cuda/cublaslt_calls.def"
#undef FLEXOR_CUBLASLT_CALL
    std::size_t (*version)() = nullptr;
    const char* (*status_name)(int) = nullptr;
    std::string name;

    Expected<void> check(int status, const char* call) const {
        if (status == 0) return {};
        const char* text = status_name(status);
        return Diagnostic(DiagnosticId::kDeviceCallFailed)
            .found(std::string(call) + " gave " + (text == nullptr ? "an unknown status" : text) + " (" +
                   std::to_string(status) + ")");
    }
};

// What a call takes beside memory. The library's matrices are column by column: it multiplies the transposes, b's first.
struct CublasLt::Descriptors {
    std::uint64_t product[32] = {};
    std::uint64_t a[8] = {}, b[8] = {}, d[8] = {};

    static Expected<void> layout(const Library& library, std::uint64_t (&out)[8], const MatrixProduct::Matrix& matrix,
                                 DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t batch) {
        if (matrix.transposed) std::swap(rows, columns);
        FLEXOR_TRY(
            library.check(library.init_layout(out, sizeof out, data_type(dtype), static_cast<std::uint64_t>(columns),
                                              static_cast<std::uint64_t>(rows), std::max(matrix.leading, columns)),
                          "cublasLtMatrixLayoutInit"));
        if (batch == 1) return {};
        const auto count = static_cast<std::int32_t>(batch);
        FLEXOR_TRY(library.check(library.set_layout(out, kBatchCount, &count, sizeof count),
                                 "cublasLtMatrixLayoutSetAttribute"));
        return library.check(library.set_layout(out, kBatchStride, &matrix.batch_stride, sizeof matrix.batch_stride),
                             "cublasLtMatrixLayoutSetAttribute");
    }

    Expected<void> fill(const Library& library, const MatrixProduct& p) {
        const int scale = data_type(p.dtype == DType::kF64 ? DType::kF64 : DType::kF32);
        FLEXOR_TRY(library.check(library.init_product(product, sizeof product, compute_type(p.dtype), scale),
                                 "cublasLtMatmulDescInit"));
        const auto set = [&](int attribute, const auto& value) {
            return library.check(library.set_product(product, attribute, &value, sizeof value),
                                 "cublasLtMatmulDescSetAttribute");
        };
        FLEXOR_TRY(set(kTransposeA, std::int32_t{p.b.transposed}));
        FLEXOR_TRY(set(kTransposeB, std::int32_t{p.a.transposed}));
        if (p.bias != 0) {
            FLEXOR_TRY(set(kEpilogue, kEpilogueOfBias));
            FLEXOR_TRY(set(kBiasPointer, p.bias));
        }
        FLEXOR_TRY(layout(library, b, p.b, p.dtype, p.k, p.n, p.batch));
        FLEXOR_TRY(layout(library, a, p.a, p.dtype, p.m, p.k, p.batch));
        return layout(library, d, p.d, p.result, p.m, p.n, p.batch);
    }
};

Expected<std::shared_ptr<const CublasLt::Library>> CublasLt::load(const std::string& name) {
    void* handle = nullptr;
    std::string found;
    if (!name.empty()) {
        handle = dlopen(found.assign(name).c_str(), RTLD_NOW | RTLD_LOCAL);
    } else {
        // One that the process has loaded is found by its name alone, wherever it lies.
        for (const int flags : {RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL}) {
            for (const char* one : kNames) {
                if (handle == nullptr) handle = dlopen(found.assign(one).c_str(), flags);
                if (handle != nullptr) break;
            }
            if (handle != nullptr) break;
        }
    }
    if (handle == nullptr)
        return missing_library(name.empty() ? "no libcublasLt.so.13 or .12" : name + ": " + dlerror());
    auto library = std::make_shared<Library>();
    library->name = found;
    const auto resolve = [&](auto& to, const char* symbol) {
        to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(handle, symbol));
        return to != nullptr;
    };
#define FLEXOR_CUBLASLT_CALL(name, symbol, ...) \
    if (!resolve(library->name, #symbol)) return missing_library(found + " without " #symbol);
#include "runtime/cuda/cublaslt_calls.def"
#undef FLEXOR_CUBLASLT_CALL
    if (!resolve(library->version, "cublasLtGetVersion") || !resolve(library->status_name, "cublasLtGetStatusName"))
        return missing_library(found + " without cublasLtGetVersion or cublasLtGetStatusName");
    return std::shared_ptr<const Library>(std::move(library));
}

Expected<std::shared_ptr<CublasLt>> CublasLt::open(std::shared_ptr<const Device> device, const std::string& name) {
    FLEXOR_ASSIGN(std::shared_ptr<const Library> library, load(name));
    std::shared_ptr<CublasLt> out(new CublasLt(std::move(library), std::move(device)));
    const Device::Current current(*out->device_);
    FLEXOR_TRY(current.ok());
    FLEXOR_TRY(out->library_->check(out->library_->create(&out->handle_), "cublasLtCreate"));
    return out;
}

CublasLt::~CublasLt() {
    if (handle_ == nullptr) return;
    const Device::Current current(*device_);
    if (current.ok()) library_->destroy(handle_);
}

bool CublasLt::takes(DType dtype, DType result) {
    switch (dtype) {
        case DType::kF32: return result == DType::kF32;
        case DType::kF64: return result == DType::kF64;
        case DType::kF16:
        case DType::kBF16: return result == dtype || result == DType::kF32;
        default: return false;
    }
}

std::string CublasLt::report() {
    const auto library = load("");
    if (!library) return "products   " + library.error().found() + ": own kernels alone\n";
    const std::size_t version = (*library)->version();
    return "products   " + (*library)->name + ", cuBLASLt " + std::to_string(version / 10000) + "." +
           std::to_string(version % 10000 / 100) + "\n";
}

Expected<CublasLt::Plan> CublasLt::plan_of(const MatrixProduct& product, bool exactly) {
    MatrixProduct whole = product;
    if (std::max({whole.batch, whole.m, whole.n, whole.k}) >= kMostSize) return Plan{};
    if (!exactly) {
        for (std::int64_t* size : {&whole.m, &whole.n, &whole.k}) *size = rounded_up(*size);
        whole.batch = product.batch == 1 ? 1 : rounded_up(product.batch);
    }
    const auto bias = product.bias | static_cast<std::uint64_t>(kMostAlignment);
    const Key key = {exactly,
                     static_cast<std::int64_t>(product.dtype),
                     static_cast<std::int64_t>(product.result),
                     product.a.transposed * 2 + product.b.transposed,
                     product.bias == 0 ? 0 : static_cast<std::int64_t>(bias & (~bias + 1)),
                     whole.batch,
                     whole.m,
                     whole.n,
                     whole.k,
                     alignment(product.a, product.dtype),
                     alignment(product.b, product.dtype),
                     alignment(product.d, product.result)};
    const std::lock_guard lock(mutex_);
    const auto known = plans_.find(key);
    if (known != plans_.end()) return known->second;
    if (plans_.size() >= kMostPlans) plans_.clear();
    FLEXOR_ASSIGN(const Plan plan, find(whole));
    plans_.emplace(key, plan);
    return plan;
}

Expected<CublasLt::Plan> CublasLt::find(const MatrixProduct& product) const {
    struct Result {
        std::uint64_t algorithm[8];
        std::size_t workspace;
        int status;
        float waves;
        int reserved[4];
    };
    const Library& library = *library_;
    Descriptors descriptors;
    FLEXOR_TRY(descriptors.fill(library, product));
    std::uint64_t preference[8] = {};
    FLEXOR_TRY(library.check(library.init_preference(preference, sizeof preference), "cublasLtMatmulPreferenceInit"));
    const auto prefer = [&](int attribute, const auto& value) {
        return library.check(library.set_preference(preference, attribute, &value, sizeof value),
                             "cublasLtMatmulPreferenceSetAttribute");
    };
    FLEXOR_TRY(prefer(kMostWorkspace, kWorkspace));
    FLEXOR_TRY(prefer(kReductions, kReductionInComputeType));
    int attribute = kAlignmentOfA;
    for (const std::int64_t bytes : {alignment(product.b, product.dtype), alignment(product.a, product.dtype),
                                     alignment(product.d, product.result), alignment(product.d, product.result)})
        FLEXOR_TRY(prefer(attribute++, static_cast<std::uint32_t>(bytes)));
    Result result{};
    int count = 0;
    const Device::Current current(*device_);
    FLEXOR_TRY(current.ok());
    const int status = library.find_algorithms(handle_, descriptors.product, descriptors.b, descriptors.a,
                                               descriptors.d, descriptors.d, preference, 1, &result, &count);
    Plan out;
    if (status == kNotSupported || status == kInvalidValue) return out;
    FLEXOR_TRY(library.check(status, "cublasLtMatmulAlgoGetHeuristic"));
    if (count == 0 || result.status != 0) return out;
    out.found = true;
    std::copy(std::begin(result.algorithm), std::end(result.algorithm), out.algorithm.begin());
    out.workspace = result.workspace;
    return out;
}

Expected<bool> CublasLt::run(const MatrixProduct& product, const Plan& plan, CudaPointer workspace,
                             CudaStream stream) const {
    Descriptors descriptors;
    FLEXOR_TRY(descriptors.fill(*library_, product));
    const float one = 1, zero = 0;
    const double wide_one = 1, wide_zero = 0;
    const bool wide = product.dtype == DType::kF64;
    const auto memory = [](CudaPointer address) { return reinterpret_cast<void*>(address); };
    const Device::Current current(*device_);
    FLEXOR_TRY(current.ok());
    const int status = library_->multiply(
        handle_, descriptors.product, wide ? static_cast<const void*>(&wide_one) : &one, memory(product.b.memory),
        descriptors.b, memory(product.a.memory), descriptors.a, wide ? static_cast<const void*>(&wide_zero) : &zero,
        memory(product.d.memory), descriptors.d, memory(product.d.memory), descriptors.d, plan.algorithm.data(),
        memory(plan.workspace == 0 ? 0 : workspace), plan.workspace, stream);
    if (status == kNotSupported || status == kInvalidValue) return false;
    FLEXOR_TRY(library_->check(status, "cublasLtMatmul"));
    return true;
}

CublasLt* LazyCublasLt::get() {
    std::call_once(once_, [&] {
        if (auto made = CublasLt::open(device_, name_)) library_ = *std::move(made);
    });
    return library_.get();
}

}  // namespace flexor::runtime::cuda
