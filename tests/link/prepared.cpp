// After Session::prepare: calls in the range compile nothing, grow no pool and, into memory of the caller, allocate
// nothing at all, whoever is asked: malloc and its kin are those of this program.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "expect.h"
#include "flexor/session.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define COUNTED 0
#else
#define COUNTED 1
#endif

namespace {
std::atomic<std::uint64_t> allocations{0};
}

#if COUNTED
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_calloc(count, bytes);
}
void* realloc(void* data, std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_realloc(data, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    *out = __libc_memalign(alignment, bytes);
    return *out == nullptr ? 12 : 0;
}
}
#endif

namespace {

using flexor::DType;
using flexor::Module;
using flexor::Session;
using flexor::SizeRange;
using flexor::Tensor;
using flexor::Value;

struct Program {
    const char* name;
    const char* text;
    std::int64_t columns;
    std::int64_t result_columns;  // 0: a vector
};

constexpr std::int64_t kLargest = 300;

const Program kPrograms[] = {
    {"add_relu_sum", R"(
.symbol S in 1..4096
.func main(x: f32[S, 48]) -> 1
  LOAD_TENSOR x
  CONST_SCALAR 1.0
  BINARY_ADD
  RELU
  REDUCE_SUM axes=[-1], keepdim=false
  RETURN 1
)",
     48, 0},
    {"attention", R"(
.symbol S in 1..4096
.func main(x: f32[S, 16]) -> 1
  LOAD_LOCAL x
  LOAD_LOCAL x
  CALL_OP transpose 1 a=0, b=1
  CALL_OP matmul 2
  CALL_OP softmax 1 axis=-1
  LOAD_LOCAL x
  CALL_OP matmul 2
  RETURN 1
)",
     16, 16},
    {"loop_on_values", R"(
.symbol S in 1..4096
.func main(x: f32[S, 8]) -> 1
head:
  LOOP_HEAD
  LOAD_LOCAL x
  CALL_OP reduce_max 1
  ITEM
  LOAD_CONST 0.1
  SCALAR gt
  BRANCH_IF_FALSE done
  LOAD_LOCAL x
  LOAD_CONST 0.5
  CALL_OP mul 2
  STORE_LOCAL x
  JUMP head
done:
  LOAD_LOCAL x
  CALL_OP neg 1
  RETURN 1
)",
     8, 8},
};

Tensor filled(std::int64_t rows, std::int64_t columns, float value) {
    Tensor out = Tensor::empty(DType::kF32, {rows, columns});
    for (std::int64_t i = 0; i < out.numel(); ++i) out.data_as<float>()[i] = value + static_cast<float>(i % 7) * 0.125f;
    return out;
}

bool same(const Tensor& a, const Tensor& b) {
    return a.numel() == b.numel() &&
           std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.numel()) * sizeof(float)) == 0;
}

// 1,000 calls over the range, into buffers made beforehand; the results are those of a session without a compiler to
// rounding, and of `run` exactly.
void check_program(const Program& program, Session& session) {
    const auto loaded = Module::from_text(program.text, program.name);
    if (!loaded) return expect(false, loaded.error().to_string());
    const Module& module = *loaded;
    const SizeRange range[] = {{"S", 1, kLargest}};
    const auto prepared = session.prepare(module, range);
    if (!prepared) return expect(false, prepared.error().to_string());

    std::vector<std::vector<Value>> arguments;
    std::vector<std::vector<Tensor>> outputs;
    for (std::int64_t i = 0; i < 100; ++i) {
        const std::int64_t rows = i < 50 ? i + 1 : i * 3;
        arguments.push_back({filled(rows, program.columns, 0.25f)});
        outputs.push_back({program.result_columns == 0 ? Tensor::empty(DType::kF32, {rows})
                                                       : Tensor::empty(DType::kF32, {rows, program.result_columns})});
    }
    const std::int32_t main = Session::function_index(module, "main");
    const flexor::Stats before = session.stats();
    bool ran = true;
    const std::uint64_t start = allocations.load();
    for (int round = 0; round < 10; ++round) {
        for (std::size_t i = 0; i < arguments.size(); ++i)
            ran = ran && session.run_into(module, main, arguments[i], outputs[i]).has_value();
    }
    const std::uint64_t made = allocations.load() - start;
    const flexor::Stats after = session.stats();
    expect(ran, std::string(program.name) + ": every call runs");
    if (Session::has_code_generator()) {
        expect(made == 0, std::string(program.name) + ": " + std::to_string(made) + " allocations in 1,000 calls");
        expect(after.compilations == before.compilations, std::string(program.name) + ": nothing is compiled");
        expect(after.pool.growth_events == before.pool.growth_events,
               std::string(program.name) + ": the pool does not grow");
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto results = session.run(module, arguments[i]);
        expect(results && same((*results)[0].tensor(), outputs[i][0]),
               std::string(program.name) + ": run_into gives what run gives, case " + std::to_string(i));
    }
}

