#include "codegen/triton/row_source.h"

#include <algorithm>
#include <cctype>

#include "codegen/stage_passes.h"
#include "codegen/triton/expression.h"
#include "support/check.h"
#include "support/text.h"

namespace flexor::codegen::triton {

using loopir::Access;
using loopir::Body;
using loopir::Combine;
using loopir::GatherTerm;
using loopir::IntRef;
using loopir::Kernel;
using loopir::kNoNode;
using loopir::Node;
using loopir::NodeId;
using loopir::ScalarOp;
using loopir::Stage;
using loopir::StageKind;

std::string argument_name(const Argument& argument) {
    const std::string number = std::to_string(argument.index);
    switch (argument.kind) {
        case ArgumentKind::kBuffer: return "b" + number;
        case ArgumentKind::kFault: return "fault";
        case ArgumentKind::kExtent: return "n" + number;
        case ArgumentKind::kPlace: return "p" + number;
        case ArgumentKind::kNumber: return "x" + number;
    }
    FLEXOR_UNREACHABLE();
}

namespace {

// Axes of the tile that a value varies along.
using Axes = unsigned;
constexpr Axes kAxis[2] = {1, 2};
constexpr Axes kNoAxis = 0, kBoth = 3;

// Where a value is computed.
enum class Level : std::uint8_t { kKernel, kTile, kRow };

const char* shape_text(Axes axes) {
    switch (axes) {
        case 1: return "(BLOCK_0, 1)";
        case 2: return "(1, BLOCK_1)";
        case 3: return "(BLOCK_0, BLOCK_1)";
        default: return "()";
    }
}

// A name of Python's that is neither a keyword, nor a module, nor a helper.
std::string identifier(const std::string& name) {
    std::string out = "k_";
    for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return out;
}

// A condition as an operand of '&'.
std::string bracketed(const std::string& condition) {
    return condition.find(' ') == std::string::npos ? condition : "(" + condition + ")";
}

std::string all_of(const std::vector<std::string>& conditions) {
    return conditions.size() == 1 ? conditions[0] : support::join(conditions, " & ", bracketed);
}

bool divides(const Node& node) {
    return !is_floating(node.dtype) && (node.op == ScalarOp::kFloorDiv || node.op == ScalarOp::kTruncDiv ||
                                        node.op == ScalarOp::kFloorMod || node.op == ScalarOp::kTruncMod);
}

class Writer {
public:
    Writer(const Kernel& kernel, const RowLayout& layout, RowForm form)
        : kernel_(kernel), layout_(layout), body_(layout.body), form_(form) {
        find_levels();
        once_.assign(body_.nodes.size(), false);
        for (const Stage& stage : body_.stages) {
            if (!stage.per_row) continue;
            NodeVisitor(body_, [&](NodeId n) { return once_[n] = true; }).visit(stage);
        }
        written_.assign(body_.nodes.size(), false);
    }

    RowSource write() {
        RowSource out;
        out.function = identifier(kernel_.name);
        write_prologue();
        open("for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):");
        write_coordinates();
        if (kernel_.contraction) write_sums(*kernel_.contraction);
        const std::uint32_t passes = 1 + *std::max_element(layout_.pass.begin(), layout_.pass.end());
        for (std::uint32_t pass = 0; pass < passes; ++pass) write_pass(pass);
        close();
        out.arguments = arguments();
        out.text =
            "import triton\nimport triton.language as tl\nfrom triton.language.extra.cuda import libdevice\n\n\n";
        out.text += expressions_.definitions();
        out.text += "@triton.jit\ndef " + out.function + "(";
        for (const Argument& argument : out.arguments) out.text += argument_name(argument) + ", ";
        out.text += "BLOCK_0: tl.constexpr, BLOCK_1: tl.constexpr";
        out.text += std::string(kernel_.contraction ? ", BLOCK_K: tl.constexpr" : "") + "):\n" + text_;
        return out;
    }

private:
    // ------------------------------------------------------------ facts about nodes

