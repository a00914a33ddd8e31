#include "vm/tape.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "loopir/index_fault.h"
#include "support/check.h"
#include "support/diagnostic.h"
#include "support/text.h"
#include "tensor/element.h"
#include "vm/device_graphs.h"
#include "vm/output_memory.h"

namespace flexor::vm {

using executable::Block;
using executable::BufferSlot;
using executable::BufferSource;
using executable::Executable;
using executable::Failure;
using executable::kNoSlot;
using executable::OutValue;
using executable::Step;
using executable::TensorRef;
using executable::Terminator;

namespace {

class Tape {
public:
    Tape(const Entry& entry, const LiveValues& live, Scratch& scratch, TapeContext& context, TapeResult& result)
        : entry_(entry),
          e_(*entry.executable),
          live_(live),
          scratch_(scratch),
          context_(context),
          result_(result),
          device_(context.device),
          memory_(scratch.owned, *context.cache),
          outputs_(context.outputs, context.call, context.output_pool) {}

    ~Tape() { scratch_.call.forget(); }

    void run(std::vector<Value>& values) {
        frame_ = scratch_.frame.ensure(e_.frame_slots + 1);
        std::copy_n(scratch_.key.frame.data(), scratch_.key.frame.size(), frame_);
        const std::size_t buffers = entry_.buffers.size();
        buffers_ = scratch_.buffers.ensure(buffers + 1);
        owners_ = scratch_.owners.ensure(buffers + 1);
        if (buffers > 0) {
            std::memcpy(buffers_, entry_.buffers.data(), buffers * sizeof(void*));
            std::memcpy(owners_, entry_.owners.data(), buffers * sizeof(std::int32_t));
        }
        for (const Entry::ArgumentSlot& slot : entry_.arguments)
            buffers_[slot.buffer] = scratch_.key.tensors[slot.tensor]->data();
        launch_buffers_ = scratch_.launch_buffers.ensure(entry_.max_buffers + 1);
        launch_params_ = scratch_.params.ensure(entry_.max_params + 1);
        if (e_.packs > 0 && device_ == nullptr) packs_.emplace(scratch_.packs, e_.packs, *context_.cache);
        scratch_.visited.assign(e_.blocks.size(), false);
        if (e_.list_slots > 0) lists_.emplace(scratch_.lists, e_.list_slots, memory_);
        if (entry_.uses_arena && device_ == nullptr) arena_.emplace(context_.arena, context_.cache->shared_pool());

        std::uint32_t index = 0;
        for (;;) {
            const Block& block = e_.blocks[index];
            const bool again = scratch_.visited[index];
            scratch_.visited[index] = true;
            returning_ = &block.terminator;
            bool done = false;
            if (!enter(block, again)) return;
            if (entry_.graphs != nullptr && !device_->is_profiled() && !run_graph(block, entry_.outputs[index], done))
                return;
            if (!done && !run_steps(block, again, index)) return;
            const Terminator& end = block.terminator;
            switch (end.kind) {
                case Terminator::Kind::kJump: index = jump(end.jumps[0]); continue;
                case Terminator::Kind::kBranch: index = jump(end.jumps[taken(end) ? 0 : 1]); continue;
                case Terminator::Kind::kReturn:
                    for (const OutValue& value : end.values) values.push_back(make(value));
                    result_.end = TapeEnd::kReturned;
                    return;
                case Terminator::Kind::kExit: {
                    const executable::Exit& exit = e_.exits[end.exit];
                    result_.locals.clear();
                    result_.stack.clear();
                    for (const OutValue& value : exit.locals) result_.locals.push_back(make(value));
                    for (const OutValue& value : exit.stack) result_.stack.push_back(make(value));
                    result_.pc = exit.pc;
                    result_.reason = &exit.reason;
                    result_.end = TapeEnd::kExited;
                    return;
                }
            }
        }
    }

private:
    // ------------------------------------------------------------ ends

    bool fail(Diagnostic diagnostic, std::int32_t pc) {
        result_.end = TapeEnd::kFailed;
        result_.error =
            std::make_unique<Diagnostic>(located(std::move(diagnostic), *context_.module, context_.function, pc));
        return false;
    }

    bool fail(const Failure& failure, std::string found) { return fail(raised(failure, std::move(found)), failure.pc); }

