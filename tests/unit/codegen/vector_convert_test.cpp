#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "codegen/cpu_llvm/convert.h"
#include "codegen/cpu_llvm/jit.h"
#include "types/half.h"

namespace flexor::codegen::cpu_llvm {
namespace {

using CompiledCast = void(const void*, void*, std::int64_t);

LoadedObject compile_cast(DType from, DType to, int lanes) {
    ModuleBuilder owner("cast");
    Ir ir(owner.context(), owner.module(), owner.builder());
    Value f = ir.begin_function("f", ir.void_type(), {ir.ptr(), ir.ptr(), ir.i64()}, false);
    Block entry = ir.block_here(), loop = ir.new_block("loop"), done = ir.new_block("done");
    ir.jump(loop);
    ir.at_end_of(loop);
    Value i = ir.phi(ir.i64());
    Ir::incoming(i, ir.index(0), entry);
    auto address = [&](int p, DType d) {
        return LLVMBuildInBoundsGEP2(ir.builder(), memory_type(ir, d), Ir::param(f, p), &i, 1, "");
    };
    Value v = LLVMBuildLoad2(ir.builder(), ir.vec(memory_type(ir, from), lanes), address(0, from), "");
    LLVMSetAlignment(v, 1);
    Value r = to_memory(ir, convert(ir, from_memory(ir, v, from), from, to), to);
    LLVMSetAlignment(LLVMBuildStore(ir.builder(), r, address(1, to)), 1);
    Value next = ir.add(i, lanes);
    Ir::incoming(i, next, ir.block_here());
    ir.branch(ir.icmp(LLVMIntSLT, next, Ir::param(f, 2)), loop, done);
    ir.at_end_of(done);
    ir.ret();
    ir.end_function();
    auto object = compile(owner.module());
    if (!object) {
        ADD_FAILURE() << dtype_name(from) << " to " << dtype_name(to) << ": " << object.error().to_string();
        return {};
    }
    return *object;
}

template <typename To, typename From>
std::vector<To> run_cast(DType from, DType to, const std::vector<From>& in, int lanes) {
    std::vector<To> out(in.size());
    LoadedObject object = compile_cast(from, to, lanes);
    if (auto* f = object.function<CompiledCast>("f")) f(in.data(), out.data(), static_cast<std::int64_t>(in.size()));
    return out;
}

std::vector<float> floats() {
    std::vector<float> v;
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4111) {
        v.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    }
    for (std::uint32_t h = 0; h < 65536; ++h) {  // every tie and its neighbours
        for (std::uint32_t low : {0x7fffu, 0x8000u, 0x8001u}) v.push_back(std::bit_cast<float>((h << 16) | low));
        const float half = types::f32_from_f16(static_cast<std::uint16_t>(h));
        const float next = types::f32_from_f16(static_cast<std::uint16_t>(h + 1));
        v.push_back((half + next) / 2);
    }
    while (v.size() % 64) v.push_back(0);
    return v;
}

TEST(Convert, HalvesFromFloatBitForBit) {
    const std::vector<float> in = floats();
    for (int lanes : {1, 16, 64}) {
        auto b = run_cast<std::uint16_t>(DType::kF32, DType::kBF16, in, lanes);
        auto h = run_cast<std::uint16_t>(DType::kF32, DType::kF16, in, lanes);
        int wrong = 0;
        for (size_t i = 0; i < in.size() && wrong < 5; ++i) {
            if (b[i] == types::bf16_from_f32(in[i]) && h[i] == types::f16_from_f32(in[i])) continue;
            ++wrong;
            ADD_FAILURE() << in[i] << " x" << lanes << ": bf16 " << b[i] << " f16 " << h[i] << " not "
                          << types::bf16_from_f32(in[i]) << " " << types::f16_from_f32(in[i]);
        }
    }
}

TEST(Convert, FloatFromHalvesEveryPattern) {
    std::vector<std::uint16_t> in(65536);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(i);
    for (DType d : {DType::kBF16, DType::kF16}) {
        auto single = run_cast<float>(d, DType::kF32, in, 16);
        auto wide = run_cast<double>(d, DType::kF64, in, 8);
        auto flags = run_cast<std::uint8_t>(d, DType::kBool, in, 16);
        for (size_t i = 0; i < in.size(); ++i) {
            const float want = d == DType::kF16 ? types::f32_from_f16(in[i]) : types::f32_from_bf16(in[i]);
            if (std::isnan(want)) {
                ASSERT_TRUE(std::isnan(single[i]) && std::isnan(wide[i]));
            } else {
                ASSERT_EQ(std::bit_cast<std::uint32_t>(single[i]), std::bit_cast<std::uint32_t>(want)) << i;
                ASSERT_EQ(wide[i], static_cast<double>(want));
            }
            ASSERT_EQ(flags[i], want != 0);
        }
    }
}

TEST(Convert, HalvesFromDoubleGoThroughFloat) {
    std::mt19937_64 random(3);
    std::vector<double> in;
    for (std::uint32_t h = 0; h < 65536; ++h) {
        const double a = types::f32_from_bf16(static_cast<std::uint16_t>(h));
        const double b = types::f32_from_bf16(static_cast<std::uint16_t>(h + 1));
        const double tie = (a + b) / 2;
        in.push_back(tie);
        in.push_back(std::nextafter(tie, INFINITY));  // float rounds this to the tie
        in.push_back(std::nextafter(tie, -INFINITY));
        const double c = types::f32_from_f16(static_cast<std::uint16_t>(h));
        const double d = types::f32_from_f16(static_cast<std::uint16_t>(h + 1));
        in.push_back(std::nextafter((c + d) / 2, INFINITY));
        in.push_back(std::bit_cast<double>(random()));
    }
    while (in.size() % 64) in.push_back(0);
    for (int lanes : {1, 8, 16}) {
        auto b = run_cast<std::uint16_t>(DType::kF64, DType::kBF16, in, lanes);
        auto h = run_cast<std::uint16_t>(DType::kF64, DType::kF16, in, lanes);
        int wrong = 0;
        for (size_t i = 0; i < in.size() && wrong < 5; ++i) {
            if (std::isnan(in[i])) {
                EXPECT_TRUE(std::isnan(types::f32_from_bf16(b[i])) && std::isnan(types::f32_from_f16(h[i])));
                continue;
            }
            if (b[i] == types::bf16_from_f64(in[i]) && h[i] == types::f16_from_f64(in[i])) continue;
            ++wrong;
            ADD_FAILURE() << in[i] << " x" << lanes << ": bf16 " << b[i] << " f16 " << h[i];
        }
    }
}

template <typename From>
std::vector<From> numbers() {
    std::vector<From> v;
    std::mt19937_64 random(5);
    for (int i = -300; i <= 300; ++i) v.push_back(static_cast<From>(i));
    if constexpr (std::is_floating_point_v<From>) {
        for (From x : {From(2147483520.0), From(-2147483648.0), From(0.9), From(-0.9), From(254.99), From(1e-30),
                       From(-0.0), From(9.2e18), From(-9.2e18), From(-1.99)}) {
            v.push_back(x);
        }
    } else {
        v.push_back(std::numeric_limits<From>::max());
        v.push_back(std::numeric_limits<From>::min());
    }
    for (int i = 0; i < 2000; ++i) {
        v.push_back(static_cast<From>(static_cast<std::int64_t>(random()) >> (random() % 63)));
    }
    while (v.size() % 64) v.push_back(From(1));
    return v;
}

template <typename From, typename To>
void check(DType from, DType to) {
    std::vector<From> in = numbers<From>();
    for (int lanes : {1, 16}) {
        auto out = run_cast<To>(from, to, in, lanes);
        for (size_t i = 0; i < in.size(); ++i) {
            To want;
            if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
                using Via = std::conditional_t<sizeof(To) == 8, std::int64_t, std::int32_t>;
                const double limit = sizeof(To) == 8 ? 0x1p63 : 0x1p31;
                const bool fits = std::trunc(in[i]) >= -limit && std::trunc(in[i]) < limit;
                want = static_cast<To>(fits ? static_cast<Via>(in[i]) : std::numeric_limits<Via>::min());
            } else {
                want = static_cast<To>(in[i]);
            }
            ASSERT_EQ(out[i], want) << dtype_name(from) << " to " << dtype_name(to) << " of " << +in[i] << " x"
                                    << lanes;
        }
        std::vector<std::uint8_t> flags = run_cast<std::uint8_t>(from, DType::kBool, in, lanes);
        for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(flags[i], in[i] != 0);
    }
}

