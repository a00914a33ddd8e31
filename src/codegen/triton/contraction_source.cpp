// A contraction as the text of a Triton function.
//
// A program has one tile of the result and one of the parts of k. A partial sum goes to scratch; the last program of a tile to
// end adds all of them in their order, so that the result does not depend on which that is.
#include <optional>

#include "codegen/triton/body_writer.h"
#include "support/check.h"

namespace flexor::codegen::triton {

using loopir::Contraction;
using loopir::IntRef;
using loopir::Kernel;
using loopir::MatrixOperand;

namespace {

// A prologue's rows as tiles of BLOCK_0 rows by BLOCK_K of k.
RowLayout lay_out_prologue(const loopir::Body& body) {
    RowLayout out = lay_out(body);
    FLEXOR_CHECK(out.body.rank() == body.rank() && out.loops.empty());
    out.elementwise = false;
    out.body.parallel = out.body.rank() - 1;
    out.axis_dim[0] = out.body.rank() - 2;
    out.axis_dim[1] = out.body.rank() - 1;
    out.outer.clear();
    for (std::uint32_t dim = 0; dim + 2 < out.body.rank(); ++dim) out.outer.push_back(dim);
    return out;
}

class ContractionWriter {
    static constexpr const char* kTile = "(BLOCK_1 + BLOCK_2)";  // columns of a tile

public:
    ContractionWriter(const Kernel& kernel, const RowLayout& layout)
        : c_(*kernel.contraction),
          layout_(layout),
          text_(kernel),
          epilogue_(kernel, layout, Form::kResident, text_, {"", "BLOCK_1", {}, 1, kTile}),
          more_(kernel, layout, Form::kResident, text_, {"w", "BLOCK_2", {}, 1, kTile, "BLOCK_1"}),
          rank_(layout.body.rank()) {
        if (!c_.prologue) return;
        prologue_layout_.emplace(lay_out_prologue(*c_.prologue));
        BodyNames names{"a", "BLOCK_K", {}};
        for (std::uint32_t dim = 0; dim + 1 < rank_; ++dim) names.extents.push_back(dim);
        names.extents.push_back(rank_);
        prologue_.emplace(kernel, *prologue_layout_, Form::kLooped, text_, names);
    }

    KernelSource write() {
        for (const char* name :
             {"BLOCK_0", "BLOCK_1", "BLOCK_K", "SPLIT", "GROUP", "EVEN_0", "EVEN_1", "EVEN_K", "BLOCK_2", "EVEN_2"})
            text_.constant(name);
        epilogue_.write_prologue();
        if (prologue_) prologue_->write_kernel_values();
        more_.write_kernel_values();
        write_place();
        epilogue_.open("if tile < tiles:");
        epilogue_.write_coordinates("tile_of_order");
        beside([&] { more_.write_coordinates("tile_of_order"); });
        if (prologue_) write_rows();
        write_sums();
        write_partial();
        epilogue_.open("if mine == 1:");
        write_join();
        for (std::uint32_t pass = 0; pass < epilogue_.passes(); ++pass) epilogue_.write_pass(pass);
        beside([&] {
            for (std::uint32_t pass = 0; pass < more_.passes(); ++pass) more_.write_pass(pass);
        });
        epilogue_.close();
        epilogue_.close();
        return text_.finish();
    }

private:
    void line(const std::string& text) { text_.line(text); }

    // Lines for the columns of a tile beyond BLOCK_1. Where BLOCK_2 is 0 they vanish.
    template <class F>
    void beside(F&& lines) {
        text_.open("if BLOCK_2 > 0:");
        lines();
        text_.close();
    }

    // Lines for tiles of one row, whose sums are added up lane by lane; else they vanish.
    template <class F>
    void one_row(F&& lines) {
        text_.open("if BLOCK_0 == 1:");
        lines();
        text_.close();
    }

    // Which tile and part of k is this program's. Inside a group of GROUP tiles along m, these run fastest.
    void write_place() {
        line("part = tl.program_id(0) % SPLIT");
        line("tile = tl.program_id(0) // SPLIT");
        line("width = GROUP * tiles_1");
        line("inside = tile % (tiles_0 * tiles_1)");
        line("first = inside // width * GROUP");
        line("rows = tl.maximum(tl.minimum(tiles_0 - first, GROUP), 1)");
        line("tile_0 = first + inside % width % rows");
        line("tile_1 = inside % width // rows");
        line("tile_of_order = tile // (tiles_0 * tiles_1) * (tiles_0 * tiles_1) + tile_0 * tiles_1 + tile_1");
    }

