#include "vm/output_memory.h"

#include "support/diagnostic.h"
#include "support/text.h"

namespace flexor::vm {

Expected<Tensor> OutputMemory::make_on(DeviceRun& device, std::int64_t bytes, const executable::TensorRef* result,
                                       const std::int64_t* frame) {
    if (result == nullptr) return device.bytes(bytes);
    const Geometry g(*result, frame);
    if (g.bytes() != bytes) return device.bytes(bytes);
    if (pool_ != nullptr || !is_asked(bytes)) return device.empty(g.dtype, g.sizes(), g.strides());
    Tensor made = ask(g);
    if (!made.defined()) {
        // What the pool keeps may be what is missing.
        device.state().pool->trim();
        made = ask(g);
    }
    if (made.defined()) return made;
    return Diagnostic(DiagnosticId::kOutOfMemory).found(support::text_from_bytes(static_cast<std::uint64_t>(bytes)));
}

}  // namespace flexor::vm