// A thread that begins after prepare takes over what was made ready.
void check_other_threads() {
    Session session;
    const auto module = Module::from_text(kPrograms[1].text, "attention");
    const SizeRange range[] = {{"S", 1, kLargest}};
    const auto prepared = session.prepare(*module, range, "main", 2);
    if (!prepared) return expect(false, prepared.error().to_string());
    const flexor::Stats before = session.stats();
    const auto work = [&] {
        for (std::int64_t rows = 1; rows <= kLargest; rows += 13) {
            const std::vector<Value> arguments{filled(rows, 16, 0.5f)};
            expect(session.run(*module, arguments).has_value(), "a run on another thread");
        }
    };
    std::thread first(work), second(work);
    first.join();
    second.join();
    if (!Session::has_code_generator()) return;
    expect(session.stats().compilations == before.compilations, "other threads compile nothing");
    expect(session.stats().pool.growth_events == before.pool.growth_events, "other threads grow no pool");
}

void refused(const flexor::Expected<void>& done, const char* code, const char* what) {
    expect(!done, std::string(what) + " is refused");
    if (!done) expect(done.error().code() == code, std::string(what) + ": " + done.error().to_string());
}

void check_buffers(Session& session) {
    const auto module = Module::from_text(R"(
.func main(x: f32[N, M], y: f32[N, M]) -> 2
  LOAD_LOCAL x
  LOAD_LOCAL y
  CALL_OP add 2
  LOAD_LOCAL x
  CALL_OP transpose 1 a=0, b=1
  RETURN 2
)",
                                          "two_results");
    if (!module) return expect(false, module.error().to_string());
    for (const std::int64_t size : {0, 1, 2, 15, 16, 17, 33}) {
        const Tensor x = filled(size, 5, 1), y = filled(size, 5, 2);
        const std::vector<Value> arguments{x, y};
        const auto wanted = session.run(*module, arguments);
        if (!wanted) return expect(false, wanted.error().to_string());
        // Row-major, every other column of a wider matrix, transposed, and each result a part of one matrix.
        Tensor wide = Tensor::empty(DType::kF32, {size, 12}), tall = Tensor::empty(DType::kF32, {5, size});
        const std::int64_t sizes[] = {size, 5}, flipped[] = {5, size};
        const std::int64_t every_other[] = {12, 2}, columns[] = {12, 1}, transposed[] = {1, 5};
        Tensor store = Tensor::empty(DType::kF32, {size, 5});
        const Tensor sums[] = {Tensor::empty(DType::kF32, {size, 5}),
                               wide.view(wide.data(), DType::kF32, sizes, every_other),
                               wide.view(wide.data_as<float>() + 7, DType::kF32, sizes, columns)};
        for (const Tensor& sum : sums) {
            for (const bool dense : {true, false}) {
                const Tensor turned = dense ? tall : store.view(store.data(), DType::kF32, flipped, transposed);
                const Tensor outputs[] = {sum, turned};
                const auto done = session.run_into(*module, 0, arguments, outputs);
                expect(done.has_value(), done ? "" : done.error().to_string());
                expect(same(sum.clone(), (*wanted)[0].tensor()), "the sum in its buffer");
                expect(same(turned.clone(), (*wanted)[1].tensor().contiguous()), "the view in its buffer");
            }
        }
    }
    const Tensor x = filled(4, 5, 1), y = filled(4, 5, 2), z = filled(4, 5, 0), t = filled(5, 4, 0);
    const std::vector<Value> arguments{x, y};
    const std::int64_t sizes[] = {4, 5}, same_place[] = {0, 1};
    const auto into = [&](const std::vector<Tensor>& outputs) {
        return session.run_into(*module, 0, arguments, outputs);
    };
    refused(into({z}), "E0514", "one buffer for two outputs");
    refused(into({z, Tensor()}), "E0514", "a buffer without memory");
    refused(into({filled(4, 6, 0), t}), "E0514", "a buffer of another size");
    refused(into({Tensor::empty(DType::kF64, {4, 5}), t}), "E0514", "a buffer of another dtype");
    refused(into({Tensor::empty(DType::kF32, {20}), t}), "E0514", "a buffer of another rank");
    refused(into({z.view(z.data(), DType::kF32, sizes, same_place), t}), "E0312", "a buffer that shares its elements");
    refused(into({x, t}), "E0515", "a buffer that is an input");
    refused(into({x.view(x.data_as<float>(), DType::kF32, sizes, std::vector<std::int64_t>{5, 1}), t}), "E0515",
            "a view of an input");
    refused(into({z, z.view(z.data(), DType::kF32, std::vector<std::int64_t>{5, 4}, std::vector<std::int64_t>{4, 1})}),
            "E0515", "one buffer twice");
    const Tensor kept = filled(4, 5, 0);
    kept.refuse_writes();
    refused(into({kept, t}), "E0511", "a buffer that must not be written");
    // The left and the right half of one matrix share nothing; columns that do are found out.
    const Tensor halves = filled(4, 10, 1);
    const std::int64_t pitch[] = {10, 1};
    const auto part = [&](std::int64_t column) {
        return halves.view(halves.data_as<float>() + column, DType::kF32, sizes, pitch);
    };
    const std::vector<Value> left{part(0), y};
    const auto written = session.run_into(*module, 0, left, std::vector<Tensor>{part(5), t});
    expect(written.has_value(), "the right half of a matrix whose left half is read");
    refused(session.run_into(*module, 0, left, std::vector<Tensor>{part(4), t}), "E0515", "halves that overlap");
    const std::vector<Value> right{part(5), y};
    expect(session.run_into(*module, 0, right, std::vector<Tensor>{part(0), t}).has_value(), "the left half, likewise");
    refused(session.run_into(*module, 0, right, std::vector<Tensor>{part(1), t}), "E0515",
            "halves that overlap, likewise");

    const auto scalar = Module::from_text(".func main(n: int) -> 1\n  LOAD_LOCAL n\n  RETURN 1\n", "scalar");
    const std::vector<Value> three{3};
    refused(session.run_into(*scalar, 0, three, std::vector<Tensor>{z}), "E0514", "a buffer for a number");
}

