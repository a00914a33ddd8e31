// Call overhead from C++: add → relu → sum on [4, 8] through the public headers. Prints one JSON object a case:
// {"case", "shape", "samples_s"}, each sample the mean of many calls.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "flexor/module.h"
#include "flexor/session.h"

namespace {

constexpr int kSamples = 25;
constexpr int kCalls = 20000;

constexpr const char* kProgram = R"(
.func main(a: f32[P, Q], b: f32[P, Q]) -> 1
  LOAD_LOCAL a
  LOAD_LOCAL b
  CALL_OP add 2
  CALL_OP relu 1
  CALL_OP reduce_sum 1 axes=[-1], keepdim=false
  RETURN 1
.end
)";

using flexor::DType;
using flexor::Tensor;
using flexor::Value;

Tensor filled(std::int64_t rows, std::int64_t columns) {
    Tensor tensor = Tensor::empty(DType::kF32, {rows, columns});
    for (std::int64_t i = 0; i < rows * columns; ++i) tensor.data_as<float>()[i] = static_cast<float>(i % 7) - 3;
    return tensor;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void print(const char* name, const char* shape, const std::vector<double>& samples) {
    std::printf("{\"case\": \"%s\", \"shape\": \"%s\", \"samples_s\": [", name, shape);
    for (std::size_t i = 0; i < samples.size(); ++i) std::printf("%s%.6g", i ? ", " : "", samples[i]);
    std::printf("]}\n");
}

int fail(const flexor::Diagnostic& diagnostic) {
    std::fprintf(stderr, "%s\n", diagnostic.to_string().c_str());
    return 1;
}

// One pass over `arguments`; false after an error, which has been printed.
bool run_all(flexor::Session& session, const flexor::Module& module, std::int32_t function,
             const std::vector<std::vector<Value>>& arguments, int calls, std::vector<Value>& results) {
    for (int i = 0; i < calls; ++i) {
        const auto done =
            session.run_into(module, function, arguments[static_cast<std::size_t>(i) % arguments.size()], results);
        if (!done) return fail(done.error()), false;
    }
    return true;
}

}  // namespace

int main() {
    const auto module = flexor::Module::from_text(kProgram, "call_overhead.fasm");
    if (!module) return fail(module.error());
    flexor::Session session;
    const std::int32_t function = flexor::Session::function_index(*module, "main");

    std::vector<std::vector<Value>> same = {{filled(4, 8), filled(4, 8)}};
    std::vector<Value> results;
    if (!run_all(session, *module, function, same, kCalls, results)) return 1;
    const Tensor& row_sums = results[0].tensor();
    for (std::int64_t r = 0; r < 4; ++r) {
        float expected = 0;
        for (std::int64_t c = 0; c < 8; ++c) {
            const float twice = 2 * same[0][0].tensor().data_as<float>()[r * 8 + c];
            expected += twice > 0 ? twice : 0;
        }
        if (row_sums.data_as<float>()[r] != expected) {
            std::fprintf(stderr, "wrong result in row %d\n", static_cast<int>(r));
            return 1;
        }
    }

    std::vector<double> hot;
    for (int sample = 0; sample < kSamples; ++sample) {
        const double start = now();
        if (!run_all(session, *module, function, same, kCalls, results)) return 1;
        hot.push_back((now() - start) / kCalls);
    }
    print("c++", "4x8", hot);

    // Shapes that no earlier call had: every call is answered by the symbolic rung.
    std::vector<double> fresh;
    std::int64_t next = 0;  // of the 50 x 50 shapes, [4, 8] aside
    for (int sample = 0; sample < kSamples; ++sample) {
        std::vector<std::vector<Value>> shapes;
        for (; shapes.size() < 90; ++next) {
            const std::int64_t rows = 1 + next / 50, columns = 1 + next % 50;
            if (rows != 4 || columns != 8) shapes.push_back({filled(rows, columns), filled(rows, columns)});
        }
        const double start = now();
        if (!run_all(session, *module, function, shapes, 90, results)) return 1;
        fresh.push_back((now() - start) / 90);
    }
    print("c++, new shape each call", "[1..50]x[1..50]", fresh);
    return 0;
}