    // What the prologue knows of a row before its values: its reductions.
    void write_rows() {
        for (std::uint32_t dim = 0; dim + 1 < rank_; ++dim)
            line(prologue_->index_name(dim) + " = " + epilogue_.index_name(dim));
        line(prologue_->mask_name(0) + " = " + epilogue_.mask_name(0));
        const std::size_t store = c_.prologue->stages.size() - 1;
        for (std::uint32_t pass = 0; pass < prologue_layout_->pass[store]; ++pass) prologue_->write_pass(pass);
        prologue_->begin_pass(prologue_layout_->pass[store]);
        prologue_->write_tile_values(store);
    }

    void write_sums() {
        const bool blocks = sums_in_blocks(c_);
        const std::string k = text_.use(ArgumentKind::kExtent, rank_);
        const std::string zeros = ", 0, " + std::string(dtype_text(c_.accumulator)) + ")";
        line("acc = tl.full((BLOCK_0, BLOCK_1)" + zeros);
        beside([&] { line("wacc = tl.full((BLOCK_0, BLOCK_2)" + zeros); });
        line("steps = tl.cdiv(tl.cdiv(" + k + ", BLOCK_K), SPLIT) * BLOCK_K");
        line("begin = part * steps");
        line("end = tl.minimum(begin + steps, " + k + ")");
        line("lanes = tl.arange(0, BLOCK_K)");
        const std::uint32_t m = layout_.axis_dim[0], n = layout_.axis_dim[1];
        const std::string row = epilogue_.index_name(m), column = epilogue_.index_name(n);
        const bool rows_alone = sums_row_by_row(c_);
        const auto place_a = [&](const std::string& lanes) {
            line("pa = " + address(c_.a, {{row, c_.a.row_stride}, {lanes, c_.a.col_stride}}));
        };
        if (rows_alone) {
            one_row([&] {
                line("sums = tl.full((BLOCK_K, BLOCK_1)" + zeros);
                place_a("(begin + lanes)[:, None]");
            });
            text_.open("else:");
            place_a("(begin + lanes)[None, :]");
            text_.close();
        } else if (!prologue_) {
            place_a("(begin + lanes)[None, :]");
        }
        line("pb = " + address(c_.b, {{"(begin + lanes)[:, None]", c_.b.row_stride}, {column, c_.b.col_stride}}));
        beside([&] {
            line("pwb = " + address(c_.b, {{"(begin + lanes)[:, None]", c_.b.row_stride},
                                           {more_.index_name(n), c_.b.col_stride}}));
        });
        BodyWriter& inner = prologue_ ? *prologue_ : epilogue_;
        inner.open("for start in tl.range(begin, end, BLOCK_K):");
        Expressions& expressions = text_.expressions();
        if (rows_alone) {
            one_row([&] {
                write_load("a", c_.a_dtype, epilogue_.mask_name(0), "[:, None]");
                write_load("b", c_.b_dtype, epilogue_.mask_name(1), "[:, None]");
                line("sums += " + expressions.cast("a", c_.a_dtype, c_.accumulator) + " * " +
                     expressions.cast("b", c_.b_dtype, c_.accumulator));
            });
            text_.open("else:");
        }
        if (prologue_) {
            prologue_->write_axis(1, "start");
            const std::string value = prologue_->write_value(c_.prologue->stages.size() - 1);
            // A row goes on where its memory ends: what is not there adds nothing.
            line("a = tl.where(" + prologue_->mask_name(1) + " & " + prologue_->mask_name(0) + ", " + value + ", 0)");
            line("a = tl.cast(a, " + std::string(dtype_text(c_.a_dtype)) + ")");
        } else {
            write_load("a", c_.a_dtype, epilogue_.mask_name(0), "[None, :]");
        }
        const bool as_it_is = c_.a_dtype == c_.b_dtype && blocks;
        const std::string a = as_it_is ? "a" : expressions.cast("a", c_.a_dtype, c_.accumulator);
        const auto add = [&](const std::string& acc, const std::string& right, const std::string& mask) {
            write_load(right, c_.b_dtype, mask, "[:, None]");
            const std::string b = as_it_is ? right : expressions.cast(right, c_.b_dtype, c_.accumulator);
            if (blocks)
                line(acc + " = tl.dot(" + a + ", " + b + ", " + acc + ", input_precision=\"ieee\")");
            else
                line(acc + " = " + acc + " + " + a + " * " + b);
        };
        add("acc", "b", epilogue_.mask_name(1));
        beside([&] { add("wacc", "wb", more_.mask_name(1)); });
        if (rows_alone) text_.close();
        if (!prologue_) line("pa += BLOCK_K" + step(c_.a.col_stride));
        line("pb += BLOCK_K" + step(c_.b.row_stride));
        beside([&] { line("pwb += BLOCK_K" + step(c_.b.row_stride)); });
        inner.close();
        if (rows_alone) one_row([&] { line("acc = tl.sum(sums, 0, keep_dims=True)"); });
    }

