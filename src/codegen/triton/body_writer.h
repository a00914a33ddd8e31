#pragma once
// The stages of a Body as lines of a Triton function: a row kernel, or the prologue or epilogue of a contraction.
#include <string>
#include <vector>

#include "codegen/triton/kernel_source.h"
#include "codegen/triton/row_layout.h"
#include "codegen/triton/source_text.h"
#include "loopir/kernel.h"

namespace flexor::codegen::triton {

// Axes of the tile that a value varies along.
using Axes = unsigned;
inline constexpr Axes kAxis[2] = {1, 2};
inline constexpr Axes kNoAxis = 0, kBoth = 3;

// What a writer calls its own: names begin with `prefix`, and axis 1 runs over blocks of `block_1`.
struct BodyNames {
    std::string prefix;
    std::string block_1 = "BLOCK_1";
    std::vector<std::uint32_t> extents = {};  // per dim, the index of its ArgumentKind::kExtent; none: the dim's own
    int chunks = 1;                           // of a resident row, each of BLOCK_1 elements
    std::string step_1 = {};                  // along axis 1, from one tile to the next; none: BLOCK_1
    std::string first_1 = {};                 // where in the tile its block begins; none: 0
};

class BodyWriter {
public:
    BodyWriter(const loopir::Kernel& kernel, const RowLayout& layout, Form form, SourceText& text,
               BodyNames names = {});

    // Lines behind which what is known inside is unknown.
    void open(const std::string& head);
    void close();
    void line(const std::string& text) { text_.line(text); }

    void write_prologue();       // counts of tiles, then
    void write_kernel_values();  // what does not depend on the tile
    void write_coordinates(const std::string& tile);
    // The indices along an axis that begin at `start`, and which of them exist.
    void write_axis(int axis, const std::string& start);
    void write_pass(std::uint32_t pass);
    std::uint32_t passes() const;

    // Writes what `stage` needs and what is computed at the level of the tile or outside; then the stage's value.
    void write_tile_values(std::size_t stage) { write_needed(body_.stages[stage], Level::kTile); }
    std::string write_value(std::size_t stage);
    void begin_pass(std::uint32_t pass) { pass_ = pass; }

    // A row kernel in parts: this program's part of the row, and what the last one does with all of them.
    void write_part();
    void write_joined();

    std::string extent(std::uint32_t dim);
    std::string index_name(std::uint32_t dim) const {
        return names_.prefix + "i" + std::to_string(dim) + chunk_suffix(dim == layout_.axis_dim[1]);
    }
    std::string mask_name(int axis) const {
        return names_.prefix + "m" + std::to_string(axis) + chunk_suffix(axis == 1);
    }

private:
    // Where a value is computed.
    enum class Level : std::uint8_t { kKernel, kTile, kRow };
    struct Place {
        std::string pointer;
        std::vector<std::string> masks;
        Axes axes = kNoAxis;
    };

    void find_levels();
    void find_short();
    void raise(loopir::NodeId n, Level level) { level_[n] = std::max(level_[n], level); }
    void depend(loopir::NodeId n, loopir::NodeId on);
    void depend_on_dim(loopir::NodeId n, std::uint32_t dim);
    Axes axes_of_dim(std::uint32_t dim) const;
    bool is_stored(std::uint32_t buffer) const;
    bool is_loaded(std::uint32_t buffer) const;
    bool resident() const { return form_ == Form::kResident; }
    bool exists(std::uint32_t dim) const;
    std::string shape_text(Axes axes) const;

    std::string name(const std::string& of) const { return names_.prefix + of; }
    std::string value_name(loopir::NodeId n) const {
        return name("v" + std::to_string(n)) + chunk_suffix((axes_[n] & kAxis[1]) != 0);
    }
    std::string live_name() const { return name("live") + chunk_suffix(true); }
    // Of what each chunk of the row has one.
    std::string chunk_suffix(bool one_each) const {
        return one_each && names_.chunks > 1 ? "_" + std::to_string(chunk_) : "";
    }
    // Place of a node's flag in written_.
    std::size_t flag(loopir::NodeId n) const { return n + (axes_[n] & kAxis[1] ? chunk_ * body_.nodes.size() : 0); }
    void forget_from(std::size_t mark);

    void write_needed(const loopir::Stage& stage, Level level);
    bool row_values_known(loopir::NodeId root) const;
    void write(loopir::NodeId n);
    std::string expression(loopir::NodeId n, const std::string (&names)[3]);

    Place locate(const loopir::Access& access, const std::string& tag, Axes least, bool always);
    std::string load(loopir::NodeId n);
    void store(std::size_t s);
    bool is_loaded_behind(std::uint32_t buffer, std::uint32_t pass) const;
    void forget_loads();
    void write_fault(const std::string& condition, Axes axes, bool always);
    void store_fault(std::vector<std::string> conditions, Axes axes, bool always);

    void walk_row(const std::vector<std::size_t>& stages);
    std::string row_name(std::size_t s) const { return name("r" + std::to_string(s)); }
    std::string result_name(std::size_t s) const { return name("s" + std::to_string(s)); }
    DType reduce_dtype(std::size_t s) const;
    std::string position();
    std::string block_value(std::size_t s);
    void write_block(std::size_t s, const std::string& block);
    void finish(std::size_t s, const std::string& block);
    void start_reduce(std::size_t s);
    void step_reduce(std::size_t s);
    void reduce_resident(std::size_t s);
    void join(std::size_t s, const std::string& row, const std::string& block);
    std::vector<std::size_t> reduces_of(const std::vector<std::size_t>& stages) const;

    const loopir::Kernel& kernel_;
    const RowLayout& layout_;
    const loopir::Body& body_;
    Form form_;
    SourceText& text_;
    BodyNames names_;
    std::vector<Level> level_;
    std::vector<Axes> axes_;
    std::vector<bool> once_;                      // per node: a store a row needs it
    std::vector<bool> short_;                     // per node: it ends in 16-bit floats alone
    std::vector<std::uint32_t> loaded_, stored_;  // buffers
    std::vector<bool> written_;                   // per flag(node): its name is known here
    std::vector<std::size_t> made_;               // flags in order of writing
    std::vector<std::size_t> marks_;              // length of made_ where each open block began
    std::vector<std::string> partials_;           // scratch arguments of a split row
    std::uint32_t pass_ = 0;
    std::size_t chunk_ = 0;
};

}  // namespace flexor::codegen::triton
