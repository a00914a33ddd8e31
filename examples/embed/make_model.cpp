// make_model OUT.flx: a small classifier over rows of a length that nobody knows yet, with a weight and an op of one's own.
#include <cstdio>
#include <string>

#include "flexor/builder.h"
#include "my_ops.h"

int main(int argc, char** argv) {
    if (argc != 2) return std::fprintf(stderr, "usage: make_model OUT.flx\n"), 2;
    if (const auto registered = register_my_ops(); !registered)
        return std::fprintf(stderr, "%s\n", registered.error().to_string().c_str()), 1;

    constexpr std::int64_t kFeatures = 64, kClasses = 10;
    flexor::Tensor weight = flexor::Tensor::empty(flexor::DType::kF32, {kFeatures, kClasses});
    for (std::int64_t i = 0; i < weight.numel(); ++i)
        weight.data_as<float>()[i] = static_cast<float>((i * 37) % 101) / 101.0f - 0.5f;

    flexor::Builder builder;
    const auto rows = builder.symbol("B", 1, 4096);
    builder.weight("w", weight);
    builder.metadata("made_by", "examples/embed");
    auto main = builder.function("main");
    const auto x = main.input("x", flexor::DType::kF32, {rows, kFeatures});
    const auto clipped = main.ops("my_clip_count", {x}, {{"limit", 0.75}});
    const auto logits = main.op("matmul", {clipped[0], main.weight("w")});
    main.output("probabilities", main.op("softmax", {logits}, {{"axis", -1}}));
    main.output("clipped", clipped[1]);
    const auto module = builder.build();
    if (!module) return std::fprintf(stderr, "%s\n", module.error().to_string().c_str()), 1;
    if (const auto saved = module->save(argv[1]); !saved)
        return std::fprintf(stderr, "%s\n", saved.error().to_string().c_str()), 1;
    return 0;
}
