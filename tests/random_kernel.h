#pragma once
// Random row kernels with buffers and parameters to run them on: the same seed makes the same kernel.
#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include "loopir/kernel.h"
#include "types/half.h"

namespace flexor::tests {

using loopir::Access;
using loopir::BodyBuilder;
using loopir::Combine;
using loopir::IntRef;
using loopir::Kernel;
using loopir::NodeId;
using loopir::ScalarOp;

class RandomKernel {
public:
    explicit RandomKernel(unsigned seed) : random_(seed) {}

    Kernel kernel;
    std::vector<std::int64_t> params;
    std::vector<std::vector<std::uint8_t>> memory;

    void make() {
        kernel.name = "random";
        BodyBuilder b(kernel.body);
        const int parallel = pick(4), rows = pick(3);
        const std::int64_t sizes[] = {1, 2, 3, 5, 7, 16, 17, 33, 40, 64};
        for (int d = 0; d < parallel + rows; ++d) {
            extents_.push_back(chance(20) ? pick(2) : sizes[pick(d + 1 == parallel + rows ? 10 : 5)]);
            kernel.body.extents.push_back(number(extents_.back()));
        }
        kernel.body.parallel = static_cast<std::uint32_t>(parallel);
        row_dims_ = rows;
        const bool double_kernel = chance(20);
        const DType main = double_kernel ? DType::kF64 : DType::kF32;
        std::vector<NodeId> floats, flags;
        for (int i = 0; i < 1 + pick(3); ++i) {
            const DType choices[] = {main,        main,        DType::kF32, DType::kBF16,
                                     DType::kF16, DType::kI32, DType::kU8,  DType::kI64};
            const DType d = choices[pick(8)];
            floats.push_back(b.cast(b.load(d, input(b, d, true)), main));
        }
        flags.push_back(b.load(DType::kBool, input(b, DType::kBool, false)));
        floats.push_back(b.constant(main, 0.75));
        if (!extents_.empty() && chance(30))
            floats.push_back(b.cast(b.index(static_cast<std::uint32_t>(pick(parallel + rows))), main));
        if (chance(30)) floats.push_back(b.param(main, slot(std::bit_cast<std::int64_t>(1.25))));
        const int stages = 1 + pick(4);
        for (int s = 0; s < stages; ++s) {
            for (int i = pick(6); i > 0; --i) floats.push_back(operation(b, floats, flags));
            const NodeId value =
                floats[floats.size() - 1 -
                       static_cast<size_t>(pick(static_cast<int>(std::min<size_t>(3, floats.size()))))];
            if (rows > 0 && chance(60)) {
                reduce(b, value, main, floats, flags);
            } else {
                store(b, value, flags);
            }
        }
        store(b, floats.back(), flags);
        kernel.param_count = static_cast<std::uint32_t>(params.size());
    }

private:
    int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    bool chance(int percent) { return pick(100) < percent; }
    std::uint32_t slot(std::int64_t v) {
        params.push_back(v);
        return static_cast<std::uint32_t>(params.size() - 1);
    }
    IntRef number(std::int64_t v) { return chance(50) ? IntRef::constant(v) : IntRef::slot(slot(v)); }
    // Strides 0 and 1 are facts more often than not.
    IntRef stride(std::int64_t v) { return (v == 0 || v == 1) && chance(80) ? IntRef::constant(v) : number(v); }

    std::uint32_t buffer(DType d, std::int64_t count, bool written) {
        kernel.buffers.push_back({"", d, !written, written});
        std::vector<std::uint8_t> bytes(static_cast<size_t>(std::max<std::int64_t>(count, 1)) * dtype_size(d));
        std::normal_distribution<double> normal;
        for (size_t i = 0; i < bytes.size() / dtype_size(d); ++i) {
            const double v = normal(random_);
            switch (d) {
                case DType::kF32: reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(v); break;
                case DType::kF64: reinterpret_cast<double*>(bytes.data())[i] = v; break;
                case DType::kF16: reinterpret_cast<std::uint16_t*>(bytes.data())[i] = types::f16_from_f64(v); break;
                case DType::kBF16: reinterpret_cast<std::uint16_t*>(bytes.data())[i] = types::bf16_from_f64(v); break;
                case DType::kI32:
                    reinterpret_cast<std::int32_t*>(bytes.data())[i] = static_cast<std::int32_t>(3 * v);
                    break;
                case DType::kI64:
                    reinterpret_cast<std::int64_t*>(bytes.data())[i] = static_cast<std::int64_t>(3 * v);
                    break;
                case DType::kBool: bytes[i] = v > 0 ? static_cast<std::uint8_t>(1 + pick(3)) : 0; break;
                default: bytes[i] = static_cast<std::uint8_t>(pick(9)); break;
            }
        }
        memory.push_back(std::move(bytes));
        return static_cast<std::uint32_t>(kernel.buffers.size() - 1);
    }

