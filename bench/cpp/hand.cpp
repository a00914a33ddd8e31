// Hand-written kernels and machine floors: what this CPU can do on the bench's streaming programs.
//
// Everything is written with vector types as wide as the target's registers. Two threads at most:
// a helper thread spins for a short time after each call, then sleeps, as the engines' own pools do.
// All arrays are dense float32; `rows` x `width`, width a multiple of 64.

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr long kLanes = 16;
#elif defined(__AVX2__)
constexpr long kLanes = 8;
#else
constexpr long kLanes = 4;
#endif
using Vec = float __attribute__((vector_size(4 * kLanes), aligned(4)));
using Int = int32_t __attribute__((vector_size(4 * kLanes)));

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

Vec splat(float x) { return Vec{} + x; }
Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }
Vec vmax(Vec a, Vec b) { return a > b ? a : b; }
Vec vabs(Vec a) { return reinterpret_cast<Vec>(reinterpret_cast<Int>(a) & 0x7fffffff); }

float sum(Vec v) {
    float total = 0;
    for (int i = 0; i < kLanes; ++i) total += v[i];
    return total;
}

float max(Vec v) {
    float top = v[0];
    for (int i = 1; i < kLanes; ++i) top = v[i] > top ? v[i] : top;
    return top;
}

// exp with relative error of about 2e-7 for x in [-87, 88].
Vec vexp(Vec x) {
    x = vmax(x, splat(-87.f));
    const Vec magic = splat(12582912.f);  // 1.5 * 2^23: adding it rounds to an integer held in the low bits
    const Vec shifted = x * 1.44269504f + magic;
    const Vec n = shifted - magic;
    Vec r = x - n * 0.693145752f;
    r = r - n * 1.42860677e-6f;
    Vec p = splat(1.3888889e-3f);
    for (float c : {8.3333333e-3f, 4.1666667e-2f, .16666667f, .5f, 1.f, 1.f}) p = p * r + c;
    const Int exponent = (reinterpret_cast<Int>(shifted) + 127) << 23;
    return p * reinterpret_cast<Vec>(exponent);
}

// erf form of GELU; erf by Abramowitz-Stegun 7.1.26, absolute error 1.5e-7.
Vec vgelu(Vec x) {
    const Vec z = vabs(x) * 0.70710678f;
    const Vec t = 1.f / (z * .3275911f + 1.f);
    Vec p = splat(1.061405429f);
    for (float c : {-1.453152027f, 1.421413741f, -.284496736f, .254829592f}) p = p * t + c;
    const Vec erf_abs = 1.f - p * t * vexp(-(z * z));
    const Vec half = x * .5f;
    return vabs(half) * erf_abs + half;
}

// Runs f(begin, end) over [0, rows) on the calling thread and one helper.
class TwoThreads {
public:
    TwoThreads() {
        std::thread([this] { loop(); }).detach();
    }

    void run(long rows, const std::function<void(long, long)>& f) {
        if (std::thread::hardware_concurrency() < 2 || rows < 2) return f(0, rows);
        work_ = &f;
        middle_ = (rows + 1) / 2;
        rows_ = rows;
        const int ticket = go_.load(std::memory_order_relaxed) + 1;
        go_.store(ticket, std::memory_order_release);
        go_.notify_one();
        f(0, middle_);
        while (done_.load(std::memory_order_acquire) != ticket) relax();
    }

private:
    void loop() {
        for (int seen = 0;;) {
            int now = go_.load(std::memory_order_acquire);
            for (int spins = 0; now == seen && spins < 100000; ++spins) {
                relax();
                now = go_.load(std::memory_order_acquire);
            }
            if (now == seen) {
                go_.wait(seen);
                continue;
            }
            seen = now;
            (*work_)(middle_, rows_);
            done_.store(seen, std::memory_order_release);
        }
    }

    std::atomic<int> go_{0}, done_{0};
    const std::function<void(long, long)>* work_ = nullptr;
    long middle_ = 0, rows_ = 0;
};

