#pragma once
// Values for people and for programs.
#include <string>

#include "flexor/value.h"
#include "json_writer.h"

namespace flexor::cli {

// "out: f32[2,3]" and the elements as NumPy shows them: long dimensions by three elements from each end; beyond 1000
// elements a last line with minimum, maximum and mean.
std::string value_text(const std::string& name, const Value& value);
// {"name", "kind", "dtype", "sizes", "values"}; values in row-major order. Beyond 1000 elements "values" gives way to
// "summary".
void write_value(JsonWriter& json, const std::string& name, const Value& value);

}  // namespace flexor::cli