    // What the device refused: a kernel can be done without, and a limit of the session kept op by op, as long as nothing
    // has happened. Where the device itself is full, copies on the host would take minutes and their results find no room.
    bool refuse(Diagnostic error, std::uint64_t bytes, const std::string& what) {
        const DiagnosticId id = error.id();
        const bool limit = id == DiagnosticId::kHardMemoryLimit;
        const bool kernel = id == DiagnosticId::kNoCodeGenerator || id == DiagnosticId::kNoKernelCompiler ||
                            id == DiagnosticId::kKernelCompilerFailed;
        if (effects_done_ || !(limit || kernel)) {
            if (error.where().operand.empty()) error.operand(what);
            return fail(std::move(error), e_.pc);
        }
        result_.end = TapeEnd::kRefused;
        result_.refused_bytes = limit ? bytes : 0;
        if (kernel) result_.refusal = "no_device_kernel " + error.code();
        return false;
    }

    bool refuse(std::uint64_t bytes, const std::string& what) {
        const auto& limits = context_.cache->pool().options();
        if (!effects_done_) {
            result_.end = TapeEnd::kRefused;
            result_.refused_bytes = bytes;
            return false;
        }
        const bool limited = limits.hard_limit != 0;
        Diagnostic diagnostic(limited ? DiagnosticId::kHardMemoryLimit : DiagnosticId::kOutOfMemory);
        diagnostic.operand(what).found(support::text_from_bytes(bytes) + " more");
        if (limited)
            diagnostic.expected("soft limit " + support::text_from_bytes(limits.soft_limit) + ", hard limit " +
                                support::text_from_bytes(limits.hard_limit));
        return fail(std::move(diagnostic), e_.pc);
    }

    bool stopped() { return fail(Diagnostic(DiagnosticId::kInterrupted), e_.pc); }

    bool overflow() {
        return fail(Diagnostic(DiagnosticId::kSizeOverflow).operand("a size or offset of the region"), e_.pc);
    }

    // ------------------------------------------------------------ blocks

    bool enter(const Block& block, bool again) {
        if (block.loop_head ? context_.stop->poll() : context_.stop->stopped()) return stopped();
        if (!again && !executable::run_frame(block.once, frame_, true)) return overflow();
        if (!executable::run_frame(block.frame, frame_, true)) return overflow();
        return true;
    }

    bool reserve(const Block& block) {
        if (block.arena_bytes == kNoSlot) return true;
        const std::int64_t bytes = frame_[block.arena_bytes];
        if (bytes < 0) return overflow();
        char* base = nullptr;
        if (device_ != nullptr) {
            if (!reserve_on_device(bytes, block)) return false;
            base = static_cast<char*>(device_arena_.data());
        } else {
            base = static_cast<char*>(arena_->reserve(static_cast<std::size_t>(bytes)));
        }
        if (base == nullptr && bytes > 0)
            return refuse(static_cast<std::uint64_t>(bytes), arena_text(e_, block, frame_));
        for (const executable::Planned& planned : block.arena) {
            set_owner(planned.buffer, kNoOwner);
            buffers_[planned.buffer] = base + frame_[planned.offset];
        }
        return true;
    }

    // Kernels of the block before may still use the old memory: it is reused behind them.
    bool reserve_on_device(std::int64_t bytes, const Block& block) {
        if (device_arena_.defined() && device_arena_.size(0) >= bytes) return true;
        device_arena_ = Tensor();
        auto memory = device_->bytes(bytes);
        if (!memory)
            return refuse(std::move(memory).error(), static_cast<std::uint64_t>(bytes), arena_text(e_, block, frame_));
        device_arena_ = *std::move(memory);
        return true;
    }

    // Everything but the launches happens before them; where the graph turns out not to be this call's, the steps begin anew.
    bool run_graph(const Block& block, const std::vector<const TensorRef*>& outputs, bool& done) {
        auto graph = entry_.graphs->find(scratch_.key.frame.data(), buffers_, device_->stream());
        if (graph == nullptr) return true;
        if (context_.stop->stopped()) return stopped();
        for (std::size_t i = 0; i < block.steps.size(); ++i) {
            const Step& step = block.steps[i];
            if (step.kind == Step::Kind::kFrame && !executable::run_frame(e_.frames[step.index], frame_, true))
                return overflow();
            if (step.kind == Step::Kind::kCheck && !executable::check_holds(e_.checks[step.index], frame_)) return true;
            if (step.kind != Step::Kind::kAllocate || allocate(step, outputs[i])) continue;
            if (result_.end != TapeEnd::kRefused) return false;
            // With the memory that the graph held.
            graph = nullptr;
            outputs_.reset();
            return true;
        }
        auto launched = device_->launch(*graph, frame_, buffers_);
        if (!launched) return fail(std::move(launched).error(), e_.pc);
        done = *launched;
        if (!done) {
            outputs_.reset();
            return true;
        }
        for (std::size_t i = 0; i < e_.launches.size(); ++i) {
            if (entry_.writes_source[i]) note_writes(e_.launches[i]);
        }
        for (const Step& step : block.steps) {
            if (step.kind != Step::Kind::kRelease) continue;
            set_owner(step.buffer, kNoOwner);
            buffers_[step.buffer] = nullptr;
        }
        return true;
    }

