#include "codegen/cpu_llvm/vector_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "codegen/cpu_llvm/jit.h"

namespace flexor::codegen::cpu_llvm {
namespace {

using Emit = std::function<Value(VectorMath&, Ir&, Value, Value)>;
using CompiledMap = void(const void*, const void*, void*, std::int64_t);

// out[i] = emit(a[i], b[i]) for i in [0, n), n a multiple of `lanes`.
LoadedObject compile_map(Type (Ir::*element)() const, int lanes, const Emit& emit) {
    ModuleBuilder owner("math");
    Ir ir(owner.context(), owner.module(), owner.builder());
    VectorMath math(ir);
    Value f = ir.begin_function("f", ir.void_type(), {ir.ptr(), ir.ptr(), ir.ptr(), ir.i64()}, false);
    Type t = ir.vec((ir.*element)(), lanes);
    Block entry = ir.block_here(), loop = ir.new_block("loop"), done = ir.new_block("done");
    ir.jump(loop);
    ir.at_end_of(loop);
    Value i = ir.phi(ir.i64());
    Ir::incoming(i, ir.index(0), entry);
    auto address = [&](int p) {
        return LLVMBuildInBoundsGEP2(ir.builder(), Ir::element(t), Ir::param(f, p), &i, 1, "");
    };
    auto load = [&](int p) {
        Value v = LLVMBuildLoad2(ir.builder(), t, address(p), "");
        LLVMSetAlignment(v, 4);
        return v;
    };
    Value a = load(0), b = load(1);
    Value r = emit(math, ir, a, b);
    LLVMSetAlignment(LLVMBuildStore(ir.builder(), r, address(2)), 4);
    Value next = ir.add(i, lanes);
    Ir::incoming(i, next, ir.block_here());
    ir.branch(ir.icmp(LLVMIntSLT, next, Ir::param(f, 3)), loop, done);
    ir.at_end_of(done);
    ir.ret();
    ir.end_function();
    auto object = compile(owner.module());
    if (!object) {
        ADD_FAILURE() << object.error().to_string();
        return {};
    }
    return *object;
}

int native_lanes(int bytes) { return host_target().lanes(bytes); }

double ulp_error(float got, double want) {
    if (std::isnan(want)) return std::isnan(got) ? 0 : INFINITY;
    const float rounded = static_cast<float>(want);
    if (std::isinf(rounded) || std::isinf(got)) {
        if (got == rounded) return 0;
        if (!(std::isinf(rounded) && std::isinf(want)) && std::fabs(got) >= FLT_MAX && std::fabs(rounded) >= FLT_MAX &&
            std::signbit(got) == std::signbit(rounded)) {
            return 0.5;
        }
        return INFINITY;
    }
    if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : INFINITY;
    const int exponent = std::max(std::ilogb(want), -126);
    return std::fabs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 23);
}

double ulp_error(double got, long double want) {
    if (std::isnan(want)) return std::isnan(got) ? 0 : INFINITY;
    const double rounded = static_cast<double>(want);
    if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : INFINITY;
    if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : INFINITY;
    const int exponent = std::max(std::ilogb(want), -1022);
    return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / std::ldexp(1.0L, exponent - 52));
}

struct Worst {
    double error = 0;
    double at = 0, and_at = 0, got = 0, want = 0;
};

template <typename T, typename Wide>
Worst worst_of(const LoadedObject& object, const std::vector<T>& a, const std::vector<T>& b,
               const std::function<Wide(Wide, Wide)>& reference) {
    std::vector<T> out(a.size());
    auto* f = object.function<CompiledMap>("f");
    if (!f) return {INFINITY, 0, 0, 0, 0};
    f(a.data(), b.data(), out.data(), static_cast<std::int64_t>(a.size()));
    Worst worst;
    for (size_t i = 0; i < a.size(); ++i) {
        const Wide want = reference(a[i], b[i]);
        const double e = ulp_error(out[i], want);
        if (!(e <= worst.error)) {
            worst = {e, static_cast<double>(a[i]), static_cast<double>(b[i]), static_cast<double>(out[i]),
                     static_cast<double>(want)};
        }
    }
    return worst;
}

