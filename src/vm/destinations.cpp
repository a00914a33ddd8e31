#include "vm/destinations.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/kernels/strided_copy.h"
#include "support/diagnostic.h"
#include "types/layout.h"

namespace flexor::vm {

namespace {

// The addresses of a tensor's elements, in bytes: [begin, end) as a whole, and without the axis of the largest stride.
struct Extent {
    std::uintptr_t begin = 0, end = 0;
    std::uint64_t pitch = 0;  // the largest stride; 0: at most one element
    std::uint64_t row = 0;    // bytes from the first to the end of the last element of one row of that pitch
};

Extent extent_of(const Tensor& tensor) {
    Extent out;
    const auto element = static_cast<std::int64_t>(dtype_size(tensor.dtype()));
    std::int64_t below = 0, above = 0, largest = 0, largest_span = 0;
    for (int axis = 0; axis < tensor.rank(); ++axis) {
        const std::int64_t size = tensor.size(axis);
        if (size == 0) return out;
        const std::int64_t span = (size - 1) * tensor.stride(axis) * element;
        (span < 0 ? below : above) += span;
        const std::int64_t stride = std::abs(tensor.stride(axis) * element);
        if (size > 1 && stride > largest) {
            largest = stride;
            largest_span = std::abs(span);
        }
    }
    const auto data = reinterpret_cast<std::uintptr_t>(tensor.data());
    out.begin = data + static_cast<std::uintptr_t>(below);
    out.end = data + static_cast<std::uintptr_t>(above + element);
    out.pitch = static_cast<std::uint64_t>(largest);
    out.row = static_cast<std::uint64_t>(above - below - largest_span + element);
    return out;
}

Diagnostic refuse(DiagnosticId id, const bytecode::Function& function, std::size_t output, std::string found,
                  std::string expected) {
    return Diagnostic(id)
        .function(function.name)
        .operand("output " + std::to_string(output + 1))
        .found(std::move(found))
        .expected(std::move(expected));
}

// The first tensor in `value` that may share memory with `output`, or null.
const Tensor* sharing(const Value& value, const Tensor& output) {
    if (value.is_tensor())
        return value.tensor().defined() && may_share_memory(value.tensor(), output) ? &value.tensor() : nullptr;
    if (value.is_list()) {
        for (const Value& element : value.elements()) {
            if (const Tensor* found = sharing(element, output)) return found;
        }
    } else if (value.is_dict()) {
        for (const auto& [key, item] : value.items()) {
            if (const Tensor* found = sharing(item, output)) return found;
        }
    }
    return nullptr;
}

bool same_geometry(const Tensor& a, const Tensor& b) {
    return a.data() == b.data() && std::ranges::equal(a.strides(), b.strides());
}

bool holds_foreign(const Value& value) {
    if (value.is_list()) return std::ranges::any_of(value.elements(), holds_foreign);
    if (value.is_dict())
        return std::ranges::any_of(value.items(), [](const auto& item) { return holds_foreign(item.second); });
    return value.is_foreign();
}

}  // namespace

bool may_reach_host(const bytecode::Module& module, std::span<const Value> arguments) {
    return !module.hooks.empty() || std::ranges::any_of(arguments, holds_foreign);
}

bool may_share_memory(const Tensor& a, const Tensor& b) {
    if (a.device() != b.device()) return false;
    const Extent x = extent_of(a), y = extent_of(b);
    if (x.begin >= y.end || y.begin >= x.end) return false;
    if (x.pitch != y.pitch || x.pitch == 0 || x.row > x.pitch || y.row > y.pitch) return true;
    // Both lie in rows of one pitch: what counts is where in a row.
    const bool after = y.begin >= x.begin;
    const std::uint64_t apart = (after ? y.begin - x.begin : x.begin - y.begin) % x.pitch;
    const std::uint64_t first = after ? x.row : y.row, second = after ? y.row : x.row;
    return apart < first || x.pitch - apart < second;
}

Expected<void> check_outputs(const bytecode::Module& module, const bytecode::Function& function,
                             std::span<const Value> arguments, std::span<const Tensor> outputs, Device place) {
    if (outputs.size() != static_cast<std::size_t>(function.result_count)) {
        return Diagnostic(DiagnosticId::kOutputMismatch)
            .function(function.name)
            .found(std::to_string(outputs.size()) + " buffers")
            .expected(std::to_string(function.result_count) + ", one for each output");
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Tensor& output = outputs[i];
        if (!output.defined() || output.device() != place) {
            return refuse(DiagnosticId::kOutputMismatch, function, i,
                          output.defined() ? "a tensor on another device" : "a tensor without memory",
                          place.kind == DeviceKind::kCpu ? "a tensor in host memory"
                                                         : "a tensor on cuda:" + std::to_string(place.index));
        }
        if (output.storage()->write_refusal != DiagnosticId{})
            return refuse(output.storage()->write_refusal, function, i, Value(output).describe(), "memory to write to");
        if (types::overlaps_itself(output.sizes(), output.strides())) {
            return refuse(DiagnosticId::kOverlappingWrite, function, i, Value(output).describe(),
                          "a layout in which every element has its own place");
        }
        for (std::size_t a = 0; a < arguments.size(); ++a) {
            if (sharing(arguments[a], output) == nullptr) continue;
            return refuse(DiagnosticId::kOutputOverlap, function, i,
                          "memory of the input " + (a < function.params.size() ? function.params[a].name : ""),
                          "memory of its own");
        }
        for (std::size_t other = 0; other < i; ++other) {
            if (!may_share_memory(output, outputs[other])) continue;
            return refuse(DiagnosticId::kOutputOverlap, function, i, "memory of output " + std::to_string(other + 1),
                          "memory of its own");
        }
        const Extent extent = extent_of(output);
        for (const bytecode::Weight& weight : module.weights) {
            const Storage& storage = *weight.tensor.storage();
            const auto begin = reinterpret_cast<std::uintptr_t>(storage.data);
            if (extent.begin >= begin + storage.bytes || begin >= extent.end) continue;
            return refuse(DiagnosticId::kOutputOverlap, function, i, "memory of the weight " + weight.name,
                          "memory of its own");
        }
    }
    return {};
}

Expected<void> write_outputs(const bytecode::Function& function, std::span<const Value> results,
                             std::span<const Tensor> outputs, DeviceRun* device) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Tensor& output = outputs[i];
        if (!results[i].is_tensor()) {
            return refuse(DiagnosticId::kOutputMismatch, function, i, "a buffer for " + results[i].describe(),
                          "a program whose outputs are tensors");
        }
        const Tensor& result = results[i].tensor();
        if (result.dtype() != output.dtype() || !std::ranges::equal(result.sizes(), output.sizes())) {
            return refuse(DiagnosticId::kOutputMismatch, function, i, Value(output).describe(),
                          Value(result).describe());
        }
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Tensor& output = outputs[i];
        Tensor result = results[i].tensor();
        if (!same_geometry(result, output) && output.numel() > 0) {
            if (device != nullptr) {
                FLEXOR_TRY(device->assign(output, result));
                output.note_write();
                continue;
            }
            // One that is a view of a buffer, in another order.
            if (result.storage() == output.storage()) {
                result = result.clone();
                if (!result.defined()) return Diagnostic(DiagnosticId::kOutOfMemory).function(function.name);
            }
            runtime::copy_strided(output.data(), output.strides(), result.data(), result.strides(), output.sizes(),
                                  dtype_size(output.dtype()));
        }
        output.note_write();
    }
    return {};
}

}  // namespace flexor::vm