    bool taken(const Terminator& end) const {
        const std::int64_t word = frame_[end.condition];
        return end.float_condition ? std::bit_cast<double>(word) != 0.0 : word != 0;
    }

    std::uint32_t jump(const executable::Jump& jump) {
        if (!jump.slots.empty()) {
            std::int64_t* moved = scratch_.moved.ensure(entry_.max_moves);
            for (std::size_t i = 0; i < jump.slots.size(); ++i) moved[i] = frame_[jump.slots[i].from];
            for (std::size_t i = 0; i < jump.slots.size(); ++i) frame_[jump.slots[i].to] = moved[i];
        }
        if (!jump.buffers.empty()) {
            auto* addresses = reinterpret_cast<void**>(scratch_.moved.ensure(entry_.max_moves));
            std::int32_t* owners = scratch_.moved_owners.ensure(entry_.max_moves);
            for (std::size_t i = 0; i < jump.buffers.size(); ++i) {
                addresses[i] = buffers_[jump.buffers[i].from];
                owners[i] = owner_of(jump.buffers[i].from, jump.buffers[i].is_view);
                memory_.retain(owners[i]);
            }
            for (std::size_t i = 0; i < jump.buffers.size(); ++i) {
                const BufferSlot to = jump.buffers[i].to;
                memory_.release(std::exchange(owners_[to], owners[i]));
                buffers_[to] = addresses[i];
            }
        }
        if (!jump.lists.empty()) lists_->move(jump.lists);
        return jump.block;
    }

    // ------------------------------------------------------------ owned memory

    void set_owner(BufferSlot slot, std::int32_t owner) {
        memory_.retain(owner);
        memory_.release(std::exchange(owners_[slot], owner));
    }

    // ------------------------------------------------------------ steps

    bool run_steps(const Block& block, bool again, std::uint32_t index) {
        if (!reserve(block)) return false;
        const bool first = device_ != nullptr && !entry_.prefetched[index].exchange(true, std::memory_order_relaxed);
        return steps(block, again, first, entry_.outputs[index]);
    }

    bool steps(const Block& block, bool again, bool first, const std::vector<const TensorRef*>& outputs) {
        const std::size_t count = block.steps.size();
        for (std::size_t i = 0; i < count; ++i) {
            const Step& step = block.steps[i];
            if (first && (i == 0 || sets_numbers(block.steps[i - 1]))) prefetch(block, i);
            if (again && step.once) continue;
            switch (step.kind) {
                case Step::Kind::kLaunch:
                    if (step.unless_grown && grown_) break;
                    if (!launch(step.index)) return false;
                    break;
                case Step::Kind::kCallSizes: {
                    const executable::Call& call = e_.calls[step.index];
                    if (!called(call, [&] { return settle(call); })) return false;
                    break;
                }
                case Step::Kind::kCall: {
                    const executable::Call& call = e_.calls[step.index];
                    if (!called(call, [&] { return run_call(call); })) return false;
                    break;
                }
                case Step::Kind::kAllocate:
                    if (!allocate(step, outputs[i])) return false;
                    break;
                case Step::Kind::kGrow:
                    grown_ = grow(step);
                    if (!grown_ && !allocate(step, nullptr)) return false;
                    break;
                case Step::Kind::kFrame:
                    if (!executable::run_frame(e_.frames[step.index], frame_, true)) return overflow();
                    break;
                case Step::Kind::kCheck: {
                    const executable::Check& check = e_.checks[step.index];
                    if (executable::check_holds(check, frame_)) break;
                    return fail(e_.failures[check.diagnostic],
                                std::to_string(frame_[check.a]) + " and " + std::to_string(frame_[check.b]));
                }
                case Step::Kind::kReadInt:
                    if (device_ != nullptr) {
                        if (!read_from_device(step)) return false;
                        break;
                    }
                    frame_[step.slot] = read_integer(step.dtype, buffers_[step.buffer], element(step));
                    break;
                case Step::Kind::kReadFloat:
                    if (device_ != nullptr) {
                        if (!read_from_device(step)) return false;
                        break;
                    }
                    frame_[step.slot] =
                        std::bit_cast<std::int64_t>(read_real(step.dtype, buffers_[step.buffer], element(step)));
                    break;
                case Step::Kind::kRelease:
                    set_owner(step.buffer, kNoOwner);
                    buffers_[step.buffer] = nullptr;
                    break;
                case Step::Kind::kList:
                    if (!list(e_.lists[step.index])) return false;
                    break;
            }
        }
        return true;
    }

