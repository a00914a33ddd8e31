#include "driver/kernel_cache.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "loopir/loopir.h"
#include "runtime/kernels/extern_kernels.h"
#include "runtime/stop_check.h"
#include "support/diagnostic.h"

#ifdef FLEXOR_WITH_LLVM
#include "codegen/codegen.h"
#include "runtime/kernels/gemm.h"
#endif

namespace flexor::driver {

KernelCache& KernelCache::instance() {
    static auto* cache = new KernelCache();  // never destroyed: code may run while the process ends
    return *cache;
}

runtime::KernelRef KernelCache::find(std::size_t hash, const loopir::Kernel& kernel) const {
    const auto [begin, end] = items_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
        if (loopir::structurally_equal(it->second.kernel, kernel)) return it->second.handle;
    }
    return nullptr;
}

Expected<KernelCache::Built> KernelCache::fill([[maybe_unused]] std::span<executable::KernelSlot> kernels) {
#ifdef FLEXOR_WITH_LLVM
    Built built;
    // One compilation at a time: what two regions share is compiled by the first.
    std::lock_guard lock(mutex_);
    std::vector<std::size_t> hashes(kernels.size());
    std::vector<const loopir::Kernel*> missing;
    std::vector<std::size_t> owners;
    std::optional<Diagnostic> error;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        if (kernels[i].ir.kind == loopir::KernelKind::kExtern) {
            kernels[i].handle = runtime::extern_kernel(kernels[i].ir);
            if (kernels[i].handle == nullptr) {
                error = Diagnostic(DiagnosticId::kOpNotCompiled)
                            .op(kernels[i].ir.extern_name)
                            .found("no kernel of this name");
            }
            continue;
        }
        hashes[i] = loopir::structural_hash(kernels[i].ir);
        kernels[i].handle = find(hashes[i], kernels[i].ir);
        if (kernels[i].handle != nullptr) {
            ++built.hits;
            continue;
        }
        missing.push_back(&kernels[i].ir);
        owners.push_back(i);
    }
    const auto keep = [&](std::size_t i, runtime::KernelRef handle) {
        executable::KernelSlot& slot = kernels[owners[i]];
        slot.handle = std::move(handle);
        if (find(hashes[owners[i]], slot.ir) != nullptr) {
            ++built.hits;  // equal to another kernel of the same region
            return;
        }
        items_.emplace(hashes[owners[i]], Item{slot.ir, slot.handle});
        ++built.compiled;
        built.code_bytes += slot.handle->code_bytes();
    };
    // A region of very many kernels is left between two batches, when the run that waits for it is to stop.
    constexpr std::size_t kBatch = 32;
    for (std::size_t begin = 0; begin < missing.size(); begin += kBatch) {
        if (runtime::stop_requested()) return Diagnostic(DiagnosticId::kInterrupted);
        {
            const support::ForkPause now;
        }
        const std::span batch = std::span(missing).subspan(begin, std::min(kBatch, missing.size() - begin));
        const auto compiled = codegen::compile_kernels(batch);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (compiled) {
                keep(begin + i, (*compiled)[i]);
                continue;
            }
            // One of them is at fault: each by itself.
            auto one = codegen::compile_kernels({&batch[i], 1});
            if (one)
                keep(begin + i, (*one)[0]);
            else
                error = std::move(one).error();
        }
    }
    if (error) return std::move(*error);
    return built;
#else
    return Diagnostic(DiagnosticId::kNoCodeGenerator);
#endif
}

Expected<std::shared_ptr<const void>> packed_weight([[maybe_unused]] const bytecode::Module& module,
                                                    [[maybe_unused]] const executable::PackedWeight& packed,
                                                    [[maybe_unused]] std::size_t* bytes, [[maybe_unused]] bool* made) {
#ifdef FLEXOR_WITH_LLVM
    using Key = std::tuple<std::uint64_t, std::uint32_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                           std::int64_t, DType>;
    static support::ForkMutex mutex;  // held where the host is asked
    static auto* cache = new std::map<Key, std::weak_ptr<const runtime::PackedMatrix>>();
    const Key key{module.id,         packed.weight,     packed.k,      packed.n,
                  packed.row_stride, packed.col_stride, packed.offset, packed.dtype};
    std::lock_guard lock(mutex);
    std::shared_ptr<const runtime::PackedMatrix> matrix = (*cache)[key].lock();
    *made = matrix == nullptr;
    if (matrix == nullptr) {
        const Tensor& tensor = module.weights[packed.weight].tensor;
        const auto* source = static_cast<const char*>(tensor.data()) +
                             packed.offset * static_cast<std::int64_t>(dtype_size(tensor.dtype()));
        matrix = std::make_shared<const runtime::PackedMatrix>(packed.dtype, packed.k, packed.n, source,
                                                               packed.row_stride, packed.col_stride);
        if (matrix->data() == nullptr) {
            return Diagnostic(DiagnosticId::kOutOfMemory).operand(module.weights[packed.weight].name);
        }
        std::erase_if(*cache, [](const auto& item) { return item.second.expired(); });
        (*cache)[key] = matrix;
    }
    *bytes = matrix->bytes();
    return std::shared_ptr<const void>(matrix, matrix->data());
#else
    return Diagnostic(DiagnosticId::kNoCodeGenerator);
#endif
}

namespace {

class EvaluatedKernel final : public runtime::KernelHandle {
public:
    explicit EvaluatedKernel(const loopir::Kernel& kernel) : kernel_(kernel) {}
    void launch(const runtime::LaunchArgs& args) const override {
        loopir::EvalArgs eval{};
        eval.buffers = args.buffers;
        eval.params = args.params;
        loopir::evaluate(kernel_, eval);
        if (eval.fault) *args.fault = runtime::kBadElement;
    }
    std::size_t workspace_bytes(const std::int64_t*) const override { return 0; }
    std::size_t code_bytes() const override { return 0; }

private:
    loopir::Kernel kernel_;
};

}  // namespace

runtime::KernelRef evaluated_kernel(const loopir::Kernel& kernel) {
    if (kernel.kind == loopir::KernelKind::kExtern) return runtime::extern_kernel(kernel);
    return std::make_shared<EvaluatedKernel>(kernel);
}

}  // namespace flexor::driver
