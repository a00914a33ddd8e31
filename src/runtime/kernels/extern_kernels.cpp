#include "runtime/kernels/extern_kernels.h"

#include <algorithm>
#include <string_view>

#include "runtime/kernels/embedding_bag.h"

namespace flexor::runtime {

namespace {

constexpr std::string_view kNames[] = {"embedding_bag_offsets.sum", "embedding_bag_offsets.mean",
                                       "embedding_bag_offsets.max"};

// Reads the parameters of buffers one after the other.
class Reader {
public:
    explicit Reader(const LaunchArgs& args) : args_(args) {}
    StridedMatrix next(DType dtype, int rank) {
        StridedMatrix m;
        m.dtype = dtype;
        const std::int64_t offset = *params_++;
        m.data = static_cast<char*>(args_.buffers[buffer_++]) + offset * static_cast<std::int64_t>(dtype_size(dtype));
        for (int a = 0; a < rank; ++a) m.sizes[a] = *params_++;
        for (int a = 0; a < rank; ++a) m.strides[a] = *params_++;
        return m;
    }

    bool flag() { return *params_++ != 0; }

private:
    const LaunchArgs& args_;
    const std::int64_t* params_ = args_.params;
    std::size_t buffer_ = 0;
};

class EmbeddingBag final : public KernelHandle {
public:
    EmbeddingBag(const loopir::Kernel& kernel, BagMode mode) : mode_(mode) {
        for (const loopir::BufferParam& b : kernel.buffers) dtypes_.push_back(b.dtype);
    }
    void launch(const LaunchArgs& args) const override {
        Reader reader(args);
        const StridedMatrix ids = reader.next(dtypes_[0], 1);
        const StridedMatrix offsets = reader.next(dtypes_[1], 1);
        const StridedMatrix table = reader.next(dtypes_[2], 2);
        const StridedMatrix out = reader.next(dtypes_[3], 2);
        if (!embedding_bag(ids, offsets, table, out, mode_, reader.flag())) *args.fault = kBadElement;
    }
    std::size_t workspace_bytes(const std::int64_t*) const override { return 0; }
    std::size_t code_bytes() const override { return 0; }

private:
    BagMode mode_;
    std::vector<DType> dtypes_;
};

}  // namespace

KernelRef extern_kernel(const loopir::Kernel& kernel) {
    const auto found = std::find(std::begin(kNames), std::end(kNames), kernel.extern_name);
    if (found == std::end(kNames) || kernel.buffers.size() != 4) return nullptr;
    return std::make_shared<EmbeddingBag>(kernel, static_cast<BagMode>(found - std::begin(kNames)));
}

}  // namespace flexor::runtime