void check_frozen() {
    const auto module = Module::from_text(R"(
.symbol S in 1..4096
.func main(x: f32[FROZEN S, 4]) -> 1
  LOAD_LOCAL x
  RELU
  RETURN 1
)",
                                          "frozen");
    if (!Session::has_code_generator()) return;
    Session session;
    const SizeRange few[] = {{"S", 3, 9}}, many[] = {{"S", 1, 4096}};
    expect(session.prepare(*module, few).has_value(), "a few frozen sizes are prepared");
    const std::uint64_t compilations = session.stats().compilations;
    for (std::int64_t s = 3; s <= 9; ++s) expect(session.run(*module, {filled(s, 4, 0)}).has_value(), "a frozen size");
    expect(session.stats().compilations == compilations && compilations == 7, "one compilation for each frozen size");
    refused(session.prepare(*module, many), "E0605", "preparing 4,096 frozen sizes");
}

// The pool takes what it needs from the host.
void check_allocator() {
    struct Counts {
        std::atomic<std::uint64_t> taken{0}, given{0};
    } counts;
    flexor::SessionOptions options;
    options.allocator = {[](void* context, std::size_t bytes, std::size_t alignment) {
                             static_cast<Counts*>(context)->taken += bytes;
                             return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
                         },
                         [](void* context, void* data, std::size_t bytes) {
                             static_cast<Counts*>(context)->given += bytes;
                             std::free(data);
                         },
                         &counts};
    {
        Session session(options);
        const auto module = Module::from_text(kPrograms[1].text, "attention");
        for (const std::int64_t rows : {10, 200, 3000, 20}) {
            const std::vector<Value> arguments{filled(rows, 16, 0.5f)};
            const auto mine = session.run(*module, arguments);
            Session plain;
            const auto wanted = plain.run(*module, arguments);
            expect(mine && wanted && same((*mine)[0].tensor(), (*wanted)[0].tensor()), "a run in memory of the host");
        }
        if (Session::has_code_generator()) expect(counts.taken > 0, "the pool asks the host");
    }
    expect(counts.taken == counts.given, "the host gets back what it gave");
    options.allocator.release = nullptr;
    const Session half(options);
    expect(half.error() != nullptr && half.error()->code() == "E0507", "half an allocator is refused");
}

void check_hooks() {
    Session session;
    const char* text =
        ".func main(x: f32[N]) -> 1\n  LOAD_LOCAL x\n  "
        "CALL_FOREIGN host 1\n  RETURN 1\n";
    const std::string path = std::string(std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp") +
                             "/flexor_prepared_" + std::to_string(reinterpret_cast<std::uintptr_t>(&session)) + ".fasm";
    std::FILE* file = std::fopen(path.c_str(), "w");
    std::fputs(text, file);
    std::fclose(file);
    const auto refused_load = session.load(path);
    expect(!refused_load && refused_load.error().code() == "E0705", "a program whose hook is not bound does not load");
    session.bind("host", [](std::span<const Value> arguments) -> flexor::Expected<Value> { return arguments[0]; });
    const auto loaded = session.load(path);
    expect(loaded.has_value(), "a program whose hooks are bound loads");
    if (loaded) expect(session.run(*loaded, {Tensor::empty(DType::kF32, {3})}).has_value(), "and runs");
    std::remove(path.c_str());
}

}  // namespace

int main() {
    Session session;
    for (const Program& program : kPrograms) check_program(program, session);
    check_other_threads();
    check_buffers(session);
    Session interpreted(flexor::SessionOptions{.compile = false});
    check_buffers(interpreted);
    check_frozen();
    check_allocator();
    check_hooks();
    if (failures == 0) std::printf("prepared calls compile, grow and allocate nothing\n");
    return failures == 0 ? 0 : 1;
}
