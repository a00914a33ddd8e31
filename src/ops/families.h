#pragma once
// The families of the registry, in the order in which all_ops() lists them, and what their tables share.
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/op_def.h"

namespace flexor::ops {

std::vector<OpDef> unary_ops();
std::vector<OpDef> binary_ops();
std::vector<OpDef> reduce_ops();
std::vector<OpDef> movement_ops();
std::vector<OpDef> contraction_ops();
std::vector<OpDef> normalisation_ops();
std::vector<OpDef> attention_ops();
std::vector<OpDef> indexing_ops();
std::vector<OpDef> creation_ops();
std::vector<OpDef> write_ops();

// The parts of an entry that it points to live for ever, like the entry.
template <class T>
std::span<const T> keep(std::initializer_list<T> items) {
    return *new std::vector<T>(items);
}
inline std::string_view keep_text(std::string text) { return *new std::string(std::move(text)); }

}  // namespace flexor::ops