    void find_levels() {
        level_.assign(body_.nodes.size(), Level::kKernel);
        axes_.assign(body_.nodes.size(), kNoAxis);
        for (const Access& access : body_.accesses) loaded_.push_back(access.buffer);
        for (const Stage& stage : body_.stages) {
            if (stage.kind == StageKind::kStore) stored_.push_back(stage.target.buffer);
        }
        for (NodeId n = 0; n < body_.nodes.size(); ++n) {
            const Node& node = body_.nodes[n];
            for (const NodeId operand : node.operands) depend(n, operand);
            switch (node.op) {
                case ScalarOp::kIndex: depend_on_dim(n, node.index); break;
                case ScalarOp::kAccumulator:
                    raise(n, Level::kRow);
                    axes_[n] = kBoth;
                    break;
                case ScalarOp::kRowValue:
                    raise(n, Level::kTile);
                    axes_[n] |= kAxis[0];
                    break;
                case ScalarOp::kLoad: {
                    const Access& access = body_.accesses[node.index];
                    for (std::uint32_t dim = 0; dim < body_.rank(); ++dim) {
                        if (!access.strides[dim].is(0)) depend_on_dim(n, dim);
                    }
                    for (const GatherTerm& gather : access.gathers) depend(n, gather.index);
                    depend(n, access.mask);
                    // What the kernel itself changes is read where the stage stands; faults belong to a tile.
                    if (is_stored(access.buffer)) raise(n, Level::kRow);
                    if (!access.gathers.empty()) raise(n, Level::kTile);
                    break;
                }
                default:
                    if (divides(node)) raise(n, Level::kTile);
                    break;
            }
        }
    }

    void raise(NodeId n, Level level) { level_[n] = std::max(level_[n], level); }

    void depend(NodeId n, NodeId on) {
        if (on == kNoNode) return;
        raise(n, level_[on]);
        axes_[n] |= axes_[on];
    }

    void depend_on_dim(NodeId n, std::uint32_t dim) {
        raise(n, dim < body_.parallel ? Level::kTile : Level::kRow);
        axes_[n] |= axes_of_dim(dim);
    }

    Axes axes_of_dim(std::uint32_t dim) const {
        for (int axis = 0; axis < 2; ++axis) {
            if (dim == layout_.axis_dim[axis]) return kAxis[axis];
        }
        return kNoAxis;
    }

    bool is_stored(std::uint32_t buffer) const {
        return std::find(stored_.begin(), stored_.end(), buffer) != stored_.end();
    }
    bool is_loaded(std::uint32_t buffer) const {
        return std::find(loaded_.begin(), loaded_.end(), buffer) != loaded_.end();
    }
    bool resident() const { return form_ == RowForm::kResident; }

    // ------------------------------------------------------------ lines and arguments

    void line(const std::string& text) { text_ += std::string(depth_ * 4, ' ') + text + "\n"; }
    void open(const std::string& head) {
        line(head);
        ++depth_;
        marks_.push_back(made_.size());
    }
    // What a block has made is unknown outside it.
    void close() {
        --depth_;
        forget_from(marks_.back());
        marks_.pop_back();
    }
    void forget_from(std::size_t mark) {
        for (std::size_t i = mark; i < made_.size(); ++i) written_[made_[i]] = false;
        made_.resize(mark);
    }

    std::string use(ArgumentKind kind, std::uint32_t index) {
        const Argument argument{kind, index};
        if (std::find(used_.begin(), used_.end(), argument) == used_.end()) used_.push_back(argument);
        return argument_name(argument);
    }
    std::string place(const IntRef& ref) {
        return ref.is_constant ? int_text(ref.value) : use(ArgumentKind::kPlace, static_cast<std::uint32_t>(ref.value));
    }
    std::string extent(std::uint32_t dim) { return use(ArgumentKind::kExtent, dim); }
    static std::string index_name(std::uint32_t dim) { return "i" + std::to_string(dim); }
    static std::string value_name(NodeId n) { return "v" + std::to_string(n); }

    std::vector<Argument> arguments() const {
        std::vector<Argument> out;
        for (std::uint32_t b = 0; b < kernel_.buffers.size(); ++b) out.push_back({ArgumentKind::kBuffer, b});
        std::vector<Argument> rest = used_;
        std::erase_if(rest, [](const Argument& a) { return a.kind == ArgumentKind::kBuffer; });
        std::sort(rest.begin(), rest.end(), [](const Argument& a, const Argument& b) {
            return std::pair(a.kind, a.index) < std::pair(b.kind, b.index);
        });
        out.insert(out.end(), rest.begin(), rest.end());
        return out;
    }