template <typename From>
void check_to_all(DType from) {
    if (from != DType::kU8) check<From, std::uint8_t>(from, DType::kU8);
    if (from != DType::kI8) check<From, std::int8_t>(from, DType::kI8);
    if (from != DType::kI32) check<From, std::int32_t>(from, DType::kI32);
    if (from != DType::kI64) check<From, std::int64_t>(from, DType::kI64);
    if (from != DType::kF32) check<From, float>(from, DType::kF32);
    if (from != DType::kF64) check<From, double>(from, DType::kF64);
}

TEST(Convert, NumbersAsTheFrameworksCast) {
    check_to_all<std::uint8_t>(DType::kU8);
    check_to_all<std::int8_t>(DType::kI8);
    check_to_all<std::int32_t>(DType::kI32);
    check_to_all<std::int64_t>(DType::kI64);
    check_to_all<float>(DType::kF32);
    check_to_all<double>(DType::kF64);
}

TEST(Convert, BoolIsNormalisedAndNotFiniteIsDefined) {
    std::vector<std::uint8_t> in(64);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint8_t>(i % 5 == 0 ? 0 : i * 3);
    auto i64 = run_cast<std::int64_t>(DType::kBool, DType::kI64, in, 8);
    auto f32 = run_cast<float>(DType::kBool, DType::kF32, in, 16);
    auto bf = run_cast<std::uint16_t>(DType::kBool, DType::kBF16, in, 16);
    for (size_t i = 0; i < in.size(); ++i) {
        EXPECT_EQ(i64[i], in[i] != 0);
        EXPECT_EQ(f32[i], in[i] != 0);
        EXPECT_EQ(bf[i], in[i] ? 0x3f80 : 0);
    }
    std::vector<float> odd(64, NAN);
    odd[1] = INFINITY;
    odd[2] = -INFINITY;
    odd[3] = 1e20f;
    for (std::int32_t v : run_cast<std::int32_t>(DType::kF32, DType::kI32, odd, 16)) EXPECT_EQ(v, INT32_MIN);
    for (std::int64_t v : run_cast<std::int64_t>(DType::kF32, DType::kI64, odd, 8)) EXPECT_EQ(v, INT64_MIN);
    for (std::int8_t v : run_cast<std::int8_t>(DType::kF32, DType::kI8, odd, 16)) EXPECT_EQ(v, 0);
    for (std::uint8_t v : run_cast<std::uint8_t>(DType::kF32, DType::kBool, odd, 16)) EXPECT_EQ(v, 1);
}

}  // namespace
}  // namespace flexor::codegen::cpu_llvm
