// An op of the user's own: registered from the user's program, used from .fasm on every kind of session, refused where
// it is called wrongly.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "expect.h"
#include "flexor/op.h"
#include "flexor/ops.h"
#include "flexor/session.h"

namespace {

using flexor::DType;
using flexor::Module;
using flexor::OpAttributeKind;
using flexor::OpCall;
using flexor::Session;
using flexor::Tensor;
using flexor::Value;

std::atomic<int> runs{0};

// out[b, j] = sum of x[b, n] * scale[n] over n in steps of `stride` from j, for j < k.
flexor::Expected<void> fold(const OpCall& call) {
    ++runs;
    const Tensor &x = call.inputs()[0], &scale = call.inputs()[1], &out = call.outputs()[0], &count = call.outputs()[1];
    const std::int64_t k = call.integer("k");
    if (call.text("mode") != "sum")
        return flexor::Diagnostic(flexor::DiagnosticId{110}).operand("mode").expected("sum");
    struct Work {
        const Tensor &x, &scale, &out, &count;
        std::int64_t k;
        double gain;
    } work{x, scale, out, count, k, call.real("gain")};
    call.parallel(
        [](void* context, std::int64_t begin, std::int64_t end) {
            const auto& w = *static_cast<Work*>(context);
            for (std::int64_t b = begin; b < end; ++b) {
                for (std::int64_t j = 0; j < w.k; ++j) {
                    float sum = 0;
                    std::int64_t terms = 0;
                    for (std::int64_t n = j; n < w.x.size(1); n += w.k, ++terms)
                        sum += w.x.data_as<float>()[b * w.x.size(1) + n] *
                               (w.scale.defined() ? w.scale.data_as<float>()[n] : 1.0f);
                    w.out.data_as<float>()[b * w.k + j] = sum * static_cast<float>(w.gain);
                    w.count.data_as<std::int64_t>()[b * w.k + j] = terms;
                }
            }
        },
        &work, x.size(0), 4);
    return {};
}

constexpr const char* kProgram = R"(
.func main(x: f32[N, B], scale: f32[N]) -> 2
  LOAD_LOCAL x
  CALL_OP transpose 1 a=0, b=1
  LOAD_CONST 1.0
  CALL_OP add 2
  LOAD_LOCAL scale
  CALL_OP link_fold 2 k=3, gain=2.0
  STORE_LOCAL counts
  CALL_OP neg 1
  LOAD_LOCAL counts
  RETURN 2
)";

void check(Session& session) {
    const auto module = Module::from_text(kProgram, "fold");
    if (!module) return expect(false, module.error().to_string());
    for (const std::int64_t n : {0, 1, 2, 15, 16, 17, 33}) {
        for (const std::int64_t b : {0, 1, 2, 17}) {
            Tensor x = Tensor::empty(DType::kF32, {n, b}), scale = Tensor::empty(DType::kF32, {n});
            for (std::int64_t i = 0; i < n * b; ++i) x.data_as<float>()[i] = static_cast<float>(i % 11);
            for (std::int64_t i = 0; i < n; ++i) scale.data_as<float>()[i] = static_cast<float>(i % 3);
            const auto results = session.run(*module, {x, scale});
            if (!results) return expect(false, results.error().to_string());
            const Tensor& out = (*results)[0].tensor();
            const Tensor& counts = (*results)[1].tensor();
            expect(out.size(0) == b && out.size(1) == 3 && counts.dtype() == DType::kI64, "types of the results");
            for (std::int64_t row = 0; row < b; ++row) {
                for (std::int64_t j = 0; j < 3; ++j) {
                    float sum = 0;
                    std::int64_t terms = 0;
                    for (std::int64_t i = j; i < n; i += 3, ++terms)
                        sum += (static_cast<float>((i * b + row) % 11) + 1.0f) * static_cast<float>(i % 3);
                    expect(out.data_as<float>()[row * 3 + j] == -2.0f * sum, "a sum of the op");
                    expect(counts.data_as<std::int64_t>()[row * 3 + j] == terms, "a count of the op");
                }
            }
        }
    }
}

void refused(const flexor::Expected<void>& done, const char* code, const char* what) {
    expect(!done && done.error().code() == code, std::string(what) + (done ? "" : ": " + done.error().to_string()));
}

std::string code_of(Session& session, const std::string& body, std::initializer_list<Value> arguments) {
    const auto module = Module::from_text(body, "wrong");
    if (!module) return module.error().code();
    const auto results = session.run(*module, arguments);
    return results ? "" : results.error().code();
}

}  // namespace