    std::int64_t element(const Step& step) const { return step.offset == kNoSlot ? 0 : frame_[step.offset]; }

    // Waits for one element.
    bool read_from_device(const Step& step) {
        alignas(8) char item[8] = {};
        const std::size_t bytes = dtype_size(step.dtype);
        const auto* from =
            static_cast<const char*>(buffers_[step.buffer]) + element(step) * static_cast<std::int64_t>(bytes);
        if (auto done = device_->read(item, from, bytes); !done) return fail(std::move(done).error(), e_.pc);
        frame_[step.slot] = step.kind == Step::Kind::kReadInt
                                ? read_integer(step.dtype, item, 0)
                                : std::bit_cast<std::int64_t>(read_real(step.dtype, item, 0));
        return true;
    }

    bool launch_on_device(std::uint32_t index) {
        const executable::Launch& launch = e_.launches[index];
        const executable::KernelSlot& kernel = e_.kernels[launch.kernel];
        auto done = device_->launch(*kernel.launcher, kernel.ir, launch_buffers_, launch.buffers.size(), launch_params_,
                                    entry_.fault_words[index]);
        if (!done) return refuse(std::move(done).error(), 0, kernel.ir.name);
        if (*done != nullptr && context_.telemetry != nullptr) {
            const std::string& name = context_.module->functions[static_cast<std::size_t>(context_.function)].name;
            context_.telemetry->record_not_compiled(
                runtime::NotCompiled::kFailed, name, 0,
                kernel.ir.name + ": a variant, in whose place another one runs: " + (*done)->to_string(), 0);
        }
        if (entry_.writes_source[index]) note_writes(launch);
        return true;
    }

    void fill_launch(const executable::Launch& launch) {
        for (std::size_t i = 0; i < launch.buffers.size(); ++i) launch_buffers_[i] = buffers_[launch.buffers[i]];
        for (std::size_t i = 0; i < launch.params.size(); ++i) launch_params_[i] = frame_[launch.params[i]];
    }

    static bool sets_numbers(const Step& step) {
        return step.kind == Step::Kind::kCallSizes || step.kind == Step::Kind::kReadInt ||
               step.kind == Step::Kind::kReadFloat || step.kind == Step::Kind::kFrame || step.kind == Step::Kind::kList;
    }

    // The kernels of a block are compiled beside each other: those from a step on whose numbers are known by then.
    void prefetch(const Block& block, std::size_t from) {
        for (std::size_t i = from; i < block.steps.size() && !sets_numbers(block.steps[i]); ++i) {
            const Step& step = block.steps[i];
            if (step.kind != Step::Kind::kLaunch) continue;
            const executable::Launch& launch = e_.launches[step.index];
            fill_launch(launch);
            device_->prefetch(*e_.kernels[launch.kernel].launcher, launch_buffers_, launch.buffers.size(),
                              launch_params_);
        }
    }

    bool launch(std::uint32_t index) {
        const executable::Launch& launch = e_.launches[index];
        if (launched_++ == 0 ? context_.stop->stopped() : context_.stop->poll()) return stopped();
        fill_launch(launch);
        if (device_ != nullptr) return launch_on_device(index);
        const runtime::KernelHandle& kernel = *e_.kernels[launch.kernel].handle;
        void* workspace = nullptr;
        const std::size_t bytes = kernel.workspace_bytes(launch_params_);
        if (bytes > 0) {
            if (!workspace_) workspace_.emplace(context_.workspace, context_.cache->shared_pool());
            workspace = workspace_->reserve(bytes);
            if (workspace == nullptr) return refuse(bytes, "workspace of " + e_.kernels[launch.kernel].ir.name);
        }
        const runtime::StopScope scope(context_.stop, runtime::StopScope::Role::kOwner);
        const void* packed = launch.pack == 0 ? nullptr
                                              : packs_->find(launch.pack - 1, e_.kernels[launch.kernel].ir,
                                                             launch_buffers_, launch_params_);
        if (entry_.writes_source[index]) {
            if (!keep_targets(launch)) return false;
            note_writes(launch);
        }
        std::int32_t fault = runtime::kNoFault;
        const std::uint64_t start = context_.profile != nullptr ? runtime::now_ns() : 0;
        kernel.launch({launch_buffers_, launch_params_, workspace, &fault, bytes, packed});
        if (context_.profile != nullptr) {
            const loopir::Kernel& ir = e_.kernels[launch.kernel].ir;
            context_.profile->add(ir.name, loopir::work_of(ir, launch_params_),
                                  static_cast<double>(runtime::now_ns() - start) * 1e-9);
        }
        context_.shard->launches.add();
        if (context_.stop->stopped()) return stopped();
        if (fault == runtime::kOutOfMemory) {
            return refuse(kernel.workspace_bytes(launch_params_), "workspace of " + e_.kernels[launch.kernel].ir.name);
        }
        return fault == runtime::kNoFault || launch.fault == 0 || stumble(launch);
    }

