#include "vm/profile.h"

#include <algorithm>

namespace flexor::vm {

void Profile::add(const std::string& name, const loopir::Work& work, double seconds) {
    auto row = std::ranges::find(rows_, name, &KernelTime::kernel);
    if (row == rows_.end()) {
        row = rows_.emplace(rows_.end());
        row->kernel = name;
    }
    const auto over = [](double amount, double rate) { return rate > 0 ? amount / rate : 0; };
    ++row->launches;
    row->seconds += seconds;
    row->bytes += work.bytes;
    row->operations += work.operations + work.products;
    row->floor_seconds += std::max(over(work.bytes, floor_.bytes_per_second),
                                   over(work.operations, floor_.operations_per_second) +
                                       over(work.products, floor_.products_per_second(work.products_dtype)));
}

}  // namespace flexor::vm