    // ------------------------------------------------------------ coordinates

    void write_prologue() {
        depth_ = 1;
        std::vector<std::string> factors;
        for (int axis = 0; axis < 2; ++axis) {
            if (axis == 1 && !layout_.elementwise) break;
            const std::string number = std::to_string(axis);
            line("tiles_" + number + " = tl.cdiv(" + extent(layout_.axis_dim[axis]) + ", BLOCK_" + number + ")");
            factors.insert(factors.begin(), "tiles_" + number);
        }
        for (std::uint32_t i = static_cast<std::uint32_t>(layout_.outer.size()); i-- > 0;)
            factors.push_back(extent(layout_.outer[i]));
        line("tiles = " + support::join(factors, " * ", [](const std::string& f) { return f; }));
        if (loopir::may_fault(body_) && !layout_.elementwise) {
            std::vector<std::string> rows;
            for (std::uint32_t dim = body_.parallel; dim < body_.rank(); ++dim) rows.push_back(extent(dim) + " > 0");
            line("has_rows = " + all_of(rows));
        }
        for (const Stage& stage : body_.stages) write_needed(stage, Level::kKernel);
    }

    // Splits the number of the tile: axis 1 (if rows are cut) and axis 0 run fastest, then the outer dims from the last.
    void write_coordinates() {
        std::string rest = "tile";
        const auto next = [&](const std::string& count, bool last) {
            const std::string mine = last ? rest : rest + " % " + count;
            if (!last) {
                line("rest_" + count + " = " + rest + " // " + count);
                rest = "rest_" + count;
            }
            return mine;
        };
        const std::size_t outer = layout_.outer.size();
        if (layout_.elementwise) write_axis(1, next("tiles_1", false));
        write_axis(0, next("tiles_0", outer == 0));
        for (std::size_t i = outer; i-- > 0;) {
            const std::uint32_t dim = layout_.outer[i];
            const std::string mine = next(extent(dim), i == 0);
            line(index_name(dim) + " = " + mine);
        }
        if (!layout_.elementwise && resident()) {
            write_axis(1, "");
            line("live = m0 & m1");
        }
    }

    // The indices of a tile along an axis, and which of them exist.
    void write_axis(int axis, const std::string& block) {
        const std::uint32_t dim = layout_.axis_dim[axis];
        const std::string name = index_name(dim), number = std::to_string(axis);
        const std::string lanes = "tl.arange(0, BLOCK_" + number + ")";
        const std::string whole = block.empty() ? lanes : "(" + block + " * BLOCK_" + number + " + " + lanes + ")";
        line(name + " = " + whole + (axis == 0 ? "[:, None]" : "[None, :]"));
        line("m" + number + " = " + name + " < " + extent(dim));
    }

    // ------------------------------------------------------------ nodes

    // Writes what `stage` needs and what is computed at or outside `level`.
    void write_needed(const Stage& stage, Level level) {
        NodeVisitor(body_, [&](NodeId n) {
            if (level_[n] <= level && row_values_known(n)) write(n);
            return true;
        }).visit(stage);
    }

    bool row_values_known(NodeId root) const {
        bool known = true;
        NodeVisitor(body_, [&](NodeId n) {
            const Node& node = body_.nodes[n];
            known = known && (node.op != ScalarOp::kRowValue || layout_.pass[node.index] < pass_);
            return true;
        }).visit(root);
        return known;
    }

    void write(NodeId n) {
        if (written_[n]) return;
        const Node& node = body_.nodes[n];
        std::string names[3];
        for (int i = 0; i < loopir::scalar_arity(node.op); ++i) {
            write(node.operands[i]);
            names[i] = value_name(node.operands[i]);
        }
        line(value_name(n) + " = " + expression(n, names));
        written_[n] = true;
        made_.push_back(n);
        if (divides(node)) write_fault(names[1] + " == 0", axes_[node.operands[1]], once_[n]);
    }

