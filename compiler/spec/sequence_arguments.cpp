#include "compiler/spec/sequence_arguments.h"

#include <utility>

#include "compiler/spec/limits.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

Argument offsets_argument(std::string name, DataType dtype, std::string_view axis, std::string_view doc) {
  Argument argument;
  argument.name = std::move(name);
  argument.dtype = dtype;
  argument.shape = {Dimension::of("B", 1)};
  argument.alignment = static_cast<int>(size_of(dtype));
  argument.doc = doc;
  argument.semantic = Semantic::kOffsets;
  argument.axis = axis;
  return argument;
}

Argument counts_argument(std::string name, DataType dtype, std::string_view axis, std::string_view doc) {
  Argument argument = offsets_argument(std::move(name), dtype, axis, doc);
  argument.shape = {Dimension::of("B")};
  argument.semantic = Semantic::kCounts;
  return argument;
}

Argument scalar_argument(std::string name, ArgumentKind kind, std::string_view doc) {
  Argument argument;
  argument.name = std::move(name);
  argument.kind = kind;
  argument.doc = doc;
  return argument;
}

Argument integer_argument(std::string name, std::string_view doc, int64_t max) {
  Argument argument = scalar_argument(std::move(name), ArgumentKind::kInt, doc);
  argument.min = 0;
  argument.max = max;
  return argument;
}

Argument max_rows_argument(std::string name, std::string_view axis, std::string_view doc) {
  Argument argument = integer_argument(std::move(name), doc, kMaxSeqLen);
  argument.semantic = Semantic::kMaxRows;
  argument.axis = axis;
  return argument;
}

Argument max_seq_len_argument() { return max_rows_argument("max_seq_len", kSequenceAxis, "no sequence is longer"); }

}  // namespace hstujit