    // A dense layout of the dims in a random order, some broadcast; returns the element count.
    std::int64_t layout(Access& a, bool broadcast) {
        const size_t rank = extents_.size();
        std::vector<size_t> order(rank);
        for (size_t i = 0; i < rank; ++i) order[i] = i;
        if (chance(30)) std::shuffle(order.begin(), order.end(), random_);
        std::vector<std::int64_t> strides(rank, 0);
        std::int64_t size = chance(15) ? 2 : 1;
        for (size_t i = rank; i-- > 0;) {
            const size_t d = order[i];
            if (broadcast && chance(25)) continue;
            strides[d] = size;
            size *= extents_[d];
        }
        const std::int64_t offset = pick(3) == 0 ? pick(5) : 0;
        a.offset = number(offset);
        for (std::int64_t s : strides) a.strides.push_back(stride(s));
        return size + offset + 2;
    }

    Access input(BodyBuilder& b, DType d, bool gather) {
        Access a;
        std::int64_t count = layout(a, true);
        if (gather && chance(25)) {
            Access index;
            const std::int64_t index_count = layout(index, true);
            index.buffer = buffer(DType::kI64, index_count, false);
            auto* values = reinterpret_cast<std::int64_t*>(memory.back().data());
            const std::int64_t extent = 1 + pick(6);
            for (std::int64_t i = 0; i < index_count; ++i)
                values[i] = pick(static_cast<int>(extent)) - (chance(20) ? extent : 0);
            const NodeId node = b.load(DType::kI64, index);
            a.gathers.push_back({node, number(count), number(extent), true});
            count *= extent;
        }
        a.buffer = buffer(d, count, false);
        return a;
    }

    NodeId operation(BodyBuilder& b, const std::vector<NodeId>& floats, const std::vector<NodeId>& flags) {
        auto any = [&] { return floats[static_cast<size_t>(pick(static_cast<int>(floats.size())))]; };
        const ScalarOp unary[] = {ScalarOp::kTanh, ScalarOp::kSigmoid, ScalarOp::kAbs, ScalarOp::kNeg,
                                  ScalarOp::kErf,  ScalarOp::kSin,     ScalarOp::kSign};
        const ScalarOp binary[] = {ScalarOp::kAdd, ScalarOp::kSub, ScalarOp::kMax, ScalarOp::kMin};
        switch (pick(5)) {
            case 0: return b.unary(unary[pick(6)], any());
            case 1: return b.unary(ScalarOp::kExp, b.unary(ScalarOp::kTanh, any()));
            case 2: return b.select(flags[static_cast<size_t>(pick(static_cast<int>(flags.size())))], any(), any());
            case 3: {
                const NodeId denominator =
                    b.binary(ScalarOp::kAdd, b.unary(ScalarOp::kAbs, any()), b.constant(b.dtype(floats[0]), 1.0));
                return b.binary(ScalarOp::kDiv, b.unary(ScalarOp::kTanh, any()), denominator);
            }
            default: return b.binary(binary[pick(4)], any(), any());
        }
    }

    void reduce(BodyBuilder& b, NodeId value, DType main, std::vector<NodeId>& floats, std::vector<NodeId>& flags) {
        const NodeId bounded = b.unary(ScalarOp::kTanh, value);
        switch (pick(5)) {
            case 0:
                floats.push_back(b.unary(ScalarOp::kTanh, b.row_value(main, b.reduce(Combine::kSum, bounded))));
                break;
            case 1:
                floats.push_back(b.row_value(main, b.reduce(Combine::kMax, bounded)));
                finite(b, main, floats);
                break;
            case 2:
                floats.push_back(b.row_value(main, b.reduce(Combine::kMin, bounded)));
                finite(b, main, floats);
                break;
            case 3:
                flags.push_back(
                    b.row_value(DType::kBool, b.reduce(chance(50) ? Combine::kAny : Combine::kAll, flags[0])));
                break;
            default: {
                const NodeId n = b.cast(flags[static_cast<size_t>(pick(static_cast<int>(flags.size())))], DType::kI32);
                floats.push_back(b.cast(b.row_value(DType::kI32, b.reduce(Combine::kSum, n)), main));
            }
        }
    }

    // The identity of an empty row is infinite.
    void finite(BodyBuilder& b, DType main, std::vector<NodeId>& floats) {
        const NodeId clipped = b.binary(ScalarOp::kMin, b.binary(ScalarOp::kMax, floats.back(), b.constant(main, -9)),
                                        b.constant(main, 9));
        floats.back() = clipped;
    }

    void store(BodyBuilder& b, NodeId value, const std::vector<NodeId>& flags) {
        const DType main = b.dtype(value);
        const DType choices[] = {main, main, main, DType::kF32, DType::kBF16};
        const DType d = choices[pick(5)];
        Access a;
        const std::int64_t count = layout(a, false);
        a.buffer = buffer(d, count, true);
        if (chance(15)) {
            a.mask = flags[0];
        }
        b.store(b.cast(value, d), a, false);
    }

    std::mt19937 random_;
    std::vector<std::int64_t> extents_;
    int row_dims_ = 0;
};

}  // namespace flexor::tests