    std::string expression(NodeId n, const std::string (&names)[3]) {
        const Node& node = body_.nodes[n];
        switch (node.op) {
            case ScalarOp::kConst: return constant_text(node);
            case ScalarOp::kParam: {
                const std::string bits = "tl.cast(" + use(ArgumentKind::kNumber, node.index) + ", tl.int64)";
                if (!is_floating(node.dtype)) return expressions_.cast(bits, DType::kI64, node.dtype);
                return expressions_.cast("tl.cast(" + bits + ", tl.float64, bitcast=True)", DType::kF64, node.dtype);
            }
            case ScalarOp::kIndex:
                return "tl.cast(" + (exists(node.index) ? index_name(node.index) : "0") + ", tl.int64)";
            case ScalarOp::kLoad: return load(n);
            case ScalarOp::kRowValue: return "s" + std::to_string(node.index);
            case ScalarOp::kAccumulator: return "acc";
            default: return expressions_.apply(node, body_.nodes[node.operands[0]].dtype, names);
        }
    }

    // A resident row has one index along every row dim but axis 1's.
    bool exists(std::uint32_t dim) const {
        return !resident() || std::find(layout_.loops.begin(), layout_.loops.end(), dim) == layout_.loops.end();
    }

    // ------------------------------------------------------------ memory

    struct Place {
        std::string pointer;
        std::vector<std::string> masks;
        Axes axes = kNoAxis;
    };

    // The address of an access, of shape `least` at least. `tag` makes the names of its parts unique; `always`: it is
    // wanted even in a row of no elements.
    Place locate(const Access& access, const std::string& tag, Axes least, bool always) {
        Place out;
        std::vector<std::string> terms;
        if (!access.offset.is(0)) terms.push_back(place(access.offset));
        bool outer_rows = false;
        for (std::uint32_t dim = 0; dim < body_.rank(); ++dim) {
            const IntRef& stride = access.strides[dim];
            if (stride.is(0)) continue;
            outer_rows = outer_rows || !exists(dim);
            if (!exists(dim)) continue;
            out.axes |= axes_of_dim(dim);
            terms.push_back(index_name(dim) + (stride.is(1) ? "" : " * " + place(stride)));
        }
        Axes wanted = out.axes | least;
        for (const GatherTerm& gather : access.gathers) {
            out.axes |= axes_[gather.index];
            wanted |= axes_[gather.index];
        }
        if (access.mask != kNoNode) wanted |= axes_[access.mask];
        // Lanes that do not exist, and a row of no elements whose memory is not there, are not touched.
        for (int axis = 0; axis < 2; ++axis) {
            if (wanted & kAxis[axis]) out.masks.push_back("m" + std::to_string(axis));
        }
        if (outer_rows && !(wanted & kAxis[1])) out.masks.push_back(extent(layout_.axis_dim[1]) + " > 0");
        if (access.mask != kNoNode) {
            write(access.mask);
            out.masks.push_back(value_name(access.mask));
        }
        for (std::size_t g = 0; g < access.gathers.size(); ++g) {
            const GatherTerm& gather = access.gathers[g];
            write(gather.index);
            const std::string name = tag + "_" + std::to_string(g), bound = place(gather.extent);
            std::string at = value_name(gather.index);
            if (gather.wrap_negative) at = "tl.where(" + at + " < 0, " + at + " + " + bound + ", " + at + ")";
            line("at" + name + " = " + at);
            line("in" + name + " = (at" + name + " >= 0) & (at" + name + " < " + bound + ")");
            terms.push_back("at" + name + (gather.stride.is(1) ? "" : " * " + place(gather.stride)));
        }
        if (!access.gathers.empty()) {
            std::vector<std::string> inside;
            for (std::size_t g = 0; g < access.gathers.size(); ++g)
                inside.push_back("in" + tag + "_" + std::to_string(g));
            line("in" + tag + " = " + all_of(inside));
            std::vector<std::string> bad = out.masks;
            bad.push_back("in" + tag + " == 0");
            store_fault(std::move(bad), wanted, always);
            out.masks.push_back("in" + tag);
        }
        if (wanted != out.axes) terms.push_back("tl.zeros(" + std::string(shape_text(wanted)) + ", tl.int32)");
        out.axes = wanted;
        out.pointer = use(ArgumentKind::kBuffer, access.buffer);
        if (!terms.empty())
            out.pointer += " + (" + support::join(terms, " + ", [](const std::string& t) { return t; }) + ")";
        return out;
    }

