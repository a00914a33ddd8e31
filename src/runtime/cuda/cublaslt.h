#pragma once
// Products of matrices by cuBLASLt, opened when it is wanted: it comes with torch, and is no part of what the engine needs.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "flexor/dtype.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/stream_memory.h"
#include "support/expected.h"

namespace flexor::runtime::cuda {

using CublasLtHandle = struct CublasLtContext*;

// d[m, n] = sum over k of a[m, k] b[k, n], plus bias[n], for each of `batch`. Sums are in f32, of f64 in f64, and rounded once.
struct MatrixProduct {
    struct Matrix {
        CudaPointer memory = 0;
        bool transposed = false;   // elements of a column lie beside each other, else those of a row
        std::int64_t leading = 0;  // elements from one such line to the next: as many as a line has, or more
        std::int64_t batch_stride = 0;
    };
    DType dtype = DType::kF32;                    // of a and b
    DType result = DType::kF32;                   // of d and the bias
    std::int64_t batch = 1, m = 0, n = 0, k = 0;  // none of them 0
    Matrix a, b, d;                               // d is not transposed
    CudaPointer bias = 0;                         // 0: none
};

// Of one device. Thread-safe. Only algorithms that give the same bits each time are taken, and no f32 is rounded to tf32. The
// algorithm depends on the product's sizes rounded up, so that products of many sizes share few, and is asked for once.
class CublasLt {
public:
    static constexpr std::size_t kMostPlans = 4096;

    // `name` of the library; empty: what is loaded already, as torch does it, or the system's. NoDevice says what is missing.
    static Expected<std::shared_ptr<CublasLt>> open(std::shared_ptr<const Device> device, const std::string& name = "");
    ~CublasLt();
    CublasLt(const CublasLt&) = delete;
    CublasLt& operator=(const CublasLt&) = delete;

    static bool takes(DType dtype, DType result);

    // Whether the product was handed over; false: the library has no such algorithm for it.
    Expected<bool> multiply(const MatrixProduct& product, CudaStream stream) {
        return multiply_then(product, 0, stream, [](CudaPointer) { return Expected<void>(); });
    }
    // d goes into memory of so many bytes, and `behind`, given its address, hands over what reads it.
    template <class F>
    Expected<bool> multiply_then(MatrixProduct product, std::size_t bytes, CudaStream stream, F&& behind) {
        for (const bool exactly : {false, true}) {
            FLEXOR_ASSIGN(const Plan plan, plan_of(product, exactly));
            if (!plan.found) continue;
            const std::size_t own = (plan.workspace + 255) / 256 * 256;
            FLEXOR_ASSIGN(const StreamMemory::Lease lease, memory_.lend(own + bytes, stream));
            if (bytes != 0) product.d.memory = lease.memory() + own;
            FLEXOR_ASSIGN(const bool done, run(product, plan, lease.memory(), stream));
            if (!done) continue;
            FLEXOR_TRY(behind(product.d.memory));
            return true;
        }
        return false;
    }

    // Whether it is there, for people.
    static std::string report();

private:
    struct Library;
    struct Descriptors;
    struct Plan {
        bool found = false;
        std::array<std::uint64_t, 8> algorithm{};
        std::size_t workspace = 0;
    };
    using Key = std::array<std::int64_t, 12>;

    CublasLt(std::shared_ptr<const Library> library, std::shared_ptr<const Device> device)
        : library_(std::move(library)), device_(device), memory_(std::move(device)) {}
    static Expected<std::shared_ptr<const Library>> load(const std::string& name);
    // The plan of the sizes rounded up, or of these sizes.
    Expected<Plan> plan_of(const MatrixProduct& product, bool exactly);
    Expected<Plan> find(const MatrixProduct& product) const;
    // False: the algorithm does not fit these sizes.
    Expected<bool> run(const MatrixProduct& product, const Plan& plan, CudaPointer workspace, CudaStream stream) const;

    std::shared_ptr<const Library> library_;
    std::shared_ptr<const Device> device_;
    StreamMemory memory_;
    CublasLtHandle handle_ = nullptr;
    std::mutex mutex_;
    std::map<Key, Plan> plans_;
};

// One device's, opened when it is first asked for. Thread-safe.
class LazyCublasLt {
public:
    explicit LazyCublasLt(std::shared_ptr<const Device> device, std::string name = "")
        : device_(std::move(device)), name_(std::move(name)) {}
    CublasLt* get();  // null: it is not there

private:
    std::shared_ptr<const Device> device_;
    std::string name_;
    std::once_flag once_;
    std::shared_ptr<CublasLt> library_;
};

}  // namespace flexor::runtime::cuda
