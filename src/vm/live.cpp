#include "vm/live.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "support/hash.h"

namespace flexor::vm {

using executable::LiveKind;
using executable::LiveSignature;
using types::LayoutClass;
using types::LayoutKind;

namespace {

// Writes sizes and strides, and returns the class. Row-major tensors are told without a call.
LayoutClass write_geometry(const Tensor& tensor, std::int64_t* out) {
    const auto rank = static_cast<std::size_t>(tensor.rank());
    const std::int64_t* sizes = tensor.sizes().data();
    const std::int64_t* strides = tensor.strides().data();
    std::int64_t running = 1;
    bool contiguous = true, empty = false;
    for (std::size_t i = rank; i-- > 0;) {
        out[i] = sizes[i];
        out[rank + i] = running;
        contiguous &= (strides[i] == running) | (sizes[i] == 1);
        empty |= sizes[i] == 0;
        running = static_cast<std::int64_t>(static_cast<std::uint64_t>(running) * static_cast<std::uint64_t>(sizes[i]));
    }
    if (contiguous || empty) return {};
    const LayoutClass layout = types::classify_layout(tensor.sizes(), tensor.strides());
    if (layout.kind != LayoutKind::kContiguous) std::memcpy(out + rank, strides, rank * sizeof(std::int64_t));
    return layout;
}

std::uint64_t tensor_word(const Tensor& tensor, LayoutClass layout) {
    return static_cast<std::uint64_t>(LiveKind::kTensor) | static_cast<std::uint64_t>(tensor.dtype()) << 8 |
           static_cast<std::uint64_t>(tensor.rank()) << 16 | static_cast<std::uint64_t>(tensor.device().kind) << 24 |
           static_cast<std::uint64_t>(static_cast<std::uint8_t>(tensor.device().index)) << 32 |
           static_cast<std::uint64_t>(layout.kind) << 56;
}

// ---------------------------------------------------------------- lists of the run

// Dtype, rank and layout of the tensors of a list, where they have them in common; a list of nothing has none.
std::optional<LiveSignature> run_list(const Value& value) {
    if (!value.is_list() || value.elements().empty() || !value.elements()[0].is_tensor()) return std::nullopt;
    LiveSignature out;
    out.kind = LiveKind::kRunList;
    out.layout.kind = LayoutKind::kContiguous;
    const Tensor& first = value.elements()[0].tensor();
    for (const Value& element : value.elements()) {
        if (!element.is_tensor() || !element.tensor().defined()) return std::nullopt;
        const Tensor& tensor = element.tensor();
        if (tensor.dtype() != first.dtype() || tensor.rank() != first.rank() ||
            tensor.device().kind != DeviceKind::kCpu)
            return std::nullopt;
        std::int64_t geometry[2 * kMaxRank];
        if (write_geometry(tensor, geometry).kind != LayoutKind::kContiguous) out.layout.kind = LayoutKind::kGeneral;
    }
    out.dtype = first.dtype();
    out.rank = static_cast<std::uint8_t>(first.rank());
    out.device = first.device();
    return out;
}

// A list of something else that is longer than shapes are: it passes through a region as it is.
constexpr std::size_t kLongestShape = kMaxRank;
bool passes_through(const Value& value) { return value.is_list() && value.elements().size() > kLongestShape; }

// ---------------------------------------------------------------- alias groups

struct AliasInfo {
    std::uint8_t group = 0;
    bool exact = false;
    bool fixed = false;
};

struct ByteRange {
    std::uintptr_t lo, hi;  // bytes touched, hi exclusive; empty: lo == hi
};

ByteRange byte_range(const Tensor& tensor) {
    std::int64_t low = 0, high = 0;
    for (int i = 0; i < tensor.rank(); ++i) {
        if (tensor.size(i) == 0) return {0, 0};
        const std::int64_t reach = (tensor.size(i) - 1) * tensor.stride(i);
        (reach < 0 ? low : high) += reach;
    }
    const auto base = reinterpret_cast<std::intptr_t>(tensor.data());
    const auto bytes = static_cast<std::int64_t>(dtype_size(tensor.dtype()));
    return {static_cast<std::uintptr_t>(base + low * bytes), static_cast<std::uintptr_t>(base + (high + 1) * bytes)};
}

bool same_view(const Tensor& a, const Tensor& b) {
    return a.data() == b.data() && a.dtype() == b.dtype() && std::ranges::equal(a.sizes(), b.sizes()) &&
           std::ranges::equal(a.strides(), b.strides());
}

// Groups tensors whose memory may overlap (ranges of addresses), transitively.
void find_aliases(std::span<const Tensor* const> tensors, std::vector<AliasInfo>& out) {
    const std::size_t n = tensors.size();
    out.assign(n, {});
    std::vector<ByteRange> extents;
    extents.reserve(n);
    for (const Tensor* tensor : tensors) extents.push_back(byte_range(*tensor));
    std::vector<std::size_t> leader(n);
    for (std::size_t i = 0; i < n; ++i) leader[i] = i;
    const auto find = [&](std::size_t i) {
        while (leader[i] != i) i = leader[i];
        return i;
    };
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (extents[i].lo < extents[j].hi && extents[j].lo < extents[i].hi) {
                const std::size_t a = find(i), b = find(j);
                leader[std::max(a, b)] = std::min(a, b);
            }
        }
    }
    std::uint8_t next = 0;
    std::vector<std::uint8_t> number(n, 0);
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t head = find(i);
        bool alone = true, exact = true;
        for (std::size_t j = 0; j < n; ++j) {
            if (j == i || find(j) != head) continue;
            alone = false;
        }
        if (alone) continue;
        for (std::size_t j = 0; j < n; ++j) {
            if (find(j) == head && !same_view(*tensors[j], *tensors[head])) exact = false;
        }
        if (number[head] == 0) number[head] = next < 255 ? ++next : next;
        out[i] = {number[head], exact, false};
    }
}