    std::string load(NodeId n) {
        const Node& node = body_.nodes[n];
        const Access& access = body_.accesses[node.index];
        const Place at = locate(access, "_a" + std::to_string(node.index), kNoAxis, once_[n]);
        std::string text = "tl.load(" + at.pointer;
        if (!at.masks.empty()) text += ", mask=" + all_of(at.masks) + ", other=0";
        text += ")";
        return node.dtype == DType::kBool ? text + " != 0" : text;
    }

    void store(std::size_t s) {
        const Stage& stage = body_.stages[s];
        const std::uint32_t buffer = stage.target.buffer;
        write(stage.value);
        const Axes least = (stage.per_row ? kAxis[0] : kBoth) | axes_[stage.value];
        const Place at = locate(stage.target, "_s" + std::to_string(s), least, stage.per_row);
        // Other lanes may still have to load what this store overwrites.
        if (is_loaded(buffer)) line("tl.debug_barrier()");
        std::string value = value_name(stage.value);
        if (kernel_.buffers[buffer].dtype == DType::kBool) value = "tl.cast(" + value + ", tl.uint8)";
        line("tl.store(" + at.pointer + ", " + value + ", mask=" + all_of(at.masks) + ")");
        if (!is_loaded(buffer)) return;
        if (is_loaded_behind(buffer, pass_)) line("tl.debug_barrier()");
        forget_loads();
    }

    bool is_loaded_behind(std::uint32_t buffer, std::uint32_t pass) const {
        bool found = false;
        for (std::size_t s = 0; s < body_.stages.size(); ++s) {
            if (layout_.pass[s] <= pass) continue;
            NodeVisitor(body_, [&](NodeId n) {
                const Node& node = body_.nodes[n];
                found = found || (node.op == ScalarOp::kLoad && body_.accesses[node.index].buffer == buffer);
                return true;
            }).visit(body_.stages[s]);
        }
        return found;
    }

    // Values read from memory that has changed since, and what was computed from them.
    void forget_loads() {
        for (NodeId n = 0; n < body_.nodes.size(); ++n) {
            const Node& node = body_.nodes[n];
            bool stale = node.op == ScalarOp::kLoad && is_stored(body_.accesses[node.index].buffer);
            NodeVisitor(body_, [&](NodeId m) {
                const Node& part = body_.nodes[m];
                stale = stale || (part.op == ScalarOp::kLoad && is_stored(body_.accesses[part.index].buffer));
                return !stale;
            }).visit(n);
            if (stale) written_[n] = false;
        }
    }

    void write_fault(const std::string& condition, Axes axes, bool always) {
        std::vector<std::string> bad;
        for (int axis = 0; axis < 2; ++axis) {
            if (axes & kAxis[axis]) bad.push_back("m" + std::to_string(axis));
        }
        bad.push_back(condition);
        store_fault(std::move(bad), axes, always);
    }

    void store_fault(std::vector<std::string> conditions, Axes axes, bool always) {
        if (!layout_.elementwise && !always && !(axes & kAxis[1])) conditions.push_back("has_rows");
        std::string pointer = use(ArgumentKind::kFault, 0);
        if (axes != kNoAxis) pointer += " + tl.zeros(" + std::string(shape_text(axes)) + ", tl.int32)";
        line("tl.store(" + pointer + ", 1, mask=" + all_of(conditions) + ")");
    }

    // ------------------------------------------------------------ contractions

    // The sums of products of the tile, as `acc`.
    void write_sums(const loopir::Contraction& c) {
        const bool blocks = sums_in_blocks(c);
        const std::string k = extent(body_.rank());
        const std::string sum = std::string(dtype_text(c.accumulator));
        line("acc = tl.full((BLOCK_0, BLOCK_1), 0, " + sum + ")");
        open(blocks ? "for start in tl.range(0, " + k + ", BLOCK_K):" : "for ik in tl.range(0, " + k + "):");
        if (blocks) {
            line("ik = start + tl.arange(0, BLOCK_K)");
            line("mk = ik < " + k);
        }
        const std::uint32_t m = layout_.axis_dim[0], n = layout_.axis_dim[1];
        line("a = " + operand(c.a, c.a_dtype,
                              {{index_name(m), c.a.row_stride}, {blocks ? "ik[None, :]" : "ik", c.a.col_stride}},
                              blocks ? "m0 & mk[None, :]" : "m0"));
        line("b = " + operand(c.b, c.b_dtype,
                              {{blocks ? "ik[:, None]" : "ik", c.b.row_stride}, {index_name(n), c.b.col_stride}},
                              blocks ? "mk[:, None] & m1" : "m1"));
        const bool alike = c.a_dtype == c.b_dtype;
        const std::string a = alike && blocks ? "a" : expressions_.cast("a", c.a_dtype, c.accumulator);
        const std::string b = alike && blocks ? "b" : expressions_.cast("b", c.b_dtype, c.accumulator);
        if (blocks)
            line("acc = tl.dot(" + a + ", " + b + ", acc, input_precision=\"ieee\")");
        else
            line("acc = acc + " + a + " * " + b);
        close();
    }

