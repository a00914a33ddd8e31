#pragma once
// Switches of the project's own tests: other ways through the engine that must give the same results. Not installed,
// and no part of the library's promises.

#include <string>

namespace flexor {

struct StressOptions {
    bool fuse = true;  // false: one kernel per op
    bool evaluate_kernels =
        false;                 // kernels run in the loop-IR evaluator, slowly: an oracle that needs no code generator
    bool poison = false;       // pool memory is filled with NaN patterns when handed out
    bool fail_guards = false;  // every look-up on the ladder misses and compiles an entry
    bool end_at_once = false;  // a region ends behind its first op and at every loop head
    bool graphs_at_once = false;  // a call on a device waits for the graph that is made for it, of one launch too
    // Library in the place of CUDA's driver; with evaluate_kernels it runs driver::HostFunctions.
    std::string device_driver = {};
    // Library in the place of cuBLASLt; with evaluate_kernels it computes what products it can.
    std::string product_library = {};
};

}  // namespace flexor