template <typename T>
void pad(std::vector<T>& v) {
    while (v.size() % 64) v.push_back(T(1));
}

// Every magnitude: bit patterns at an odd stride, then special values.
std::vector<float> all_floats(std::uint32_t stride) {
    std::vector<float> v;
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += stride) {
        v.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    }
    for (float x : {0.0f, -0.0f, INFINITY, -INFINITY, std::numeric_limits<float>::quiet_NaN(), 1.0f, -1.0f, FLT_MIN,
                    -FLT_MIN, FLT_MAX, -FLT_MAX, 0x1p-149f, -0x1p-149f, 88.72284f, 88.7229f, -103.97f, -104.1f}) {
        v.push_back(x);
    }
    pad(v);
    return v;
}

std::vector<float> dense(float low, float high, size_t n) {
    std::vector<float> v(n);
    for (size_t i = 0; i < n; ++i) {
        v[i] = static_cast<float>(low +
                                  (static_cast<double>(high) - low) * static_cast<double>(i) / static_cast<double>(n));
    }
    pad(v);
    return v;
}

std::uint32_t stride() { return std::getenv("FLEXOR_EXHAUSTIVE") ? 101 : 9973; }

struct UnaryCase {
    const char* name;
    Value (VectorMath::*emit)(Value);
    double (*reference)(double);
    long double (*wide_reference)(long double);
    double limit_f32, limit_f32_narrow, limit_f64;
    float low, high;  // where most users are
};