    Expected<void> settle(const executable::Call& call) {
        if (device_ == nullptr) return scratch_.call.settle(call, frame_, buffers_);
        FLEXOR_ASSIGN(void* const* copies, device_->begin_call(call, frame_, buffers_, true));
        return scratch_.call.settle(call, frame_, copies);
    }

    Expected<void> run_call(const executable::Call& call) {
        if (call.op->effects.value == ops::Effects::kWritesFirst) FLEXOR_TRY(begin_write(call));
        if (device_ == nullptr) return scratch_.call.run(call, frame_, buffers_);
        FLEXOR_ASSIGN(void* const* copies, device_->begin_call(call, frame_, buffers_, call.sizes.empty()));
        FLEXOR_TRY(scratch_.call.run(call, frame_, copies));
        return device_->end_call(call, frame_, buffers_);
    }

    Expected<void> begin_write(const executable::Call& call) {
        const TensorRef& target = call.operands[0].tensor;
        const std::int32_t owner = owners_[target.buffer];
        if (!is_callers(owner)) return {};
        if (context_.journal != nullptr) {
            FLEXOR_ASSIGN(const Tensor part, scratch_.call.written(call, frame_, buffers_));
            const Tensor kept = make_tensor(target).view(part.data(), part.dtype(), part.sizes(), part.strides());
            if (!context_.journal->keep(kept)) return Diagnostic(DiagnosticId::kOutOfMemory).operand(kKept);
        }
        effects_done_ = true;
        note_write(owner);
        return {};
    }

    // Runs a part of a call.
    template <class F>
    bool called(const executable::Call& call, F&& f) {
        if (launched_++ == 0 ? context_.stop->stopped() : context_.stop->poll()) return stopped();
        const bool recorded = (device_ != nullptr || !call.fallback.empty()) && context_.telemetry != nullptr;
        const std::uint64_t start = recorded || context_.profile != nullptr ? runtime::now_ns() : 0;
        Expected<void> done = [&] {
            const runtime::StopScope scope(context_.stop, runtime::StopScope::Role::kOwner);
            return f();
        }();
        if (context_.stop->stopped()) return stopped();
        if (!done) {
            Diagnostic error = std::move(done).error();
            if (error.where().op.empty()) error.op(std::string(call.op->name.value));
            return fail(std::move(error), call.pc);
        }
        if (context_.profile != nullptr) {
            const std::string& name = context_.module->functions[static_cast<std::size_t>(context_.function)].name;
            context_.profile->add(
                name + ":" + std::to_string(call.line) + ":" + std::string(call.op->name.value) + " (a call)", {},
                static_cast<double>(runtime::now_ns() - start) * 1e-9);
        }
        if (recorded) {
            const bytecode::Function& function =
                context_.module->functions[static_cast<std::size_t>(context_.function)];
            context_.telemetry->record_fallback(*context_.shard, call.op->name.value,
                                                call.fallback.empty() ? "no_device_kernel" : call.fallback,
                                                function.name, call.line, runtime::now_ns() - start);
        }
        return true;
    }

    // Fails for what a launch stumbled over, while its buffers are there to be asked.
    bool stumble(const executable::Launch& launch) {
        Failure failure = e_.failures[launch.fault - 1];
        std::string found;
        if (failure.id == DiagnosticId::kElementIndexOutOfRange) {
            const loopir::EvalArgs args{.buffers = launch_buffers_, .params = launch_params_};
            if (const auto index = loopir::find_index_fault(e_.kernels[launch.kernel].ir, args)) {
                found = std::to_string(index->index);
                failure.expected = "an index in [0, " + std::to_string(index->extent) + ")";
            }
        }
        return fail(failure, std::move(found));
    }

    // Whose memory it is: an argument's, or a tensor's that an argument holds.
    bool is_callers(std::int32_t owner) {
        if (owner >= 0) return memory_.at(owner).callers;
        return owner <= source_owner(0) && e_.sources[source_slot(owner)].kind == BufferSource::Kind::kArgument;
    }

