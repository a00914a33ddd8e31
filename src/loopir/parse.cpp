#include <algorithm>
#include <bit>
#include <cctype>
#include <limits>

#include "loopir/loopir.h"
#include "support/diagnostic.h"
#include "support/text.h"
#include "types/dtype.h"

namespace flexor::loopir {
namespace {

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }
bool is_name_character(char c) { return is_word_character(c) || c == ':' || c == '-'; }

// Recursive descent over characters; the first error wins and every later step does nothing.
class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {}

    Expected<Kernel> kernel() {
        Kernel kernel;
        expect("kernel");
        kernel.name = name();
        expect("(");
        while (!failed_ && !accept(")")) {
            if (!kernel.buffers.empty()) expect(",");
            kernel.buffers.push_back(buffer(kernel.buffers.size()));
        }
        expect("params");
        kernel.param_count = index();
        const std::string kind = word();
        if (kind == "row") {
            kernel.kind = KernelKind::kRow;
            body(kernel.body);
        } else if (kind == "contraction") {
            kernel.kind = KernelKind::kContraction;
            kernel.contraction = contraction(kernel.body);
        } else if (kind == "attention") {
            kernel.kind = KernelKind::kAttention;
            kernel.attention = attention();
            lines(kernel.body);
        } else if (kind == "extern") {
            kernel.kind = KernelKind::kExtern;
            kernel.extern_name = name();
        } else {
            fail(DiagnosticId::kUnknownMnemonic, kind, "row, contraction, attention or extern");
        }
        skip_space();
        if (!failed_ && at_ != text_.size()) fail_token("the end of the kernel");
        if (failed_) return std::move(*error_);
        return kernel;
    }

private:
    // ------------------------------------------------------------ characters