    std::string step(const IntRef& stride) { return stride.is(1) ? "" : " * " + text_.place(stride); }

    void write_load(const std::string& name, DType dtype, const std::string& across, const std::string& turn) {
        const std::string other = dtype == DType::kBool ? " != 0" : "";
        line("if EVEN_K:");
        line("    " + name + " = tl.load(p" + name + ", mask=" + across + ", other=0)" + other);
        line("else:");
        line("    " + name + " = tl.load(p" + name + ", mask=" + across + " & (start + lanes < end)" + turn +
             ", other=0)" + other);
    }

    std::string address(const MatrixOperand& matrix, const std::pair<std::string, IntRef> (&steps)[2]) {
        std::vector<std::string> terms;
        if (!matrix.offset.is(0)) terms.push_back(text_.place(matrix.offset));
        for (std::uint32_t dim = 0; dim < matrix.batch_strides.size(); ++dim) {
            const IntRef& stride = matrix.batch_strides[dim];
            if (!stride.is(0)) terms.push_back(epilogue_.index_name(dim) + " * " + text_.place(stride));
        }
        // A block keeps its shape where a stride is 0.
        for (const auto& [index, stride] : steps) terms.push_back(index + step(stride));
        return text_.use(ArgumentKind::kBuffer, matrix.buffer) + " + (" + sum_text(terms) + ")";
    }

    // Where SPLIT is 1 these lines vanish.
    void write_partial() {
        scratch_ = text_.scratch(c_.accumulator);
        line("mine = 1");
        text_.open("if SPLIT > 1:");
        line("own = tl.arange(0, BLOCK_0)[:, None] * BLOCK_1 + tl.arange(0, BLOCK_1)[None, :]");
        line("left = " + scratch_ + " + tl.cast(tile, tl.int64) * (SPLIT * BLOCK_0 * " + kTile + ")");
        line("tl.store(left + part * (BLOCK_0 * " + std::string(kTile) + ") + own, acc)");
        beside([&] {
            line(
                "wown = BLOCK_0 * BLOCK_1 + tl.arange(0, BLOCK_0)[:, None] * BLOCK_2 + tl.arange(0, BLOCK_2)[None, :]");
            line("tl.store(left + part * (BLOCK_0 * " + std::string(kTile) + ") + wown, wacc)");
        });
        line("tl.debug_barrier()");
        line("mine = tl.atomic_add(" + counters() + " + tile, 1, sem=\"acq_rel\", scope=\"gpu\") - (SPLIT - 2)");
        text_.close();
    }

    void write_join() {
        text_.open("if SPLIT > 1:");
        line("tl.debug_barrier()");
        const auto load = [&](const std::string& place) {
            return "tl.load(left + " + place + ", cache_modifier=\".cg\")";
        };
        line("acc = " + load("own"));
        beside([&] { line("wacc = " + load("wown")); });
        text_.open("for other in tl.range(1, SPLIT):");
        line("next = other * (BLOCK_0 * " + std::string(kTile) + ")");
        line("acc += " + load("next + own"));
        beside([&] { line("wacc += " + load("next + wown")); });
        text_.close();
        line("tl.store(" + counters() + " + tile, 0)");
        text_.close();
    }

    std::string counters() { return text_.use(ArgumentKind::kCounters, 0); }

    const Contraction& c_;
    const RowLayout& layout_;
    SourceText text_;
    BodyWriter epilogue_, more_;  // of the columns up to BLOCK_1, and beyond
    std::optional<RowLayout> prologue_layout_;
    std::optional<BodyWriter> prologue_;
    std::uint32_t rank_;
    std::string scratch_;
};

}  // namespace

bool sums_in_blocks(const Contraction& c) {
    const auto short_float = [](DType d) { return is_floating(d) && d != DType::kF64; };
    return c.accumulator == DType::kF32 && short_float(c.a_dtype) && short_float(c.b_dtype);
}

bool sums_row_by_row(const Contraction& c) {
    return !c.prologue && is_floating(c.accumulator) && is_floating(c.a_dtype) && is_floating(c.b_dtype);
}

KernelSource write_contraction(const Kernel& kernel, const RowLayout& layout) {
    FLEXOR_CHECK(kernel.kind == loopir::KernelKind::kContraction);
    return ContractionWriter(kernel, layout).write();
}

}  // namespace flexor::codegen::triton
