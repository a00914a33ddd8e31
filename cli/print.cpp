#include "print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "element.h"

namespace flexor::cli {
namespace {

constexpr std::int64_t kAllElements = 1000;
constexpr std::int64_t kEdge = 3;
constexpr std::size_t kLineWidth = 100;

std::string element_text(DType dtype, const void* element) {
    const Number number = load_element(dtype, element);
    if (number.kind != Number::Kind::kReal) return spell_element(dtype, element);
    char text[32];
    std::snprintf(text, sizeof text, "%.5g", number.real);
    return text;
}

// Prints nested brackets; every element takes the width of the widest one shown.
class Grid {
public:
    explicit Grid(const Tensor& tensor) : tensor_(tensor), short_(tensor.numel() > kAllElements) {}

    std::string text() {
        visit(0, 0, [this](std::int64_t index) {
            width_ = std::max(width_, element_text(tensor_.dtype(), element_at(tensor_, index)).size());
        });
        return block(0, 0);
    }

private:
    std::vector<std::int64_t> shown(int axis) const {
        std::vector<std::int64_t> out;
        const std::int64_t size = tensor_.size(axis);
        const bool cut = short_ && size > 2 * kEdge;
        for (std::int64_t i = 0; i < size; ++i) {
            if (cut && i == kEdge) {
                out.push_back(-1);  // an ellipsis
                i = size - kEdge;
            }
            out.push_back(i);
        }
        return out;
    }

    template <class Action>
    void visit(int axis, std::int64_t index, const Action& action) const {
        if (axis == tensor_.rank()) return action(index);
        for (const std::int64_t i : shown(axis)) {
            if (i >= 0) visit(axis + 1, index * tensor_.size(axis) + i, action);
        }
    }

    std::string block(int axis, std::int64_t index) const {
        if (axis == tensor_.rank()) {
            const std::string text = element_text(tensor_.dtype(), element_at(tensor_, index));
            return std::string(width_ - text.size(), ' ') + text;
        }
        const bool innermost = axis + 1 == tensor_.rank();
        const std::string indent(static_cast<std::size_t>(axis) + 1, ' ');
        std::string out = "[";
        std::size_t column = indent.size();
        bool first = true;
        for (const std::int64_t i : shown(axis)) {
            const std::string item = i < 0 ? "..." : block(axis + 1, index * tensor_.size(axis) + i);
            if (!first && (!innermost || column + item.size() + 1 > kLineWidth)) {
                out += "\n" + indent;
                column = indent.size();
            } else if (!first) {
                out += " ";
            }
            out += item;
            column += item.size() + 1;
            first = false;
        }
        return out + "]";
    }

    const Tensor& tensor_;
    const bool short_;
    std::size_t width_ = 0;
};

struct Summary {
    double min = 0, max = 0, mean = 0;
    std::int64_t nans = 0;
};

Summary summarise(const Tensor& tensor) {
    Summary out;
    double sum = 0;
    std::int64_t numbers = 0;
    const std::int64_t count = tensor.numel();
    for (std::int64_t i = 0; i < count; ++i) {
        const double value = load_element(tensor.dtype(), element_at(tensor, i)).as_real();
        if (std::isnan(value)) {
            ++out.nans;
            continue;
        }
        out.min = numbers == 0 ? value : std::min(out.min, value);
        out.max = numbers == 0 ? value : std::max(out.max, value);
        sum += value;
        ++numbers;
    }
    if (numbers > 0) out.mean = sum / static_cast<double>(numbers);
    return out;
}

std::string tensor_text(const Tensor& tensor) {
    // A dimension of size 0 leaves nothing to show in any of the others.
    if (tensor.numel() == 0) return "[]\n";
    std::string out = Grid(tensor).text() + "\n";
    if (tensor.numel() > kAllElements) {
        const Summary summary = summarise(tensor);
        char line[128];
        std::snprintf(line, sizeof line, "min %.5g, max %.5g, mean %.5g", summary.min, summary.max, summary.mean);
        out += line;
        if (summary.nans > 0) out += ", " + std::to_string(summary.nans) + " NaN";
        out += "\n";
    }
    return out;
}

void write_tensor(JsonWriter& json, const Tensor& tensor) {
    json.key("dtype").string(dtype_name(tensor.dtype())).key("sizes").begin_array();
    for (const std::int64_t size : tensor.sizes()) json.integer(size);
    json.end_array();
    const std::int64_t count = tensor.numel();
    if (count > kAllElements) {
        const Summary summary = summarise(tensor);
        json.key("summary").begin_object().key("min").real(summary.min).key("max").real(summary.max);
        json.key("mean").real(summary.mean).key("nan").integer(summary.nans).end_object();
        return;
    }
    json.key("values").begin_array();
    for (std::int64_t i = 0; i < count; ++i) {
        const void* element = element_at(tensor, i);
        const Number number = load_element(tensor.dtype(), element);
        if (number.kind == Number::Kind::kReal && !std::isfinite(number.real)) {
            json.real(number.real);
        } else {
            json.raw(spell_element(tensor.dtype(), element));
        }
    }
    json.end_array();
}

void write_content(JsonWriter& json, const Value& value) {
    json.key("kind").string(to_string(value.kind()));
    switch (value.kind()) {
        case ValueKind::kTensor: write_tensor(json, value.tensor()); return;
        case ValueKind::kBool: json.key("value").boolean(value.boolean()); return;
        case ValueKind::kInt: json.key("value").integer(value.integer()); return;
        case ValueKind::kFloat: json.key("value").real(value.real()); return;
        case ValueKind::kString: json.key("value").string(value.text()); return;
        case ValueKind::kList:
            json.key("elements").begin_array();
            for (const Value& element : value.elements()) {
                json.begin_object();
                write_content(json, element);
                json.end_object();
            }
            json.end_array();
            return;
        case ValueKind::kDict:
            json.key("items").begin_array();
            for (const auto& [key, element] : value.items()) write_value(json, key, element);
            json.end_array();
            return;
        default: json.key("text").string(value.describe()); return;
    }
}

}  // namespace

std::string value_text(const std::string& name, const Value& value) {
    if (value.is_tensor()) return name + ": " + value.describe() + "\n" + tensor_text(value.tensor());
    if (value.is_list()) {
        std::string out = name + ": list of " + std::to_string(value.elements().size()) + "\n";
        std::size_t i = 0;
        for (const Value& element : value.elements()) out += value_text(name + "." + std::to_string(i++), element);
        return out;
    }
    if (value.is_dict()) {
        std::string out = name + ": dict of " + std::to_string(value.items().size()) + "\n";
        for (const auto& [key, element] : value.items()) out += value_text(name + "." + key, element);
        return out;
    }
    return name + ": " + std::string(to_string(value.kind())) + " " + value.describe() + "\n";
}

void write_value(JsonWriter& json, const std::string& name, const Value& value) {
    json.begin_object().key("name").string(name);
    write_content(json, value);
    json.end_object();
}

}  // namespace flexor::cli
