#pragma once
// A compiled kernel, whoever compiled it. Handles are immutable and thread-safe; one handle may serve many executables.
#include <cstddef>
#include <cstdint>
#include <memory>

namespace flexor::runtime {

// What a launch reports.
enum Fault : std::int32_t {
    kNoFault = 0,
    kBadElement = 1,   // a gathered index is out of range, or an integer divisor is 0; generated code stores it
    kOutOfMemory = 2,  // the kernel found too little workspace and the system gave none; nothing was written
};

struct LaunchArgs {
    void* const* buffers;        // one per loopir::BufferParam, in order
    const std::int64_t* params;  // the int64 parameter array
    void* workspace;             // at least workspace_bytes(params), 64-byte aligned; may be null if that is 0
    std::int32_t* fault;         // set to a Fault, never cleared
    // What `workspace` holds. The thread count may have grown since workspace_bytes was asked: a kernel that finds less
    // than it needs now takes memory of its own.
    std::size_t workspace_size = 0;
    // Of a contraction: its right side, packed by gemm's pack_b with the host's tiles. Null: it lies where the buffers
    // say.
    const void* packed_right = nullptr;
};

class KernelHandle {
public:
    virtual ~KernelHandle() = default;
    virtual void launch(const LaunchArgs& args) const = 0;
    virtual std::size_t workspace_bytes(const std::int64_t* params) const = 0;  // depends on the thread count in force
    virtual std::size_t code_bytes() const = 0;
};

using KernelRef = std::shared_ptr<const KernelHandle>;

}  // namespace flexor::runtime
