#include "codegen/triton/body_writer.h"

#include <algorithm>
#include <bit>

#include "codegen/stage_passes.h"
#include "support/check.h"
#include "support/text.h"

namespace flexor::codegen::triton {

using loopir::Access;
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

namespace {

bool divides(const Node& node) {
    return !is_floating(node.dtype) && (node.op == ScalarOp::kFloorDiv || node.op == ScalarOp::kTruncDiv ||
                                        node.op == ScalarOp::kFloorMod || node.op == ScalarOp::kTruncMod);
}

bool is_arg(Combine c) { return c == Combine::kArgMax || c == Combine::kArgMin; }
bool is_logical(Combine c) { return c == Combine::kAny || c == Combine::kAll; }

DType dtype_of_reduce(const loopir::Body& body, const Stage& stage) {
    return is_logical(stage.combine) ? DType::kI32 : body.nodes[stage.value].dtype;
}

}  // namespace

bool may_split(const RowLayout& layout) {
    if (layout.elementwise) return false;
    const loopir::Body& body = layout.body;
    bool reduces = false;
    for (std::size_t s = 0; s < body.stages.size(); ++s) {
        const Stage& stage = body.stages[s];
        if (!stage.per_row && layout.pass[s] > 0) return false;
        reduces = reduces || stage.kind == StageKind::kReduce;
    }
    return reduces && may_chunk(layout);
}

bool may_chunk(const RowLayout& layout) {
    if (layout.elementwise) return false;
    const loopir::Body& body = layout.body;
    for (const Stage& stage : body.stages) {
        if (stage.kind != StageKind::kStore) continue;
        for (const Access& access : body.accesses) {
            if (access.buffer == stage.target.buffer) return false;
        }
    }
    return true;
}

std::vector<DType> partial_dtypes(const RowLayout& layout) {
    std::vector<DType> out;
    for (const Stage& stage : layout.body.stages) {
        if (stage.kind != StageKind::kReduce) continue;
        out.push_back(dtype_of_reduce(layout.body, stage));
        if (is_arg(stage.combine)) out.push_back(DType::kI64);
    }
    return out;
}

BodyWriter::BodyWriter(const Kernel& kernel, const RowLayout& layout, Form form, SourceText& text, BodyNames names)
    : kernel_(kernel), layout_(layout), body_(layout.body), form_(form), text_(text), names_(std::move(names)) {
    find_levels();
    once_.assign(body_.nodes.size(), false);
    for (const Stage& stage : body_.stages) {
        if (!stage.per_row) continue;
        NodeVisitor(body_, [&](NodeId n) { return once_[n] = true; }).visit(stage);
    }
    written_.assign(body_.nodes.size() * static_cast<std::size_t>(names_.chunks), false);
    find_short();
}

// ------------------------------------------------------------ facts about nodes

void BodyWriter::find_levels() {
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

// Functions of values that are rounded to 16 bits in the end need no more than that; a value that anything else sees is
// not one of them. Operands precede users.
void BodyWriter::find_short() {
    const std::size_t count = body_.nodes.size();
    std::vector<bool> used(count, false);
    short_.assign(count, true);
    const auto see = [&](NodeId n) {
        if (n != kNoNode) short_[n] = false;
    };
    for (const Stage& stage : body_.stages) {
        see(stage.value);
        if (stage.kind == StageKind::kStore) {
            for (const GatherTerm& gather : stage.target.gathers) see(gather.index);
            see(stage.target.mask);
        }
    }
    for (const Access& access : body_.accesses) {
        for (const GatherTerm& gather : access.gathers) see(gather.index);
        see(access.mask);
    }
    for (NodeId n = static_cast<NodeId>(count); n-- > 0;) {
        const Node& node = body_.nodes[n];
        const bool rounds = node.op == ScalarOp::kCast && (node.dtype == DType::kF16 || node.dtype == DType::kBF16);
        const bool carries = node.dtype == DType::kF32 && short_[n] && used[n] &&
                             (node.op == ScalarOp::kAdd || node.op == ScalarOp::kMul || node.op == ScalarOp::kNeg ||
                              node.op == ScalarOp::kSub || node.op == ScalarOp::kDiv || node.op == ScalarOp::kFma);
        for (const NodeId operand : node.operands) {
            if (operand == kNoNode) continue;
            used[operand] = true;
            if (!rounds && !carries) short_[operand] = false;
        }
    }
    for (NodeId n = 0; n < count; ++n) short_[n] = short_[n] && used[n] && body_.nodes[n].dtype == DType::kF32;
}

void BodyWriter::depend(NodeId n, NodeId on) {
    if (on == kNoNode) return;
    raise(n, level_[on]);
    axes_[n] |= axes_[on];
}

void BodyWriter::depend_on_dim(NodeId n, std::uint32_t dim) {
    raise(n, dim < body_.parallel ? Level::kTile : Level::kRow);
    axes_[n] |= axes_of_dim(dim);
}

Axes BodyWriter::axes_of_dim(std::uint32_t dim) const {
    for (int axis = 0; axis < 2; ++axis) {
        if (dim == layout_.axis_dim[axis]) return kAxis[axis];
    }
    return kNoAxis;
}

bool BodyWriter::is_stored(std::uint32_t buffer) const {
    return std::find(stored_.begin(), stored_.end(), buffer) != stored_.end();
}
bool BodyWriter::is_loaded(std::uint32_t buffer) const {
    return std::find(loaded_.begin(), loaded_.end(), buffer) != loaded_.end();
}

// A resident row has one index along every row dim but axis 1's.
bool BodyWriter::exists(std::uint32_t dim) const {
    return !resident() || std::find(layout_.loops.begin(), layout_.loops.end(), dim) == layout_.loops.end();
}

std::string BodyWriter::shape_text(Axes axes) const {
    if (axes == kNoAxis) return "()";
    return std::string("(") + (axes & kAxis[0] ? "BLOCK_0" : "1") + ", " + (axes & kAxis[1] ? names_.block_1 : "1") +
           ")";
}

std::uint32_t BodyWriter::passes() const { return 1 + *std::max_element(layout_.pass.begin(), layout_.pass.end()); }

// ------------------------------------------------------------ blocks of lines

void BodyWriter::open(const std::string& head) {
    text_.open(head);
    marks_.push_back(made_.size());
}

void BodyWriter::close() {
    text_.close();
    forget_from(marks_.back());
    marks_.pop_back();
}

void BodyWriter::forget_from(std::size_t mark) {
    for (std::size_t i = mark; i < made_.size(); ++i) written_[made_[i]] = false;
    made_.resize(mark);
}

std::string BodyWriter::extent(std::uint32_t dim) {
    return text_.use(ArgumentKind::kExtent, names_.extents.empty() ? dim : names_.extents[dim]);
}

// ------------------------------------------------------------ coordinates

void BodyWriter::write_prologue() {
    std::vector<std::string> factors;
    for (int axis = 0; axis < 2; ++axis) {
        if (axis == 1 && !layout_.elementwise) break;
        const std::string number = std::to_string(axis);
        line("tiles_" + number + " = tl.cdiv(" + extent(layout_.axis_dim[axis]) + ", " +
             (axis == 1 && !names_.step_1.empty() ? names_.step_1 : text_.constant("BLOCK_" + number)) + ")");
        factors.insert(factors.begin(), "tiles_" + number);
    }
    for (std::uint32_t i = static_cast<std::uint32_t>(layout_.outer.size()); i-- > 0;)
        factors.push_back(extent(layout_.outer[i]));
    line("tiles = " + support::join(factors, " * ", [](const std::string& f) { return f; }));
    write_kernel_values();
}

void BodyWriter::write_kernel_values() {
    if (loopir::may_fault(body_) && !layout_.elementwise) {
        std::vector<std::string> rows;
        for (std::uint32_t dim = body_.parallel; dim < body_.rank(); ++dim) rows.push_back(extent(dim) + " > 0");
        line("has_rows = " + all_of(rows));
    }
    for (const Stage& stage : body_.stages) write_needed(stage, Level::kKernel);
}

// Splits the number of the tile: axis 1 (if rows are cut) and axis 0 run fastest, then the outer dims from the last.
void BodyWriter::write_coordinates(const std::string& tile) {
    std::string rest = tile;
    const auto next = [&](const std::string& count, bool last) {
        const std::string mine = last ? rest : rest + " % " + count;
        if (!last) {
            line("rest_" + count + " = " + rest + " // " + count);
            rest = "rest_" + count;
        }
        return mine;
    };
    const std::size_t outer = layout_.outer.size();
    if (layout_.elementwise) {
        const std::string step = names_.step_1.empty() ? "BLOCK_1" : names_.step_1;
        write_axis(1, next("tiles_1", false) + " * " + step + (names_.first_1.empty() ? "" : " + " + names_.first_1));
    }
    write_axis(0, next("tiles_0", outer == 0) + " * BLOCK_0");
    for (std::size_t i = outer; i-- > 0;) {
        const std::uint32_t dim = layout_.outer[i];
        const std::string mine = next(extent(dim), i == 0);
        line(index_name(dim) + " = " + mine);
    }
    if (!layout_.elementwise && resident()) {
        for (chunk_ = 0; chunk_ < static_cast<std::size_t>(names_.chunks); ++chunk_) {
            write_axis(1, chunk_ == 0 ? "" : std::to_string(chunk_) + " * BLOCK_1");
            line(live_name() + " = " + mask_name(0) + " & " + mask_name(1));
        }
        chunk_ = 0;
    }
}

void BodyWriter::write_axis(int axis, const std::string& start) {
    const std::uint32_t dim = layout_.axis_dim[axis];
    const std::string index = index_name(dim);
    const std::string block = axis == 0 ? "BLOCK_0" : names_.block_1;
    const std::string lanes = "tl.arange(0, " + text_.constant(block) + ")";
    const std::string whole = start.empty() ? lanes : "(" + start + " + " + lanes + ")";
    line(index + " = " + whole + (axis == 0 ? "[:, None]" : "[None, :]"));
    const std::string even = text_.constant("EVEN_" + block.substr(block.find('_') + 1));
    const std::string shape = axis == 0 ? "(BLOCK_0, 1)" : "(1, " + block + ")";
    // Where blocks end with the dim, nothing is masked.
    line(mask_name(axis) + " = tl.full(" + shape + ", 1, tl.int1) if " + even + " else " + index + " < " + extent(dim));
}

// ------------------------------------------------------------ nodes

void BodyWriter::write_needed(const Stage& stage, Level level) {
    NodeVisitor(body_, [&](NodeId n) {
        if (level_[n] <= level && row_values_known(n)) write(n);
        return true;
    }).visit(stage);
}

bool BodyWriter::row_values_known(NodeId root) const {
    bool known = true;
    NodeVisitor(body_, [&](NodeId n) {
        const Node& node = body_.nodes[n];
        known = known && (node.op != ScalarOp::kRowValue || layout_.pass[node.index] < pass_);
        return true;
    }).visit(root);
    return known;
}

std::string BodyWriter::write_value(std::size_t stage) {
    write(body_.stages[stage].value);
    return value_name(body_.stages[stage].value);
}

void BodyWriter::write(NodeId n) {
    if (written_[flag(n)]) return;
    const Node& node = body_.nodes[n];
    std::string names[3];
    for (int i = 0; i < loopir::scalar_arity(node.op); ++i) {
        write(node.operands[i]);
        names[i] = value_name(node.operands[i]);
    }
    line(value_name(n) + " = " + expression(n, names));
    written_[flag(n)] = true;
    made_.push_back(flag(n));
    if (divides(node)) write_fault(names[1] + " == 0", axes_[node.operands[1]], once_[n]);
}

std::string BodyWriter::expression(NodeId n, const std::string (&names)[3]) {
    const Node& node = body_.nodes[n];
    Expressions& expressions = text_.expressions();
    switch (node.op) {
        case ScalarOp::kConst: return constant_text(node);
        case ScalarOp::kParam: {
            const std::string bits = "tl.cast(" + text_.use(ArgumentKind::kNumber, node.index) + ", tl.int64)";
            if (!is_floating(node.dtype)) return expressions.cast(bits, DType::kI64, node.dtype);
            return expressions.cast("tl.cast(" + bits + ", tl.float64, bitcast=True)", DType::kF64, node.dtype);
        }
        case ScalarOp::kIndex: return "tl.cast(" + (exists(node.index) ? index_name(node.index) : "0") + ", tl.int64)";
        case ScalarOp::kLoad: return load(n);
        case ScalarOp::kRowValue: return result_name(node.index);
        case ScalarOp::kAccumulator: return name("acc");
        default: break;
    }
    // gelu's 1 + erf and 1 + tanh lose nothing where they are near 0.
    for (int i = 0; node.op == ScalarOp::kAdd && node.dtype == DType::kF32 && i < 2; ++i) {
        const Node& part = body_.nodes[node.operands[i]];
        const Node& one = body_.nodes[node.operands[1 - i]];
        if (one.op != ScalarOp::kConst || std::bit_cast<double>(one.constant_bits) != 1) continue;
        if (part.op == ScalarOp::kErf)
            return expressions.call(short_[n] ? "_short_erf_up" : "_erf_up", value_name(part.operands[0]));
        if (part.op == ScalarOp::kTanh && short_[n])
            return expressions.call("_short_tanh_up", value_name(part.operands[0]));
    }
    if (short_[n]) {
        if (const auto text = expressions.short_function(node.op, names)) return *text;
    }
    return expressions.apply(node, body_.nodes[node.operands[0]].dtype, names);
}

// ------------------------------------------------------------ memory

// The address of an access, of shape `least` at least. `tag` makes the names of its parts unique; `always`: it is
// wanted even in a row of no elements.
BodyWriter::Place BodyWriter::locate(const Access& access, const std::string& tag, Axes least, bool always) {
    Place out;
    std::vector<std::string> terms;
    if (!access.offset.is(0)) terms.push_back(text_.place(access.offset));
    bool outer_rows = false;
    for (std::uint32_t dim = 0; dim < body_.rank(); ++dim) {
        const IntRef& stride = access.strides[dim];
        if (stride.is(0)) continue;
        outer_rows = outer_rows || !exists(dim);
        if (!exists(dim)) continue;
        out.axes |= axes_of_dim(dim);
        terms.push_back(index_name(dim) + (stride.is(1) ? "" : " * " + text_.place(stride)));
    }
    Axes wanted = out.axes | least;
    for (const GatherTerm& gather : access.gathers) {
        out.axes |= axes_[gather.index];
        wanted |= axes_[gather.index];
    }
    if (access.mask != kNoNode) wanted |= axes_[access.mask];
    // Lanes that do not exist, and a row of no elements whose memory is not there, are not touched.
    for (int axis = 0; axis < 2; ++axis) {
        if (wanted & kAxis[axis]) out.masks.push_back(mask_name(axis));
    }
    if (outer_rows && !(wanted & kAxis[1])) out.masks.push_back(extent(layout_.axis_dim[1]) + " > 0");
    if (access.mask != kNoNode) {
        write(access.mask);
        out.masks.push_back(value_name(access.mask));
    }
    for (std::size_t g = 0; g < access.gathers.size(); ++g) {
        const GatherTerm& gather = access.gathers[g];
        write(gather.index);
        const std::string part = tag + "_" + std::to_string(g) + chunk_suffix(true), bound = text_.place(gather.extent);
        std::string at = value_name(gather.index);
        if (gather.wrap_negative) at = "tl.where(" + at + " < 0, " + at + " + " + bound + ", " + at + ")";
        line(name("at" + part) + " = " + at);
        at = name("at" + part);
        line(name("in" + part) + " = (" + at + " >= 0) & (" + at + " < " + bound + ")");
        terms.push_back(at + (gather.stride.is(1) ? "" : " * " + text_.place(gather.stride)));
    }
    if (!access.gathers.empty()) {
        std::vector<std::string> inside;
        for (std::size_t g = 0; g < access.gathers.size(); ++g)
            inside.push_back(name("in" + tag + "_" + std::to_string(g)) + chunk_suffix(true));
        const std::string all = name("in" + tag) + chunk_suffix(true);
        line(all + " = " + all_of(inside));
        std::vector<std::string> bad = out.masks;
        bad.push_back(all + " == 0");
        store_fault(std::move(bad), wanted, always);
        out.masks.push_back(all);
    }
    if (wanted != out.axes) terms.push_back("tl.zeros(" + shape_text(wanted) + ", tl.int32)");
    out.axes = wanted;
    out.pointer = text_.use(ArgumentKind::kBuffer, access.buffer);
    if (!terms.empty()) out.pointer += " + (" + sum_text(terms) + ")";
    return out;
}

std::string BodyWriter::load(NodeId n) {
    const Node& node = body_.nodes[n];
    const Access& access = body_.accesses[node.index];
    const Place at = locate(access, "_a" + std::to_string(node.index), kNoAxis, once_[n]);
    std::string text = "tl.load(" + at.pointer;
    if (!at.masks.empty()) text += ", mask=" + all_of(at.masks) + ", other=0";
    text += ")";
    return node.dtype == DType::kBool ? text + " != 0" : text;
}

void BodyWriter::store(std::size_t s) {
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

bool BodyWriter::is_loaded_behind(std::uint32_t buffer, std::uint32_t pass) const {
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
void BodyWriter::forget_loads() {
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

void BodyWriter::write_fault(const std::string& condition, Axes axes, bool always) {
    std::vector<std::string> bad;
    for (int axis = 0; axis < 2; ++axis) {
        if (axes & kAxis[axis]) bad.push_back(mask_name(axis));
    }
    bad.push_back(condition);
    store_fault(std::move(bad), axes, always);
}

void BodyWriter::store_fault(std::vector<std::string> conditions, Axes axes, bool always) {
    if (!layout_.elementwise && !always && !(axes & kAxis[1])) conditions.push_back("has_rows");
    std::string pointer = text_.use(ArgumentKind::kFault, 0);
    if (axes != kNoAxis) pointer += " + tl.zeros(" + shape_text(axes) + ", tl.int32)";
    line("tl.store(" + pointer + ", 1, mask=" + all_of(conditions) + ")");
}

// ------------------------------------------------------------ passes

void BodyWriter::write_pass(std::uint32_t pass) {
    pass_ = pass;
    std::vector<std::size_t> once, loop;
    for (std::size_t s = 0; s < body_.stages.size(); ++s) {
        if (layout_.pass[s] == pass) (body_.stages[s].per_row ? once : loop).push_back(s);
    }
    for (const std::size_t s : once) store(s);
    if (loop.empty()) return;
    if (layout_.elementwise || resident()) {
        for (const std::size_t s : loop) {
            if (body_.stages[s].kind == StageKind::kReduce) {
                reduce_resident(s);
                continue;
            }
            for (chunk_ = 0; chunk_ < static_cast<std::size_t>(names_.chunks); ++chunk_) store(s);
            chunk_ = 0;
        }
        return;
    }
    walk_row(loop);
    for (const std::size_t s : reduces_of(loop)) finish(s, row_name(s));
}

std::vector<std::size_t> BodyWriter::reduces_of(const std::vector<std::size_t>& stages) const {
    std::vector<std::size_t> out;
    for (const std::size_t s : stages) {
        if (body_.stages[s].kind == StageKind::kReduce) out.push_back(s);
    }
    return out;
}

// One walk over the row, or over this program's part of it.
void BodyWriter::walk_row(const std::vector<std::size_t>& stages) {
    for (const std::size_t s : stages) {
        write_needed(body_.stages[s], Level::kTile);
        if (body_.stages[s].kind == StageKind::kReduce) start_reduce(s);
    }
    const bool split = form_ == Form::kSplit;
    for (std::size_t i = 0; i < layout_.loops.size(); ++i) {
        const std::uint32_t dim = layout_.loops[i];
        const bool parts = split && i == 0;
        open("for " + index_name(dim) + " in tl.range(" + (parts ? "part_outer" : "0") + ", " + extent(dim) +
             (parts ? ", PARTS_OUTER):" : "):"));
    }
    const std::string& block = names_.block_1;
    open("for " + name("start") + " in tl.range(" + (split ? "part * " + block : "0") + ", " +
         extent(layout_.axis_dim[1]) + ", " + block + (split ? " * PARTS" : "") + "):");
    write_axis(1, name("start"));
    line(live_name() + " = " + mask_name(0) + " & " + mask_name(1));
    for (const std::size_t s : stages) {
        if (body_.stages[s].kind == StageKind::kStore)
            store(s);
        else
            step_reduce(s);
    }
    for (std::size_t i = 0; i <= layout_.loops.size(); ++i) close();
}

// ------------------------------------------------------------ rows in parts

void BodyWriter::write_part() {
    pass_ = 0;
    std::vector<std::size_t> loop;
    for (std::size_t s = 0; s < body_.stages.size(); ++s) {
        if (!body_.stages[s].per_row) loop.push_back(s);
    }
    walk_row(loop);
    const std::string parts = layout_.loops.empty() ? "PARTS" : "PARTS_ALL";
    line("places = (tile * BLOCK_0 + tl.arange(0, BLOCK_0))[:, None] * " + parts);
    const auto leave = [&](DType dtype, const std::string& value) {
        partials_.push_back(text_.scratch(dtype));
        line("tl.store(" + partials_.back() + " + (places + part_all), " + value + ")");
    };
    for (const std::size_t s : reduces_of(loop)) {
        const Combine combine = body_.stages[s].combine;
        const std::string function = text_.expressions().combine(combine, reduce_dtype(s));
        const std::string row = row_name(s);
        if (is_arg(combine)) {
            line("best" + std::to_string(s) + ", " + result_name(s) + " = tl.reduce((" + row + ", " + row +
                 "_at), 1, " + function + ", keep_dims=True)");
            leave(reduce_dtype(s), "best" + std::to_string(s));
            leave(DType::kI64, result_name(s));
        } else {
            leave(reduce_dtype(s), "tl.reduce(" + row + ", 1, " + function + ", keep_dims=True)");
        }
    }
}

// Every part is behind its barrier and its counting before the last one reads.
void BodyWriter::write_joined() {
    const std::string parts = layout_.loops.empty() ? "PARTS" : "PARTS_ALL";
    const std::string counters = text_.use(ArgumentKind::kCounters, 0);
    line("tl.debug_barrier()");
    line("ended = tl.atomic_add(" + counters + " + tile, 1, sem=\"acq_rel\", scope=\"gpu\")");
    open("if ended == " + parts + " - 1:");
    line("tl.debug_barrier()");
    line("each = places + tl.arange(0, " + parts + ")[None, :]");
    std::size_t next = 0;
    for (std::size_t s = 0; s < body_.stages.size(); ++s) {
        const Stage& stage = body_.stages[s];
        if (stage.kind != StageKind::kReduce) continue;
        const std::string row = "all" + std::to_string(s);
        line(row + " = tl.load(" + partials_[next++] + " + each, cache_modifier=\".cg\")");
        if (is_arg(stage.combine))
            line(row + "_at = tl.load(" + partials_[next++] + " + each, cache_modifier=\".cg\")");
        finish(s, row);
    }
    line("tl.store(" + counters + " + tile, 0)");
    pass_ = passes();
    for (std::size_t s = 0; s < body_.stages.size(); ++s) {
        if (body_.stages[s].per_row) store(s);
    }
    close();
}

// ------------------------------------------------------------ reductions

DType BodyWriter::reduce_dtype(std::size_t s) const { return dtype_of_reduce(body_, body_.stages[s]); }

// Position in the row space, in row-major order.
std::string BodyWriter::position() {
    std::string out;
    for (std::uint32_t dim = body_.parallel; dim < body_.rank(); ++dim) {
        if (!exists(dim)) continue;
        const std::string index = "tl.cast(" + index_name(dim) + ", tl.int64)";
        out = out.empty() ? index : "(" + out + ") * " + extent(dim) + " + " + index;
    }
    return out;
}

// The value of a stage over a block of the tile's shape, with the identity where there is no element.
std::string BodyWriter::block_value(std::size_t s) {
    const Stage& stage = body_.stages[s];
    write(stage.value);
    std::string value = value_name(stage.value);
    if (is_logical(stage.combine)) value = "tl.cast(" + value + ", tl.int32)";
    return "tl.where(" + live_name() + ", " + value + ", " +
           identity_text(stage.combine, body_.nodes[stage.value].dtype) + ")";
}

void BodyWriter::write_block(std::size_t s, const std::string& block) {
    const std::string typed = block_value(s);
    line(block + " = tl.cast(" + typed + ", " + std::string(dtype_text(reduce_dtype(s))) + ")");
    if (is_arg(body_.stages[s].combine)) line(block + "_at = tl.where(" + live_name() + ", " + position() + ", -1)");
}

void BodyWriter::finish(std::size_t s, const std::string& block) {
    const Combine combine = body_.stages[s].combine;
    const std::string function = text_.expressions().combine(combine, reduce_dtype(s));
    const std::string result = result_name(s);
    if (is_arg(combine)) {
        line(name("best" + std::to_string(s)) + ", " + result + " = tl.reduce((" + block + ", " + block + "_at), 1, " +
             function + ", keep_dims=True)");
        line(result + " = tl.maximum(" + result + ", 0)");
        return;
    }
    line(result + " = tl.reduce(" + block + ", 1, " + function + ", keep_dims=True)" +
         (is_logical(combine) ? " != 0" : ""));
}

void BodyWriter::reduce_resident(std::size_t s) {
    const std::string row = row_name(s);
    if (names_.chunks == 1) {
        write_block(s, row);
        finish(s, row);
        return;
    }
    for (chunk_ = 0; chunk_ < static_cast<std::size_t>(names_.chunks); ++chunk_) {
        const std::string block = chunk_ == 0 ? row : name("block" + std::to_string(s));
        write_block(s, block);
        if (chunk_ > 0) join(s, row, block);
    }
    chunk_ = 0;
    finish(s, row);
}

void BodyWriter::start_reduce(std::size_t s) {
    const Stage& stage = body_.stages[s];
    const std::string row = row_name(s), shape = shape_text(kBoth);
    line(row + " = tl.full(" + shape + ", " + identity_text(stage.combine, body_.nodes[stage.value].dtype) + ", " +
         std::string(dtype_text(reduce_dtype(s))) + ")");
    if (is_arg(stage.combine)) line(row + "_at = tl.full(" + shape + ", -1, tl.int64)");
}

void BodyWriter::step_reduce(std::size_t s) {
    const std::string block = name("block" + std::to_string(s));
    write_block(s, block);
    join(s, row_name(s), block);
}

void BodyWriter::join(std::size_t s, const std::string& row, const std::string& block) {
    const Combine combine = body_.stages[s].combine;
    const std::string function = text_.expressions().combine(combine, reduce_dtype(s));
    if (is_arg(combine))
        line(row + ", " + row + "_at = " + function + "(" + row + ", " + row + "_at, " + block + ", " + block + "_at)");
    else
        line(row + " = " + function + "(" + row + ", " + block + ")");
}

}  // namespace flexor::codegen::triton
