#pragma once
// The families of the registry, in the order in which all_ops() lists them, and what their tables share.
#include <deque>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/op_def.h"

namespace flexor::ops {

std::vector<OpDef> unary_ops();
std::vector<OpDef> binary_ops();
std::vector<OpDef> special_ops();
std::vector<OpDef> iterative_ops();
std::vector<OpDef> reduce_ops();
std::vector<OpDef> movement_ops();
std::vector<OpDef> copying_ops();
std::vector<OpDef> contraction_ops();
std::vector<OpDef> normalisation_ops();
std::vector<OpDef> attention_ops();
std::vector<OpDef> indexing_ops();
std::vector<OpDef> order_ops();
std::vector<OpDef> selection_ops();
std::vector<OpDef> scatter_ops();
std::vector<OpDef> search_ops();
std::vector<OpDef> creation_ops();
std::vector<OpDef> write_ops();

// The parts of an entry that it points to live for ever, like the entry. Called only while the registry is built or
// under its lock.
template <class T>
std::span<const T> keep(std::vector<T> items) {
    static auto& kept = *new std::deque<std::vector<T>>;
    return kept.emplace_back(std::move(items));
}
template <class T>
std::span<const T> keep(std::initializer_list<T> items) {
    return keep(std::vector<T>(items));
}
inline std::string_view keep_text(std::string text) {
    static auto& kept = *new std::deque<std::string>;
    return kept.emplace_back(std::move(text));
}

// What few entries state.
struct Traits {
    Effects effects = Effects::kPure;
    Alias alias = Alias::kFresh;
    Layout layout = Layout::kContiguous;
    int results = 1;
    DataSizes data_sizes = nullptr;
    Reference native = nullptr;
    bool raises = false;
};

inline void add_op(std::vector<OpDef>& ops, std::string_view name, std::string_view summary,
                   std::span<const OperandSpec> operands, std::span<const AttrSpec> attrs,
                   std::span<const Constraint> constraints, DTypeRule dtype, ShapeRule shape, Reference reference,
                   LowerRule lower, const Samples& samples, const Names& names, const Traits& traits = {}) {
    ops.push_back({.name = {name},
                   .summary = {summary},
                   .constraints = {constraints},
                   .operands = {operands},
                   .attrs = {attrs},
                   .dtype = {dtype},
                   .shape = {shape},
                   .effects = {traits.effects},
                   .alias = {traits.alias},
                   .layout = {traits.layout},
                   .reference = {reference},
                   .lower = {std::move(lower)},
                   .samples = {samples},
                   .names = {names},
                   .results = traits.results,
                   .data_sizes = traits.data_sizes,
                   .native = traits.native,
                   .raises = traits.raises});
}

}  // namespace flexor::ops
