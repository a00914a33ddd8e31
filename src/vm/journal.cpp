#include "vm/journal.h"

#include <array>
#include <cstdint>

#include "runtime/kernels/strided_copy.h"

namespace flexor::vm {

bool Journal::keep(const Tensor& target) {
    std::array<std::int64_t, kMaxRank> sizes{};
    const auto rank = static_cast<std::size_t>(target.rank());
    for (std::size_t a = 0; a < rank; ++a) {
        const std::int64_t size = target.sizes()[a];
        sizes[a] = target.strides()[a] == 0 && size > 1 ? 1 : size;
    }
    Tensor distinct = target.view(target.data(), target.dtype(), {sizes.data(), rank}, target.strides());
    Tensor copy = distinct.defined() ? distinct.clone() : Tensor();
    if (!copy.defined()) return false;
    kept_.emplace_back(std::move(distinct), std::move(copy));
    return true;
}

Journal::~Journal() {
    for (; !kept_.empty(); kept_.pop_back()) {
        const auto& [target, copy] = kept_.back();
        runtime::copy_strided(target.data(), target.strides(), copy.data(), copy.strides(), target.sizes(),
                              dtype_size(target.dtype()));
    }
}

}  // namespace flexor::vm
