#include "vm/failures.h"

#include <utility>

#include "support/text.h"

namespace flexor::vm {

Diagnostic located(Diagnostic diagnostic, const bytecode::Module& module, std::int32_t function, std::int32_t pc) {
    const bytecode::Function& f = module.functions[static_cast<std::size_t>(function)];
    if (diagnostic.where().function.empty()) diagnostic.function(f.name);
    if (diagnostic.where().pc < 0) diagnostic.pc(pc);
    if (diagnostic.where().source.empty()) {
        const bytecode::SourcePosition* best = nullptr;
        for (const bytecode::SourcePosition& position : f.positions) {
            if (position.pc > pc) break;
            best = &position;
        }
        if (best != nullptr && best->line > 0) diagnostic.source(best->file + ":" + std::to_string(best->line));
    }
    return diagnostic;
}

Diagnostic raised(const executable::Failure& failure, std::string found) {
    Diagnostic diagnostic(failure.id);
    if (!failure.op.empty()) diagnostic.op(failure.op);
    if (!failure.constraint.empty()) diagnostic.constraint(failure.constraint);
    if (!found.empty()) diagnostic.found(std::move(found));
    std::string expected = failure.text;
    if (!failure.expected.empty()) expected += (expected.empty() ? "" : ": ") + failure.expected;
    if (!expected.empty()) diagnostic.expected(std::move(expected));
    return diagnostic;
}

std::string buffer_text(const executable::Executable& executable, executable::BufferSlot buffer) {
    for (const executable::Launch& launch : executable.launches) {
        const loopir::Kernel& kernel = executable.kernels[launch.kernel].ir;
        for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
            if (launch.buffers[i] == buffer && kernel.buffers[i].written) return "result of " + kernel.name;
        }
    }
    return "buffer " + std::to_string(buffer);
}

std::string arena_text(const executable::Executable& executable, const executable::Block& block,
                       const std::int64_t* frame) {
    const executable::Planned* largest = nullptr;
    for (const executable::Planned& planned : block.arena) {
        if (largest == nullptr || frame[planned.bytes] > frame[largest->bytes]) largest = &planned;
    }
    if (largest == nullptr) return "arena";
    return buffer_text(executable, largest->buffer) + " of " +
           support::text_from_bytes(static_cast<std::uint64_t>(frame[largest->bytes]));
}

}  // namespace flexor::vm
