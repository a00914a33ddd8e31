#include "flexor/tensor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

namespace flexor {
namespace {

using Ints = std::vector<std::int64_t>;

Ints ints(std::span<const std::int64_t> span) { return {span.begin(), span.end()}; }

TEST(Tensor, EmptyIsAlignedAndContiguous) {
    for (int d = 0; d < kDTypeCount; ++d) {
        const auto t = Tensor::empty(static_cast<DType>(d), {2, 3, 5});
        ASSERT_TRUE(t.defined());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data()) % kTensorAlignment, 0u);
        EXPECT_EQ(ints(t.strides()), (Ints{15, 5, 1}));
        EXPECT_EQ(t.numel(), 30);
        EXPECT_TRUE(t.is_contiguous());
        EXPECT_EQ(t.storage()->bytes, 30 * dtype_size(static_cast<DType>(d)));
    }
    const auto scalar = Tensor::empty(DType::kF32, {});
    EXPECT_EQ(scalar.rank(), 0);
    EXPECT_EQ(scalar.numel(), 1);
    const auto nothing = Tensor::empty(DType::kF32, {2, 0, 3});
    EXPECT_EQ(ints(nothing.strides()), (Ints{3, 3, 1}));
    EXPECT_EQ(nothing.numel(), 0);
    EXPECT_NE(nothing.data(), nullptr);
}

TEST(Tensor, SizesBeyondMemoryGiveAnUndefinedTensor) {
    const std::int64_t big = std::int64_t{1} << 40;
    EXPECT_FALSE(Tensor::empty(DType::kF32, {big, big}).defined());
    EXPECT_FALSE(Tensor::empty(DType::kF64, {std::numeric_limits<std::int64_t>::max()}).defined());
    EXPECT_FALSE(Tensor::empty(DType::kU8, {std::numeric_limits<std::int64_t>::max()}).defined());
    EXPECT_FALSE(Tensor().defined());
}

TEST(Tensor, SizesThatNoTensorHasGetTheirNumber) {
    const std::int64_t big = std::int64_t{1} << 40;
    const auto refused = [](const Ints& sizes) {
        EXPECT_FALSE(Tensor::empty(DType::kF32, sizes).defined());
        return Tensor::allocate(DType::kF32, sizes).error();
    };
    EXPECT_EQ(refused({2, -1}).to_string(), "E0308 a dimension would be negative\n  found f32[2, -1]");
    EXPECT_EQ(refused(Ints(kMaxRank + 1, 1)).code(), "E0302");
    EXPECT_EQ(refused({big, big}).code(), "E0309");
    EXPECT_EQ(Tensor::allocate(DType::kF32, Ints{2, 3})->numel(), 6);
}

TEST(Tensor, GeometryThatNoTensorHasGivesAnUndefinedOne) {
    float data[4] = {0, 1, 2, 3};
    int deleted = 0;
    const auto count = [](void* calls, void*) { ++*static_cast<int*>(calls); };
    const Ints deep(kMaxRank + 1, 1);
    const Tensor t = Tensor::from_blob(data, DType::kF32, Ints{4}, Ints{1});
    const std::vector<std::pair<Ints, Ints>> wrong = {{{-1}, {1}}, {{4}, {}}, {deep, deep}};
    for (const auto& [sizes, strides] : wrong) {
        EXPECT_FALSE(Tensor::from_blob(data, DType::kF32, sizes, strides, count, &deleted).defined());
        EXPECT_FALSE(t.view(data, DType::kF32, sizes, strides).defined());
    }
    EXPECT_FALSE(Tensor().view(data, DType::kF32, Ints{4}, Ints{1}).defined());
    EXPECT_EQ(deleted, 0);
    const Tensor elsewhere =
        Tensor::from_blob(data, DType::kF32, Ints{4}, Ints{1}, nullptr, nullptr, {DeviceKind::kCuda, 0});
    EXPECT_FALSE(elsewhere.clone().defined());
}

TEST(Tensor, DeleterRunsOnceWithTheLastView) {
    int deleted = 0;
    float data[6] = {0, 1, 2, 3, 4, 5};
    {
        Tensor view;
        {
            const auto t = Tensor::from_blob(
                data, DType::kF32, Ints{2, 3}, Ints{3, 1}, [](void* count, void*) { ++*static_cast<int*>(count); },
                &deleted);
            Tensor copy = t;
            Tensor moved = std::move(copy);
            EXPECT_FALSE(copy.defined());  // NOLINT: the moved-from state is part of the contract
            view = moved.view(data + 1, DType::kF32, Ints{2}, Ints{3});
            const Tensor& same = view;
            view = same;
        }
        EXPECT_EQ(deleted, 0);
        EXPECT_EQ(view.data_as<float>()[view.stride(0)], 4.0f);
    }
    EXPECT_EQ(deleted, 1);
}

TEST(Tensor, ContiguityIgnoresAxesOfSizeOne) {
    float data[64];
    const auto contiguous = [&](const Ints& sizes, const Ints& strides) {
        return Tensor::from_blob(data, DType::kF32, sizes, strides).is_contiguous();
    };
    EXPECT_TRUE(contiguous({1, 3}, {77, 1}));
    EXPECT_TRUE(contiguous({3, 1}, {1, 5}));
    EXPECT_TRUE(contiguous({3, 0}, {9, 9}));
    EXPECT_TRUE(contiguous({}, {}));
    EXPECT_FALSE(contiguous({2, 3}, {1, 2}));
    EXPECT_FALSE(contiguous({2, 3}, {0, 1}));
    EXPECT_FALSE(contiguous({3}, {-1}));
}