    void skip_space() {
        while (at_ < text_.size()) {
            if (text_[at_] == ';') {
                while (at_ < text_.size() && text_[at_] != '\n') ++at_;
            } else if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
                ++at_;
            } else {
                return;
            }
        }
    }

    void fail(DiagnosticId id, std::string found, std::string expected) {
        if (failed_) return;
        failed_ = true;
        const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
        error_ = std::make_unique<Diagnostic>(Diagnostic(id)
                                                  .source("line " + std::to_string(line))
                                                  .found(std::move(found))
                                                  .expected(std::move(expected)));
    }

    std::string peek() {
        skip_space();
        if (at_ >= text_.size()) return "";
        std::size_t end = at_ + 1;
        if (is_word_character(text_[at_])) {
            while (end < text_.size() && is_word_character(text_[end])) ++end;
        }
        return std::string(text_.substr(at_, end - at_));
    }

    void fail_token(std::string expected) {
        const std::string token = peek();
        fail(DiagnosticId::kUnexpectedToken, token.empty() ? "the end of the text" : "'" + token + "'",
             std::move(expected));
    }

    bool accept(std::string_view token) {
        if (failed_ || peek() != token) return false;
        at_ += token.size();
        return true;
    }

    void expect(std::string_view token) {
        if (!failed_ && !accept(token)) fail_token("'" + std::string(token) + "'");
    }

    std::string word() {
        if (failed_) return "";
        std::string token = peek();
        if (token.empty() || !is_word_character(token[0])) {
            fail_token("a word");
            return "";
        }
        at_ += token.size();
        return token;
    }

    // Free text: quoted, or characters of names; a colon at its end is not part of it.
    std::string name() {
        if (failed_) return "";
        skip_space();
        std::size_t end = at_;
        if (at_ < text_.size() && text_[at_] == '"') {
            ++end;
            while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
            if (end >= text_.size()) {
                fail(DiagnosticId::kBadLiteral, "a quoted text without an end", "'\"'");
                return "";
            }
            const auto unquoted = support::unquote(text_.substr(at_, end + 1 - at_));
            if (!unquoted) {
                fail(DiagnosticId::kBadLiteral, std::string(text_.substr(at_, end + 1 - at_)), "a quoted text");
                return "";
            }
            at_ = end + 1;
            return *unquoted;
        }
        while (end < text_.size() && is_name_character(text_[end])) ++end;
        if (end > at_ && text_[end - 1] == ':') --end;
        if (end == at_) {
            fail_token("a name");
            return "";
        }
        std::string out(text_.substr(at_, end - at_));
        at_ = end;
        return out;
    }

    // ------------------------------------------------------------ numbers and references

    std::int64_t integer() {
        if (failed_) return 0;
        const bool negative = accept("-");
        std::string token = word();
        const auto value = support::int_from_text(negative ? "-" + token : token);
        if (!value) fail(DiagnosticId::kBadLiteral, "'" + token + "'", "an integer");
        return value.value_or(0);
    }

    std::uint32_t unsigned_from(std::int64_t value) {
        if (value < 0 || value >= std::int64_t{std::numeric_limits<std::uint32_t>::max()}) {
            fail(DiagnosticId::kBadLiteral, std::to_string(value), "an index");
            return 0;
        }
        return static_cast<std::uint32_t>(value);
    }

    std::uint32_t index() { return unsigned_from(integer()); }

    // A letter and an index: v3.
    std::uint32_t reference(char letter) {
        if (failed_) return 0;
        const std::string token = peek();
        const auto value = token.size() > 1 && token[0] == letter
                               ? support::int_from_text(std::string_view(token).substr(1))
                               : std::nullopt;
        if (!value) {
            fail_token(std::string("a name such as ") + letter + "0");
            return 0;
        }
        at_ += token.size();
        return unsigned_from(*value);
    }

    bool at_reference(char letter) {
        const std::string token = peek();
        return token.size() > 1 && token[0] == letter &&
               support::int_from_text(std::string_view(token).substr(1)).has_value();
    }

    NodeId node() { return accept("none") ? kNoNode : reference('v'); }

    IntRef int_ref() {
        if (at_reference('p')) return IntRef::slot(reference('p'));
        return IntRef::constant(integer());
    }

    std::vector<IntRef> int_refs() {
        std::vector<IntRef> out;
        expect("[");
        while (!failed_ && !accept("]")) {
            if (!out.empty()) expect(",");
            out.push_back(int_ref());
        }
        return out;
    }

    std::uint32_t buffer_reference() {
        expect("%");
        return index();
    }

    DType dtype() {
        const std::string token = word();
        const auto out = types::dtype_from_name(token);
        if (!out) fail(DiagnosticId::kBadLiteral, "'" + token + "'", "a dtype");
        return out.value_or(DType::kF32);
    }

    std::int64_t constant_bits(DType dtype, const std::string& token) {
        if (!is_floating(dtype)) {
            const auto value = support::int_from_text(token);
            if (!value) fail(DiagnosticId::kBadLiteral, "'" + token + "'", "an integer");
            return value.value_or(0);
        }
        const auto value = support::double_from_text(token);
        if (!value) fail(DiagnosticId::kBadLiteral, "'" + token + "'", "a number");
        return std::bit_cast<std::int64_t>(value.value_or(0));
    }

    // ------------------------------------------------------------ parts

    BufferParam buffer(std::size_t position) {
        BufferParam out;
        if (buffer_reference() != position) fail_token("buffers in order");
        if (!accept(":")) {
            out.name = name();
            expect(":");
        }
        const std::string use = word();
        out.read = use == "in" || use == "inout";
        out.written = use == "out" || use == "inout";
        if (!out.read && !out.written && use != "unused") {
            fail(DiagnosticId::kUnexpectedToken, "'" + use + "'", "in, out, inout or unused");
        }
        out.dtype = dtype();
        return out;
    }

    Access access() {
        Access out;
        out.buffer = buffer_reference();
        if (accept("+")) out.offset = int_ref();
        out.strides = int_refs();
        while (accept("gather")) {
            GatherTerm term{};
            term.index = node();
            expect("*");
            term.stride = int_ref();
            expect("of");
            term.extent = int_ref();
            term.wrap_negative = accept("wrap");
            out.gathers.push_back(term);
        }
        if (accept("mask")) out.mask = node();
        return out;
    }

    void node_line(Body& body) {
        if (reference('v') != body.nodes.size()) fail_token("nodes in order");
        expect("=");
        const std::string mnemonic = word();
        Node out{};
        std::string literal;
        if (mnemonic == "const") {
            out.op = ScalarOp::kConst;
            if (accept("-")) literal = "-";
            literal += word();
            // The exponent's sign splits a number in two.
            if (!literal.empty() && literal.back() == 'e' && (accept("-") || accept("+"))) {
                literal += text_[at_ - 1];
                literal += word();
            }
        } else if (mnemonic == "param") {
            out.op = ScalarOp::kParam;
            out.index = reference('p');
        } else if (mnemonic == "index") {
            out.op = ScalarOp::kIndex;
            out.index = reference('d');
        } else if (mnemonic == "load") {
            out.op = ScalarOp::kLoad;
            Access loaded = access();
            const auto known = std::find(body.accesses.begin(), body.accesses.end(), loaded);
            out.index = static_cast<std::uint32_t>(known - body.accesses.begin());
            if (known == body.accesses.end()) body.accesses.push_back(std::move(loaded));
        } else if (mnemonic == "row_value") {
            out.op = ScalarOp::kRowValue;
            out.index = reference('s');
        } else if (mnemonic == "accumulator") {
            out.op = ScalarOp::kAccumulator;
        } else {
            out.op = operator_named(mnemonic);
            for (int i = 0; i < scalar_arity(out.op); ++i) {
                if (i != 0) expect(",");
                out.operands[i] = node();
            }
        }
        expect(":");
        out.dtype = dtype();
        if (out.op == ScalarOp::kConst && !failed_) out.constant_bits = constant_bits(out.dtype, literal);
        if (!failed_) body.nodes.push_back(out);
    }

    ScalarOp operator_named(const std::string& mnemonic) {
        std::vector<std::string_view> names;
#define X(enumerator, text, arity, klass)              \
    if (mnemonic == text) return ScalarOp::enumerator; \
    names.emplace_back(text);
#include "loopir/scalar_ops.def"
#undef X
        if (!failed_) {
            fail(DiagnosticId::kUnknownMnemonic, "'" + mnemonic + "'", "a scalar operator");
            error_->hint(support::near_miss_hint(mnemonic, names));
        }
        return ScalarOp::kAdd;
    }

    void stage_line(Body& body) {
        if (reference('s') != body.stages.size()) fail_token("stages in order");
        expect("=");
        Stage out{};
        if (accept("reduce")) {
            out.kind = StageKind::kReduce;
            const std::string combine = word();
            bool known = false;
            for (int i = 0; i <= static_cast<int>(Combine::kArgMin); ++i) {
                if (combine != combine_name(static_cast<Combine>(i))) continue;
                out.combine = static_cast<Combine>(i);
                known = true;
            }
            if (!known) fail(DiagnosticId::kUnknownMnemonic, "'" + combine + "'", "a reduction");
        } else {
            expect("store");
            out.kind = StageKind::kStore;
            out.per_row = accept("per_row");
            out.target = access();
        }
        out.value = node();
        if (!failed_) body.stages.push_back(std::move(out));
    }

    void lines(Body& body) {
        while (!failed_) {
            if (at_reference('v')) {
                node_line(body);
            } else if (at_reference('s')) {
                stage_line(body);
            } else {
                return;
            }
        }
    }

    void body(Body& body) {
        expect("parallel");
        body.extents = int_refs();
        body.parallel = static_cast<std::uint32_t>(body.extents.size());
        expect("row");
        for (const IntRef& extent : int_refs()) body.extents.push_back(extent);
        lines(body);
    }

    MatrixOperand matrix(DType& element) {
        MatrixOperand out;
        out.buffer = buffer_reference();
        out.packed = accept("packed");
        expect(":");
        element = dtype();
        if (accept("+")) out.offset = int_ref();
        out.batch_strides = int_refs();
        expect("row");
        out.row_stride = int_ref();
        expect("col");
        out.col_stride = int_ref();
        return out;
    }

    Contraction contraction(Body& epilogue) {
        Contraction out{};
        expect("batch");
        out.batch_dims = index();
        expect("m");
        out.m = int_ref();
        expect("n");
        out.n = int_ref();
        expect("k");
        out.k = int_ref();
        expect("accumulate");
        out.accumulator = dtype();
        expect("a");
        out.a = matrix(out.a_dtype);
        expect("b");
        out.b = matrix(out.b_dtype);
        if (accept("prologue")) {
            body(out.prologue.emplace());
            expect("end");
        }
        expect("epilogue");
        body(epilogue);
        return out;
    }

    StridedOperand strided() {
        StridedOperand out;
        out.buffer = buffer_reference();
        if (accept("+")) out.offset = int_ref();
        out.strides = int_refs();
        return out;
    }

    Attention attention() {
        Attention out{};
        out.dtype = dtype();
        const std::pair<const char*, IntRef*> extents[] = {
            {"batch", &out.batch},   {"heads", &out.heads},       {"kv_heads", &out.kv_heads},  {"q_len", &out.q_len},
            {"kv_len", &out.kv_len}, {"head_dim", &out.head_dim}, {"value_dim", &out.value_dim}};
        for (const auto& [name, extent] : extents) {
            expect(name);
            *extent = int_ref();
        }
        expect("scale");
        if (!accept("default")) out.scale = node();
        const std::pair<const char*, StridedOperand*> operands[] = {
            {"q", &out.q}, {"k", &out.k}, {"v", &out.v}, {"out", &out.out}};
        for (const auto& [name, operand] : operands) {
            expect(name);
            *operand = strided();
        }
        expect("mask");
        const std::string kind = word();
        if (kind == "causal") {
            out.mask_kind = MaskKind::kCausal;
        } else if (kind == "boolean") {
            out.mask_kind = MaskKind::kBoolean;
        } else if (kind == "additive") {
            out.mask_kind = MaskKind::kAdditive;
        } else if (kind != "none") {
            fail(DiagnosticId::kUnexpectedToken, "'" + kind + "'", "none, causal, boolean or additive");
        }
        if (!failed_ && peek() == "%") out.mask = strided();
        if (accept("lengths")) out.lengths = strided();
        if (accept("fully_masked")) {
            expect("nan");
            out.fully_masked = FullyMasked::kNan;
        }
        return out;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    bool failed_ = false;
    std::unique_ptr<Diagnostic> error_;
};

}  // namespace

Expected<Kernel> parse(std::string_view text) { return Parser(text).kernel(); }

}  // namespace flexor::loopir
