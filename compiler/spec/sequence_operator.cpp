#include "compiler/spec/sequence_operator.h"

#include "compiler/spec/sequence_rows.h"

namespace hstujit {

Argument offsets_argument(std::string name, DataType dtype, std::string_view axis) {
  Argument argument;
  argument.name = std::move(name);
  argument.dtype = dtype;
  argument.shape = {Dimension::of("B", 1)};
  argument.alignment = static_cast<int>(size_of(dtype));
  argument.doc = "first row of each sequence, then the number of rows";
  argument.semantic = Semantic::kOffsets;
  argument.axis = axis;
  return argument;
}

Argument counts_argument(std::string name, DataType dtype, std::string_view axis, std::string_view doc) {
  Argument argument = offsets_argument(std::move(name), dtype, axis);
  argument.shape = {Dimension::of("B")};
  argument.doc = doc;
  argument.semantic = Semantic::kCounts;
  return argument;
}

Argument integer_argument(std::string name, std::string_view doc, int64_t max) {
  Argument argument;
  argument.name = std::move(name);
  argument.kind = ArgumentKind::kInt;
  argument.doc = doc;
  argument.min = 0;
  argument.max = max;
  return argument;
}

HostValue uniform_rows(const Lengths& lengths) {
  const std::vector<int64_t>& rows = lengths.rows_of(kQueryAxis);
  return {{}, rows.empty() ? 0.0 : static_cast<double>(rows.front())};
}

}  // namespace hstujit
