// The program of docs/cpp.md.
#include <cstdio>
#include <vector>

#include "flexor/builder.h"
#include "flexor/session.h"

int fail(const flexor::Diagnostic& diagnostic) {
    std::fprintf(stderr, "%s\n", diagnostic.to_string().c_str());
    return 1;
}

int main() {
    // A program: sizes are symbols.
    flexor::Builder builder;
    const auto batch = builder.symbol("B"), length = builder.symbol("S", 1, 4096);
    auto function = builder.function("main");
    const auto x = function.input("x", flexor::DType::kF32, {batch, length, 8});
    const auto y = function.input("y", flexor::DType::kF32, {batch, length, 8});
    const auto positive = function.op("relu", {function.op("add", {x, y})});
    function.output("total", function.op("reduce_sum", {positive}, {{"axes", {-1}}, {"keepdim", false}}));
    const auto module = builder.build();
    if (!module) return fail(module.error());

    // A session runs it; lengths come and go.
    flexor::Session session;
    for (std::int64_t s = 1; s <= 100; ++s) {
        const flexor::Tensor a = flexor::Tensor::empty(flexor::DType::kF32, {2, s, 8});
        for (std::int64_t i = 0; i < a.numel(); ++i) a.data_as<float>()[i] = 0.5f;
        const auto results = session.run(*module, {a, a});
        if (!results) return fail(results.error());
        if ((*results)[0].tensor().data_as<float>()[0] != 8.0f) return 1;
    }
    // One compilation serves all hundred.
    if (flexor::Session::has_code_generator() && session.stats().compilations != 1) return 1;

    // A refusal is a value, not an exception.
    const auto refused = session.run(*module, {1.0});
    if (refused) return 1;
    std::printf("%s\n%s", session.dashboard().c_str(), refused.error().to_string().c_str());
    return 0;
}