    std::string operand(const loopir::MatrixOperand& matrix, DType dtype,
                        const std::pair<std::string, IntRef> (&steps)[2], const std::string& mask) {
        std::vector<std::string> terms;
        if (!matrix.offset.is(0)) terms.push_back(place(matrix.offset));
        for (std::uint32_t dim = 0; dim < matrix.batch_strides.size(); ++dim) {
            const IntRef& stride = matrix.batch_strides[dim];
            if (!stride.is(0)) terms.push_back(index_name(dim) + " * " + place(stride));
        }
        // A block keeps its shape where a stride is 0.
        for (const auto& [index, stride] : steps) terms.push_back(index + (stride.is(1) ? "" : " * " + place(stride)));
        const std::string sum = support::join(terms, " + ", [](const std::string& t) { return t; });
        const std::string text =
            "tl.load(" + use(ArgumentKind::kBuffer, matrix.buffer) + " + (" + sum + "), mask=" + mask + ", other=0)";
        return dtype == DType::kBool ? text + " != 0" : text;
    }

    // ------------------------------------------------------------ passes

    void write_pass(std::uint32_t pass) {
        pass_ = pass;
        std::vector<std::size_t> once, loop;
        for (std::size_t s = 0; s < body_.stages.size(); ++s) {
            if (layout_.pass[s] == pass) (body_.stages[s].per_row ? once : loop).push_back(s);
        }
        for (const std::size_t s : once) store(s);
        if (loop.empty()) return;
        if (layout_.elementwise || resident()) {
            for (const std::size_t s : loop) {
                if (body_.stages[s].kind == StageKind::kStore)
                    store(s);
                else
                    reduce_block(s);
            }
            return;
        }
        for (const std::size_t s : loop) {
            write_needed(body_.stages[s], Level::kTile);
            if (body_.stages[s].kind == StageKind::kReduce) start_reduce(s);
        }
        for (const std::uint32_t dim : layout_.loops)
            open("for " + index_name(dim) + " in tl.range(0, " + extent(dim) + "):");
        open("for start in tl.range(0, " + extent(layout_.axis_dim[1]) + ", BLOCK_1):");
        const std::string name = index_name(layout_.axis_dim[1]);
        line(name + " = (start + tl.arange(0, BLOCK_1))[None, :]");
        line("m1 = " + name + " < " + extent(layout_.axis_dim[1]));
        line("live = m0 & m1");
        for (const std::size_t s : loop) {
            if (body_.stages[s].kind == StageKind::kStore)
                store(s);
            else
                step_reduce(s);
        }
        for (std::size_t i = 0; i <= layout_.loops.size(); ++i) close();
        for (const std::size_t s : loop) {
            if (body_.stages[s].kind == StageKind::kReduce) finish_reduce(s);
        }
    }

    static bool is_arg(Combine c) { return c == Combine::kArgMax || c == Combine::kArgMin; }
    static bool is_logical(Combine c) { return c == Combine::kAny || c == Combine::kAll; }

    DType reduce_dtype(std::size_t s) const {
        const Stage& stage = body_.stages[s];
        return is_logical(stage.combine) ? DType::kI32 : body_.nodes[stage.value].dtype;
    }

    // Position in the row space, in row-major order.
    std::string position() {
        std::string out;
        for (std::uint32_t dim = body_.parallel; dim < body_.rank(); ++dim) {
            if (!exists(dim)) continue;
            const std::string index = "tl.cast(" + index_name(dim) + ", tl.int64)";
            out = out.empty() ? index : "(" + out + ") * " + extent(dim) + " + " + index;
        }
        return out;
    }