TwoThreads& pool() {
    static TwoThreads& pool = *new TwoThreads;  // never destroyed: its thread is detached
    return pool;
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Sum of f(i) over i in [0, width) in steps of 64 with four accumulators.
template <class F>
float row_sum(long width, F f) {
    Vec s[4] = {};
    for (long i = 0; i < width; i += 4 * kLanes)
        for (int k = 0; k < 4; ++k) s[k] += f(i + k * kLanes);
    return sum((s[0] + s[1]) + (s[2] + s[3]));
}

void chain_row(const float* x, const float* scale, const float* shift, float* out, long width, float* scratch) {
    const float mean = row_sum(width, [&](long i) { return load(x + i); }) / width;
    const float variance = row_sum(width,
                                   [&](long i) {
                                       Vec d = load(x + i) - mean;
                                       return d * d;
                                   }) /
                           width;
    const float inverse = 1.f / std::sqrt(variance + 1e-5f);
    Vec top = splat(-INFINITY);
    for (long i = 0; i < width; i += kLanes) {
        const Vec v = load(x + i);
        const Vec y = vgelu((v - mean) * inverse * load(scale + i) + load(shift + i)) + v;
        top = vmax(top, y);
        store(scratch + i, y);
    }
    const float peak = max(top);
    const float total = row_sum(width, [&](long i) {
        const Vec e = vexp(load(scratch + i) - peak);
        store(scratch + i, e);
        return e;
    });
    const float factor = 1.f / total;
    for (long i = 0; i < width; i += kLanes) store(out + i, load(scratch + i) * factor);
}

volatile float sink;

}  // namespace

extern "C" {

// out[row] = sum(relu(a + b))
void hand_add_relu_sum(const float* a, const float* b, float* out, long rows, long width) {
    pool().run(rows, [&](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            const float *p = a + r * width, *q = b + r * width;
            out[r] = row_sum(width, [&](long i) { return vmax(Vec{}, load(p + i) + load(q + i)); });
        }
    });
}

// *out = sum over everything of relu(x + 1)
void hand_relu_sum(const float* x, float* out, long rows, long width) {
    double halves[2] = {};
    pool().run(rows, [&](long begin, long end) {
        double total = 0;
        for (long r = begin; r < end; ++r)
            total += row_sum(width, [&](long i) { return vmax(Vec{}, load(x + r * width + i) + 1.f); });
        halves[begin != 0] = total;
    });
    *out = float(halves[0] + halves[1]);
}

// out = softmax(gelu(layer_norm(x) * scale + shift) + x), row by row
void hand_chain(const float* x, const float* scale, const float* shift, float* out, long rows, long width) {
    pool().run(rows, [&](long begin, long end) {
        std::vector<float> scratch(width);
        for (long r = begin; r < end; ++r)
            chain_row(x + r * width, scale, shift, out + r * width, width, scratch.data());
    });
}

// Best bytes per second of two threads reading `bytes` of memory, over several passes.
double floor_read_bandwidth(long bytes) {
    const long rows = 2, width = bytes / 4 / rows / 64 * 64;
    std::vector<float> data(rows * width, 1.f);
    double best = 1e9;
    for (int pass = 0; pass < 9; ++pass) {
        const double start = seconds();
        pool().run(rows, [&](long begin, long end) {
            for (long r = begin; r < end; ++r)
                sink = row_sum(width, [&](long i) { return load(&data[r * width + i]); });
        });
        best = std::min(best, seconds() - start);
    }
    return double(rows * width * 4) / best;
}

// Best float32 multiply-add operations per second (two per lane and instruction) of two threads in registers.
double floor_fma_peak() {
    const long steps = 4000000;
    double best = 1e9;
    for (int pass = 0; pass < 9; ++pass) {
        const double start = seconds();
        pool().run(2, [&](long begin, long end) {
            for (long r = begin; r < end; ++r) {
                Vec x = splat(0.999f), y = splat(1e-4f), a[12];
                for (int k = 0; k < 12; ++k) a[k] = splat(1e-3f * float(k + 1));
                for (long i = 0; i < steps; ++i) {
#pragma GCC unroll 12
                    for (Vec& v : a) v = v * x + y;
                }
                Vec total = {};
                for (Vec v : a) total += v;
                sink = sum(total);
            }
        });
        best = std::min(best, seconds() - start);
    }
    return 2.0 * steps * 12 * 2 * kLanes / best;
}
}
