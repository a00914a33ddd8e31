// Steps of the tape that launch no kernel made here: guards and checks, reads, lists, float arithmetic, calls.
#include <algorithm>
#include <bit>
#include <utility>

#include "lower/lowerer.h"
#include "specialised/visit.h"
#include "support/diagnostic.h"

namespace flexor::lower {

std::uint32_t Lowerer::failure(DiagnosticId id, const Inst& inst, int constraint, std::string expected) {
    Failure f;
    f.id = id;
    f.pc = inst.pc;
    f.expected = std::move(expected);
    f.text = inst.text;
    if (inst.op != nullptr) {
        f.op = std::string(inst.op->name.value);
        const auto& constraints = inst.op->constraints.value;
        if (constraint >= 1 && static_cast<std::size_t>(constraint) <= constraints.size()) {
            f.constraint = "C" + std::to_string(constraint);
            f.text = std::string(constraints[static_cast<std::size_t>(constraint - 1)].text);
            f.id = constraints[static_cast<std::size_t>(constraint - 1)].id;
        }
    }
    exe_.failures.push_back(std::move(f));
    return static_cast<std::uint32_t>(exe_.failures.size() - 1);
}

void Lowerer::lower_guards() {
    slots_.open_scope();
    std::set<std::string> seen;
    for (const ops::Requirement& r : program_.guards) {
        std::string text =
            program_.env.to_string(r.a) + std::string(ops::spelling(r.relation)) + program_.env.to_string(r.b);
        if (!seen.insert(text).second) continue;
        executable::Check check;
        check.relation = r.relation;
        // The guard's own dims, not simplified: its facts are what the environment already assumes.
        check.a = slots_.value(r.a, exe_.guard_frame);
        check.b = slots_.value(r.b, exe_.guard_frame);
        check.or_one = r.or_one;
        exe_.guards.push_back(check);
        exe_.guard_texts.push_back(std::move(text));
    }
}

void Lowerer::lower_check(const Inst& inst) {
    if (inst.requirement) {
        const ops::Requirement& r = *inst.requirement;
        executable::Check check;
        check.relation = r.relation;
        // The check's own dims: simplified, it would be what the environment assumes because of it.
        check.a = slots_.value(r.a, frame());
        check.b = slots_.value(r.b, frame());
        check.or_one = r.or_one;
        const DiagnosticId id = inst.kind == InstKind::kAssert ? DiagnosticId::kAssertionFailed : r.id;
        check.diagnostic =
            failure(id, inst, r.constraint,
                    program_.env.to_string(r.a) + std::string(ops::spelling(r.relation)) + program_.env.to_string(r.b));
        step(Step::Kind::kCheck).index = static_cast<std::uint32_t>(exe_.checks.size());
        exe_.checks.push_back(check);
        return;
    }
    // An assertion on a tensor or a run-time scalar.
    const Reg reg = inst.operands[0];
    const specialised::Register& r = program_.registers[reg];
    executable::Check check;
    check.relation = ops::Relation::kNe;
    check.b = constant(0);
    if (r.type.strength == types::Strength::kScalar) {
        check.a = scalar_slot(reg);
    } else {
        const bool real = is_floating(r.type.type.dtype);
        const Slot slot = slots_.fresh();
        Step s;
        s.kind = real ? Step::Kind::kReadFloat : Step::Kind::kReadInt;
        s.buffer = buffer_slot(r.root);
        s.dtype = r.type.type.dtype;
        s.slot = slot;
        if (!r.type.type.offset.is_constant(0)) s.offset = value(r.type.type.offset);
        block().steps.push_back(s);
        check.a = slot;
    }
    check.diagnostic = failure(DiagnosticId::kAssertionFailed, inst, 0, "");
    step(Step::Kind::kCheck).index = static_cast<std::uint32_t>(exe_.checks.size());
    exe_.checks.push_back(check);
}

void Lowerer::lower_read(const Inst& inst) {
    const Reg reg = inst.operands[0];
    const specialised::Register& r = program_.registers[reg];
    Step s;
    s.kind = inst.kind == InstKind::kReadInt ? Step::Kind::kReadInt : Step::Kind::kReadFloat;
    s.buffer = buffer_slot(r.root);
    s.dtype = r.type.type.dtype;
    if (!r.type.type.offset.is_constant(0)) s.offset = value(r.type.type.offset);
    s.slot = inst.kind == InstKind::kReadInt ? slots_.symbol(inst.symbol) : scalar_slot(inst.results[0]);
    block().steps.push_back(s);
    after_read_ = true;
    late_frame_.reset();
}

void Lowerer::lower_list(const Inst& inst) {
    using specialised::ListQuery;
    using Kind = ListStep::Kind;
    const auto of_query = [](ListQuery query) {
        switch (query) {
            case ListQuery::kSize: return Kind::kSize;
            case ListQuery::kStride: return Kind::kStride;
            case ListQuery::kTotal: return Kind::kTotal;
            case ListQuery::kAlike: return Kind::kAlike;
        }
        return Kind::kSize;
    };
    ListStep list;
    const bool makes = inst.kind == InstKind::kListOf || inst.kind == InstKind::kListAppend;
    const std::size_t first = inst.operands.empty() || inst.kind == InstKind::kListOf ? 0 : 1;
    if (first == 1) list.list = list_slot(inst.operands[0]);
    list.axis = inst.index;
    switch (inst.kind) {
        case InstKind::kArgument:
            list.kind = Kind::kArgument;
            list.result = list_slot(inst.results[0]);
            list.argument = inst.index;
            break;
        case InstKind::kListOf: list.kind = Kind::kBuild; break;
        case InstKind::kListAppend: list.kind = Kind::kAppend; break;
        case InstKind::kListGet:
            list.kind = Kind::kGet;
            list.buffer = buffer_slot(inst.results[0]);
            break;
        case InstKind::kListQuery:
            list.kind = of_query(inst.query);
            list.slot = slots_.symbol(inst.symbol);
            break;
        default:
            list.kind = Kind::kJoin;
            list.new_axis = inst.new_axis;
            list.joined = tensor_ref(inst.results[0]);
            break;
    }
    if (list.kind == Kind::kGet || list.kind == Kind::kSize || list.kind == Kind::kStride) list.at = value(inst.dim);
    if (makes) {
        const specialised::ElementType& type = *program_.registers[inst.results[0]].list;
        list.result = list_slot(inst.results[0]);
        list.dtype = type.dtype;
        list.rank = static_cast<std::uint32_t>(type.rank);
        for (std::size_t i = first; i < inst.operands.size(); ++i)
            list.elements.push_back(tensor_ref(inst.operands[i]));
    }
    step(Step::Kind::kList).index = static_cast<std::uint32_t>(exe_.lists.size());
    exe_.lists.push_back(std::move(list));
    if (inst.kind == InstKind::kListQuery) {
        after_read_ = true;
        late_frame_.reset();
    }
}

void Lowerer::lower_real(const Inst& inst) {
    using specialised::RealOp;
    static constexpr std::array kOps = {FrameOp::kRealOfInt, FrameOp::kRealNeg, FrameOp::kRealAdd,
                                        FrameOp::kRealSub,   FrameOp::kRealMul, FrameOp::kRealDiv,
                                        FrameOp::kRealEq,    FrameOp::kRealLt,  FrameOp::kRealLe};
    const Slot a = inst.real == RealOp::kOfInt ? value(inst.dim) : scalar_slot(inst.operands[0]);
    const Slot b = inst.operands.size() == 2 ? scalar_slot(inst.operands[1]) : a;
    const Inst* divisor = inst.real == RealOp::kDiv ? producers_[inst.operands[1]] : nullptr;
    if (inst.real == RealOp::kDiv && (divisor == nullptr || divisor->kind != InstKind::kConst)) {
        executable::Check check;
        check.relation = ops::Relation::kEq;
        check.a = slots_.emit(FrameOp::kRealEq, b, constant(0), 0, frame());  // the bits of 0.0 are 0
        check.b = constant(0);
        check.diagnostic = failure(DiagnosticId::kDivisionByZero, inst, 0, "");
        step(Step::Kind::kCheck).index = static_cast<std::uint32_t>(exe_.checks.size());
        exe_.checks.push_back(check);
    }
    const Slot to = specialised::is_comparison(inst.real) ? slots_.symbol(inst.symbol) : scalar_slot(inst.results[0]);
    frame().insts.push_back({kOps[static_cast<std::size_t>(inst.real)], to, a, b, 0});
}

bool Lowerer::depends_on_reads(const Dim& d) const {
    std::vector<types::SymbolId> symbols;
    d.collect_symbols(symbols);
    for (auto s : symbols) {
        if (read_symbols_[block_].count(s) != 0) return true;
    }
    return false;
}

// Buffers and parameters as runtime/kernels/extern_kernels.h says.
Expected<void> Lowerer::lower_extern(KernelBuilder& builder, const Inst& inst) {
    const auto* rule = std::get_if<ops::ExternLower>(&inst.op->lower.value);
    loopir::Kernel& kernel = builder.kernel;
    kernel.kind = loopir::KernelKind::kExtern;
    kernel.extern_name = std::string(rule->kernel);
    if (inst.attrs.find("mode") != nullptr) kernel.extern_name += "." + inst.attrs.text("mode");
    executable::Launch call;
    const auto add = [&](Reg reg, bool written) {
        const types::TensorType& t = type(reg);
        kernel.buffers.push_back({program_.registers[reg].name, t.dtype, !written, written});
        call.buffers.push_back(buffer_slot(program_.registers[reg].root));
        call.params.push_back(value(t.offset));
        for (const Dim& d : t.sizes) call.params.push_back(value(d));
        for (const Dim& d : t.strides) call.params.push_back(value(d));
    };
    for (Reg reg : inst.operands) {
        if (reg == kNoReg || program_.registers[reg].type.strength == types::Strength::kScalar) {
            return Diagnostic(DiagnosticId::kOpNotCompiled)
                .op(std::string(inst.op->name.value))
                .found("a scalar operand");
        }
        add(reg, false);
    }
    for (Reg reg : inst.results) add(reg, true);
    for (const auto& [name, attribute] : inst.attrs.items()) {
        if (const auto* flag = std::get_if<bool>(&attribute)) call.params.push_back(constant(*flag ? 1 : 0));
    }
    kernel.param_count = static_cast<std::uint32_t>(call.params.size());
    call.kernel = static_cast<std::uint32_t>(exe_.kernels.size());
    call.fault = failure(DiagnosticId::kElementIndexOutOfRange, inst, 0, "") + 1;
    executable::KernelSlot slot;
    slot.ir = kernel;
    exe_.kernels.push_back(std::move(slot));
    step(Step::Kind::kLaunch).index = static_cast<std::uint32_t>(exe_.launches.size());
    exe_.launches.push_back(std::move(call));
    return {};
}

// The operands of a call on whole tensors, and the step that makes its sizes.
void Lowerer::begin_call(const Inst& inst) {
    executable::Call call;
    call.op = inst.op;
    call.dtypes = inst.dtypes;
    call.fallback = inst.text;
    call.pc = inst.pc;
    call.line = inst.line;
    for (Reg reg : inst.operands) {
        executable::CallOperand& operand = call.operands.emplace_back();
        call.strengths.push_back(reg == kNoReg ? types::Strength::kTensor : program_.registers[reg].type.strength);
        if (reg == kNoReg) continue;
        if (program_.registers[reg].type.strength != types::Strength::kScalar) {
            operand.kind = executable::CallOperand::Kind::kTensor;
            operand.tensor = tensor_ref(reg);
            continue;
        }
        operand.kind = type(reg).dtype == DType::kBool  ? executable::CallOperand::Kind::kBool
                       : type(reg).dtype == DType::kI64 ? executable::CallOperand::Kind::kInt
                                                        : executable::CallOperand::Kind::kFloat;
        const Inst* producer = producers_[reg];
        if (producer->kind == InstKind::kDimScalar) {
            operand.slot = value(producer->dim);
        } else if (operand.kind == executable::CallOperand::Kind::kFloat) {
            operand.slot = scalar_slot(reg);
        } else {
            const auto* integer = std::get_if<std::int64_t>(&producer->constant->value);
            operand.slot = constant(integer != nullptr ? *integer : std::get<bool>(producer->constant->value) ? 1 : 0);
        }
    }
    // What the frame knows of the attributes is put in by the run.
    for (const auto& [name, attribute] : inst.attrs.items()) {
        types::AttrValue kept = attribute;
        const auto settle = [&, &name = name](Dim& d, std::int32_t position) {
            d = program_.env.simplify(d);
            if (d.is_constant()) return;
            call.dims.push_back({name, position, value(d)});
            d = 0;
        };
        if (auto* dim = std::get_if<Dim>(&kept)) settle(*dim, -1);
        if (auto* list = std::get_if<types::DimList>(&kept)) {
            for (std::size_t i = 0; i < list->size(); ++i) settle((*list)[i], static_cast<std::int32_t>(i));
        }
        call.attrs.set(name, std::move(kept));
    }
    for (types::SymbolId s : inst.sizes) call.sizes.push_back(slots_.symbol(s));
    const auto index = static_cast<std::uint32_t>(exe_.calls.size());
    exe_.calls.push_back(std::move(call));
    if (inst.sizes.empty()) return;
    step(Step::Kind::kCallSizes).index = index;
    after_read_ = true;
    late_frame_.reset();
}

// The call itself, once there is memory for its results.
void Lowerer::finish_call(const Inst& inst) {
    executable::Call& call = exe_.calls.back();
    for (Reg reg : inst.results) call.results.push_back(tensor_ref(reg));
    step(Step::Kind::kCall).index = static_cast<std::uint32_t>(exe_.calls.size() - 1);
}

}  // namespace flexor::lower