    // The value of a stage over a block of the tile's shape, with the identity where there is no element.
    std::string block_value(std::size_t s) {
        const Stage& stage = body_.stages[s];
        write(stage.value);
        std::string value = value_name(stage.value);
        if (is_logical(stage.combine)) value = "tl.cast(" + value + ", tl.int32)";
        return "tl.where(live, " + value + ", " + identity_text(stage.combine, body_.nodes[stage.value].dtype) + ")";
    }

    void write_block(std::size_t s, const std::string& name) {
        const std::string typed = block_value(s);
        line(name + " = tl.cast(" + typed + ", " + std::string(dtype_text(reduce_dtype(s))) + ")");
        if (is_arg(body_.stages[s].combine)) line(name + "_at = tl.where(live, " + position() + ", -1)");
    }

    void finish(std::size_t s, const std::string& name) {
        const Combine combine = body_.stages[s].combine;
        const std::string number = std::to_string(s);
        const std::string function = expressions_.combine(combine, reduce_dtype(s));
        if (is_arg(combine)) {
            line("best" + number + ", s" + number + " = tl.reduce((" + name + ", " + name + "_at), 1, " + function +
                 ", keep_dims=True)");
            line("s" + number + " = tl.maximum(s" + number + ", 0)");
            return;
        }
        line("s" + number + " = tl.reduce(" + name + ", 1, " + function + ", keep_dims=True)" +
             (is_logical(combine) ? " != 0" : ""));
    }

    void reduce_block(std::size_t s) {
        const std::string name = "r" + std::to_string(s);
        write_block(s, name);
        finish(s, name);
    }

    void start_reduce(std::size_t s) {
        const Stage& stage = body_.stages[s];
        const std::string name = "r" + std::to_string(s);
        line(name + " = tl.full((BLOCK_0, BLOCK_1), " + identity_text(stage.combine, body_.nodes[stage.value].dtype) +
             ", " + std::string(dtype_text(reduce_dtype(s))) + ")");
        if (is_arg(stage.combine)) line(name + "_at = tl.full((BLOCK_0, BLOCK_1), -1, tl.int64)");
    }

    void step_reduce(std::size_t s) {
        const Combine combine = body_.stages[s].combine;
        const std::string name = "r" + std::to_string(s), block = "block" + std::to_string(s);
        write_block(s, block);
        const std::string function = expressions_.combine(combine, reduce_dtype(s));
        if (is_arg(combine)) {
            line(name + ", " + name + "_at = " + function + "(" + name + ", " + name + "_at, " + block + ", " + block +
                 "_at)");
        } else {
            line(name + " = " + function + "(" + name + ", " + block + ")");
        }
    }

    void finish_reduce(std::size_t s) { finish(s, "r" + std::to_string(s)); }

    const Kernel& kernel_;
    const RowLayout& layout_;
    const Body& body_;
    RowForm form_;
    std::vector<Level> level_;
    std::vector<Axes> axes_;
    std::vector<bool> once_;                      // per node: a store a row needs it
    std::vector<std::uint32_t> loaded_, stored_;  // buffers
    Expressions expressions_;
    std::string text_;
    std::size_t depth_ = 0;
    std::vector<Argument> used_;
    std::vector<bool> written_;       // per node: its name is known here
    std::vector<NodeId> made_;        // in order of writing
    std::vector<std::size_t> marks_;  // length of made_ where each open block began
    std::uint32_t pass_ = 0;
};

}  // namespace

RowSource write_row_kernel(const Kernel& kernel, const RowLayout& layout, RowForm form) {
    FLEXOR_CHECK(kernel.kind == loopir::KernelKind::kRow);
    return Writer(kernel, layout, layout.elementwise ? RowForm::kResident : form).write();
}

bool sums_in_blocks(const loopir::Contraction& c) {
    const auto short_float = [](DType d) { return is_floating(d) && d != DType::kF64; };
    return c.accumulator == DType::kF32 && short_float(c.a_dtype) && short_float(c.b_dtype);
}

RowSource write_contraction(const Kernel& kernel, const RowLayout& layout) {
    FLEXOR_CHECK(kernel.kind == loopir::KernelKind::kContraction && !kernel.contraction->prologue);
    return Writer(kernel, layout, RowForm::kResident).write();
}

}  // namespace flexor::codegen::triton