    const Tensor& tensor_of_caller(std::int32_t owner) {
        return owner >= 0 ? memory_.at(owner).tensor : *scratch_.key.tensors[e_.sources[source_slot(owner)].index];
    }

    // Whose memory the slot has. A view of a tensor of the caller's is not that tensor, also where it shows the whole of
    // it: it has an owner of its own.
    std::int32_t owner_of(BufferSlot slot, bool is_view) {
        const std::int32_t owner = owners_[slot];
        if (!is_view || !is_callers(owner)) return owner;
        const Tensor& tensor = tensor_of_caller(owner);
        if (tensor.is_view()) return owner;
        const std::int32_t other =
            memory_.add(tensor.view(tensor.data(), tensor.dtype(), tensor.sizes(), tensor.strides()));
        memory_.at(other).callers = true;
        return other;
    }

    static constexpr const char* kKept = "a copy of what is overwritten";

    bool keep_targets(const executable::Launch& launch) {
        if (context_.journal == nullptr) return true;
        for (const TensorRef& target : launch.writes) {
            if (!is_callers(owners_[target.buffer]) || context_.journal->keep(make_tensor(target))) continue;
            return refuse(0, kKept);
        }
        return true;
    }

    // The launch is about to write to memory that the caller sees.
    void note_writes(const executable::Launch& launch) {
        effects_done_ = true;
        const loopir::Kernel& kernel = e_.kernels[launch.kernel].ir;
        for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
            if (kernel.buffers[i].written) note_write(owners_[launch.buffers[i]]);
        }
    }

    void note_write(std::int32_t owner) {
        if (is_callers(owner)) tensor_of_caller(owner).note_write();
    }

    // What grows at every pass of a loop gets room for more, so that it is copied every now and then. Only memory that
    // nobody else holds: the slot that is about to be set may hold it from the pass before.
    bool grow(const Step& step) {
        if (device_ != nullptr) return false;
        const std::int32_t owner = owners_[step.from];
        if (owner < 0 || frame_[step.slot] != 1) return false;
        const Owned& owned = memory_.at(owner);
        const std::int32_t stale = owners_[step.buffer] == owner ? 1 : 0;
        if (owned.block.data == nullptr || owned.block.data != buffers_[step.from] || owned.references != 1 + stale)
            return false;
        const auto bytes = static_cast<std::size_t>(frame_[step.bytes]);
        if (frame_[step.bytes] < 0) return false;
        if (bytes <= owned.block.capacity) {
            set_owner(step.buffer, owner);
            buffers_[step.buffer] = owned.block.data;
            return true;
        }
        const runtime::Block block = context_.cache->allocate(bytes + bytes / 2);
        if (block.data == nullptr) return false;
        std::memcpy(block.data, owned.block.data, static_cast<std::size_t>(frame_[step.kept]));
        set_owner(step.buffer, memory_.add(block));
        buffers_[step.buffer] = block.data;
        return true;
    }

    bool allocate(const Step& step, const TensorRef* result) {
        const std::int64_t bytes = frame_[step.bytes];
        if (bytes < 0) return overflow();
        if (device_ != nullptr) {
            const Tensor given = step.output ? outputs_.take(*returning_, result, frame_) : Tensor();
            auto memory = given.defined() ? Expected<Tensor>(given)
                                          : outputs_.make_on(*device_, bytes, step.output ? result : nullptr, frame_);
            if (!memory)
                return refuse(std::move(memory).error(), static_cast<std::uint64_t>(bytes),
                              buffer_text(e_, step.buffer));
            buffers_[step.buffer] = memory->data();
            set_owner(step.buffer, memory_.add(*std::move(memory)));
            return true;
        }
        if (!step.output) {
            const runtime::Block block = context_.cache->allocate(static_cast<std::size_t>(bytes));
            if (block.data == nullptr) return refuse(static_cast<std::uint64_t>(bytes), buffer_text(e_, step.buffer));
            set_owner(step.buffer, memory_.add(block));
            buffers_[step.buffer] = block.data;
            return true;
        }
        Tensor tensor = outputs_.take(*returning_, result, frame_);
        if (!tensor.defined()) tensor = outputs_.make(bytes, result, frame_);
        if (!tensor.defined()) {
            if (context_.output_pool != nullptr)
                return refuse(static_cast<std::uint64_t>(bytes), buffer_text(e_, step.buffer));
            return fail(Diagnostic(DiagnosticId::kOutOfMemory)
                            .operand(buffer_text(e_, step.buffer))
                            .found(support::text_from_bytes(static_cast<std::uint64_t>(bytes))),
                        e_.pc);
        }
        buffers_[step.buffer] = tensor.data();
        set_owner(step.buffer, memory_.add(std::move(tensor)));
        return true;
    }

