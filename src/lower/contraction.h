#pragma once
// Contraction and attention kernels.
#include "lower/kernel_builder.h"

namespace flexor::lower {

// Fills builder.kernel from a contraction unit; a constant right side becomes `packed` (its weight index and geometry).
Expected<std::optional<executable::PackedWeight>> build_contraction(KernelBuilder& builder, const Program& program,
                                                                    const specialised::Block& block,
                                                                    const BlockUnits& units, const Unit& unit,
                                                                    const std::vector<const Inst*>& producers);

void build_attention(KernelBuilder& builder, const Program& program, const Inst& inst);

}  // namespace flexor::lower
