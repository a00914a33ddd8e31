#pragma once
// Where the results of a run lie: in buffers of the caller that fit them, else in memory of the host's allocator, the session's
// pool or the system.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "executable/executable.h"
#include "flexor/call_options.h"
#include "flexor/tensor.h"
#include "runtime/pool.h"
#include "vm/device_run.h"

namespace flexor::vm {

class OutputMemory {
public:
    // `buffers` of the caller, by their places in the return. With a pool, results are memory of it, not of the caller's
    // (`call` may be null then).
    OutputMemory(std::span<const Tensor> buffers, const CallOptions* call, runtime::Pool* pool)
        : buffers_(buffers), call_(call), pool_(pool) {}

    // No buffer of the caller is taken: a run begins, or begins anew.
    void reset() { taken_ = 0; }

    // The buffer that the caller gave for a result of this return, if the result fits it and nothing has taken it in this
    // run; else an undefined tensor. `result` may be null: a buffer that is no result as it stands.
    Tensor take(const executable::Terminator& end, const executable::TensorRef* result, const std::int64_t* frame) {
        if (buffers_.empty() || result == nullptr) return {};
        std::size_t place = 0;
        while (place < end.values.size() && &end.values[place].tensor != result) ++place;
        constexpr std::size_t kPlaces = 64;
        if (place >= std::min({end.values.size(), buffers_.size(), kPlaces})) return {};
        const Tensor& buffer = buffers_[place];
        const std::uint64_t bit = std::uint64_t{1} << place;
        if ((taken_ & bit) != 0 || buffer.dtype() != result->dtype || buffer.sizes().size() != result->sizes.size())
            return {};
        for (std::size_t axis = 0; axis < result->sizes.size(); ++axis) {
            const std::int64_t size = buffer.sizes()[axis];
            if (size != frame[result->sizes[axis]]) return {};
            if (size != 1 && buffer.strides()[axis] != frame[result->strides[axis]]) return {};
        }
        taken_ |= bit;
        return buffer;
    }

    // Host memory of so many bytes, with the geometry of the result where that is dense; undefined: there is none.
    Tensor make(std::int64_t bytes, const executable::TensorRef* result, const std::int64_t* frame) {
        if (result != nullptr) {
            const Geometry g(*result, frame);
            if (g.bytes() == bytes) {
                if (pool_ != nullptr) {
                    const Tensor flat = pool_->empty(g.dtype, {&g.count, 1});
                    if (!flat.defined()) return {};
                    return flat.view(flat.data(), g.dtype, g.sizes(), g.strides());
                }
                if (is_asked(bytes)) return ask(g);
                if (g.is_row_major()) return Tensor::empty(g.dtype, g.sizes());
            }
        }
        if (pool_ != nullptr) return pool_->empty(DType::kU8, {&bytes, 1});
        return Tensor::empty(DType::kU8, {&bytes, 1});
    }

    // The same on a device. Refusals: HardMemoryLimit, OutOfMemory.
    Expected<Tensor> make_on(DeviceRun& device, std::int64_t bytes, const executable::TensorRef* result,
                             const std::int64_t* frame);

private:
    struct Geometry {
        Geometry(const executable::TensorRef& result, const std::int64_t* frame)
            : dtype(result.dtype), rank(result.sizes.size()) {
            for (std::size_t i = 0; i < rank; ++i) {
                words[i] = frame[result.sizes[i]];
                words[kMaxRank + i] = frame[result.strides[i]];
                count *= words[i];
            }
        }
        std::span<const std::int64_t> sizes() const { return {words, rank}; }
        std::span<const std::int64_t> strides() const { return {words + kMaxRank, rank}; }
        std::int64_t bytes() const { return count * static_cast<std::int64_t>(dtype_size(dtype)); }
        bool is_row_major() const {
            std::int64_t running = 1;
            for (std::size_t i = rank; i-- > 0;) {
                if (words[i] == 0) return true;
                if (words[i] != 1 && words[kMaxRank + i] != running) return false;
                running *= words[i];
            }
            return true;
        }

        DType dtype;
        std::size_t rank;
        std::int64_t count = 1;
        std::int64_t words[2 * kMaxRank];
    };

    bool is_asked(std::int64_t bytes) const {
        return call_->allocator.allocate != nullptr && bytes >= call_->allocator.least_bytes;
    }
    Tensor ask(const Geometry& g) const {
        return call_->allocator.allocate(call_->allocator.context, g.dtype, g.sizes(), g.strides());
    }

    std::span<const Tensor> buffers_;
    const CallOptions* call_;
    runtime::Pool* pool_;
    std::uint64_t taken_ = 0;  // by place
};

}  // namespace flexor::vm
