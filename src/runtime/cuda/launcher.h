#pragma once
// A kernel of a program, made ready for one device, whoever compiled it.
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/graph.h"
#include "support/diagnostic.h"
#include "support/expected.h"

namespace flexor::runtime::cuda {

// What a launch met, for telemetry.
struct LaunchReport {
    std::uint64_t waited_ns = 0;                // for its machine code
    std::uint32_t requested = 0;                // variants that it asked the compiler for
    bool stand_in = false;                      // its own variant is not there: another one ran
    std::shared_ptr<const Diagnostic> refusal;  // why it never will be; told once
    std::uint32_t launches = 1;                 // handed over; one too where there was nothing to compute
    std::uint32_t by_library = 0;               // of them
};

// A launch as all calls of a graph see it.
struct GraphLaunch {
    std::span<const GraphNumber> buffers;  // addresses
    std::span<const GraphNumber> params;
    CudaPointer fault = 0;
};

// Thread-safe.
class Launcher {
public:
    virtual ~Launcher() = default;

    // `buffers`: one a loopir::BufferParam, on the device. `fault`: an i32 that the device can write, set where an index
    // is out of range or a divisor is 0, never cleared. Nothing happens where there is nothing to compute.
    virtual Expected<LaunchReport> launch(std::span<const CudaPointer> buffers, const std::int64_t* params,
                                          CudaPointer fault, CudaStream stream) = 0;

    // Begins to compile what such a launch needs, and waits for nothing. Buffers that are not known yet are 0. The number of
    // variants asked for.
    virtual std::uint32_t prefetch(std::span<const CudaPointer>, const std::int64_t*) { return 0; }
    // Waits until everything that was asked for is compiled.
    virtual void settle() {}

    // What there is to say of its launches, for people.
    virtual std::string note() const { return {}; }

    // The launch as a node of a graph; words that it needs, and what it takes for granted, are added to `frame`. Refused where
    // a launch would be, and with NoCodeGenerator where one form cannot serve all calls. Machine code is made here.
    virtual Expected<GraphNode> graph_node(const GraphLaunch&, GraphFrame&) {
        return Diagnostic(DiagnosticId::kNoCodeGenerator).found("a launch that is no part of graphs");
    }
};

}  // namespace flexor::runtime::cuda
