// Random bodies, compiled against evaluated.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "codegen/cpu_llvm/kernel_compiler.h"
#include "loopir/loopir.h"
#include "random_kernel.h"
#include "types/half.h"

namespace flexor::codegen::cpu_llvm {
namespace {

using loopir::Kernel;

TEST(RowKernelRandom, CompiledAgreesWithEvaluated) {
    const char* only = std::getenv("FLEXOR_SEED");
    const unsigned first = only ? static_cast<unsigned>(std::atoi(only)) : 0;
    const char* many = std::getenv("FLEXOR_SEEDS");
    const unsigned count = only ? 1 : many ? static_cast<unsigned>(std::atoi(many)) : 60;
    for (unsigned seed = first; seed < first + count; ++seed) {
        tests::RandomKernel g(seed);
        g.make();
        auto status = loopir::verify(g.kernel);
        ASSERT_TRUE(status) << status.error().to_string() << "\n" << loopir::print(g.kernel);
        const Kernel* list[] = {&g.kernel};
        auto compiled = compile_kernels(list);
        ASSERT_TRUE(compiled) << "seed " << seed << ": " << compiled.error().to_string() << "\n"
                              << loopir::print(g.kernel);
        auto ours = g.memory, theirs = g.memory;
        std::vector<void*> our_pointers, their_pointers;
        for (auto& m : ours) our_pointers.push_back(m.data());
        for (auto& m : theirs) their_pointers.push_back(m.data());
        const auto& handle = (*compiled)[0];
        std::vector<char> workspace(handle->workspace_bytes(g.params.data()) + 64);
        char* aligned = workspace.data() + (64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64);
        std::int32_t fault = 0;
        handle->launch({our_pointers.data(), g.params.data(), aligned, &fault});
        loopir::EvalArgs args{their_pointers.data(), g.params.data()};
        loopir::evaluate(g.kernel, args);
        bool good = (fault != 0) == args.fault;
        std::string where = good ? "" : "fault flags differ";
        for (size_t b = 0; b < ours.size() && good; ++b) {
            const DType d = g.kernel.buffers[b].dtype;
            const size_t n = ours[b].size() / dtype_size(d);
            for (size_t i = 0; i < n && good; ++i) {
                double x = 0, y = 0, tolerance = 1e-3;
                if (d == DType::kF32) {
                    x = reinterpret_cast<float*>(ours[b].data())[i];
                    y = reinterpret_cast<float*>(theirs[b].data())[i];
                    tolerance = 1e-4;
                } else if (d == DType::kF64) {
                    x = reinterpret_cast<double*>(ours[b].data())[i];
                    y = reinterpret_cast<double*>(theirs[b].data())[i];
                    tolerance = 1e-10;
                } else if (d == DType::kBF16) {
                    x = types::f32_from_bf16(reinterpret_cast<std::uint16_t*>(ours[b].data())[i]);
                    y = types::f32_from_bf16(reinterpret_cast<std::uint16_t*>(theirs[b].data())[i]);
                    tolerance = 1e-2;
                } else if (std::memcmp(&ours[b][i * dtype_size(d)], &theirs[b][i * dtype_size(d)], dtype_size(d)) ==
                           0) {
                    continue;
                } else {
                    x = 1e30;
                }
                good = x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= tolerance * (1 + std::fabs(y));
                if (!good) {
                    where = "buffer " + std::to_string(b) + " element " + std::to_string(i) + ": " + std::to_string(x) +
                            ", not " + std::to_string(y);
                }
            }
        }
        std::string values;
        for (std::int64_t p : g.params) values += " " + std::to_string(p);
        EXPECT_TRUE(good) << "seed " << seed << ": " << where << "\n" << loopir::print(g.kernel) << "params" << values;
        if (!good) break;
    }
}

}  // namespace
}  // namespace flexor::codegen::cpu_llvm
