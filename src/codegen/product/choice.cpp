#include "codegen/product/choice.h"

#include <limits>

namespace flexor::codegen::product {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

enum class Who : std::uint8_t { kOwn, kLibrary };

struct Row {
    int capability;
    DType dtype;
    Part part;
    std::int64_t least_m, most_m, least_n, most_n, least_k, most_k;
    Who who;
};

constexpr Row kRows[] = {
#define FLEXOR_PRODUCT_CHOICE(...) {__VA_ARGS__},
#include "codegen/product/choices.def"
#undef FLEXOR_PRODUCT_CHOICE
};

}  // namespace

bool library_computes(DType dtype, Part part, const ProductSizes& sizes, int capability) {
    const auto within = [](std::int64_t size, std::int64_t least, std::int64_t most) {
        return size >= least && size <= most;
    };
    for (const Row& row : kRows) {
        if (row.capability == capability && row.dtype == dtype && row.part == part &&
            within(sizes.m * sizes.batch, row.least_m, row.most_m) && within(sizes.n, row.least_n, row.most_n) &&
            within(sizes.k, row.least_k, row.most_k))
            return row.who == Who::kLibrary;
    }
    return false;
}

}  // namespace flexor::codegen::product