int main() {
    flexor::OpDef op;
    op.name = "link_fold";
    op.summary = "Sums of every k-th column.";
    op.signature = "x: f32[B, N], scale: f32[N]? -> f32[B, k], i64[B, k]";
    op.attributes = {{"k", OpAttributeKind::kInt, ""},
                     {"gain", OpAttributeKind::kFloat, "1.0"},
                     {"mode", OpAttributeKind::kString, "sum"}};
    op.run = fold;

    // A program that names an op before it is registered is refused, with the name.
    expect(!Module::from_text(kProgram, "early"), "an op that nobody registered");
    const auto registered = flexor::register_op(op);
    if (!registered) return std::printf("%s\n", registered.error().to_string().c_str()), 1;
    refused(flexor::register_op(op), "E0111", "a name that is taken");

    Session session;
    check(session);
    if (Session::has_code_generator()) {
        expect(session.stats().compilations > 0, "regions that hold the op are compiled");
        expect(session.stats().interpreted_ops == 0, "and nothing falls back");
    }
    Session interpreted(flexor::SessionOptions{.compile = false});
    check(interpreted);
    expect(runs > 0, "the op of the user ran");
    const auto info = flexor::find_op_info("link_fold");
    expect(info && info->results == 2 && info->attributes.size() == 3, "the registry tells of it");

    // A file holds the name of the op.
    const auto module = Module::from_text(kProgram, "fold");
    const auto again = Module::from_bytes(module->to_bytes());
    expect(again.has_value(), "a file with the op");

    const auto x = [](std::initializer_list<std::int64_t> sizes) { return Tensor::empty(DType::kF32, sizes); };
    const std::string head =
        ".func main(x: any[...], s: any[...]) -> 2\n  LOAD_LOCAL x\n  LOAD_LOCAL "
        "s\n  CALL_OP link_fold 2 ";
    for (Session* each : {&session, &interpreted}) {
        expect(code_of(*each, head + "k=2\n  RETURN 2\n", {x({2, 3}), x({4})}) == "E0301", "sizes that do not fit");
        expect(code_of(*each, head + "k=2\n  RETURN 2\n", {x({2}), x({4})}) == "E0302", "a rank that it does not take");
        expect(code_of(*each, head + "k=2\n  RETURN 2\n", {Tensor::empty(DType::kF64, {2, 4}), x({4})}) == "E0401",
               "a dtype that it does not take");
        expect(code_of(*each, head + "k=2, mode=\"max\"\n  RETURN 2\n", {x({2, 4}), x({4})}) == "E0110",
               "what the kernel itself refuses");
    }
    expect(code_of(session, head + "\n  RETURN 2\n", {}) == "E0110", "an attribute that is missing");
    expect(code_of(session, head + "k=2, l=3\n  RETURN 2\n", {}) == "E0110", "an attribute that it does not have");

    const auto with = [&](auto change) {
        flexor::OpDef other = op;
        other.name = "link_other";
        change(other);
        return flexor::register_op(other);
    };
    refused(with([](auto& o) { o.name = "not a name"; }), "E0507", "a name that is none");
    refused(with([](auto& o) { o.run = nullptr; }), "E0507", "no kernel");
    refused(with([](auto& o) { o.signature = "x: f32[N] -> f32[M]"; }), "E0507", "a size that nobody gives");
    refused(with([](auto& o) { o.signature = "x: f32[N]? -> f32[N]"; }), "E0507", "a size that may be absent");
    refused(with([](auto& o) { o.signature = "x: f32[N] f32[N]"; }), "E0801", "a signature without an arrow");
    refused(with([](auto& o) { o.signature = "x: f33[N] -> f32[N]"; }), "E0801", "a dtype that there is not");
    refused(with([](auto& o) { o.signature = "x: f32[FROZEN N] -> f32[N]"; }), "E0507", "a frozen size");
    refused(with([](auto& o) { o.signature = "x: int -> f32[3]"; }), "E0507", "a scalar");
    refused(with([](auto& o) { o.attributes[0].fallback = "many"; }), "E0507", "a default that is no number");

    // Any rank and dtype, taken over by the result.
    flexor::OpDef copy;
    copy.name = "link_copy";
    copy.signature = "x: any[...] -> any[...]";
    copy.run = [](const OpCall& call) -> flexor::Expected<void> {
        const auto* from = call.inputs()[0].data_as<unsigned char>();
        std::copy_n(from, call.inputs()[0].numel() * static_cast<std::int64_t>(dtype_size(call.inputs()[0].dtype())),
                    call.outputs()[0].data_as<unsigned char>());
        return {};
    };
    expect(flexor::register_op(copy).has_value(), "an op of any type");
    const auto copied = Module::from_text(
        ".func main(x: any[...]) -> 1\n  LOAD_LOCAL x\n  "
        "CALL_OP link_copy 1\n  RETURN 1\n",
        "copy");
    const auto result = session.run(*copied, {Tensor::empty(DType::kI64, {2, 3, 4})});
    expect(result && (*result)[0].tensor().dtype() == DType::kI64 && (*result)[0].tensor().rank() == 3, "any type");
    if (failures == 0) std::printf("an op of one's own runs where those of the registry do\n");
    return failures == 0 ? 0 : 1;
}