long double sigmoid_l(long double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
double sigmoid_d(double x) { return static_cast<double>(sigmoid_l(x)); }
double rsqrt_d(double x) { return 1 / std::sqrt(x); }
long double rsqrt_l(long double x) { return 1 / std::sqrt(x); }

const UnaryCase kUnary[] = {
    {"exp", &VectorMath::exp, std::exp, std::exp, 1.1, 1.1, 1.5, -20, 20},
    {"exp2", &VectorMath::exp2, std::exp2, std::exp2, 1.5, 1.5, 2, -20, 20},
    {"expm1", &VectorMath::expm1, std::expm1, std::expm1, 1.6, 1.6, 2, -2, 2},
    {"log", &VectorMath::log, std::log, std::log, 1.2, 1.2, 1.5, 0, 4},
    {"log2", &VectorMath::log2, std::log2, std::log2, 1.5, 1.5, 1.5, 0, 4},
    {"log10", &VectorMath::log10, std::log10, std::log10, 1.5, 1.5, 1.5, 0, 4},
    {"log1p", &VectorMath::log1p, std::log1p, std::log1p, 1.5, 1.5, 2, -0.9f, 2},
    {"sin", &VectorMath::sin, std::sin, std::sin, 1.5, 1.5, 1.5, -10, 10},
    {"cos", &VectorMath::cos, std::cos, std::cos, 1.5, 1.5, 1.5, -10, 10},
    {"tan", &VectorMath::tan, std::tan, std::tan, 2.5, 2.5, 2.5, -10, 10},
    {"tanh", &VectorMath::tanh, std::tanh, std::tanh, 2, 2.5, 2.5, -9, 9},
    {"erf", &VectorMath::erf, std::erf, std::erf, 2.3, 4, 2.5, -4, 4},
    {"sigmoid", &VectorMath::sigmoid, sigmoid_d, sigmoid_l, 2.3, 2.3, 2.1, -20, 20},
    {"sqrt", &VectorMath::sqrt, std::sqrt, std::sqrt, 0.51, 0.51, 0.51, 0, 100},
    {"rsqrt", &VectorMath::rsqrt, rsqrt_d, rsqrt_l, 1.51, 1.51, 1.51, 0, 100},
};

bool wide_host() { return host_target().has_avx512; }

TEST(VectorMath, UnaryFloatAgainstDoubleLibm) {
    for (const UnaryCase& c : kUnary) {
        auto emit = [&](VectorMath& m, Ir&, Value x, Value) { return (m.*c.emit)(x); };
        std::function<double(double, double)> reference = [&](double x, double) { return c.reference(x); };
        LoadedObject object = compile_map(&Ir::f32, native_lanes(4), emit);
        std::vector<float> everywhere = all_floats(stride()), near = dense(c.low, c.high, 300'032);
        Worst far_worst = worst_of<float, double>(object, everywhere, everywhere, reference);
        Worst near_worst = worst_of<float, double>(object, near, near, reference);
        const double limit = wide_host() ? c.limit_f32 : c.limit_f32_narrow;
        EXPECT_LE(far_worst.error, limit)
            << c.name << "(" << far_worst.at << ") = " << far_worst.got << ", not " << far_worst.want;
        EXPECT_LE(near_worst.error, limit)
            << c.name << "(" << near_worst.at << ") = " << near_worst.got << ", not " << near_worst.want;
        RecordProperty(c.name, std::to_string(std::max(far_worst.error, near_worst.error)));
        if (std::getenv("FLEXOR_PRINT"))
            std::printf("f32 %-8s %.3f near %.3f ulp\n", c.name, far_worst.error, near_worst.error);
    }
}

TEST(VectorMath, ScalarsAndOddWidthsAgreeWithTheLimits) {
    std::vector<float> x = dense(-9, 9, 4096), everywhere = all_floats(999'983);
    for (const UnaryCase& c : kUnary) {
        auto emit = [&](VectorMath& m, Ir&, Value v, Value) { return (m.*c.emit)(v); };
        std::function<double(double, double)> reference = [&](double v, double) { return c.reference(v); };
        for (int lanes : {1, 4, 2 * native_lanes(4)}) {
            LoadedObject object = compile_map(&Ir::f32, lanes, emit);
            for (const auto* v : {&x, &everywhere}) {
                Worst w = worst_of<float, double>(object, *v, *v, reference);
                EXPECT_LE(w.error, c.limit_f32_narrow) << c.name << " x" << lanes << " at " << w.at << " = " << w.got;
            }
        }
    }
}

TEST(VectorMath, ErfIsOneFarOut) {
    const auto emit = [](VectorMath& m, Ir&, Value v, Value) { return m.erf(v); };
    std::vector<float> x = {3.93f, 3.99f, 4, 5.6f, 28, 1e30f, INFINITY};
    for (int i = 0; x.size() < 64; ++i) x.push_back(-x[static_cast<size_t>(i)]);  // whole vectors
    for (int lanes : {1, 4, native_lanes(4), 2 * native_lanes(4)}) {
        LoadedObject object = compile_map(&Ir::f32, lanes, emit);
        const Worst w = worst_of<float, double>(object, x, x, [](double v, double) { return std::copysign(1.0, v); });
        EXPECT_EQ(w.error, 0) << "x" << lanes << ": erf(" << w.at << ") = " << w.got;
    }
}

TEST(VectorMath, UnaryDoubleAgainstLongDouble) {
    std::mt19937_64 random(7);
    std::vector<double> everywhere;
    for (int i = 0; i < 100'000; ++i) everywhere.push_back(std::bit_cast<double>(random()));
    for (double x : {0.0, -0.0, 1.0, -1.0, static_cast<double>(INFINITY), -static_cast<double>(INFINITY),
                     std::numeric_limits<double>::quiet_NaN(), 5e-324, -5e-324, 709.78, 709.79, -745.13, -745.2, 1e-310,
                     6381956970095103.0 * 0x1p797, 0x1.6ac5b262ca1ffp849}) {
        everywhere.push_back(x);
    }
    pad(everywhere);
    for (const UnaryCase& c : kUnary) {
        auto emit = [&](VectorMath& m, Ir&, Value x, Value) { return (m.*c.emit)(x); };
        std::function<long double(long double, long double)> reference = [&](long double x, long double) {
            return c.wide_reference(x);
        };
        std::vector<double> near;
        for (int i = 0; i < 100'032; ++i) {
            near.push_back(c.low + (c.high - c.low) * std::uniform_real_distribution<double>()(random));
        }
        for (int lanes : {1, native_lanes(8), 16}) {
            LoadedObject object = compile_map(&Ir::f64, lanes, emit);
            for (const auto* v : {&everywhere, &near}) {
                Worst w = worst_of<double, long double>(object, *v, *v, reference);
                EXPECT_LE(w.error, c.limit_f64)
                    << c.name << " x" << lanes << "(" << w.at << ") = " << w.got << ", not " << w.want;
                if (std::getenv("FLEXOR_PRINT")) std::printf("f64 x%-2d %-8s %.3f\n", lanes, c.name, w.error);
            }
        }
    }
}

template <typename T>
std::vector<T> special_values() {
    using L = std::numeric_limits<T>;
    const T inf = L::infinity();
    return {T(0),
            T(-0.0),
            T(1),
            T(-1),
            T(0.5),
            T(-0.5),
            T(2),
            T(-2),
            T(3),
            T(-3),
            T(1.5),
            T(-1.5),
            inf,
            -inf,
            L::quiet_NaN(),
            L::max(),
            -L::max(),
            L::min(),
            -L::min(),
            L::denorm_min(),
            -L::denorm_min(),
            T(1e10),
            T(-1e10),
            T(1e-10),
            T(7.25),
            T(16777215),
            T(16777216),
            T(16777217),
            T(0.1),
            T(100)};
}

template <typename T>
void all_pairs(std::vector<T>& a, std::vector<T>& b) {
    for (T x : special_values<T>()) {
        for (T y : special_values<T>()) {
            a.push_back(x);
            b.push_back(y);
        }
    }
}

template <typename T, typename Wide>
void check_pow(double limit) {
    std::vector<T> a, b;
    all_pairs(a, b);
    std::mt19937_64 random(11);
    std::uniform_real_distribution<double> unit;
    for (int i = 0; i < 200'000; ++i) {
        a.push_back(static_cast<T>(std::exp(unit(random) * 20 - 10)));
        b.push_back(static_cast<T>(unit(random) * 40 - 20));
        a.push_back(static_cast<T>(1 + (unit(random) - 0.5) * 1e-3));
        b.push_back(static_cast<T>((unit(random) - 0.5) * 1e5));
        a.push_back(static_cast<T>(-std::exp(unit(random) * 8 - 4)));
        b.push_back(static_cast<T>(std::round(unit(random) * 30 - 15)));
    }
    pad(a);
    pad(b);
    auto type = sizeof(T) == 4 ? &Ir::f32 : &Ir::f64;
    for (int lanes : {1, native_lanes(sizeof(T))}) {
        LoadedObject object =
            compile_map(type, lanes, [](VectorMath& m, Ir&, Value x, Value y) { return m.pow(x, y); });
        Worst w = worst_of<T, Wide>(object, a, b, [](Wide x, Wide y) { return std::pow(x, y); });
        EXPECT_LE(w.error, limit) << "pow(" << w.at << ", " << w.and_at << ") = " << w.got << ", not " << w.want;
        if (std::getenv("FLEXOR_PRINT")) std::printf("f%zu pow %.3f\n", 8 * sizeof(T), w.error);
    }
}

TEST(VectorMath, PowAsC) {
    check_pow<float, double>(1.0);
    check_pow<double, long double>(2.0);
}

template <typename T, typename Wide>
void check_atan2(double limit) {
    std::vector<T> a, b;
    all_pairs(a, b);
    std::mt19937_64 random(13);
    std::normal_distribution<double> normal;
    for (int i = 0; i < 200'000; ++i) {
        a.push_back(static_cast<T>(normal(random)));
        b.push_back(static_cast<T>(normal(random) * std::exp(normal(random) * 3)));
    }
    pad(a);
    pad(b);
    LoadedObject object = compile_map(sizeof(T) == 4 ? &Ir::f32 : &Ir::f64, native_lanes(sizeof(T)),
                                      [](VectorMath& m, Ir&, Value y, Value x) { return m.atan2(y, x); });
    Worst w = worst_of<T, Wide>(object, a, b, [](Wide y, Wide x) { return std::atan2(y, x); });
    EXPECT_LE(w.error, limit) << "atan2(" << w.at << ", " << w.and_at << ") = " << w.got << ", not " << w.want;
    if (std::getenv("FLEXOR_PRINT")) std::printf("f%zu atan2 %.3f\n", 8 * sizeof(T), w.error);
}

TEST(VectorMath, Atan2AsC) {
    check_atan2<float, double>(2.0);
    check_atan2<double, long double>(2.0);
}

template <typename T>
T python_mod(T a, T b) {
    T m = std::fmod(a, b);
    return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}

template <typename T>
void check_remainders() {
    std::vector<T> a, b;
    all_pairs(a, b);
    std::mt19937_64 random(17);
    for (int i = 0; i < 100'000; ++i) {
        using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        a.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
        b.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
        a.push_back(static_cast<T>(static_cast<double>(random() % 100'000) / 7));
        b.push_back(static_cast<T>(static_cast<double>(random() % 100) / 3 - 16));
    }
    pad(a);
    pad(b);
    auto type = sizeof(T) == 4 ? &Ir::f32 : &Ir::f64;
    std::vector<T> out(a.size());
    auto run = [&](const Emit& emit, T (*reference)(T, T), const char* name) {
        LoadedObject object = compile_map(type, native_lanes(sizeof(T)), emit);
        auto* f = object.function<CompiledMap>("f");
        ASSERT_NE(f, nullptr);
        f(a.data(), b.data(), out.data(), static_cast<std::int64_t>(a.size()));
        int wrong = 0;
        for (size_t i = 0; i < a.size() && wrong < 5; ++i) {
            T want = reference(a[i], b[i]);
            if (std::isnan(want) ? std::isnan(out[i]) : out[i] == want && std::signbit(out[i]) == std::signbit(want))
                continue;
            ++wrong;
            ADD_FAILURE() << name << "(" << a[i] << ", " << b[i] << ") = " << out[i] << ", not " << want;
        }
    };
    run([](VectorMath& m, Ir&, Value x, Value y) { return m.fmod(x, y); }, [](T x, T y) { return std::fmod(x, y); },
        "fmod");
    run([](VectorMath& m, Ir&, Value x, Value y) { return m.floor_mod(x, y); }, python_mod<T>, "floor_mod");
    run([](VectorMath& m, Ir&, Value x, Value y) { return m.max(x, y); },
        [](T x, T y) { return std::isnan(x) ? x
                              : x > y       ? x
                                            : y; }, "max");
    run([](VectorMath& m, Ir&, Value x, Value y) { return m.min(x, y); },
        [](T x, T y) { return std::isnan(x) ? x
                              : x < y       ? x
                                            : y; }, "min");
    run([](VectorMath& m, Ir&, Value x, Value y) { return m.max_num(x, y); },
        [](T x, T y) { return std::isnan(y) ? x
                              : x > y       ? x
                                            : y; }, "max_num");
    run([](VectorMath& m, Ir&, Value x, Value y) { return m.min_num(x, y); },
        [](T x, T y) { return std::isnan(y) ? x
                              : x < y       ? x
                                            : y; }, "min_num");
    run([](VectorMath& m, Ir&, Value x, Value) { return m.sign(x); },
        [](T x, T) { return x > 0   ? T(1)
                            : x < 0 ? T(-1)
                                    : x; }, "sign");
    run([](VectorMath& m, Ir&, Value x, Value) { return m.floor(x); }, [](T x, T) { return std::floor(x); }, "floor");
    run([](VectorMath& m, Ir&, Value x, Value) { return m.ceil(x); }, [](T x, T) { return std::ceil(x); }, "ceil");
    run([](VectorMath& m, Ir&, Value x, Value) { return m.round_even(x); }, [](T x, T) { return std::nearbyint(x); },
        "round_even");
    run([](VectorMath& m, Ir&, Value x, Value y) { return m.floor_div(x, y); },
        [](T x, T y) {
            if (y == 0) return x / y;
            T mod = std::fmod(x, y), div = (x - mod) / y;
            if (mod != 0 && (y < 0) != (mod < 0)) div -= 1;
            if (div == 0) return std::copysign(T(0), x / y);
            T down = std::floor(div);
            return div - down > T(0.5) ? down + 1 : down;
        },
        "floor_div");
}

TEST(VectorMath, RemaindersMinMaxAndRounding) {
    check_remainders<float>();
    check_remainders<double>();
}

template <typename I>
void check_integers(Type (Ir::*type)() const) {
    __extension__ using W = __int128;
    std::vector<I> values = {0,
                             1,
                             2,
                             3,
                             5,
                             7,
                             100,
                             std::numeric_limits<I>::max(),
                             std::numeric_limits<I>::min(),
                             static_cast<I>(-1),
                             static_cast<I>(-2),
                             static_cast<I>(-7),
                             static_cast<I>(-100),
                             static_cast<I>(std::numeric_limits<I>::max() - 1)};
    std::vector<I> a, b;
    for (I x : values) {
        for (I y : values) {
            a.push_back(x);
            b.push_back(y);
        }
    }
    std::mt19937_64 random(19);
    for (int i = 0; i < 5000; ++i) {
        a.push_back(static_cast<I>(random()));
        b.push_back(static_cast<I>(random() >> (random() % 64)));
    }
    pad(a);
    pad(b);
    const bool is_signed = std::is_signed_v<I>;
    std::vector<I> out(a.size());
    auto run = [&](const Emit& emit, const std::function<I(I, I)>& reference, const char* name) {
        for (int lanes : {1, 16}) {
            LoadedObject object = compile_map(type, lanes, emit);
            auto* f = object.function<CompiledMap>("f");
            ASSERT_NE(f, nullptr);
            f(a.data(), b.data(), out.data(), static_cast<std::int64_t>(a.size()));
            int wrong = 0;
            for (size_t i = 0; i < a.size() && wrong < 5; ++i) {
                if (out[i] == reference(a[i], b[i])) continue;
                ++wrong;
                ADD_FAILURE() << name << "(" << +a[i] << ", " << +b[i] << ") = " << +out[i] << " bits "
                              << 8 * sizeof(I);
            }
        }
    };
    run([&](VectorMath& m, Ir&, Value x, Value y) { return m.int_trunc_div(x, y, is_signed); },
        [](I x, I y) { return y == 0 ? I(0) : static_cast<I>(W(x) / W(y)); }, "trunc_div");
    run([&](VectorMath& m, Ir&, Value x, Value y) { return m.int_trunc_mod(x, y, is_signed); },
        [](I x, I y) { return y == 0 ? I(0) : static_cast<I>(W(x) % W(y)); }, "trunc_mod");
    run([&](VectorMath& m, Ir&, Value x, Value y) { return m.int_floor_mod(x, y, is_signed); },
        [](I x, I y) {
            if (y == 0) return I(0);
            W r = W(x) % W(y);
            return static_cast<I>(r != 0 && (r < 0) != (y < 0) ? r + y : r);
        },
        "floor_mod");
    run([&](VectorMath& m, Ir&, Value x, Value y) { return m.int_floor_div(x, y, is_signed); },
        [](I x, I y) {
            if (y == 0) return I(0);
            W q = W(x) / W(y), r = W(x) % W(y);
            return static_cast<I>(r != 0 && (r < 0) != (y < 0) ? q - 1 : q);
        },
        "floor_div");
    run([&](VectorMath& m, Ir&, Value x, Value y) { return m.int_pow(x, y, is_signed); },
        [](I x, I y) {
            if (y < 0) return x == 1 ? I(1) : x == static_cast<I>(-1) ? (y % 2 ? I(-1) : I(1)) : I(0);
            std::uint64_t result = 1, base = static_cast<std::uint64_t>(x);
            for (std::uint64_t e = static_cast<std::uint64_t>(y); e; e >>= 1) {
                if (e & 1) result *= base;
                base *= base;
            }
            return static_cast<I>(result);
        },
        "pow");
}

TEST(VectorMath, IntegerDivisionAndPower) {
    check_integers<std::int8_t>(&Ir::i8);
    check_integers<std::uint8_t>(&Ir::i8);
    check_integers<std::int32_t>(&Ir::i32);
    check_integers<std::int64_t>(&Ir::i64);
}

}  // namespace
}  // namespace flexor::codegen::cpu_llvm