    // ------------------------------------------------------------ values

    Value make(const OutValue& value) {
        switch (value.kind) {
            case OutValue::Kind::kUnset: return Value::unset();
            case OutValue::Kind::kNone: return Value();
            case OutValue::Kind::kTensor: return Value(make_tensor(value.tensor));
            case OutValue::Kind::kInt: return Value(frame_[value.slot]);
            case OutValue::Kind::kBool: return Value(frame_[value.slot] != 0);
            case OutValue::Kind::kFloat: return Value(std::bit_cast<double>(frame_[value.slot]));
            case OutValue::Kind::kRunList: return list_value(value.list);
            case OutValue::Kind::kString: return Value(value.text);
            case OutValue::Kind::kFunction: return Value::function(value.text);
            case OutValue::Kind::kArgument: return Value(*scratch_.key.tensors[value.argument]);
            case OutValue::Kind::kOpaque:
                return value.argument < live_.local_count && value.argument >= live_.locals.size()
                           ? Value::unset()
                           : live_value(value.argument);
            case OutValue::Kind::kList: {
                ValueList elements;
                elements.reserve(value.elements.size());
                for (const OutValue& element : value.elements) elements.push_back(make(element));
                return Value::list(std::move(elements));
            }
        }
        return Value();
    }

    // A tensor of the frame: its sizes and strides, and the address of its first element.
    struct Geometry {
        std::int64_t words[2 * kMaxRank];
        std::size_t rank;
        void* data;
        std::span<const std::int64_t> sizes() const { return {words, rank}; }
        std::span<const std::int64_t> strides() const { return {words + rank, rank}; }
    };
    Geometry geometry(const TensorRef& ref) const {
        Geometry g;
        g.rank = ref.sizes.size();
        for (std::size_t i = 0; i < g.rank; ++i) {
            g.words[i] = frame_[ref.sizes[i]];
            g.words[g.rank + i] = frame_[ref.strides[i]];
        }
        const std::int64_t offset = ref.offset == kNoSlot ? 0 : frame_[ref.offset];
        g.data = static_cast<char*>(buffers_[ref.buffer]) + offset * static_cast<std::int64_t>(dtype_size(ref.dtype));
        return g;
    }

    Tensor make_tensor(const TensorRef& ref) {
        const Geometry g = geometry(ref);
        return make_tensor(owners_[ref.buffer], g.data, ref.dtype, g.sizes(), g.strides(), ref.is_view);
    }

