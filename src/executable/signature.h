#pragma once
// Signature and call frame of an entry: what is compared before any guard runs.
//
// The call frame is fixed by the signature. Live values in order contribute:
//   tensor      sizes[rank], strides[rank]
//   int, bool   the value        float  the bits of the double (not part of the exact key)
//   list        the frame of its elements, in order
//   run list    its length
#include <cstdint>
#include <string>
#include <vector>

#include "flexor/tensor.h"
#include "types/layout.h"

namespace flexor::executable {

enum class LiveKind : std::uint8_t {
    kUnset,
    kNone,
    kTensor,
    kInt,
    kBool,
    kFloat,
    kString,
    kList,
    kFunction,
    kForeign,
    kDynamic,
    kRunList,  // tensors of one dtype and rank, whatever their number and sizes
};

struct LiveSignature {
    LiveKind kind = LiveKind::kUnset;
    // kTensor; kRunList: dtype and rank of the tensors, contiguous if all of them are, else general
    DType dtype = DType::kF32;
    std::uint8_t rank = 0;
    Device device;
    types::LayoutClass layout;
    std::uint8_t alias_group = 0;  // 0: shares memory with no other argument; else the group's number, by first
                                   // appearance (only if the function writes)
    bool exact_alias = false;      // the group's members all have the same address, sizes and strides
    bool fixed = false;            // the memory is a weight of the module, or read-only (only if the function writes)
    std::string text;              // kString: the value; kFunction: the name
    std::vector<LiveSignature> elements;
    friend bool operator==(const LiveSignature&, const LiveSignature&) = default;
};

struct Signature {
    // Locals, then stack, then module symbols where attributes inside the region may name them.
    std::vector<LiveSignature> values;
    std::uint32_t local_count = 0;
    std::uint32_t symbol_count = 0;  // the last values are those of the module's symbols
    Device device;                   // where the run is: its kernels, and what they make
    friend bool operator==(const Signature&, const Signature&) = default;
    std::uint32_t frame_size() const;
};

std::uint32_t frame_size(const LiveSignature& value);
std::string to_string(const LiveSignature& value);  // "f32 r3 cpu contiguous"
std::string to_string(const Signature& signature);

}  // namespace flexor::executable
