#include "ops/samples.h"

namespace flexor::ops::samples {

SampleInput input(std::vector<std::int64_t> sizes, Fill fill) { return {std::move(sizes), fill, 0, std::nullopt}; }
SampleInput typed(std::vector<std::int64_t> sizes, DType dtype, Fill fill) {
    return {std::move(sizes), fill, 0, dtype};
}
SampleInput scalar(double value, DType dtype) { return {{}, Fill::kScalar, value, dtype}; }
SampleInput indices(std::vector<std::int64_t> sizes, std::int64_t bound, DType dtype) {
    return {std::move(sizes), Fill::kIndex, static_cast<double>(bound), dtype};
}
SampleInput none() { return {{}, Fill::kNone, 0, std::nullopt}; }
Sample sample(std::vector<SampleInput> inputs, Attrs attrs) { return {std::move(inputs), std::move(attrs)}; }

namespace {

std::vector<Sample> unary_of(Fill fill) {
    std::vector<Sample> out;
    for (std::vector<std::int64_t> sizes :
         std::vector<std::vector<std::int64_t>>{{}, {0}, {1}, {17}, {2, 3}, {33, 1}, {3, 0, 2}, {2, 1, 15}, {1, 1}}) {
        out.push_back(sample({input(std::move(sizes), fill)}));
    }
    return out;
}

std::vector<Sample> binary_of(Fill fill) {
    std::vector<Sample> out;
    using Pair = std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>;
    for (auto& [a, b] : std::vector<Pair>{{{2, 3}, {2, 3}},
                                          {{17}, {17}},
                                          {{2, 3}, {3}},
                                          {{3}, {2, 1}},
                                          {{4, 1}, {1, 5}},
                                          {{0, 3}, {1}},
                                          {{1, 3}, {0, 1}},
                                          {{}, {3}},
                                          {{33}, {}},
                                          {{2, 1, 3}, {16, 1}}}) {
        out.push_back(sample({input(a, Fill::kNormal), input(b, fill)}));
    }
    out.push_back(sample({input({2, 15}), scalar(2, DType::kI64)}));
    return out;
}

}  // namespace

types::DimList dims(std::initializer_list<std::int64_t> values) { return {values.begin(), values.end()}; }
std::vector<Sample> unary() { return unary_of(Fill::kNormal); }
std::vector<Sample> unary_positive() { return unary_of(Fill::kPositive); }
std::vector<Sample> unary_unit() { return unary_of(Fill::kUnit); }
std::vector<Sample> binary() { return binary_of(Fill::kNormal); }
std::vector<Sample> binary_positive() { return binary_of(Fill::kPositive); }

std::vector<Sample> reduce() {
    using types::DimList;
    std::vector<Sample> out;
    out.push_back(sample({input({2, 3})}));
    out.push_back(sample({input({})}));
    out.push_back(sample({input({33})}, {{"keepdim", true}}));
    out.push_back(sample({input({2, 3, 17})}, {{"axes", DimList{-1}}}));
    out.push_back(sample({input({2, 3, 16})}, {{"axes", DimList{1}}, {"keepdim", true}}));
    out.push_back(sample({input({0, 5})}, {{"axes", DimList{1}}}));
    out.push_back(sample({input({1, 1})}, {{"axes", DimList{0}}}));
    return out;
}

std::vector<Sample> reduce_or_empty() {
    using types::DimList;
    std::vector<Sample> out = reduce();
    out.push_back(sample({input({0})}));
    out.push_back(sample({input({2, 0, 3})}, {{"axes", DimList{1}}}));
    out.push_back(sample({input({2, 3, 15})}, {{"axes", DimList{0, -1}}}));
    return out;
}

}  // namespace flexor::ops::samples
