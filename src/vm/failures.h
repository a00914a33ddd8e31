#pragma once
// What a run says when it fails.
#include <cstdint>
#include <string>

#include "bytecode/module.h"
#include "executable/executable.h"
#include "flexor/error.h"

namespace flexor::vm {

// What a failed check or a stumble raises.
Diagnostic raised(const executable::Failure& failure, std::string found);

// Adds source position and function to a diagnostic that lacks them.
Diagnostic located(Diagnostic diagnostic, const bytecode::Module& module, std::int32_t function, std::int32_t pc);

// Whose memory was refused: a buffer is told by the kernel that writes it, an arena by its largest buffer.
std::string buffer_text(const executable::Executable& executable, executable::BufferSlot buffer);
std::string arena_text(const executable::Executable& executable, const executable::Block& block,
                       const std::int64_t* frame);

}  // namespace flexor::vm
