#pragma once
// The binary form of a Module, `.flx`.
//
//   header   8 bytes magic, u32 version, u32 section count, u64 file size, u64 checksum of header and section table
//   table    per section: 8 bytes name, u64 offset, u64 size, u64 checksum of the section's bytes
//   sections strings, meta, symbols, consts, hooks, weights, funcs, data; each begins at a multiple of 64
//
// All numbers are little-endian; checksums are XXH3 with 64 bits. Texts stand once, in `strings`. Opcodes, ops, scalar
// operators and dtypes are stored by name, dims and attributes in their text form: no number of ours has a meaning in a
// file. Weight bytes lie in `data`, each weight at a multiple of 64, and are used in place.
//
// Laws
//  B1  No input makes the reader crash, read out of bounds or allocate more than a constant times the input's size.
//  B2  read_flx(write_flx(m)) is the same program as m, and equal Modules give equal bytes.
//  B3  save_flx replaces the file in one step: a reader sees the old file or the new one.
//  B4  What the reader returns has not been verified.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bytecode/module.h"
#include "support/expected.h"

namespace flexor::bytecode {

inline constexpr std::uint32_t kFlxVersion = 1;

bool is_flx(std::span<const std::byte> bytes);  // has the magic

// Tensors point into `bytes` where their alignment allows it, and hold `owner`.
Expected<Module> read_flx(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
std::vector<std::byte> write_flx(const Module& module);

Expected<Module> load_flx(const std::string& path);  // maps the file; a write to a weight stays private to the process
Status save_flx(const Module& module, const std::string& path);

}  // namespace flexor::bytecode