    // Whether a view of these sizes and strides is the whole tensor. Strides of axes with one element, and of tensors
    // without, say nothing of it.
    static bool is_whole(const Tensor& tensor, std::span<const std::int64_t> sizes,
                         std::span<const std::int64_t> strides) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            if (sizes[i] == 0) return true;
        }
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            if (sizes[i] != 1 && tensor.strides()[i] != strides[i]) return false;
        }
        return true;
    }

    Tensor make_tensor(std::int32_t owner, void* data, DType dtype, std::span<const std::int64_t> sizes,
                       std::span<const std::int64_t> strides, bool is_view = false) {
        const Tensor* base = nullptr;
        if (owner <= source_owner(0)) {
            const BufferSource& source = e_.sources[source_slot(owner)];
            base = source.kind == BufferSource::Kind::kArgument ? scratch_.key.tensors[source.index]
                   : device_ != nullptr                         ? &e_.device_weights[source.index]
                                                                : &context_.module->weights[source.index].tensor;
        } else {
            FLEXOR_CHECK(owner >= 0);
            Owned& owned = memory_.at(owner);
            if (!owned.tensor.defined()) {
                // Pool memory leaves the region: from here on it belongs to the tensor.
                const auto bytes = static_cast<std::int64_t>(owned.block.capacity);
                owned.tensor = context_.cache->pool().adopt(owned.block, DType::kU8, {&bytes, 1});
                owned.block = {};
            }
            base = &owned.tensor;
        }
        if (!is_view && base->data() == data && base->dtype() == dtype && std::ranges::equal(base->sizes(), sizes) &&
            (std::ranges::equal(base->strides(), strides) || (is_callers(owner) && is_whole(*base, sizes, strides))))
            return *base;
        return base->view(data, dtype, sizes, strides);
    }

    // ------------------------------------------------------------ lists

    bool list(const executable::ListStep& step) {
        using Kind = executable::ListStep::Kind;
        switch (step.kind) {
            case Kind::kArgument: list_argument(step); return true;
            case Kind::kBuild:
                lists_->build(step.result, step.dtype, step.rank);
                for (const TensorRef& element : step.elements) append(step.result, step.result, element);
                return true;
            case Kind::kAppend: append(step.list, step.result, step.elements[0]); return true;
            case Kind::kGet: {
                const ListItem item = lists_->item(step.list, frame_[step.at]);
                set_owner(step.buffer, item.owner);
                buffers_[step.buffer] = item.data;
                return true;
            }
            case Kind::kSize:
            case Kind::kStride:
            case Kind::kTotal:
            case Kind::kAlike:
                frame_[step.slot] = lists_->ask(step, step.at == kNoSlot ? 0 : frame_[step.at]);
                return true;
            case Kind::kJoin: {
                if (device_ != nullptr) return join_on_host(step);
                const Geometry g = geometry(step.joined);
                const runtime::StopScope scope(context_.stop, runtime::StopScope::Role::kOwner);
                lists_->join(step, g.data, g.strides());
                return !context_.stop->stopped() || stopped();
            }
        }
        return true;
    }

    // Lists of the run are joined on the host, on copies.
    bool join_on_host(const executable::ListStep& step) {
        const std::uint64_t start = runtime::now_ns();
        const Geometry g = geometry(step.joined);
        const Tensor target =
            Tensor::from_blob(g.data, step.joined.dtype, g.sizes(), g.strides(), nullptr, nullptr, device_->place());
        if (auto done = lists_->join_on_host(step, *device_, target, context_.stop); !done)
            return fail(std::move(done).error(), e_.pc);
        if (context_.telemetry != nullptr) {
            const bytecode::Function& function =
                context_.module->functions[static_cast<std::size_t>(context_.function)];
            context_.telemetry->record_fallback(*context_.shard, "concat", "no_device_kernel", function.name, 0,
                                                runtime::now_ns() - start);
        }
        return true;
    }

    const Value& live_value(std::uint32_t index) const {
        return index < live_.local_count ? live_.locals[index] : live_.stack[index - live_.local_count];
    }

    void list_argument(const executable::ListStep& step) {
        const executable::LiveSignature& type = e_.signature.values[step.argument];
        lists_->build(step.result, type.dtype, type.rank);
        for (const Value& element : live_value(step.argument).elements()) {
            const Tensor& tensor = element.tensor();
            const std::int32_t owner = memory_.add(tensor);
            memory_.at(owner).callers = true;
            std::int64_t geometry[2 * kMaxRank];
            std::ranges::copy(tensor.sizes(), geometry);
            std::ranges::copy(tensor.strides(), geometry + type.rank);
            lists_->append(step.result, step.result, {const_cast<void*>(tensor.data()), owner},
                           {geometry, 2 * std::size_t{type.rank}});
        }
    }

    void append(executable::ListSlot list, executable::ListSlot result, const TensorRef& element) {
        const Geometry g = geometry(element);
        lists_->append(list, result, {g.data, owner_of(element.buffer, element.is_view)}, {g.words, 2 * g.rank});
    }

    Value list_value(executable::ListSlot list) {
        ValueList elements;
        const std::int64_t length = lists_->length(list);
        elements.reserve(static_cast<std::size_t>(length));
        for (std::int64_t i = 0; i < length; ++i) {
            const ListItem item = lists_->item(list, i);
            elements.emplace_back(make_tensor(item.owner, item.data, lists_->dtype(list), lists_->sizes(list, i),
                                              lists_->strides(list, i)));
        }
        return Value::list(std::move(elements));
    }

    const Entry& entry_;
    const Executable& e_;
    const LiveValues& live_;
    Scratch& scratch_;
    TapeContext& context_;
    TapeResult& result_;
    DeviceRun* const device_;
    Tensor device_arena_;
    std::int64_t* frame_ = nullptr;
    void** buffers_ = nullptr;
    std::int32_t* owners_ = nullptr;
    void** launch_buffers_ = nullptr;
    std::int64_t* launch_params_ = nullptr;
    std::optional<ArenaLease> arena_, workspace_;
    RunMemory memory_;
    std::optional<RunLists> lists_;
    std::optional<LoopPacks> packs_;
    std::size_t launched_ = 0;
    OutputMemory outputs_;
    const Terminator* returning_ = nullptr;
    bool effects_done_ = false;
    bool grown_ = false;
};

}  // namespace

void run_tape(const Entry& entry, const LiveValues& live, Scratch& scratch, TapeContext& context,
              std::vector<Value>& values, TapeResult& result) {
    Tape tape(entry, live, scratch, context, result);
    tape.run(values);
}

}  // namespace flexor::vm