template <class T>
void check_clone(DType dtype, const Ints& sizes, const Ints& strides, std::int64_t offset) {
    std::vector<T> data(4096);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<T>(i * 7 + 3);
    const Tensor t = Tensor::from_blob(data.data() + offset, dtype, sizes, strides);
    const Tensor copy = t.clone();
    ASSERT_TRUE(copy.is_contiguous());
    ASSERT_EQ(ints(copy.sizes()), sizes);
    std::int64_t at = 0;
    std::vector<std::int64_t> index(sizes.size(), 0);
    for (std::int64_t n = 0; n < t.numel(); ++n) {
        std::int64_t rest = n;
        at = offset;
        for (std::size_t i = sizes.size(); i-- > 0;) {
            at += rest % sizes[i] * strides[i];
            rest /= sizes[i];
        }
        ASSERT_EQ(copy.template data_as<T>()[n], data[static_cast<std::size_t>(at)]);
    }
    EXPECT_EQ(t.contiguous().data() == t.data(), t.is_contiguous());
}

TEST(Tensor, CloneOfEveryLayout) {
    const struct {
        Ints sizes, strides;
        std::int64_t offset;
    } cases[] = {
        {{}, {}, 5},
        {{7}, {1}, 0},
        {{7}, {-3}, 100},
        {{33, 17}, {1, 33}, 0},
        {{33, 17}, {17, 1}, 1},
        {{5, 17}, {0, 1}, 0},
        {{3, 4, 5}, {20, 1, 4}, 0},
        {{3, 4, 5}, {1, 3, 12}, 0},
        {{2, 3, 4, 5}, {5, 10, 30, 1}, 2},
        {{2, 3, 4, 5}, {1, 2, 6, 24}, 0},
        {{2, 1, 4, 5}, {1, 999, 6, 24}, 0},
        {{4, 6}, {12, 2}, 0},
        {{4, 4}, {1, 1}, 0},
        {{3, 0, 2}, {1, 1, 1}, 0},
        {{2, 2, 2, 2, 2}, {1, 16, 2, 8, 4}, 0},
    };
    for (const auto& c : cases) {
        check_clone<std::uint8_t>(DType::kU8, c.sizes, c.strides, c.offset);
        check_clone<std::uint16_t>(DType::kBF16, c.sizes, c.strides, c.offset);
        check_clone<float>(DType::kF32, c.sizes, c.strides, c.offset);
        check_clone<std::int64_t>(DType::kI64, c.sizes, c.strides, c.offset);
    }
}

TEST(Tensor, CrossesThreads) {
    std::vector<Tensor> tensors;
    std::thread maker([&] {
        for (int i = 0; i < 1000; ++i) tensors.push_back(Tensor::empty(DType::kF32, {i % 7}));
    });
    maker.join();
    std::vector<std::thread> users;
    for (int u = 0; u < 4; ++u) {
        users.emplace_back([copy = tensors]() mutable {
            while (!copy.empty()) copy.pop_back();
        });
    }
    for (auto& user : users) user.join();
    EXPECT_EQ(tensors[3].size(0), 3);
}

TEST(Tensor, MarksAndVersionsBelongToTheStorage) {
    Tensor x = Tensor::empty(DType::kF32, {4});
    const Tensor before = x.view(x.data(), DType::kF32, Ints{2}, Ints{2});
    EXPECT_FALSE(before.is_read_only());
    EXPECT_EQ(x.version(), 0U);
    before.note_write();
    x.note_write();
    EXPECT_EQ(before.version(), 2U);
    x.refuse_writes();
    EXPECT_TRUE(before.is_read_only());
    EXPECT_TRUE(x.contiguous().is_read_only()) << "the same memory";
    const Tensor copy = before.clone();
    EXPECT_FALSE(copy.is_read_only());
    EXPECT_EQ(copy.version(), 0U);
}

TEST(Tensor, CopiesFromAnyAddress) {
    alignas(8) char bytes[8 * 6 + 1];
    for (std::int64_t i = 0; i < 6; ++i) {
        const double value = static_cast<double>(i);
        std::memcpy(bytes + 1 + 8 * i, &value, sizeof value);
    }
    const Tensor columns = Tensor::from_blob(bytes + 1, DType::kF64, Ints{3, 2}, Ints{1, 3}).contiguous();
    const std::vector<double> expected{0, 3, 1, 4, 2, 5};
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), columns.data_as<double>()));
}

TEST(Tensor, MakingAHandleIsCheap) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's time says nothing";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    GTEST_SKIP() << "a sanitizer's time says nothing";
#endif
#endif
    float data[4];
    const Ints sizes{2, 2}, strides{2, 1};
    const auto start = std::chrono::steady_clock::now();
    constexpr int kRounds = 200000;
    for (int i = 0; i < kRounds; ++i) {
        const auto t = Tensor::from_blob(data, DType::kF32, sizes, strides);
        ASSERT_EQ(t.rank(), 2);
    }
    const auto elapsed = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    RecordProperty("nanoseconds", std::to_string(elapsed / kRounds));
    std::printf("%.1f ns a tensor\n", elapsed / kRounds);
    EXPECT_LT(elapsed / kRounds, 400);  // ten times what it takes on an idle machine
}

}  // namespace
}  // namespace flexor
