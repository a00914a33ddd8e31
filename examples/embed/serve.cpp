// serve MODEL.flx [THREADS]: loads once, prepares once, then answers requests of every size from several threads. Each
// thread has buffers of its own, so that a request allocates nothing.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "flexor/session.h"
#include "my_ops.h"

namespace {

constexpr std::int64_t kLargest = 64;

int fail(const flexor::Diagnostic& why) {
    std::fprintf(stderr, "%s\n", why.to_string().c_str());
    return 1;
}

// One request: a batch of `rows`, and whether the answer makes sense.
bool answer(flexor::Session& session, const flexor::Module& model, std::int64_t rows, const flexor::Tensor& input,
            const flexor::Tensor& probabilities, const flexor::Tensor& clipped) {
    // The first rows of buffers that are made for the largest batch.
    const auto first = [&](const flexor::Tensor& whole) {
        std::vector<std::int64_t> sizes(whole.sizes().begin(), whole.sizes().end());
        sizes[0] = rows;
        return whole.view(whole.data(), whole.dtype(), sizes, whole.strides());
    };
    for (std::int64_t i = 0; i < rows * input.size(1); ++i)
        input.data_as<float>()[i] = static_cast<float>((i * 13 + rows) % 29) / 29.0f;
    const std::vector<flexor::Value> arguments{first(input)};
    const std::vector<flexor::Tensor> outputs{first(probabilities), first(clipped)};
    if (const auto done = session.run_into(model, 0, arguments, outputs); !done) return fail(done.error()) == 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        float sum = 0;
        for (std::int64_t c = 0; c < probabilities.size(1); ++c)
            sum += probabilities.data_as<float>()[row * probabilities.size(1) + c];
        std::int64_t outside = 0;
        for (std::int64_t i = row * input.size(1); i < (row + 1) * input.size(1); ++i)
            outside += input.data_as<float>()[i] > 0.75f ? 1 : 0;
        if (std::fabs(sum - 1.0f) > 1e-5f || clipped.data_as<std::int64_t>()[row] != outside) return false;
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: serve MODEL.flx [THREADS]\n"), 2;
    const int threads = argc > 2 ? std::atoi(argv[2]) : 4;
    if (const auto registered = register_my_ops(); !registered) return fail(registered.error());

    flexor::SessionOptions options;
    options.threads = 1;  // requests run beside each other, not each on all processors
    flexor::Session session(options);
    session.set_event_sink([](const flexor::Event&) {});  // a server would log these
    const auto model = session.load(argv[1]);
    if (!model) return fail(model.error());
    for (const auto& input : model->inputs()) std::printf("in   %s\n", input.to_string().c_str());
    for (const auto& output : model->outputs()) std::printf("out  %s\n", output.to_string().c_str());

    const flexor::SizeRange range[] = {{"B", 1, kLargest}};
    if (const auto prepared = session.prepare(*model, range, "main", threads); !prepared) return fail(prepared.error());
    const flexor::Stats before = session.stats();

    std::atomic<int> answered{0}, wrong{0};
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) {
        workers.emplace_back([&, t] {
            const auto input = flexor::Tensor::empty(flexor::DType::kF32, {kLargest, 64});
            const auto probabilities = flexor::Tensor::empty(flexor::DType::kF32, {kLargest, 10});
            const auto clipped = flexor::Tensor::empty(flexor::DType::kI64, {kLargest});
            for (int request = 0; request < 500; ++request) {
                const std::int64_t rows = 1 + (request * 17 + t) % kLargest;
                (answer(session, *model, rows, input, probabilities, clipped) ? answered : wrong).fetch_add(1);
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    const flexor::Stats after = session.stats();
    std::printf("%d requests on %d threads, %d wrong, %llu compilations meanwhile\n", answered.load(), threads,
                wrong.load(), static_cast<unsigned long long>(after.compilations - before.compilations));
    return wrong == 0 && after.compilations == before.compilations ? 0 : 1;
}
