// One session shared by eight threads: every result right, one compilation for each family however many threads miss it
// at once. `link_threads --scaling` measures instead how much two threads get done in the time of one.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "flexor/session.h"

namespace {

using flexor::DType;
using flexor::Module;
using flexor::Session;
using flexor::Tensor;
using flexor::Value;

constexpr const char* kPrograms[] = {
    R"(
.func main(x: f32[N, M]) -> 1
  LOAD_TENSOR x
  CONST_SCALAR 1.0
  BINARY_ADD
  RELU
  REDUCE_SUM axes=[-1], keepdim=false
  RETURN 1
)",
    R"(
.func main(x: f32[N, M]) -> 1
  LOAD_LOCAL x
  CALL_OP softmax 1 axis=-1
  RETURN 1
)",
    R"(
.func main(x: f32[N, M]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  CALL_OP transpose 1 a=0, b=1
  CALL_OP matmul 2
  RELU
  RETURN 1
)",
    R"(
.func main(x: f32[N, M]) -> 1
head:
  LOOP_HEAD
  LOAD_LOCAL x
  CALL_OP reduce_max 1
  ITEM
  LOAD_CONST 0.2
  SCALAR gt
  BRANCH_IF_FALSE done
  LOAD_LOCAL x
  LOAD_CONST 0.5
  CALL_OP mul 2
  STORE_LOCAL x
  JUMP head
done:
  LOAD_LOCAL x
  RETURN 1
)",
    R"(
.func main(x: f32[N, M]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  CALL_OP concat 2 axis=1
  CALL_OP tanh 1
  RETURN 1
)",
    R"(
.func main(x: f32[N, M]) -> 1
  LOAD_LOCAL x
  CALL_OP reduce_mean 1 axes=[-1], keepdim=true
  STORE_LOCAL m
  LOAD_LOCAL x
  LOAD_LOCAL m
  CALL_OP sub 2
  RETURN 1
)",
};
constexpr std::size_t kProgramCount = std::size(kPrograms);
constexpr std::size_t kShapes = 100;
constexpr int kThreads = 8;
constexpr int kCalls = 10'000;

Tensor input(std::size_t shape) {
    Tensor x =
        Tensor::empty(DType::kF32, {static_cast<std::int64_t>(1 + shape % 10), static_cast<std::int64_t>(2 + shape)});
    for (std::int64_t i = 0; i < x.numel(); ++i) x.data_as<float>()[i] = static_cast<float>((i * 7 + 3) % 13) / 13.0f;
    return x;
}

bool same(const Tensor& a, const Tensor& b) {
    return std::ranges::equal(a.sizes(), b.sizes()) &&
           std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.numel()) * sizeof(float)) == 0;
}

std::vector<Module> modules() {
    std::vector<Module> out;
    for (const char* text : kPrograms) {
        auto module = Module::from_text(text, "threads");
        if (!module) {
            std::printf("%s\n", module.error().to_string().c_str());
            continue;
        }
        out.push_back(*std::move(module));
    }
    return out;
}

int check() {
    const std::vector<Module> programs = modules();
    if (programs.size() != kProgramCount) return 1;
    std::vector<std::vector<Value>> inputs;
    for (std::size_t s = 0; s < kShapes; ++s) inputs.push_back({input(s)});
    std::vector<Tensor> wanted;
    {
        Session alone;
        for (const Module& program : programs) {
            for (const std::vector<Value>& arguments : inputs) {
                const auto results = alone.run(program, arguments);
                if (!results) return std::printf("%s\n", results.error().to_string().c_str()), 1;
                wanted.push_back((*results)[0].tensor());
            }
        }
        if (Session::has_code_generator() && alone.stats().compilations != kProgramCount)
            return std::printf("%d families expected\n", static_cast<int>(kProgramCount)), 1;
    }
    Session session;
    std::atomic<int> wrong{0}, refused{0}, waiting{kThreads};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            std::uint64_t state = static_cast<std::uint64_t>(t) + 1;
            std::vector<Value> results;
            // All miss the same program first.
            for (waiting.fetch_sub(1); waiting.load() > 0;) std::this_thread::yield();
            for (int call = 0; call < kCalls; ++call) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                const std::size_t p = call == 0 ? 0 : (state >> 33) % kProgramCount;
                const std::size_t s = (state >> 45) % kShapes;
                if (!session.run_into(programs[p], 0, inputs[s], results))
                    refused.fetch_add(1);
                else if (!same(results[0].tensor(), wanted[p * kShapes + s]))
                    wrong.fetch_add(1);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    const flexor::Stats stats = session.stats();
    std::printf("%d calls, %d wrong, %d refused, %llu compilations\n", kThreads * kCalls, wrong.load(), refused.load(),
                static_cast<unsigned long long>(stats.compilations));
    bool good = wrong == 0 && refused == 0 && stats.calls == static_cast<std::uint64_t>(kThreads) * kCalls;
    if (Session::has_code_generator()) good = good && stats.compilations == kProgramCount;
    return good ? 0 : 1;
}

// Calls that a thread gets done in a second of its processor's time, while `count` of them run at once: what threads cost
// each other shows, what else the machine does hardly. Kernels run on the thread that calls.
double throughput(Session& session, const std::vector<Module>& programs, int count) {
    constexpr int kRound = 20'000;
    const auto processor_seconds = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    };
    std::atomic<int> waiting{count};
    std::vector<double> taken(static_cast<std::size_t>(count));
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t) {
        threads.emplace_back([&, t] {
            std::vector<std::vector<Value>> inputs;
            for (std::size_t s = 0; s < kShapes; ++s) inputs.push_back({input(s)});
            std::vector<Value> results;
            for (const Module& program : programs) {
                for (const auto& arguments : inputs) (void)session.run_into(program, 0, arguments, results);
            }
            for (waiting.fetch_sub(1); waiting.load() > 0;) std::this_thread::yield();
            const double begin = processor_seconds();
            for (int call = 0; call < kRound; ++call)
                (void)session.run_into(programs[static_cast<std::size_t>(call) % kProgramCount], 0,
                                       inputs[static_cast<std::size_t>(call * 7) % kShapes], results);
            taken[static_cast<std::size_t>(t)] = processor_seconds() - begin;
        });
    }
    for (std::thread& thread : threads) thread.join();
    return kRound / std::ranges::max(taken);
}

int measure() {
    flexor::SessionOptions options;
    options.threads = 1;
    Session session(options);
    const std::vector<Module> programs = modules();
    double one = 0, two = 0;
    for (int round = 0; round < 60; ++round) {
        one = std::max(one, throughput(session, programs, 1));
        two = std::max(two, throughput(session, programs, 2));
    }
    std::printf("one thread %.0f calls a processor second, two %.0f each: %.2f times the work\n", one, two,
                2 * two / one);
    return 0;
}

}  // namespace

int main(int argc, char** argv) { return argc > 1 && std::string_view(argv[1]) == "--scaling" ? measure() : check(); }
