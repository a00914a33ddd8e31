#include <algorithm>
#include <array>

#include "codegen/product/choice.h"
#include "codegen/product/library_product.h"
#include "kernel_texts.h"
#include "loopir/loopir.h"
#include "support/check.h"
#include "triton/cases.h"

namespace flexor::tests {

using namespace codegen::triton;
using nlohmann::json;

namespace {

loopir::Kernel parsed(const std::string& text) {
    auto kernel = loopir::parse(text);
    FLEXOR_CHECK(kernel.has_value());
    FLEXOR_CHECK(loopir::verify(*kernel).has_value());
    return *std::move(kernel);
}

std::string number(std::int64_t n) { return std::to_string(n); }

// Bytes of the elements that an access reaches.
std::int64_t reached_bytes(const KernelRun& run, const RowLayout& layout, const loopir::Access& access) {
    const auto value = [&](const loopir::IntRef& ref) {
        return ref.is_constant ? ref.value : run.params[static_cast<std::size_t>(ref.value)];
    };
    auto bytes = static_cast<std::int64_t>(dtype_size(run.kernel.buffers[access.buffer].dtype));
    for (std::uint32_t dim = 0; dim < layout.body.rank(); ++dim) {
        if (value(access.strides[dim]) != 0) bytes *= value(layout.body.extents[dim]);
    }
    return bytes;
}

}  // namespace

std::vector<json> timed_rows() {
    struct Size {
        const char* name;
        std::int64_t rows, columns;
    };
    constexpr Size kSizes[] = {
        {"chain", 21845, 768},      {"chain", 4096, 4096},       {"add_relu_sum", 21845, 768},
        {"softmax", 43690, 768},    {"softmax", 2048, 16384},    {"softmax", 524288, 64},
        {"column_sum", 4096, 4096}, {"column_sum", 21845, 768},  {"layer_norm_in_place", 21845, 768},
        {"full_max", 4096, 4096},   {"full_max", 1, 16777216},   {"transposed_add", 4096, 4096},
        {"concat", 21845, 768},     {"gather_rows", 8192, 1024}, {"layer_norm_in_place", 262144, 64}};
    struct Choice {
        std::string label;
        RowTuning tuning;
    };
    std::vector<Choice> choices{{"planned", {}}};
    const auto add = [&](const std::string& label, auto change) {
        choices.push_back({label, {}});
        change(choices.back().tuning);
    };
    add("one tile a program", [](RowTuning& t) { t.threads = -1; });
    add("no chunks", [](RowTuning& t) { t.chunks = 1; });
    add("3 stages", [](RowTuning& t) { t.stages = 3; });
    add("8 a thread", [](RowTuning& t) { t.elements_per_thread = 8; });
    add("16 a thread", [](RowTuning& t) { t.elements_per_thread = 16; });
    add("32 a thread", [](RowTuning& t) { t.elements_per_thread = 32; });
    for (const int tile : {1024, 2048, 4096, 8192}) {
        for (const int elements : {8, 16, 32}) {
            for (const int stages : {1, 3}) {
                const auto label = number(tile) + ", " + number(elements) + " a thread, " + number(stages) + " stages";
                add(label, [&](RowTuning& t) { t.tile = tile, t.elements_per_thread = elements, t.stages = stages; });
            }
        }
    }
    std::vector<json> out;
    for (const Size& size : kSizes) {
        KernelRun run;
        if (size.name == std::string("chain")) {
            run.kernel = parsed(loopir::testing::kChain);
            run.params = {size.rows, size.columns};
            run.name = "chain_" + number(size.rows) + "x" + number(size.columns);
        } else {
            run = text_kernel(size.name, size.rows, size.columns);
        }
        const Generator generator = generator_of(run.kernel);
        std::vector<json> known;
        for (const Choice& choice : choices) {
            Forced forced;
            forced.row = choice.tuning;
            const LaunchPlan plan = *generator.plan(run.params.data(), kProcessors, forced);
            json one = launch_case(run.name, generator, plan, run.params);
            // A choice that changes nothing is no case.
            if (std::find(known.begin(), known.end(), one) != known.end()) continue;
            known.push_back(one);
            one["group"] = run.name;
            one["label"] = choice.label;
            std::vector<std::int64_t> bytes(run.kernel.buffers.size(), 16);
            std::int64_t traffic = 0;
            for_each_access(generator.layout()->body, [&](const loopir::Access& access) {
                const std::int64_t reached = reached_bytes(run, *generator.layout(), access);
                bytes[access.buffer] = std::max(bytes[access.buffer], reached + 64);
                traffic += reached;
            });
            one["bytes"] = bytes;
            one["traffic"] = traffic;
            out.push_back(std::move(one));
        }
    }
    return out;
}

namespace {

struct Product {
    const char* name;
    std::int64_t n, k;
    bool gelu, residual;
    const char* dtype;
};

// x [m, k] times the transpose of w [n, k], plus bias, then what follows.
std::string product_text(const Product& p) {
    const std::string d = p.dtype, sums = d == "f64" ? "f64" : "f32", n = number(p.n), k = number(p.k);
    std::string out = "kernel " + std::string(p.name) + "(%0 x: in " + d + ", %1 w: in " + d + ", %2 bias: in " + d +
                      ", %3: out " + d + (p.residual ? ", %4: in " + d : "") + ") params 1\n" +
                      "contraction batch 0 m p0 n " + n + " k " + k + " accumulate " + sums + "\n" + "  a %0 : " + d +
                      " [] row " + k + " col 1\n  b %1 : " + d + " [] row 1 col " + k + "\n  epilogue parallel [p0, " +
                      n + "] row []\n    v0 = accumulator : " + sums + "\n" + "    v1 = load %2 [0, 1] : " + d + "\n";
    int next = 2;
    const auto value = [&](const std::string& text) {
        out += "    v" + number(next) + " = " + text + "\n";
        return "v" + number(next++);
    };
    const bool halves = d == "bf16" || d == "f16";
    const std::string bias = halves ? value("cast v1 : f32") : "v1";
    std::string last = value("add v0, " + bias + " : " + sums);
    const auto rounded = [&](const std::string& v) {
        return halves ? value("cast " + value("cast " + v + " : " + d) + " : f32") : v;
    };
    if (p.gelu) {
        const std::string x = rounded(last);
        const std::string root = value("const 0.7071067811865476 : f32");
        const std::string erf = value("erf " + value("mul " + x + ", " + root + " : f32") + " : f32");
        const std::string up = value("add " + erf + ", " + value("const 1.0 : f32") + " : f32");
        last = value("mul " + value("mul " + value("const 0.5 : f32") + ", " + x + " : f32") + ", " + up + " : f32");
    }
    if (p.residual) {
        const std::string x = rounded(last);
        const std::string other = value("load %4 [" + n + ", 1] : " + d);
        last = value("add " + x + ", " + (halves ? value("cast " + other + " : f32") : other) + " : f32");
    }
    if (halves) last = value("cast " + last + " : " + d);
    return out + "    s0 = store %3 [" + n + ", 1] " + last + "\n";
}

}  // namespace

std::vector<json> timed_products() {
    constexpr Product kProducts[] = {
        {"qkv", 2304, 768, false, false, "bf16"},      {"out", 768, 768, false, false, "bf16"},
        {"fc1", 3072, 768, false, false, "bf16"},      {"fc2", 768, 3072, false, false, "bf16"},
        {"fc1_gelu", 3072, 768, true, false, "bf16"},  {"fc2_residual", 768, 3072, false, true, "bf16"},
        {"fc1_exact", 3072, 768, false, false, "f32"}, {"out_exact", 768, 768, false, false, "f32"},
        {"fc2_exact", 768, 3072, false, false, "f32"}, {"fc1_exact_gelu", 3072, 768, true, false, "f32"},
        {"out_double", 768, 768, false, false, "f64"}, {"qkv_f16", 2304, 768, false, false, "f16"},
        {"fc2_f16", 768, 3072, false, false, "f16"}};
    // Of many rows, and of 64 and fewer, which are bound by reading the weights.
    const std::vector<GemmTile> tiles{{64, 64, 64, 4, 4, 1, 8},
                                      {64, 64, 128, 4, 4, 1, 1},
                                      {64, 64, 128, 4, 5, 1, 8},
                                      {64, 64, 128, 4, 4, 2, 8},
                                      {64, 128, 64, 4, 4, 1, 1},
                                      {64, 128, 64, 4, 5, 1, 8},
                                      {64, 128, 128, 4, 4, 1, 1},
                                      {64, 256, 64, 4, 4, 1, 1},
                                      {128, 64, 64, 4, 4, 1, 1},
                                      {128, 128, 64, 4, 3, 1, 8},
                                      {128, 128, 64, 4, 4, 1, 1},
                                      {128, 128, 64, 8, 3, 1, 8},
                                      {128, 128, 64, 8, 4, 1, 1},
                                      {128, 256, 64, 8, 3, 1, 8},
                                      // 96 and 192 wide
                                      {64, 64, 128, 4, 3, 1, 8, 32},
                                      {64, 64, 128, 4, 3, 1, 1, 32},
                                      {64, 64, 64, 4, 4, 1, 8, 32},
                                      {64, 64, 64, 4, 5, 1, 1, 32},
                                      {128, 64, 64, 4, 4, 1, 8, 32},
                                      {128, 64, 64, 4, 4, 1, 1, 32},
                                      {128, 64, 64, 8, 4, 1, 8, 32},
                                      {128, 64, 128, 8, 3, 1, 8, 32},
                                      {64, 128, 64, 4, 4, 1, 8, 64},
                                      {64, 128, 64, 4, 3, 1, 1, 64},
                                      {128, 128, 64, 8, 3, 1, 8, 64},
                                      {128, 128, 64, 8, 3, 1, 1, 64},
                                      {128, 128, 64, 8, 4, 1, 8, 64},
                                      {64, 64, 128, 4, 3, 2, 8, 32}};
    std::vector<GemmTile> few;
    for (const int m : {16, 32, 64}) {
        for (const auto& [n, k] : {std::pair{16, 256}, {32, 128}, {32, 256}, {64, 128}, {64, 256}}) {
            for (const int split : {1, 2, 3, 6}) few.push_back({m, n, k, 4, 3, split, 1});
        }
    }
    const std::vector<GemmTile> exact{{32, 64, 32, 4, 2, 1, 8},   {64, 64, 32, 4, 2, 1, 8},  {64, 64, 32, 8, 2, 1, 8},
                                      {64, 64, 16, 4, 3, 1, 8},   {64, 128, 16, 4, 3, 1, 8}, {128, 64, 16, 4, 3, 1, 8},
                                      {128, 128, 16, 8, 2, 1, 8}, {64, 128, 32, 4, 2, 1, 8}, {128, 128, 32, 8, 3, 1, 8},
                                      {256, 128, 16, 8, 2, 1, 8}};
    // One row alone needs no tensor cores, and without them a tile has as many rows as there are.
    std::vector<GemmTile> few_exact, one;
    for (const int split : {1, 2, 4}) {
        for (const GemmTile& tile : {GemmTile{1, 4, 1024, 4, 3},
                                     {1, 8, 256, 4, 3},
                                     {1, 8, 512, 4, 3},
                                     {1, 16, 128, 4, 3},
                                     {1, 16, 256, 4, 3},
                                     {1, 16, 512, 8, 3},
                                     {1, 32, 128, 4, 3},
                                     {1, 32, 256, 8, 3},
                                     {1, 64, 64, 4, 3}})
            one.push_back({tile.m, tile.n, tile.k, tile.warps, tile.stages, split, 1});
    }
    for (const int m : {16, 32, 64}) {
        for (const int split : {1, 2, 4, 6}) {
            for (const GemmTile& tile :
                 {GemmTile{m, 32, 64, 4, 3}, {m, 64, 32, 4, 3}, {m, 16, 128, 4, 3}, {m, 64, 16, 4, 4}})
                few_exact.push_back({tile.m, tile.n, tile.k, tile.warps, tile.stages, split, 1});
        }
    }
    std::vector<json> out;
    for (const Product& product : kProducts) {
        const Generator generator = generator_of(parsed(product_text(product)));
        const bool short_floats = std::string(product.dtype) == "f16";
        const bool halves = short_floats || std::string(product.dtype) == "bf16";
        const bool doubles = std::string(product.dtype) == "f64";
        const auto library = codegen::product::library_product(generator.kernel());
        FLEXOR_CHECK(library.has_value());
        for (const std::int64_t m : {1, 16, 32, 64, 264, 512, 1024, 1600, 2048}) {
            if (m < 64 && (product.gelu || product.residual)) continue;
            if (doubles && m != 1 && m != 64 && m != 512) continue;
            if (short_floats && m < 264) continue;
            const std::vector<std::int64_t> params{m};
            const std::string name = std::string(product.name) + "_" + number(m);
            const auto add = [&](const std::string& label, const LaunchPlan& plan) {
                json one = launch_case(name, generator, plan, params);
                one["group"] = name;
                one["label"] = label;
                const std::int64_t size = halves ? 2 : doubles ? 8 : 4;
                one["bytes"] = {m * product.k * size, product.n * product.k * size, product.n * size,
                                m * product.n * size};
                if (product.residual) one["bytes"].push_back(m * product.n * size);
                one["traffic"] =
                    (m * product.k + product.n * product.k + m * product.n * (product.residual ? 2 : 1)) * size;
                one["flops"] = 2 * m * product.n * product.k;
                one["by_library"] = codegen::product::library_computes(
                    generator.kernel().contraction->a_dtype,
                    library->rest ? codegen::product::Part::kBefore : codegen::product::Part::kWhole,
                    {1, m, product.n, product.k}, 90);
                one["torch"] = {{"op", "linear"},        {"m", m},
                                {"n", product.n},        {"k", product.k},
                                {"gelu", product.gelu},  {"residual", product.residual},
                                {"dtype", product.dtype}};
                out.push_back(std::move(one));
            };
            add("planned", *generator.plan(params.data(), kProcessors));
            if (library->rest) {
                // What goes on from the library's product.
                const Generator rest = generator_of(*library->rest);
                const std::vector<std::int64_t> all{m, product.n};
                json one = launch_case(name, rest, *rest.plan(all.data(), kProcessors), all);
                one["group"] = name;
                one["label"] = "rest";
                out.push_back(std::move(one));
            }
            std::vector<GemmTile> tried = !halves ? (m <= 64 ? few_exact : exact) : m <= 64 ? few : tiles;
            if (doubles) tried.clear();
            if (m == 1) tried.insert(tried.end(), one.begin(), one.end());
            tried.push_back(
                rule_for_gemm_tile({1, m, product.n, product.k, generator.kernel().contraction->a_dtype}, kProcessors));
            for (const GemmTile& tile : tried) {
                // As many rows as there are, no part of k where there are tiles enough, and no processor idle without need.
                const std::int64_t count =
                    (m + tile.m - 1) / tile.m * ((product.n + tile.n + tile.more - 1) / (tile.n + tile.more));
                if (m <= 64 && tile.m != m && !(halves && m < 16 && tile.m == 16)) continue;
                if (count * tile.split > 1200 || (tile.split > 1 && count > 110)) continue;
                if (m > 64 && count * tile.split < 30) continue;
                Forced forced;
                forced.gemm = &tile;
                std::string label;
                for (const int part :
                     {tile.m, tile.n, tile.k, tile.warps, tile.stages, tile.split, tile.group, tile.more})
                    label += (label.empty() ? "" : ", ") + number(part);
                add(label, *generator.plan(params.data(), kProcessors, forced));
            }
        }
    }
    return out;
}

std::vector<json> timed_attention() {
    struct Size {
        const char* name;
        std::int64_t batch, heads, queries, length, head;
        bool causal, lengths;
    };
    constexpr Size kSizes[] = {
        {"whole", 8, 12, 256, 256, 64, false, false},    {"whole", 8, 12, 64, 64, 64, false, false},
        {"lengths", 8, 12, 256, 256, 64, false, true},   {"lengths", 8, 12, 4096, 4096, 64, false, true},
        {"causal", 4, 16, 2048, 2048, 128, true, false}, {"whole", 4, 16, 2048, 2048, 128, false, false},
        {"decode", 1, 12, 1, 1024, 64, false, false},    {"decode", 8, 12, 1, 4096, 64, false, true}};
    const std::vector<AttentionTile> whole{{64, 64, 4, 2},   {64, 64, 4, 3},   {64, 64, 4, 4},  {64, 128, 4, 2},
                                           {128, 64, 4, 3},  {128, 64, 8, 2},  {128, 64, 8, 3}, {128, 64, 8, 4},
                                           {128, 128, 8, 2}, {128, 128, 8, 3}, {64, 128, 4, 3}, {128, 32, 4, 4},
                                           {128, 64, 4, 2},  {64, 32, 4, 4}};
    std::vector<AttentionTile> parts;
    for (const int keys : {32, 64, 128}) {
        for (const int split : {1, 4, 8, 16}) parts.push_back({16, keys, 4, 2, split});
    }
    std::vector<json> out;
    for (const Size& size : kSizes) {
        const std::int64_t width = size.heads * size.head, row = 3 * width;
        const std::string d = number(size.head), r = number(row), w = number(width), h = number(size.heads);
        // q, k and v lie beside each other, as a projection leaves them.
        const std::string inner = " [p1, " + d + ", " + r + ", 1]\n";
        std::string text = std::string("kernel attend(%0: in bf16, %1: out bf16") +
                           (size.lengths ? ", %2: in i64" : "") + ") params 3\nattention bf16 batch p0 heads " + h +
                           " kv_heads " + h + " q_len " + number(size.queries) + " kv_len p2 head_dim " + d +
                           " value_dim " + d + " scale default\n  q %0" + inner + "  k %0 + " + w + inner +
                           "  v %0 + " + number(2 * width) + inner + "  out %1 [" + number(size.queries * width) +
                           ", " + d + ", " + w + ", 1]\n  mask " + (size.causal ? "causal" : "none") + "\n" +
                           (size.lengths ? "  lengths %2 [1]\n" : "");
        const Generator generator = generator_of(parsed(text));
        const std::vector<std::int64_t> params{size.batch, size.length * row, size.length};
        const std::string name = std::string("attention_") + size.name + "_" + number(size.batch) + "x" + h + "x" +
                                 number(size.length) + "x" + d;
        const auto add = [&](const std::string& label, const LaunchPlan& plan) {
            json one = launch_case(name, generator, plan, params);
            one["group"] = name;
            one["label"] = label;
            one["bytes"] = {size.batch * size.length * row * 2, size.batch * size.queries * width * 2};
            if (size.lengths) one["bytes"].push_back(size.batch * 8);
            one["traffic"] = 2 * size.batch * width * (2 * size.queries + 2 * size.length);
            one["flops"] = 4 * size.batch * size.heads * size.queries * size.length * size.head / (size.causal ? 2 : 1);
            one["torch"] = {{"op", "attention"},     {"batch", size.batch},     {"heads", size.heads},
                            {"length", size.length}, {"queries", size.queries}, {"head", size.head},
                            {"causal", size.causal}, {"lengths", size.lengths}};
            out.push_back(std::move(one));
        };
        add("planned", *generator.plan(params.data(), kProcessors));
        for (const AttentionTile& tile : size.queries == 1 ? parts : whole) {
            Forced forced;
            forced.attention = &tile;
            std::string label;
            for (const int part : {tile.queries, tile.keys, tile.warps, tile.stages, tile.split})
                label += (label.empty() ? "" : ", ") + number(part);
            add(label, *generator.plan(params.data(), kProcessors, forced));
        }
    }
    return out;
}

}  // namespace flexor::tests