// What a function that writes must know of the memory of its tensors.
bool is_fixed(const Tensor& tensor) { return tensor.storage()->write_refusal != DiagnosticId{}; }

std::vector<AliasInfo> memory_facts(std::span<const Tensor* const> tensors) {
    std::vector<AliasInfo> facts;
    find_aliases(tensors, facts);
    for (std::size_t i = 0; i < tensors.size(); ++i) facts[i].fixed = is_fixed(*tensors[i]);
    return facts;
}

bool needs_memory_facts(const LiveValues& live, std::span<const Tensor* const> tensors) {
    return live.writes && (tensors.size() > 1 || (tensors.size() == 1 && is_fixed(*tensors[0])));
}

// ---------------------------------------------------------------- packed words

class KeyWriter {
public:
    explicit KeyWriter(LiveKey& key) : key_(key) {}

    // A live value of the safe point; `grows`: it may be a list of the run.
    bool live_value(const Value& value, bool grows) {
        if (!grows || !value.is_list()) return this->value(value);
        const std::optional<LiveSignature> list = run_list(value);
        if (!list && passes_through(value)) {
            key_.signature.push(static_cast<std::uint64_t>(LiveKind::kDynamic));
            return true;
        }
        if (!list) return this->value(value);
        key_.signature.push(static_cast<std::uint64_t>(LiveKind::kRunList) |
                            static_cast<std::uint64_t>(list->dtype) << 8 | std::uint64_t{list->rank} << 16 |
                            static_cast<std::uint64_t>(list->layout.kind) << 56);
        key_.frame.push(static_cast<std::int64_t>(value.elements().size()));
        return true;
    }

    bool value(const Value& value) {
        switch (value.kind()) {
            case ValueKind::kTensor: {
                const Tensor& tensor = value.tensor();
                if (!tensor.defined()) return false;
                key_.tensors.push(&tensor);
                const LayoutClass layout =
                    write_geometry(tensor, key_.frame.extend(2 * static_cast<std::size_t>(tensor.rank())));
                key_.signature.push(tensor_word(tensor, layout));
                if (layout.detail != 0) key_.signature.push(layout.detail);
                return true;
            }
            case ValueKind::kInt:
            case ValueKind::kBool:
                key_.signature.push(static_cast<std::uint64_t>(value.is_int() ? LiveKind::kInt : LiveKind::kBool));
                key_.frame.push(value.integer());
                return true;
            case ValueKind::kFloat:
                key_.signature.push(static_cast<std::uint64_t>(LiveKind::kFloat));
                key_.floats.push(static_cast<std::uint32_t>(key_.frame.size()));
                key_.frame.push(std::bit_cast<std::int64_t>(value.real()));
                return true;
            case ValueKind::kNone: key_.signature.push(static_cast<std::uint64_t>(LiveKind::kNone)); return true;
            case ValueKind::kUnset: key_.signature.push(static_cast<std::uint64_t>(LiveKind::kUnset)); return true;
            case ValueKind::kString: text(LiveKind::kString, value.text()); return true;
            case ValueKind::kFunction: text(LiveKind::kFunction, value.text()); return true;
            case ValueKind::kForeign: key_.signature.push(static_cast<std::uint64_t>(LiveKind::kForeign)); return true;
            case ValueKind::kDict: key_.signature.push(static_cast<std::uint64_t>(LiveKind::kDynamic)); return true;
            case ValueKind::kList:
                key_.signature.push(static_cast<std::uint64_t>(LiveKind::kList) | value.elements().size() << 8);
                for (const Value& element : value.elements()) {
                    if (!this->value(element)) return false;
                }
                return true;
        }
        return false;
    }

private:
    void text(LiveKind kind, const std::string& text) {
        key_.signature.push(static_cast<std::uint64_t>(kind) | text.size() << 8);
        for (std::size_t i = 0; i < text.size(); i += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, text.data() + i, std::min<std::size_t>(8, text.size() - i));
            key_.signature.push(word);
        }
    }
    LiveKey& key_;
};

// No live value has such a word.
std::uint64_t device_word(Device device) {
    return ~std::uint64_t{0} << 32 | std::uint64_t{static_cast<std::uint8_t>(device.kind)} << 8 |
           std::uint64_t{static_cast<std::uint8_t>(device.index)};
}

// Two lanes, so that the multiplications overlap.
template <class T>
std::uint64_t hash_words(std::uint64_t seed, const T* words, std::size_t count) {
    std::uint64_t a = seed, b = seed ^ 0x9FB21C651E98DF25ULL;
    std::size_t i = 0;
    for (; i + 1 < count; i += 2) {
        a = support::hash_combine(a, static_cast<std::uint64_t>(words[i]));
        b = support::hash_combine(b, static_cast<std::uint64_t>(words[i + 1]));
    }
    if (i < count) a = support::hash_combine(a, static_cast<std::uint64_t>(words[i]));
    return support::hash_combine(a, b);
}

}  // namespace

bool build_key(const LiveValues& live, LiveKey& key) {
    key.signature.clear();
    key.frame.clear();
    key.floats.clear();
    key.tensors.clear();
    // Locals that are not given and unset ones at the end are the same thing and cost nothing.
    std::size_t locals = live.locals.size();
    while (locals > 0 && live.locals[locals - 1].is_unset()) --locals;
    key.signature.push(locals | std::uint64_t{live.stack.size()} << 32);
    if (live.device.kind != DeviceKind::kCpu) [[unlikely]]
        key.signature.push(device_word(live.device));
    KeyWriter writer(key);
    for (const Value& value : live.locals.first(locals)) {
        if (!writer.live_value(value, live.grows_lists)) return false;
    }
    for (const Value& value : live.stack) {
        if (!writer.live_value(value, live.grows_lists)) return false;
    }
    for (const std::int64_t symbol : live.symbols) writer.value(Value(symbol));
    if (needs_memory_facts(live, key.tensors.span())) {
        const std::vector<AliasInfo> facts = memory_facts(key.tensors.span());
        for (std::size_t i = 0; i < facts.size(); ++i) {
            if (facts[i].group == 0 && !facts[i].fixed) continue;
            key.signature.push(i << 16 | std::uint64_t{facts[i].group} << 8 | std::uint64_t{facts[i].fixed} << 1 |
                               std::uint64_t{facts[i].exact});
        }
    }
    return true;
}

void hash_key(LiveKey& key) {
    key.signature_hash = hash_words(0, key.signature.data(), key.signature.size());
    if (key.floats.size() == 0) {
        key.exact_hash = hash_words(key.signature_hash, key.frame.data(), key.frame.size());
    } else {
        std::uint64_t hash = key.signature_hash;
        std::size_t next = 0;
        for (std::size_t i = 0; i < key.frame.size(); ++i) {
            if (next < key.floats.size() && key.floats[next] == i) {
                ++next;
                continue;
            }
            hash = support::hash_combine(hash, static_cast<std::uint64_t>(key.frame[i]));
        }
        key.exact_hash = hash;
    }
}

namespace {

LiveSignature signature_of(const Value& value, std::vector<const Tensor*>& tensors) {
    LiveSignature out;
    switch (value.kind()) {
        case ValueKind::kTensor: {
            const Tensor& tensor = value.tensor();
            std::int64_t geometry[2 * kMaxRank];
            out.kind = LiveKind::kTensor;
            out.dtype = tensor.dtype();
            out.rank = static_cast<std::uint8_t>(tensor.rank());
            out.device = tensor.device();
            out.layout = write_geometry(tensor, geometry);
            tensors.push_back(&tensor);
            break;
        }
        case ValueKind::kInt: out.kind = LiveKind::kInt; break;
        case ValueKind::kBool: out.kind = LiveKind::kBool; break;
        case ValueKind::kFloat: out.kind = LiveKind::kFloat; break;
        case ValueKind::kNone: out.kind = LiveKind::kNone; break;
        case ValueKind::kUnset: out.kind = LiveKind::kUnset; break;
        case ValueKind::kString:
            out.kind = LiveKind::kString;
            out.text = value.text();
            break;
        case ValueKind::kFunction:
            out.kind = LiveKind::kFunction;
            out.text = value.text();
            break;
        case ValueKind::kForeign: out.kind = LiveKind::kForeign; break;
        case ValueKind::kDict: out.kind = LiveKind::kDynamic; break;
        case ValueKind::kList:
            out.kind = LiveKind::kList;
            for (const Value& element : value.elements()) out.elements.push_back(signature_of(element, tensors));
            break;
    }
    return out;
}

void set_aliases(std::vector<LiveSignature>& values, const std::vector<AliasInfo>& aliases, std::size_t& next) {
    for (LiveSignature& value : values) {
        if (value.kind == LiveKind::kTensor) {
            value.alias_group = aliases[next].group;
            value.exact_alias = aliases[next].exact;
            value.fixed = aliases[next].fixed;
            ++next;
        }
        set_aliases(value.elements, aliases, next);
    }
}

}  // namespace

executable::Signature make_signature(const LiveValues& live) {
    executable::Signature signature;
    signature.local_count = live.local_count;
    signature.device = live.device;
    std::vector<const Tensor*> tensors;
    const auto add = [&](const Value& value) {
        const std::optional<LiveSignature> list = live.grows_lists ? run_list(value) : std::nullopt;
        LiveSignature passed;
        passed.kind = LiveKind::kDynamic;
        const bool passes = !list && live.grows_lists && passes_through(value);
        signature.values.push_back(list ? *list : passes ? passed : signature_of(value, tensors));
    };
    for (const Value& value : live.locals) add(value);
    signature.values.resize(live.local_count);
    for (const Value& value : live.stack) add(value);
    LiveSignature integer;
    integer.kind = LiveKind::kInt;
    signature.values.resize(signature.values.size() + live.symbols.size(), integer);
    signature.symbol_count = static_cast<std::uint32_t>(live.symbols.size());
    if (needs_memory_facts(live, tensors)) {
        std::size_t next = 0;
        set_aliases(signature.values, memory_facts(tensors), next);
    }
    return signature;
}

}  // namespace flexor::vm
